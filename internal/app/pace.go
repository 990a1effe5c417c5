package app

import (
	"context"
	"time"

	"github.com/proctor-ci/proctor/internal/loop"
)

// firstRound is the least time from the start of a proof that held-out gates fail to the next tick.
const firstRound = 250 * time.Millisecond

// pace waits after a proof that held-out gates fail until the next doubling of firstRound since its start. The candidate's
// code ran beside the held-out files, and how long it ran is a channel to the next tick's agent, who knows the time: what
// it can say is which doubling it was, at most once an attempt. A proof that ends the run has no next tick and waits for
// nothing, nor does one that got to no held-out gate.
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
	round := firstRound
	for round < took {
		round *= 2
	}
	return round
}
