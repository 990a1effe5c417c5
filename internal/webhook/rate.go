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

// within counts a request that has its claim, so that the same event is counted once, and gives the claim back where it is one too many. The
// first of them is told on the issue; those after it would only repeat that.
func (h *Handler) within(ctx context.Context, f Forge, c Claim, d *delivery) (answer, bool) {
	if c.Attempt > 1 || !counts(d) {
		return answer{}, true
	}
	now := h.cfg.Now()
	end := now.Truncate(rateWindow).Add(rateWindow)
	for _, r := range []struct {
		name, whose string
		most        int
	}{
		{fmt.Sprintf("actor:%s:%d", d.t.Forge, d.t.Actor.ID), "this account has", h.cfg.Rates.Actor},
		{fmt.Sprintf("repo:%s:%d:%s", d.t.Forge, d.t.Repo.ID, d.t.Repo.FullName()), "this repository has", h.cfg.Rates.Repo},
	} {
		if r.most == 0 {
			continue
		}
		n, err := h.cfg.Store.Count(ctx, "rate:"+r.name, end)
		if err != nil {
			d.cause = err
			h.giveBack(ctx, c, d)
			return later("store"), false
		}
		if n <= r.most {
			continue
		}
		h.giveBack(ctx, c, d)
		h.react(ctx, f, d.t, forge.ReactionRefused)
		if n == r.most+1 {
			h.tellRate(ctx, f, d, r.whose, r.most, end)
		}
		return accepted(StatusRefused, reasonRate), false
	}
	return answer{}, true
}

// counts: a request that waited was counted when it was made, and a stop must get through whatever was asked for before.
func counts(d *delivery) bool {
	return d.turn == "" && (d.t.Command == nil || d.t.Command.Name != "stop")
}

func (h *Handler) tellRate(ctx context.Context, f Forge, d *delivery, whose string, most int, end time.Time) {
	c, ok := f.(Commenter)
	if !ok || d.t.Forge == trigger.GitLab && d.t.Change != nil {
		return
	}
	_, err := c.CreateComment(ctx, d.t.Issue.Number, fmt.Sprintf("Proctor starts no run: %s asked for %d in this hour, which is the limit that this webhook has. Ask again after %s UTC; an administrator can raise the limit.", whose, most, end.UTC().Format("15:04")))
	d.cause = errors.Join(d.cause, err)
}
