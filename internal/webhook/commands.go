package webhook

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// explain answers help and unknown commands from here, without a run, to those who may ask: nobody else
// can make us write.
func (h *Handler) explain(ctx context.Context, d *delivery) answer {
	asHelp := d.t
	asHelp.Command = &trigger.Command{Name: "help", CommentID: d.t.Command.CommentID}
	if dec := policy.Precheck(asHelp, h.cfg.Rules); !dec.Allow {
		return accepted(StatusRefused, string(dec.Reason))
	}
	q, a, ok := h.inquire(ctx, d)
	if !ok {
		return a
	}
	if dec := policy.Authorise(asHelp, q.facts, h.cfg.Rules); !dec.Allow {
		return accepted(StatusRefused, string(dec.Reason))
	}
	c, ok := q.forge.(Commenter)
	if !ok || d.t.Forge == trigger.GitLab && d.t.Change != nil {
		return accepted(StatusIgnored, string(policy.ReasonCommand))
	}
	held, a, ok := h.claim(ctx, d)
	if !ok {
		return a
	}
	if _, err := c.CreateComment(ctx, d.t.Issue.Number, helpText(d.t, h.cfg.Options.Prefix)); err != nil {
		d.cause = err
		h.giveBack(ctx, held, d)
		return forgeAnswer(err)
	}
	if err := h.persist(ctx, func(ctx context.Context) error {
		return h.cfg.Store.Mark(ctx, held.ID, held.Attempt, Ended, h.cfg.Leases.Ended)
	}); err != nil {
		d.cause = err
	}
	return accepted(StatusAnswered, "help")
}

func helpText(t trigger.Trigger, prefix string) string {
	if _, ok := t.Command.Info(); ok {
		return trigger.Help(prefix)
	}
	return "There is no such command. " + trigger.Help(prefix)
}

// progress notes what the forge tells of a run of ours: seen, or over, which may make room. Only the claim's own
// repository, workflow and branch are believed: any other run may show the id in its title.
func (h *Handler) progress(ctx context.Context, d *delivery) answer {
	c, err := h.cfg.Store.Find(ctx, []string{d.t.ID})
	switch {
	case errors.Is(err, ErrNoClaim):
		return accepted(StatusIgnored, string(trigger.ReasonOtherRun))
	case err != nil:
		d.cause = err
		return later("store")
	case c.To.Forge != d.t.Forge || c.To.Repo.ID != d.t.Repo.ID || c.To.Repo.FullName() != d.t.Repo.FullName():
		return accepted(StatusIgnored, string(trigger.ReasonOtherRun))
	}
	if a, ok := h.isRunOf(ctx, c, d); !ok {
		return a
	}
	state, lease := h.stateOf(d.t.Run.Status)
	if state == 0 {
		return accepted(StatusIgnored, string(trigger.ReasonAction))
	}
	if err := h.persist(ctx, func(ctx context.Context) error {
		return h.cfg.Store.Mark(ctx, c.ID, 0, state, lease)
	}); err != nil && !errors.Is(err, ErrLost) {
		d.cause = err
		return later("store")
	}
	if state == Ended {
		// What becomes of the next request is its own; only what another try may mend is asked for again.
		if a := h.freed(ctx, d, c); a.Status == StatusRetry {
			return a
		}
	}
	a := accepted(StatusRecorded, state.String())
	a.Run = c.ID
	return a
}

// isRunOf: the delivery's run is the one that was dispatched for the claim. A message that was queued before deliveries told a run's file and
// branch has neither, so that the forge is asked which run is the claim's.
func (h *Handler) isRunOf(ctx context.Context, c Claim, d *delivery) (answer, bool) {
	other := accepted(StatusIgnored, string(trigger.ReasonOtherRun))
	if d.t.Run.Branch != "" {
		return other, c.dispatchedAs(*d.t.Run)
	}
	f, a, ok := h.connect(ctx, d)
	if !ok {
		return a, false
	}
	finder, ok := f.(forge.RunFinder)
	if !ok {
		return other, false
	}
	run, err := named(ctx, finder, c, d.t.Run.ID)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		d.cause = err
		return forgeAnswer(err), false
	}
	return other, err == nil && run.ID == d.t.Run.ID
}

// stateOf maps both the event's and forge.Run's words.
func (h *Handler) stateOf(status string) (state State, lease time.Duration) {
	switch {
	case slices.Contains([]string{"queued", "requested", "waiting", "pending"}, status):
		return Dispatched, h.cfg.Leases.Dispatched
	case slices.Contains([]string{"in_progress", "running"}, status):
		return Running, h.cfg.Leases.Running
	case status == "completed":
		return Ended, h.cfg.Leases.Ended
	}
	return 0, 0
}
