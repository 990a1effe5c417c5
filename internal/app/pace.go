package app

import (
	"context"
	"time"

	"github.com/proctor-ci/proctor/internal/loop"
)

// A proof that held-out gates fail is followed by the next tick after firstRound at least, and from lastRound on at a multiple
// of that: doubling on would let the wait be as long as the longest gate.
const (
	firstRound = 250 * time.Millisecond
	lastRound  = 64 * time.Second // a doubling of firstRound
)

// pace waits after a proof that held-out gates fail until the next doubling of firstRound since its start, and no longer than
// lastRound. The candidate's code ran beside the held-out files, and how long it ran is a channel to the next tick's agent,
// who knows the time: what it can say is which of a few rounds it was, at most once an attempt. A proof that ends the run has
// no next tick and waits for nothing, nor does one that got to no held-out gate.
func (s *session) pace(ctx context.Context, began time.Time, seen loop.ProofSeen) {
	if !seen.Acceptance {
		return
	}
	took := max(s.env.Now().Sub(began), 0)
	if left := rounded(took) - took; left > 0 {
		_ = s.env.Sleep(ctx, left) // only the end of the run cuts it short
	}
}

func rounded(took time.Duration) time.Duration {
	if took > lastRound {
		return (took + lastRound - 1) / lastRound * lastRound
	}
	round := firstRound
	for round < took {
		round *= 2
	}
	return round
}
