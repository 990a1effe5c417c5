package policy

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLabelsFollowTheRun(t *testing.T) {
	t.Parallel()
	l := Labels{Trigger: "proctor"}
	for _, c := range []struct {
		name        string
		current     []string
		ev          Event
		add, remove []string
	}{
		{"taken", []string{"bug", "proctor"}, EventStarted, []string{"proctor:running"}, []string{"proctor"}},
		{"taken again after a review", []string{"proctor:review", "Proctor"}, EventStarted, []string{"proctor:running"}, []string{"proctor:review", "Proctor"}},
		{"queued", []string{"proctor"}, EventQueued, []string{"proctor:queued"}, []string{"proctor"}},
		{"released from the queue", []string{"proctor:queued"}, EventStarted, []string{"proctor:running"}, []string{"proctor:queued"}},
		{"published", []string{"bug", "proctor:running"}, EventPublished, []string{"proctor:review"}, []string{"proctor:running"}},
		{"published while asked again", []string{"proctor:running", "proctor"}, EventPublished, []string{"proctor:review"}, []string{"proctor:running"}},
		{"needs a human", []string{"proctor:running"}, EventNeedsHuman, []string{"proctor:needs-human"}, []string{"proctor:running"}},
		{"failed", []string{"proctor:running"}, EventFailed, []string{"proctor:failed"}, []string{"proctor:running"}},
		{"refused keeps what an earlier run said", []string{"proctor:review", "proctor"}, EventRefused, nil, []string{"proctor"}},
		{"finished", []string{"bug", "proctor:review", "proctor"}, EventFinished, nil, []string{"proctor:review", "proctor"}},
		{"already there", []string{"proctor:running"}, EventStarted, nil, nil},
		{"unknown event", []string{"proctor"}, "new", nil, nil},
		{"a look-alike is not ours", []string{"proctor:mine", "proctor"}, EventStarted, []string{"proctor:running"}, []string{"proctor"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			add, remove := l.Next(c.current, c.ev)
			if d := cmp.Diff([][]string{c.add, c.remove}, [][]string{add, remove}); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLabelsTakeTheirNamesFromTheTriggerLabel(t *testing.T) {
	t.Parallel()
	want := []string{"agent-run:queued", "agent-run:running", "agent-run:review", "agent-run:needs-human", "agent-run:failed"}
	if d := cmp.Diff(want, Labels{Trigger: "agent-run"}.States()); d != "" {
		t.Error(d)
	}
}

// Over random histories: at most one state at a time, and other people's labels stay as they are.
func TestAnIssueNeverCarriesTwoStates(t *testing.T) {
	t.Parallel()
	l := Labels{Trigger: "proctor"}
	events := []Event{EventQueued, EventStarted, EventPublished, EventNeedsHuman, EventFailed, EventRefused, EventFinished}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		labels := []string{"bug", "proctor:mine"}
		for range 20 {
			if rng.IntN(3) == 0 && !slices.Contains(labels, "proctor") {
				labels = append(labels, "proctor")
			}
			add, remove := l.Next(labels, events[rng.IntN(len(events))])
			labels = slices.DeleteFunc(labels, func(s string) bool { return slices.Contains(remove, s) })
			labels = append(labels, add...)
			states := 0
			for _, s := range labels {
				if l.owns(s) {
					states++
				}
			}
			if states > 1 || !slices.Contains(labels, "bug") || !slices.Contains(labels, "proctor:mine") {
				t.Fatalf("labels %q", labels)
			}
		}
	}
}
