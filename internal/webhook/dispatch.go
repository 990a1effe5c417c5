package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// settle is how long writing down an outcome may take after the request's own time is over.
const settle = 3 * time.Second

// dispatch starts the run of a claim that is ours. Whatever happens, the claim afterwards is
// dispatched, given back, or left to its lease; in the last case the next delivery looks the run up first.
func (h *Handler) dispatch(ctx context.Context, f Forge, c Claim, d *delivery) answer {
	if c.Attempt > 1 {
		// Somebody held this claim before and was not heard of again.
		switch found, err := findRun(ctx, f, c); {
		case err != nil:
			d.cause = err
			return later("forge")
		case found:
			return h.dispatched(ctx, c, d)
		}
	}
	inputs, err := d.t.Inputs()
	if err != nil {
		d.cause = err
		h.giveBack(ctx, c, d)
		return accepted(StatusRefused, "unknown_command")
	}
	err = f.Dispatch(ctx, c.File, d.t.Repo.DefaultBranch, inputs)
	if err == nil {
		a := h.dispatched(ctx, c, d)
		h.react(ctx, f, d.t, forge.ReactionAccepted)
		return a
	}
	d.cause = err
	if ambiguous(err) {
		return h.ambiguous(ctx, f, c, d)
	}
	h.giveBack(ctx, c, d)
	a := forgeAnswer(err)
	if a.Status == StatusFailed {
		h.tell(ctx, f, d.t, c.File, err)
	}
	return a
}

// ambiguous: the request may have arrived although its answer did not. Every other kind of failure is an
// answer, and so a dispatch that did not take place.
func ambiguous(err error) bool {
	for _, answered := range []error{
		forge.ErrNotFound, forge.ErrUnauthorized, forge.ErrForbidden, forge.ErrInvalid, forge.ErrConflict, forge.ErrRateLimited,
	} {
		if errors.Is(err, answered) {
			return false
		}
	}
	return true
}

func (h *Handler) ambiguous(ctx context.Context, f Forge, c Claim, d *delivery) answer {
	if _, ok := f.(forge.RunFinder); !ok {
		return later("unknown_outcome")
	}
	found, err := findRun(ctx, f, c)
	if err == nil && found {
		return h.dispatched(ctx, c, d)
	}
	// Not there yet is not the same as never: the lease runs out before anybody tries again.
	return later("unknown_outcome")
}

// findRun asks the forge for the claim's run. A forge that cannot tell says no: then a run may be
// dispatched twice, under one id, which the run itself recognises.
func findRun(ctx context.Context, f Forge, c Claim) (bool, error) {
	finder, ok := f.(forge.RunFinder)
	if !ok {
		return false, nil
	}
	_, err := finder.FindRun(ctx, c.File, c.To.Repo.DefaultBranch, c.ID, c.Created.Add(-time.Minute))
	if errors.Is(err, forge.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// dispatched writes the outcome down. If the store will not take it, the claim's lease ends, and the
// next delivery finds the run at the forge.
func (h *Handler) dispatched(ctx context.Context, c Claim, d *delivery) answer {
	err := h.persist(ctx, func(ctx context.Context) error {
		return h.cfg.Store.Mark(ctx, c.ID, c.Attempt, Dispatched, h.cfg.Leases.Dispatched)
	})
	a := accepted(StatusDispatched, "")
	a.Run = c.ID
	if err != nil {
		d.cause = err
		a.Reason = "store"
	}
	return a
}

func (h *Handler) giveBack(ctx context.Context, c Claim, d *delivery) {
	err := h.persist(ctx, func(ctx context.Context) error {
		return h.cfg.Store.Release(ctx, c.ID, c.Attempt, Claimed)
	})
	if err != nil {
		d.cause = errors.Join(d.cause, err)
	}
}

// persist tries a step on the store three times, in time of its own: the request's may be used up.
func (h *Handler) persist(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settle)
	defer cancel()
	var err error
	for range 3 {
		if err = step(ctx); err == nil || errors.Is(err, ErrLost) {
			return err
		}
	}
	return fmt.Errorf("write the claim's outcome: %w", err)
}

// tell says on the issue why nothing will happen until somebody acts: the label shows no answer else. Nobody waits for CI's.
func (h *Handler) tell(ctx context.Context, f Forge, t trigger.Trigger, file string, err error) {
	c, ok := f.(Commenter)
	if !ok || t.Check != nil || t.Forge == trigger.GitLab && t.Change != nil {
		return
	}
	_, _ = c.CreateComment(ctx, t.Issue.Number, dispatchProblem(err, file, t.Repo.DefaultBranch))
}

func dispatchProblem(err error, file, branch string) string {
	const again = " Then take the label off and add it again."
	switch {
	case errors.Is(err, forge.ErrForbidden), errors.Is(err, forge.ErrUnauthorized):
		return "Proctor could not start its workflow: its token is not allowed to. Give the App the permission **Actions: read and write**, or the token the scope it needs, and approve the change for this repository." + again
	case errors.Is(err, forge.ErrNotFound):
		return fmt.Sprintf("Proctor could not start its workflow: there is no `%s` in `.github/workflows` on the branch `%s`. Add it there (`proctor init` writes it).%s", file, branch, again)
	}
	return fmt.Sprintf("Proctor could not start its workflow `%s` on the branch `%s`: the forge refused the dispatch. Check that the file has a `workflow_dispatch` trigger with the inputs that `proctor init` writes, and that the workflow is enabled.%s", file, branch, again)
}
