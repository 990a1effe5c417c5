package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/money"
)

// tick is the record's tick of that number, made at its first mention.
func (s *session) tick(n int) *evidence.Tick {
	for i := range s.rec.Ticks {
		if s.rec.Ticks[i].N == n {
			return &s.rec.Ticks[i]
		}
	}
	s.rec.Ticks = append(s.rec.Ticks, evidence.Tick{N: n, Started: s.env.Now().UTC()})
	return &s.rec.Ticks[len(s.rec.Ticks)-1]
}

// now is the tick in flight; a resumed proof without a new tick belongs to the one it proves.
func (s *session) now() int {
	if len(s.rec.Ticks) == 0 {
		s.tick(max(s.saved.State.Tick, 1))
	}
	return s.rec.Ticks[len(s.rec.Ticks)-1].N
}

// Spent is what this process has spent so far.
func (s *session) Spent() money.USD { return s.meter.Spent() }

// Keep closes a tick in the record and saves the state beside its commit. A tick that something ends is saved with its end, which follows at
// once: each save is an exchange with the forge.
func (s *session) Keep(ctx context.Context, st loop.State) error {
	if s.unwiped != nil {
		return fmt.Errorf("a proof could not be removed, so its sealed files could be read: %w", s.unwiped)
	}
	if st.End == nil && len(s.rec.Ticks) > 0 {
		if err := s.recallJudged(ctx, st.Tick); err != nil {
			return err
		}
		s.closeTick(st)
		s.tellPlan(st)
	}
	s.saved.State = st
	if st.End == nil && len(st.Pending) > 0 {
		return nil
	}
	if st.End != nil && st.End.Terminal == loop.Done && s.proved != "" {
		// Said before it is pushed: if this machine is lost in between, the next run knows the branch for ours.
		s.saved.Pushed = append(s.saved.Pushed, string(s.proved))
		// With history: squash it is another commit of the same tree: a refused push must not leave it here alone.
		s.saved.State.Good.ID = string(s.proved)
	}
	return s.save(ctx)
}

func (s *session) closeTick(st loop.State) {
	t := s.tick(st.Tick)
	t.Millis = s.env.Now().Sub(t.Started).Milliseconds()
	t.Verdict = verdictOf(t)
	if t.Verdict == "unproved" && itemsDone(st) > 0 {
		t.Verdict = "item_done"
	}
	for _, p := range st.Pending {
		t.Verdict = string(p.Terminal)
	}
	spent := money.USD(0)
	for _, c := range s.meter.Calls() {
		if c.Tick == t.N {
			spent = spent.Add(c.CostUSD)
		}
	}
	s.emit(evidence.TickEnded, t.N, slog.String(evidence.KeyVerdict, t.Verdict), evidence.Cost(evidence.KeyCost, spent), slog.Int64(evidence.KeyMillis, t.Millis))
}

// verdictOf is one word for how far the tick came.
func verdictOf(t *evidence.Tick) string {
	for _, g := range t.Proof {
		switch {
		case g.Status != "passed" && g.HeldOut():
			return "acceptance_failed"
		case g.Status != "passed":
			return g.Name + "_failed"
		}
	}
	switch {
	case len(t.Proof) > 0:
		return "proved"
	case t.Review != nil && !t.Review.Approved, t.Share != nil && !t.Share.Approved:
		return "rejected"
	}
	for _, g := range t.Gates {
		if g.Status != "passed" {
			return g.Name + "_" + g.Status
		}
	}
	for _, f := range t.Guard {
		if f.Level != "flag" {
			return f.Rule
		}
	}
	if len(t.Gates) == 0 {
		return "no_change"
	}
	return "unproved"
}

// save pushes the checkpoint. Losing the race means that another run has the issue; a forge that cannot be reached is
// told, and the next save tries again. Where the run goes on, what its next calls may cost is held at once.
func (s *session) save(ctx context.Context) error {
	if !s.writes() {
		return nil
	}
	st := s.saved.State
	err := s.meter.Settle(ctx, st.End == nil, func(upTo money.USD) error {
		if err := s.keepFrom(s.saved, st); err != nil {
			return err
		}
		return s.push(ctx, upTo)
	})
	switch {
	case lostRace(err):
		return err
	case err != nil:
		s.note("the checkpoint could not be pushed, so a lost machine would lose this tick: " + err.Error())
		return nil
	}
	s.rec.Kept = s.stateRef()
	s.emit(evidence.Checkpoint, st.Tick, slog.String(evidence.KeyRef, s.stateRef()), slog.String(evidence.KeyCommit, st.Good.ID))
	return nil
}
