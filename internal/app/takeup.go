package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/publish"
)

// dropped is a round that nobody goes on with, because its pull request ended.
type dropped struct {
	Why   string `json:"why"`
	Asked string `json:"asked"` // the request that was told so; the next one begins anew
}

// takeUp finds the round that this run works on: a new one that was asked for, or the one that an earlier run began and this
// one goes on with; none otherwise.
func (s *session) takeUp(ctx context.Context) error {
	old := s.saved.Round
	if s.trigger.Check != nil {
		if err := s.dueCheck(); err != nil {
			return err
		}
	}
	goesOn, _ := s.resumable()
	switch {
	case old != nil && goesOn && (!s.fixing() || old.Asked == s.request()):
		return s.goOnWith(ctx, old)
	case !s.fixing():
		return nil
	case s.trigger.Check != nil:
		return s.openCheckRound(ctx)
	}
	return s.openRound(ctx)
}

// goOnWith takes an earlier run's round up where the world still wants it: nobody waits for the work on a pull request that has ended,
// and of a branch that is gone there is nothing to go on with.
func (s *session) goOnWith(ctx context.Context, r *round) error {
	pr, end, err := s.pullNow(ctx, r.Pull)
	if err != nil {
		return err
	}
	if end != "" {
		return s.drop(ctx, fmt.Sprintf("pull request %d %s", r.Pull, end))
	}
	// Whoever may push could have written the checkpoint: which branch a run may work on, the forge says.
	if n, err := s.issueOf(ctx, pr); err != nil {
		return err
	} else if n != s.trigger.Issue.Number || pr.Head != r.Branch {
		return refused(fmt.Sprintf("pull request %d is not one that a run opened for this issue from branch %s, or does not bear our mark any more", r.Pull, r.Branch), "write "+s.prefix()+" fix on the issue's own pull request, or "+s.prefix()+" retry on the issue")
	}
	_, err = s.req.forge.Branch(ctx, r.Branch)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return s.loseBranch(r)
	case err != nil:
		return fmt.Errorf("look at branch %s: %w", r.Branch, err)
	}
	s.round = r
	s.rec.Trigger.Revise = true
	s.note(fmt.Sprintf("goes on with the round on pull request %d", r.Pull))
	s.noteLeft(r)
	return nil
}

// pullNow is a pull request as it is now, and how it ended, "" while it is open.
func (s *session) pullNow(ctx context.Context, number int) (pr forge.PullRequest, end string, err error) {
	reader, ok := s.req.forge.(forge.PullReader)
	if !ok {
		return pr, "", errors.New("the client of this forge cannot read pull requests")
	}
	pr, err = reader.PullRequest(ctx, number)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return pr, "is gone", nil
	case err != nil:
		return pr, "", fmt.Errorf("look at pull request %d: %w", number, err)
	case pr.State == "open":
		return pr, "", nil
	}
	return pr, "was " + pr.State, nil
}

// drop ends the run, once: the next request begins anew.
func (s *session) drop(ctx context.Context, why string) error {
	s.saved.Dropped = &dropped{Why: why, Asked: s.request()}
	if !s.req.dryRun {
		if err := s.saveAsFound(ctx, "that the round was dropped"); err != nil {
			return err
		}
	}
	return refused(why+", so the round on it is dropped", "if there is more to do, add the label to the issue for a new run")
}

// loseBranch lets a request for a run begin anew. Who asked to go on hears that there is nothing left.
func (s *session) loseBranch(r *round) error {
	s.astray = fmt.Sprintf("branch %s of the round on pull request %d is gone", r.Branch, r.Pull)
	if c := s.trigger.Command; s.fixing() || c != nil && c.Name == "resume" {
		return refused(s.astray, "add the label to the issue for a new run, which makes the branch anew")
	}
	return nil
}

// aimRound is aim for a round: the pull request's own branch, as it was when the round began.
func (s *session) aimRound(ctx context.Context) error {
	r := s.round
	tip := r.Tip
	if !s.newRound {
		now, err := s.fetchBranch(ctx, r.Branch)
		if err != nil {
			return err
		}
		if now != tip && !slices.Contains(s.saved.Pushed, string(now)) {
			return refused(fmt.Sprintf("branch %s has moved since the round on pull request %d began; what the round has done is kept on %s", r.Branch, r.Pull, s.stateRef()), "write "+s.prefix()+" fix on the pull request for a new one")
		}
		tip = now
	}
	s.target = publish.Target{Branch: r.Branch, Tip: string(tip), Open: r.Pull}
	s.rec.Branch = r.Branch
	s.remote.Branch, s.remote.DefaultBranch = r.Branch, s.trigger.Repo.DefaultBranch
	return nil
}

// stillWanted is asked again before a round is pushed: work for a pull request that somebody has closed or merged meanwhile opens no other.
func (s *session) stillWanted(ctx context.Context) error {
	if s.round == nil {
		return nil
	}
	next := "add the label again: the next run proves it again and pushes it"
	_, end, err := s.pullNow(ctx, s.round.Pull)
	if err == nil && end != "" {
		err = fmt.Errorf("pull request %d %s while the round went on, and nothing was pushed", s.round.Pull, end)
		next = "if the change is still wanted, reopen the pull request, then add the label to the issue again"
	}
	if err == nil {
		return nil
	}
	return &publish.Failure{Step: publish.StepCheck, Branch: s.round.Branch, Commit: string(s.proved), Kept: s.rec.Kept, Err: s.red.Error(err), Next: next}
}
