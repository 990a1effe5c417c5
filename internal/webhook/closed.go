package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// labeller sets labels on issues.
type labeller interface {
	SetLabels(ctx context.Context, number int, add, remove []string) error
}

// issueOfBranch is the issue that a branch of ours was made for; 0 where there is none. Only the front of publish.branch is
// known here, with the default's "issue-" or without.
func (h *Handler) issueOfBranch(branch string) int {
	for _, between := range []string{"issue-", ""} {
		if n, ok := trigger.IssueOfBranch(branch, h.cfg.Branches+between+"{number}"); ok {
			return n
		}
	}
	return 0
}

// closed puts the labels of what is over away and starts what waited for the room that an ended pull request leaves.
func (h *Handler) closed(ctx context.Context, d *delivery) answer {
	number, ours := d.t.Issue.Number, d.t.Change == nil
	if c := d.t.Change; c != nil {
		ours, number = !c.FromFork, h.issueOfBranch(c.Head)
	}
	if !ours || number <= 0 {
		return accepted(StatusIgnored, "other_branch")
	}
	f, a, ok := h.connect(ctx, d)
	if !ok {
		return a
	}
	if err := h.unlabel(ctx, f, number); err != nil {
		d.cause = err
		return forgeAnswer(err)
	}
	if d.t.Change == nil {
		return accepted(StatusRecorded, "closed")
	}
	return h.release(ctx, f, d, fmt.Sprintf("closed:%s:%d:%d:%s", d.t.Forge, d.t.Repo.ID, d.t.Change.Number, d.t.Change.HeadSHA))
}

// unlabel takes our state labels off an issue whose request is over. One that was asked for again meanwhile keeps the trigger label: that is
// a request of its own. An issue that is gone needs nothing.
func (h *Handler) unlabel(ctx context.Context, f Forge, number int) error {
	l, ok := f.(labeller)
	if !ok {
		return nil
	}
	issue, err := f.Issue(ctx, number)
	if errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrMoved) {
		return nil
	}
	if err != nil {
		return err
	}
	states := h.labels()
	_, remove := states.Next(issue.Labels, policy.EventFinished)
	if issue.State == "open" {
		// A pull request that was closed and not merged leaves the issue open, and somebody may have asked again.
		kept := remove[:0]
		for _, name := range remove {
			if !strings.EqualFold(name, states.Trigger) && !strings.EqualFold(name, states.Queued()) && !strings.EqualFold(name, states.Running()) {
				kept = append(kept, name)
			}
		}
		remove = kept
	}
	if len(remove) == 0 {
		return nil
	}
	return l.SetLabels(ctx, number, nil, remove)
}

// freed hands the room on that a run of ours had and leaves without a pull request. One whose issue waits itself, or goes on, or
// has a draft, leaves none: otherwise each run that finds no room would start the next one like it, without end.
func (h *Handler) freed(ctx context.Context, d *delivery, c Claim) answer {
	if c.Roomless {
		return accepted(StatusRecorded, "no_room")
	}
	f, a, ok := h.connect(ctx, d)
	if !ok {
		return a
	}
	issue, err := f.Issue(ctx, c.Issue)
	switch {
	case errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrMoved):
	case err != nil:
		d.cause = err
		return forgeAnswer(err)
	case h.labelled(issue, h.labels().Queued()):
		if err := h.full(ctx, c.To); err != nil {
			// Where nobody may count, an end that is heard of has to start it.
			d.cause = err
			return forgeAnswer(err)
		}
		return accepted(StatusRecorded, "no_room")
	case h.holdsRoom(issue):
		return accepted(StatusRecorded, "no_room")
	}
	return h.release(ctx, f, d, "ended:"+c.ID)
}

// reasonTurn: another end has started this waiting request, and its run has not ended.
const reasonTurn = "turn"

// release dispatches the oldest issue that waits for room and that no other end has started, once for each end that makes room. The
// run finds what was approved by the label event's id, and decides anew on all of it. Where only issues are left that another end has
// started, the end comes again: a run that finds no room waits anew, and has this one's.
func (h *Handler) release(ctx context.Context, f Forge, d *delivery, end string) answer {
	lister, ok := f.(forge.LabelLister)
	if !ok {
		return accepted(StatusRecorded, "closed")
	}
	queue, err := lister.Labelled(ctx, h.labels().Queued())
	if err != nil {
		d.cause = err
		return forgeAnswer(err)
	}
	return h.first(ctx, f, d, queue, end)
}

// first is release for a queue that is known.
func (h *Handler) first(ctx context.Context, f Forge, d *delivery, queue []forge.Issue, end string) answer {
	nobody := accepted(StatusRecorded, "closed")
	for _, issue := range queue {
		next, err := h.waiting(ctx, f, d, issue, end)
		if errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrMoved) {
			// Nobody can say what was asked: it must not hold up those behind it.
			h.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "waiting request without a label event", slog.Int(keyIssue, issue.Number))
			continue
		}
		if err != nil {
			d.cause = err
			return forgeAnswer(err)
		}
		a := h.request(ctx, next)
		d.cause = errors.Join(d.cause, next.cause)
		switch {
		case a.Status == StatusDuplicate && a.Reason == reasonTurn:
			// It carries its label until the run takes it off: this end's room is the next one's.
			nobody = later(reasonTurn)
		case a.Status == StatusRefused, next.gone(a):
			// Its asker may not ask any more, or it was closed or deleted: the next one has the room.
			h.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "waiting request refused", slog.Int(keyIssue, issue.Number), slog.String(keyReason, a.Reason))
		default:
			return a
		}
	}
	return nobody
}

// gone: the issue was not there any more when it was looked at. What fails after the claim is the dispatch, and would with every other issue.
func (d *delivery) gone(a answer) bool {
	return a.Status == StatusFailed && a.Reason == "not_found" && d.t.ID == ""
}

// waiting is the request of an issue in the queue, as the dispatch that it is now.
func (h *Handler) waiting(ctx context.Context, f Forge, d *delivery, issue forge.Issue, end string) (*delivery, error) {
	ev, err := f.LabelEvent(ctx, issue.Number, h.cfg.Rules.Label)
	if err != nil {
		return nil, err
	}
	t := trigger.Trigger{
		Forge: d.t.Forge, Kind: trigger.KindDispatch, Event: d.t.Event, Action: d.t.Action, Repo: d.t.Repo, Install: d.t.Install,
		Issue: trigger.Issue{Number: issue.Number, State: issue.State}, Actor: trigger.Actor{Login: ev.Actor.Login, ID: ev.Actor.ID, Bot: ev.Actor.Bot},
		Asked: trigger.Asked{ID: ev.ID, At: ev.At},
	}
	// One end starts one run, however often it is told of, and whoever waits when it is told of again. The delivery itself has no claim. One
	// waiting request is started by one end at a time: it waits anew where its run found no room.
	turn := fmt.Sprintf("waiting:%s:%d:%s#%d:%d", t.Forge, t.Repo.ID, t.Repo.FullName(), issue.Number, ev.ID)
	return &delivery{forge: d.forge, event: d.event, t: t, body: "room:" + end, turn: turn}, nil
}
