package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/inert"
	"github.com/proctor-ci/proctor/internal/judge"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/money"
)

// reviewHolder ends the name under which a review holds the lease: it has no status comment, so that who is refused meanwhile is told in one.
const reviewHolder = "-review"

// reviewHead has the judge read, for the command review, the whole change of the pull request once more. It spends the issue's money and
// writes the issue's ledger of verdicts, so that it holds the issue's lease: a run that goes on refuses it, and one that is asked for
// meanwhile is refused.
func (s *session) reviewHead(ctx context.Context) error {
	if s.req.dryRun {
		return refused("a dry run asks no reviewer", "write the command where dry-run is not set")
	}
	lease, err := s.store.Acquire(ctx, s.remote, s.leaseRef(), s.id+reviewHolder, leaseTime, s.stateRef(), dayRef)
	if err != nil {
		return fmt.Errorf("claim the issue: %w", err)
	}
	s.lease = lease
	held, release := s.holdLease(ctx)
	s.unhold = release
	timed, done := context.WithTimeout(held, s.cfg.Stops.MaxDuration)
	defer done()
	err = s.judgeHead(timed)
	cause := context.Cause(held)
	var stop *git.StopError
	switch {
	case errors.Is(cause, git.ErrLeaseLost):
		return cause
	case errors.As(cause, &stop):
		return &ended{terminal: evidence.Cancelled, reason: "stopped by a comment of " + inert.Visible(stop.By, 60), next: "write the command again for a review"}
	case ctx.Err() == nil && timed.Err() != nil:
		return &ended{terminal: evidence.StoppedTime, reason: fmt.Sprintf("stops.max_duration of %s is over, and there is no verdict", s.cfg.Stops.MaxDuration), next: "write the command again, or raise it"}
	}
	return err
}

// judgeHead asks about the difference between the head and where it left the default branch. Model, criteria and ceilings are those of the
// default branch today. The issue's text has to be what its runs were approved for: that is what the change is held to.
func (s *session) judgeHead(ctx context.Context) error {
	if err := s.recall(ctx); err != nil {
		return err
	}
	s.rec.Resumed = nil // a review goes on with nothing
	if err := s.stillApproved(); err != nil {
		return err
	}
	s.cfg.Review.Enabled, s.cfg.Agent.Name, s.cfg.Agent.Model = true, "", "" // asked for by name, whatever a run would do
	head, changes, err := s.wholeChange(ctx)
	if err != nil {
		return err
	}
	in, err := s.question(ctx, head.Tree)
	if err != nil {
		return err
	}
	in.Goal += s.settledWishes()
	s.beginInspection(ctx, evidence.Inspection{Head: head.ID})
	s.rec.Head, s.before = &head, s.issueSpend()
	t := s.tick(1)
	t.Commit, t.Note = &head, "the reviewer alone: no agent was called and no gate ran"
	old, known := s.saved.Reviews.Find(in)
	if known && !old.Approved {
		// The ledger would keep no approval beside it (INV-28), so that a call could only cost.
		s.note("the reviewer has rejected this very tree before, on the same question: it stays rejected, nobody was asked again, and nothing was spent")
		return s.reviewed(old, true)
	}
	v, err := s.askOnce(ctx, in, changes)
	if err != nil {
		return err
	}
	if known && !v.Approved {
		s.note("the reviewer had approved this very tree before; from now on it counts as rejected")
	}
	return s.reviewed(v, false)
}

// wholeChange is the head of the branch, and what it changes since it left the default branch.
func (s *session) wholeChange(ctx context.Context) (head evidence.Commit, changes []git.Change, err error) {
	main, branch := s.trigger.Repo.DefaultBranch, s.change.Head
	tip, err := s.fetchBranch(ctx, branch)
	if errors.Is(err, fs.ErrNotExist) {
		return head, nil, refused(fmt.Sprintf("branch %s of pull request %d is gone", branch, s.change.Number), "add the label to the issue for a new run, which makes the branch anew")
	}
	if err != nil {
		return head, nil, err
	}
	base := s.store.Base()
	fresh, err := s.store.Contains(ctx, tip, base)
	if err != nil {
		return head, nil, err
	}
	if !fresh {
		if err := s.store.Deepen(ctx, s.remote, "refs/heads/"+main, "refs/heads/"+branch); err != nil {
			return head, nil, err
		}
		if base, err = s.store.MergeBase(ctx, base, tip); err != nil {
			return head, nil, fmt.Errorf("find where branch %s left %s: %w", branch, main, err)
		}
	}
	from, err := s.store.Tree(ctx, base)
	if err != nil {
		return head, nil, err
	}
	tree, err := s.store.Tree(ctx, tip)
	if err != nil {
		return head, nil, err
	}
	if changes, err = s.store.Diff(ctx, from, tree); err != nil {
		return head, nil, fmt.Errorf("compare head and base: %w", err)
	}
	if len(changes) == 0 {
		return head, nil, refused(fmt.Sprintf("branch %s changes nothing of %s", branch, main), "close the pull request, or add the label to the issue for a new run")
	}
	s.rec.Base = evidence.Commit{ID: string(base), Tree: string(from)}
	return evidence.Commit{ID: string(tip), Tree: string(tree)}, changes, nil
}

// settledWishes are what writers asked of the pull request in the round that was published last: the change is held to them too, as
// the run's reviewer held it.
func (s *session) settledWishes() string {
	r := s.saved.Round
	if r == nil || r.Pull != s.change.Number || !slices.ContainsFunc(s.saved.Rounds, func(u spentRound) bool { return u.Asked == r.Asked && u.Done }) {
		return ""
	}
	return r.asks()
}

// askOnce asks the judge through the meter, within what run, issue and day leave, and books verdict and cost in the issue's checkpoint, whose
// work stays as it was found.
func (s *session) askOnce(ctx context.Context, in judge.Input, changes []git.Change) (v judge.Verdict, err error) {
	if !s.judgesByModel() {
		if err := s.confine(ctx); err != nil {
			return v, err
		}
	}
	spender := loop.State{IssueBefore: s.before}
	if err := s.openMeterFor(ctx, func() loop.State { return spender }); err != nil {
		return v, err
	}
	if err := s.chooseReviewer(); err != nil {
		return v, err
	}
	limit, name := s.ceiling(spender)
	s.rec.Ceilings = evidence.Ceilings{CostUSD: limit}
	s.kept.checkpoint, s.kept.spent, s.kept.begun = s.saved, 0, true
	v, err = s.ask(ctx, "review", in, changes)
	if err == nil {
		if err = s.saved.Reviews.Keep(in, v); err == nil {
			s.saved.Said = append(s.saved.Said, v)
		}
		return v, errors.Join(err, s.bookReview(ctx))
	}
	if lost := s.bookReview(ctx); lost != nil {
		return v, lost
	}
	switch seen := unheard(err); {
	case seen.OverBudget:
		return v, &ended{
			terminal: evidence.StoppedBudget, reason: fmt.Sprintf("the next question could cost more than is left of %s (%s), and there is no verdict", name, limit),
			next: "raise " + name + " on the default branch, then write the command again; a day's budget is whole again at midnight UTC", err: err,
		}
	case errors.Is(err, judge.ErrUnavailable):
		return v, &ended{terminal: evidence.JudgeUnavailable, reason: seen.Detail, next: "look at the reviewer's model, key and quota, then write the command again", err: err}
	}
	return v, err
}

// bookReview saves what the review has cost and said. Losing the race means that somebody else has the issue.
func (s *session) bookReview(ctx context.Context) error {
	last, done := until(ctx, coverTime)
	defer done()
	s.saved.State.IssueBefore = s.saved.State.IssueBefore.Add(s.meter.Spent())
	s.kept.checkpoint, s.kept.spent = s.saved, s.meter.Spent()
	err := s.meter.Settle(last, false, func(upTo money.USD) error {
		return s.persist(last, func(ctx context.Context) error { return s.push(ctx, upTo) })
	})
	if err != nil && !lostRace(err) {
		return fmt.Errorf("the verdict could not be kept, so that it does not count: %w", err)
	}
	return err
}

// reviewed is how a review ended. A rejection closes nothing: people decide what becomes of it.
func (s *session) reviewed(v judge.Verdict, known bool) error {
	s.keepReview(1, v, known)
	who, t := inert.Visible(v.Model, 200), s.tick(1)
	if t.Verdict = evidence.Rejected; v.Approved {
		t.Verdict = evidence.Approved
		return &ended{terminal: evidence.Approved, reason: who + " approves the whole change"}
	}
	return &ended{
		terminal: evidence.Rejected, reason: who + " rejects the whole change",
		next: fmt.Sprintf("decide what of it counts, and write %s fix with it on pull request %d; nothing was closed, and the check of the head stays as it is", s.prefix(), s.change.Number),
	}
}
