package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// rateWindow is what rates are counted in, by the clock.
const rateWindow = time.Hour

// reasonRate: the account or the repository has asked for as many runs as one hour takes.
const reasonRate = "rate"

// rate is one limit and what counts towards it.
type rate struct {
	kind    string // "actor" or "repo"
	counter string // of that account or repository
	whose   string
	most    int // 0 for any number
}

// rates: CI that asks is no account's, and counts for its repository.
func (h *Handler) rates(t trigger.Trigger) []rate {
	all := []rate{{"repo", fmt.Sprintf("rate:repo:%s:%d:%s", t.Forge, t.Repo.ID, t.Repo.FullName()), "this repository has", h.cfg.Rates.Repo}}
	if t.Check != nil {
		return all
	}
	return append([]rate{{"actor", fmt.Sprintf("rate:actor:%s:%d", t.Forge, t.Actor.ID), "this account has", h.cfg.Rates.Actor}}, all...)
}

// within counts a request that has its claim, once for each limit, and gives the claim back where it is one too many. The
// first of them is told on the issue; those after it would only repeat that.
func (h *Handler) within(ctx context.Context, f Forge, c Claim, d *delivery) (answer, bool) {
	if !counts(d) {
		return answer{}, true
	}
	end := h.cfg.Now().Truncate(rateWindow).Add(rateWindow)
	for _, r := range h.rates(d.t) {
		if r.most == 0 {
			continue
		}
		n, a, ok := h.countOnce(ctx, c, r, end, d)
		if ok && n <= r.most {
			continue
		}
		h.giveBack(ctx, c, d)
		if !ok {
			return a, false
		}
		h.react(ctx, f, d.t, forge.ReactionRefused)
		if n == r.most+1 {
			h.tellRate(ctx, f, d, r.whose, r.most, end)
		}
		return accepted(StatusRefused, reasonRate), false
	}
	return answer{}, true
}

// countOnce gives the counter of r with the request of c in it, 0 where an earlier attempt has counted it: a claim that is given
// back comes again as new. A mark beside the claim tells. It is kept only where the request is within the limit: one that was
// refused is counted anew when it comes again. A mark that was left half-way lets nobody pass, and lapses as a claim does.
func (h *Handler) countOnce(ctx context.Context, c Claim, r rate, end time.Time, d *delivery) (int, answer, bool) {
	mark, err := h.cfg.Store.Claim(ctx, Claim{ID: "counted:" + r.kind + ":" + c.ID, To: c.To, File: c.File, Issue: c.Issue}, h.cfg.Leases.Claimed)
	switch {
	case errors.Is(err, ErrTaken) && mark.State == Ended:
		return 0, answer{}, true
	case errors.Is(err, ErrTaken):
		return 0, later("in_flight"), false
	case err != nil:
		d.cause = err
		return 0, later("store"), false
	}
	n, err := h.cfg.Store.Count(ctx, r.counter, end)
	if err != nil || n > r.most {
		d.cause = err
		h.giveBack(ctx, mark, d)
		return n, later("store"), err == nil
	}
	// Ended at once: it stays for as long as the event may be delivered again, and no reaper takes it for a dispatch.
	if err := h.persist(ctx, func(ctx context.Context) error {
		return h.cfg.Store.Mark(ctx, mark.ID, mark.Attempt, Ended, h.cfg.Leases.Ended)
	}); err != nil {
		d.cause = err
		return n, later("store"), false
	}
	return n, answer{}, true
}

// counts: a request that waited was counted when it was made, and a stop must get through whatever was asked for before.
func counts(d *delivery) bool {
	return d.turn == "" && (d.t.Command == nil || d.t.Command.Name != "stop")
}

func (h *Handler) tellRate(ctx context.Context, f Forge, d *delivery, whose string, most int, end time.Time) {
	c, ok := f.(Commenter)
	if !ok || d.t.Check != nil || d.t.Forge == trigger.GitLab && d.t.Change != nil {
		return
	}
	_, err := c.CreateComment(ctx, d.t.Issue.Number, fmt.Sprintf("Proctor starts no run: %s asked for %d in this hour, which is the limit that this webhook has. Ask again after %s UTC; an administrator can raise the limit.", whose, most, end.UTC().Format("15:04")))
	d.cause = errors.Join(d.cause, err)
}
