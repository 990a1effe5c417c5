package app

import (
	"context"
	"slices"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
)

// checkTime bounds what a check may take: behind it the lease is given back, for which a run has little time.
const checkTime = 3 * time.Second

// tellCommit writes the run's check on the head of its pull request: the commit that was published or, where a round ended otherwise, the
// branch's tip. What an earlier run proved keeps that run's check. A token that may write none is noted and ends nothing.
func (s *session) tellCommit(ctx context.Context) {
	checker, ok := s.req.forge.(forge.Checker)
	commit, branch := s.headOfPull()
	if !ok || commit == "" {
		return
	}
	s.setCheck(ctx, checker, conclusion(s.rec), commit, branch)
}

// setCheck writes the check that the record makes.
func (s *session) setCheck(ctx context.Context, checker forge.Checker, c forge.Conclusion, commit, branch string) {
	ctx, done := context.WithTimeout(ctx, checkTime)
	defer done()
	rec := s.red.Record(s.rec)
	err := checker.SetCheck(ctx, forge.Check{
		Run: s.id, Commit: commit, Branch: branch, Conclusion: c,
		Title: evidence.CheckTitle(rec, forge.MaxCheckTitle), Summary: evidence.CheckSummary(rec, forge.MaxCheckSummary),
		URL: s.req.runURL, Started: rec.Started, Ended: rec.Ended,
	})
	if err != nil {
		s.note("commit " + commit + " has no check of this run: " + err.Error())
	}
}

func (s *session) headOfPull() (commit, branch string) {
	switch p := s.rec.Published; {
	case p != nil:
		return p.Commit, p.Branch
	case s.round == nil || slices.Contains(s.saved.Pushed, string(s.round.Tip)):
		return "", ""
	}
	return string(s.round.Tip), s.round.Branch
}

// conclusion: only a proof passes. What says nothing about the commit is no failure of it, and still no pass: the check may be one that a
// branch rule requires.
func conclusion(r evidence.Record) forge.Conclusion {
	switch {
	case r.Terminal == evidence.Done && r.Published != nil:
		return forge.ConclusionSuccess
	case r.Terminal == evidence.Cancelled:
		return forge.ConclusionCancelled
	case r.ExitCode == 2 || r.ExitCode == 4:
		return forge.ConclusionFailure
	}
	return forge.ConclusionUnproved
}
