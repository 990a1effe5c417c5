package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// requester is who asked for an issue's work, for the ledger of the day: a round that CI starts is on their account.
type requester struct {
	Login string `json:"login,omitempty"`
	ID    int64  `json:"id"`
	Bot   bool   `json:"bot,omitempty"`
}

// heedCheck finds the draft that people's own CI failed for, by the branch's name. Nobody asked: what the event says of an account counts
// for nothing. An event that is none of ours is no fault of anybody's. Whether the draft is at the commit still is asked once the issue is
// claimed: a lost machine's round may have moved it.
func (s *session) heedCheck(ctx context.Context) error {
	c, branch, named := *s.trigger.Check, s.trigger.Change.Head, s.trigger.Issue.Number
	s.trigger.Actor, s.rec.Trigger.Actor, s.rec.Trigger.ActorID = trigger.Actor{}, "", 0
	if !s.cfg.Fix.OnCheckFailure {
		return refused(fmt.Sprintf("CI failed on branch %s, and fix.on_check_failure is not set on the default branch", branch),
			"set `fix: {on_check_failure: true}` in .github/proctor.yml on the default branch, or write "+s.prefix()+" fix on the pull request")
	}
	pr, err := s.req.forge.FindPullRequest(ctx, branch)
	if errors.Is(err, forge.ErrNotFound) {
		return forNothing("CI failed on branch " + branch + ", from which no pull request is open")
	}
	if err != nil {
		return fmt.Errorf("look for the pull request of branch %s: %w", branch, err)
	}
	if err := s.about(ctx, pr); err != nil {
		return err
	}
	if n := s.trigger.Issue.Number; n == 0 || named != 0 && named != n {
		return forNothing(fmt.Sprintf("CI failed for pull request %d, which no run opened for the issue that its branch is named after", pr.Number))
	}
	s.rec.Trigger.Cause = fmt.Sprintf("CI failed for commit %s of pull request %d (CI run %d)", c.SHA, pr.Number, c.ID)
	return nil
}

// forNothing ends a job that CI started for nothing: there is nobody to answer, and nothing is wrong.
func forNothing(why string) error { return &ended{terminal: evidence.Answered, reason: why} }

// permittedCheck is policy's word on a round that CI asks for.
func (s *session) permittedCheck(ctx context.Context, facts policy.Facts) error {
	if d := policy.Authorise(s.trigger, facts, s.rules(ctx)); !d.Allow {
		return refused(d.Text, "")
	}
	return nil
}

// onAccountOf finds who asked for the work that CI failed for, and holds them to what a request of theirs would be held to now. Where an
// older checkpoint does not say who it was, the account that the job's token acts as stands in.
func (s *session) onAccountOf(ctx context.Context) error {
	by := s.saved.By
	if by == (requester{}) {
		self, err := s.req.forge.Self(ctx)
		if err != nil && !errors.Is(err, forge.ErrNotFound) {
			return fmt.Errorf("ask who we are: %w", err)
		}
		s.book(requester{Login: self.Login, ID: self.ID, Bot: self.Bot})
		s.note("who asked for this work is not known, so budget.per_actor_day_usd counts it for the account of the job's token")
		return nil
	}
	role, err := s.req.forge.Role(ctx, by.Login)
	if err != nil {
		return fmt.Errorf("ask what %s may do: %w", by.Login, err)
	}
	rules := s.rules(ctx)
	if !slices.Contains(rules.Roles, role) || by.Bot && !rules.Admits(by.ID) {
		return refused(fmt.Sprintf("%s, who asked for this work, may not ask for a run any more", by.Login), "let somebody who may write "+s.prefix()+" fix on the pull request")
	}
	s.book(by)
	s.rec.Trigger.Role = string(role)
	return nil
}

func (s *session) book(on requester) {
	s.trigger.Actor = trigger.Actor{Login: on.Login, ID: on.ID, Bot: on.Bot}
	s.rec.Trigger.Actor, s.rec.Trigger.ActorID = on.Login, on.ID
}

// dueCheck says whether CI's failure gets a round at all: one for each commit, and none in the place of work that people can go on with.
func (s *session) dueCheck() error {
	old := s.saved.Round
	mine := old != nil && old.Asked == s.request()
	lost := mine && s.saved.State.End == nil
	switch goesOn, _ := s.resumable(); {
	case !lost && s.saved.began(s.request()):
		return forNothing(fmt.Sprintf("CI failed for commit %s, and a round has been made for that", s.trigger.Check.SHA))
	case !mine && goesOn:
		return forNothing(fmt.Sprintf("CI failed for commit %s, and an earlier run has left work that %s resume goes on with", s.trigger.Check.SHA, s.prefix()))
	}
	return nil
}

// began tells whether a request began a round.
func (c checkpoint) began(request string) bool {
	return slices.ContainsFunc(c.Rounds, func(u spentRound) bool { return u.Asked == request })
}

// openCheckRound is openRound where CI asks: for jobs that fail still on the very commit that a run of ours pushed, and for nothing else.
func (s *session) openCheckRound(ctx context.Context) error {
	s.newRound, s.rec.Trigger.Revise = true, true
	r := &round{Pull: s.change.Number, Branch: s.change.Head, Asked: s.request()}
	if err := s.ownBranch(ctx, r); err != nil {
		return err
	}
	switch published := evidence.PullRequestHead(s.change.Body); {
	case string(r.Tip) != s.trigger.Check.SHA:
		return forNothing(fmt.Sprintf("CI failed for commit %s, and branch %s is at %s", s.trigger.Check.SHA, r.Branch, r.Tip))
	case string(r.Tip) != published:
		return refused(fmt.Sprintf("CI failed for commit %s of pull request %d, which no run of ours pushed", r.Tip, r.Pull), "write "+s.prefix()+" fix on the pull request for a round that builds upon it")
	}
	if err := s.readChecks(ctx, r); err != nil {
		return fmt.Errorf("read which jobs failed: %w", err)
	}
	if len(r.Wishes) == 0 {
		return forNothing(fmt.Sprintf("no job of CI fails for commit %s of pull request %d, or none does any more", r.Tip, r.Pull))
	}
	if err := s.noteTree(ctx, r); err != nil {
		return err
	}
	if err := s.bounded(r); err != nil {
		return err
	}
	s.round = r
	s.noteLeft(r)
	return nil
}

// bounded hands the draft over to people where rounds do not get CI to pass.
func (s *session) bounded(r *round) error {
	fix := "mend it by hand, or write " + s.prefix() + " fix on the pull request with what to do"
	if limit := s.cfg.Fix.MaxRounds; s.saved.roundsOf(r.Pull, r.Asked) >= limit {
		return s.handOver(fmt.Sprintf("CI fails for commit %s, and pull request %d has had %d of fix.max_rounds: %d rounds", r.Tip, r.Pull, s.saved.roundsOf(r.Pull, r.Asked), limit),
			"finish it by hand, or raise fix.max_rounds on the default branch and write "+s.prefix()+" fix")
	}
	if s.saved.stuck(r) {
		return s.handOver(fmt.Sprintf("CI fails for pull request %d as it did before a round was made: the same job, for the same content", r.Pull), fix)
	}
	return nil
}

// handOver ends what CI asked for where only people can go on. They are told once: an issue that waits for them already has said why.
func (s *session) handOver(why, next string) error {
	s.toPeople = !slices.ContainsFunc(s.issue.Labels, func(l string) bool { return strings.EqualFold(l, s.labels.NeedsHuman()) })
	return refused(why, next)
}

// stuck: an earlier round was made for this very content, and one of the jobs that failed then fails again.
func (c checkpoint) stuck(r *round) bool {
	return slices.ContainsFunc(c.Rounds, func(u spentRound) bool {
		again := slices.ContainsFunc(u.Checks, func(job string) bool { return slices.Contains(r.Checks, job) })
		return u.Pull == r.Pull && u.Asked != r.Asked && u.Tree != "" && u.Tree == r.Tree && again
	})
}

// noteTree keeps the content that jobs failed for.
func (s *session) noteTree(ctx context.Context, r *round) error {
	if len(r.Checks) == 0 {
		return nil
	}
	tree, err := s.store.Tree(ctx, r.Tip)
	r.Tree = tree
	return err
}
