package webhook

import (
	"context"
	"log/slog"
	"time"
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
)

// Swept counts what a sweep did.
type Swept struct {
	Asked    int // deliveries that will come again
	GivenUp  int // deliveries that failed too often
	Complete bool
}

// Sweep asks for another attempt at every delivery of the last three days that no attempt has got through.
func (h *Handler) Sweep(ctx context.Context) (Swept, error) {
	if h.cfg.Attempts == nil {
		return Swept{Complete: true}, nil
	}
	now := h.cfg.Now()
	all, complete, err := h.cfg.Attempts.Attempts(ctx, now.Add(-sweepBack))
	out := Swept{Complete: complete}
	if err != nil {
		return out, err
	}
	defer func() {
		if out.GivenUp > 0 {
			h.cfg.Log.LogAttrs(ctx, slog.LevelError, "deliveries failed too often and are not asked for again: ask for them in the App's settings, or take the label off and add it again", slog.Int("deliveries", out.GivenUp))
		}
	}()
	for _, a := range undelivered(all) {
		switch {
		case now.Sub(a.last.At) < waits(a.tries):
			continue
		case a.tries >= maxAttempts:
			out.GivenUp++
			continue
		case out.Asked == maxAsked:
			out.Complete = false
			return out, nil
		}
		if err := h.cfg.Attempts.Redeliver(ctx, a.last.ID); err != nil {
			return out, err
		}
		out.Asked++
		h.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "delivery had failed; asked for it again", slog.String(keyDelivery, a.last.Delivery), slog.String(keyEvent, clip(a.last.Event)))
	}
	return out, nil
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
