package app

import (
	"context"
	"fmt"
	"time"

	"github.com/proctor-ci/proctor/internal/loop"
)

// The tick behind a proof that held-out gates failed starts firstRound after that proof's start at least, and from lastRound on
// at a multiple of that: doubling on would let the wait be as long as the longest gate.
const (
	firstRound = 250 * time.Millisecond
	lastRound  = 64 * time.Second // a doubling of firstRound
)

// remark keeps when a proof began that held-out gates failed. The candidate's code ran beside the held-out files, and how long
// it ran is a channel to the next tick's agent, who knows the time.
func (s *session) remark(began time.Time, seen loop.ProofSeen) {
	if seen.Acceptance {
		s.redSince = began
	}
}

// pace waits in front of a tick behind such a proof until the next doubling of firstRound since the proof's start, and no longer
// than lastRound: what the time can say is which of a few rounds it was, at most once an attempt. What lies between, the
// checkpoint too, is inside the round, so nothing that this wait hides is seen beside it; and a run that ends waits for nothing.
// The turn comes back with the time that is left then: what was left before would tell the proof's duration.
func (s *session) pace(ctx context.Context, t loop.Turn) loop.Turn {
	if s.redSince.IsZero() {
		return t
	}
	stopped := s.env.Now()
	took := max(stopped.Sub(s.redSince), 0)
	s.redSince = time.Time{}
	if left := rounded(took) - took; left > 0 {
		s.tell(fmt.Sprintf("tick %d: waits until the failed proof's duration is a round one, %s at most", t.Tick, left.Round(firstRound)+firstRound))
		_ = s.env.Sleep(ctx, left) // only the end of the run's time cuts it short
		t.TimeLeft -= s.env.Now().Sub(stopped)
	}
	return t
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
