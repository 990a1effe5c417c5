package app

import (
	"context"
	"errors"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/prompt"
)

// agentFailures is how many equal failures in a row stop being feedback.
const agentFailures = 3

// loop runs the governed loop and puts its end into the record. A dry run stops in front of the first call.
func (s *session) loop(ctx context.Context) error {
	st, err := s.began(ctx, s.begun())
	if err == nil {
		st, err = s.recallVerdicts(ctx, st)
	}
	if err == nil && s.round == nil {
		st, err = s.planned(ctx, st)
	}
	if err != nil {
		return err
	}
	s.before = st.IssueBefore.Add(st.Earlier)
	limit, name := s.ceiling(st)
	limits := loop.Limits{
		MaxTicks: s.cfg.Stops.MaxTicks, MaxCost: limit, CostCeiling: name,
		MaxDuration: s.cfg.Stops.MaxDuration, Reserve: reserve(s.cfg.Stops.MaxDuration),
		NoProgressAfter: s.cfg.Stops.NoProgressAfter, ReviewStallAfter: s.cfg.Stops.ReviewStallAfter, PlanStallAfter: s.cfg.Stops.PlanStallAfter,
		Attempts: max(s.cfg.Gates.Acceptance.Attempts, 1), AgentFailures: agentFailures,
		Regression: len(s.specsOf(gate.Regression)) > 0, Review: s.cfg.Review.Enabled,
		MustFail: s.cfg.Gates.Acceptance.MustFailOnBase == "always",
	}
	if s.req.dryRun {
		return s.rehearse(ctx, limits)
	}
	if err := s.keepFrom(s.saved, st); err != nil {
		return err
	}
	s.letLease()
	held, release := s.holdLease(ctx)
	defer func() { _ = s.standDown() }() // for a panic; else it was done
	st, err = loop.Run(held, st, limits, s, s, s, s.env.Now)
	release()
	if err = errors.Join(err, s.standDown()); err != nil {
		return err
	}
	if cause := context.Cause(held); errors.Is(cause, git.ErrLeaseLost) {
		return cause
	}
	s.rec.Head = &evidence.Commit{ID: st.Good.ID, Tree: st.Good.Tree}
	if st.Good == st.Base {
		s.rec.Head = nil
	}
	s.showPlan(st)
	s.rec.Risk = evidence.Risk{Level: string(s.verdict.Risk), Why: s.verdict.Why}
	s.rec.Finish(string(st.End.Terminal), st.End.Reason, st.End.Next)
	var stop *git.StopError
	if st.End.Terminal == loop.Cancelled && errors.As(context.Cause(held), &stop) {
		s.rec.Finish(evidence.Cancelled, "stopped by a comment of "+prompt.Inline(stop.By, 60), "write "+s.prefix()+" resume, or add the label again, to go on")
	}
	return nil
}

// rehearse runs the gates on the base commit and ends: nothing is spent and nothing is pushed.
func (s *session) rehearse(ctx context.Context, l loop.Limits) error {
	b, err := s.Baseline(ctx)
	if err != nil {
		return err
	}
	st, act := loop.Step(loop.Begin(loop.Commit{ID: s.rec.Base.ID, Tree: s.rec.Base.Tree}), l, loop.Observation{Baseline: b, Cancelled: ctx.Err() != nil})
	if act.Do == loop.AtEnd {
		s.rec.Finish(string(st.End.Terminal), st.End.Reason, st.End.Next)
		return nil
	}
	s.rec.Finish(evidence.Done, "dry run: everything up to the first model call works; nothing was spent and nothing pushed", "run it without dry-run")
	return nil
}

// reserve is kept back from the run's time so that publishing always fits.
func reserve(d time.Duration) time.Duration {
	return min(max(d/10, 30*time.Second), 3*time.Minute, d/4)
}
