package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
)

// Attempt is one try of the forge's to deliver an event.
type Attempt struct {
	ID        int64
	Delivery  string // the same for every attempt at one event
	Event     string
	At        time.Time
	Delivered bool // it was answered with 2xx
}

// Attempts is the forge's own log of what it sent here. GitHub keeps three days of it, and repeats nothing unasked.
// https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries
type Attempts interface {
	// Attempts since, the newest first. There may be more than it is willing to list: complete says that all are here.
	Attempts(ctx context.Context, since time.Time) (all []Attempt, complete bool, err error)
	// Redeliver asks for another attempt at the event of one.
	Redeliver(ctx context.Context, id int64) error
}

// Bounds of a sweep.
const (
	sweepBack    = 72 * time.Hour
	sweepSettled = 2 * time.Minute // an attempt that may still be under way, or whose claim's lease still runs
	sweepPause   = 6 * time.Hour   // the longest between two attempts at one delivery
	maxAttempts  = 12
	maxAsked     = 100
	maxSweep     = time.Minute // where nobody else sets an end
	maxAway      = 10          // refusals that say nothing of the delivery: the forge is away, or the App has no calls left
)

// Swept counts what a sweep did.
type Swept struct {
	Asked    int // deliveries that will come again
	GivenUp  int // deliveries that failed too often
	Refused  int // deliveries that the forge would not send again this time
	Complete bool
}

// Sweep asks for another attempt at every delivery of the last three days that no attempt has got through. However many the forge will not
// send again hold up no other; a forge that answers for none of them is left alone after a few. It takes half of the time that ctx has left at the
// most: whoever sweeps looks after claims, too.
func (h *Handler) Sweep(ctx context.Context) (Swept, error) {
	if h.cfg.Attempts == nil {
		return Swept{Complete: true}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTime(ctx))
	defer cancel()
	now := h.cfg.Now()
	all, complete, err := h.cfg.Attempts.Attempts(ctx, now.Add(-sweepBack))
	out := Swept{Complete: complete}
	if err != nil {
		return out, err
	}
	h.forgetGivenUp(now)
	var refused error
	looks, away := 0, 0
	for _, a := range undelivered(all) {
		switch {
		case ctx.Err() != nil:
			out.Complete = false
			return out, errors.Join(refused, fmt.Errorf("the sweep is not finished: %w", ctx.Err()))
		case now.Sub(a.last.At) < waits(a.tries):
			continue
		case a.tries >= maxAttempts:
			out.GivenUp++
			if _, told := h.gaveUp.Load(a.last.Delivery); !told && looks < maxAsked {
				looks++
				h.giveUp(ctx, a.last)
			}
			continue
		case out.Asked == maxAsked, away == maxAway:
			out.Complete = false
			return out, refused
		}
		if err := h.cfg.Attempts.Redeliver(ctx, a.last.ID); err != nil {
			out.Refused++
			if concernsAll(err) {
				away++
			}
			refused = fmt.Errorf("delivery %s is not sent again: %w", clip(a.last.Delivery), err)
			continue
		}
		out.Asked++
		h.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "delivery had failed; asked for it again", slog.String(keyDelivery, a.last.Delivery), slog.String(keyEvent, clip(a.last.Event)))
	}
	return out, refused
}

func sweepTime(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(time.Until(end)/2, maxSweep)
	}
	return maxSweep
}

// concernsAll: the forge did not answer for this delivery, so that the next one would fare no better. One that it answered for adds no attempt to
// its log and comes first in the next sweep again: were it counted, ten of them would hold up all others until the log forgets them.
func concernsAll(err error) bool {
	return errors.Is(err, forge.ErrRateLimited) || errors.Is(err, forge.ErrUnauthorized) || ambiguous(err)
}

// giveUp tells of a delivery that is not asked for again, once: the store remembers it for as long as the forge lists it. What the store
// does not say is told again.
func (h *Handler) giveUp(ctx context.Context, a Attempt) {
	c, err := h.cfg.Store.Claim(ctx, Claim{ID: "given-up:" + a.Delivery}, h.cfg.Leases.Claimed)
	if !errors.Is(err, ErrTaken) {
		h.cfg.Log.LogAttrs(ctx, slog.LevelError, "delivery failed too often and is not asked for again: ask for it in the App's settings, or take the label off and add it again",
			slog.String(keyDelivery, clip(a.Delivery)), slog.String(keyEvent, clip(a.Event)))
	}
	if err == nil {
		err = h.persist(ctx, func(ctx context.Context) error {
			return h.cfg.Store.Mark(ctx, c.ID, c.Attempt, Ended, h.cfg.Leases.Ended)
		})
	}
	if err == nil || errors.Is(err, ErrTaken) {
		h.gaveUp.Store(a.Delivery, a.At)
	}
}

// forgetGivenUp lets go of what the forge lists no longer.
func (h *Handler) forgetGivenUp(now time.Time) {
	h.gaveUp.Range(func(delivery, at any) bool {
		if now.Sub(at.(time.Time)) > sweepBack {
			h.gaveUp.Delete(delivery)
		}
		return true
	})
}

// waits doubles with each attempt that failed: twelve of them last more than a day, so that they outlast an outage.
func waits(tries int) time.Duration { return min(sweepSettled<<min(tries-1, 16), sweepPause) }

type failedDelivery struct {
	last  Attempt // the newest
	tries int
}

// undelivered are the deliveries that we act on and no attempt got through, the oldest first.
func undelivered(all []Attempt) []failedDelivery {
	byID := map[string]*failedDelivery{}
	var order []string
	through := map[string]bool{}
	for _, a := range all {
		if !hears(a.Event) {
			continue
		}
		through[a.Delivery] = through[a.Delivery] || a.Delivered
		f := byID[a.Delivery]
		if f == nil {
			f = &failedDelivery{last: a}
			byID[a.Delivery] = f
			order = append(order, a.Delivery)
		}
		if a.At.After(f.last.At) {
			f.last = a
		}
		f.tries++
	}
	var out []failedDelivery
	for i := len(order) - 1; i >= 0; i-- {
		if !through[order[i]] {
			out = append(out, *byID[order[i]])
		}
	}
	return out
}

// hears: events that are ignored whatever they say need no second attempt.
func hears(event string) bool {
	switch event {
	case "issues", "issue_comment", "pull_request", "pull_request_review", "workflow_run", "check_suite", "installation", "installation_repositories":
		return true
	}
	return false
}
