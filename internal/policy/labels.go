package policy

import (
	"slices"
	"strings"
)

// Labels is the label state machine of one installation. Every name is derived from the trigger
// label's: "proctor:running" for "proctor". An issue carries at most one of them.
type Labels struct {
	Trigger string
}

// Event is what happened to a request.
type Event string

// Events that move an issue's label.
const (
	EventQueued     Event = "queued"      // allowed, but there is no room yet
	EventStarted    Event = "started"     // a run began
	EventPublished  Event = "published"   // a draft pull request is open
	EventNeedsHuman Event = "needs_human" // stopped with a report
	EventFailed     Event = "failed"      // ended without a result
	EventRefused    Event = "refused"     // the request was not allowed
	EventFinished   Event = "finished"    // the issue or its pull request was closed or merged
)

// The states' labels, in the order of a run.
func (l Labels) Queued() string     { return l.Trigger + ":queued" }
func (l Labels) Running() string    { return l.Trigger + ":running" }
func (l Labels) Review() string     { return l.Trigger + ":review" }
func (l Labels) NeedsHuman() string { return l.Trigger + ":needs-human" }
func (l Labels) Failed() string     { return l.Trigger + ":failed" }

// States are all labels the harness sets, in the order of a run.
func (l Labels) States() []string {
	return []string{l.Queued(), l.Running(), l.Review(), l.NeedsHuman(), l.Failed()}
}

func (l Labels) owns(label string) bool {
	return slices.ContainsFunc(l.States(), func(s string) bool { return strings.EqualFold(s, label) })
}

// Next gives the labels to add and to remove so that current ends in the state ev leads to. It names
// only labels that have to change, never one that is not ours. The trigger label goes when a request
// is taken or settled, so that adding it again asks again; a trigger label that was added while a run is
// going is a new request and stays until that one is taken.
func (l Labels) Next(current []string, ev Event) (add, remove []string) {
	var to string
	takesTrigger := false
	switch ev {
	case EventQueued:
		to, takesTrigger = l.Queued(), true
	case EventStarted:
		to, takesTrigger = l.Running(), true
	case EventPublished:
		to = l.Review()
	case EventNeedsHuman:
		to = l.NeedsHuman()
	case EventFailed:
		to = l.Failed()
	case EventRefused:
		// The states say how an earlier run went: a refused request changes none of that.
		return nil, present(current, l.Trigger)
	case EventFinished:
		takesTrigger = true
	default:
		return nil, nil
	}
	if to != "" && len(present(current, to)) == 0 {
		add = []string{to}
	}
	for _, label := range current {
		switch {
		case to != "" && strings.EqualFold(label, to):
		case l.owns(label), takesTrigger && strings.EqualFold(label, l.Trigger):
			remove = append(remove, label)
		}
	}
	return add, remove
}

func present(current []string, label string) []string {
	for _, c := range current {
		if strings.EqualFold(c, label) {
			return []string{c}
		}
	}
	return nil
}
