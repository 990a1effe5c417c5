package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/inert"
	"github.com/proctor-ci/proctor/internal/money"
)

// raise is what one comment added to the issue's budget.
type raise struct {
	Comment int64     `json:"comment"`
	USD     money.USD `json:"usd"`
	By      string    `json:"by"`
}

// raised is what comments have added to budget.per_issue_usd.
func (c *checkpoint) raised() money.USD {
	sum := money.USD(0)
	for _, r := range c.Raised {
		sum = sum.Add(r.USD)
	}
	return sum
}

// steer applies what a command says about where the run begins. The issue is claimed and its checkpoint is read.
func (s *session) steer(ctx context.Context) error {
	if s.trigger.Change != nil {
		if err := s.stillApproved(); err != nil {
			return err
		}
	}
	if s.trigger.Check != nil {
		return s.onAccountOf(ctx)
	}
	c := s.trigger.Command
	if c == nil {
		return nil
	}
	switch c.Name {
	case "resume":
		if ok, why := s.resumable(); !ok {
			return refused("there is nothing to resume: "+first(why, "no run has worked on this issue yet"), "write "+s.prefix()+" run to begin one")
		}
	case "retry":
		s.anew = true
	case "budget":
		return s.raiseBudget(ctx)
	}
	return nil
}

// stillApproved: who asks on a pull request has not seen the issue, nor has CI, so its text has to be the one that a run was approved for (INV-41).
func (s *session) stillApproved() error {
	n := s.trigger.Issue.Number
	switch {
	case s.saved.State.Version == 0:
		return refused(fmt.Sprintf("what was approved for issue %d is not known: the checkpoint of its runs is gone or cannot be used", n), "read the issue, then add the label to it")
	case s.saved.Goal != s.rec.Trigger.Snapshot:
		return refused(fmt.Sprintf("the text of issue %d was edited since a run was approved for it", n), "read it again, then add the label to the issue")
	}
	return nil
}

// raiseBudget counts each comment once, however often its job is run.
func (s *session) raiseBudget(ctx context.Context) error {
	amount, err := s.trigger.Command.Amount()
	if err != nil {
		return usage(err)
	}
	usd, err := money.Parse(amount)
	if err != nil {
		return usage(err)
	}
	for _, r := range s.saved.Raised {
		if r.Comment == s.order.comment.ID {
			s.note("this comment has raised the budget before: it counts once")
			return nil
		}
	}
	s.saved.Raised = append(s.saved.Raised, raise{Comment: s.order.comment.ID, USD: usd, By: s.trigger.Actor.Login})
	s.note(fmt.Sprintf("budget.per_issue_usd of this issue is %s, %s of it by comments", s.cfg.Budget.PerIssue.Add(s.saved.raised()), s.saved.raised()))
	if s.saved.State.Version == 0 || s.req.dryRun {
		return nil // the first tick saves it
	}
	return s.saveAsFound(ctx, "the raise")
}

// saveAsFound saves the checkpoint as it was found, with what in it. Its text, base and request stay those that its work was
// made for: whether a run may go on from it is asked later, of them.
func (s *session) saveAsFound(ctx context.Context, what string) error {
	s.kept.checkpoint, s.kept.spent, s.kept.begun = s.saved, 0, false
	err := s.push(ctx, 0) // what a lost machine held is in State.Spent since recall
	if err != nil && !lostRace(err) {
		s.note(what + " could not be saved, so a lost machine would lose it: " + err.Error())
		return nil
	}
	return err
}

// startedAfter tells whether a run began after a comment was written. The two clocks are different machines'.
func startedAfter(run string, asked time.Time) bool {
	const skew = time.Minute
	if len(run) < len(runTime) {
		return false
	}
	began, err := time.Parse(runTime, run[:len(runTime)])
	return err == nil && began.After(asked.Add(skew))
}

// askToStop leaves the request in the lease that the run renews.
func (s *session) askToStop(ctx context.Context) (string, error) {
	h, err := s.store.Holder(ctx, s.remote, s.leaseRef())
	if err != nil {
		return "", fmt.Errorf("look who works on the issue: %w", err)
	}
	if h.Holder == "" {
		return "Nothing runs here, so there is nothing to stop. A job that still waits for a runner is cancelled in the CI system.", nil
	}
	run := inert.Code(h.Holder, 60)
	if startedAfter(h.Holder, s.order.comment.CreatedAt) {
		return "Run " + run + " began after this was written, so it was not stopped. Write the command again to stop it.", nil
	}
	asked, err := s.store.AskToStop(ctx, s.remote, s.leaseRef(), h.Holder, first(s.trigger.Actor.Login, "somebody"))
	if err != nil {
		return "", err
	}
	if !asked {
		return "Run " + run + " ended before it could be asked to stop.", nil
	}
	return "Run " + run + " was asked to stop. It saves its work and ends `cancelled` within a minute; the status comment then says so. " +
		inert.Code(s.prefix()+" resume", 60) + " goes on.", nil
}

// sayStatus tells from the lease and the checkpoint what goes on.
func (s *session) sayStatus(ctx context.Context) (string, error) {
	h, err := s.store.Holder(ctx, s.remote, s.leaseRef())
	if err != nil {
		return "", fmt.Errorf("look who works on the issue: %w", err)
	}
	if err := s.recall(ctx); err != nil {
		return "", err
	}
	kept := "Nothing of it is saved yet."
	if s.saved.State.Version != 0 {
		kept = inert.Words(fmt.Sprintf("Saved so far: tick %d, %s spent on this issue.", s.saved.State.Tick, s.issueSpend()))
	}
	switch {
	case strings.HasSuffix(h.Holder, reviewHolder):
		return fmt.Sprintf("The reviewer reads the change of this issue, for %s. %s", inert.Code(h.Holder, 60), kept), nil
	case h.Holder != "" && h.Stop != "":
		return fmt.Sprintf("Run %s works on this issue and was asked to stop by %s. %s", inert.Code(h.Holder, 60), inert.Code(h.Stop, 60), kept), nil
	case h.Holder != "":
		return fmt.Sprintf("Run %s works on this issue. %s The status comment shows each step.", inert.Code(h.Holder, 60), kept), nil
	case s.saved.State.Version == 0:
		return "Nothing runs here, and no run has saved anything for this issue.", nil
	}
	return fmt.Sprintf("Nothing runs here. The last run, %s, %s. %s Its work is on %s.", inert.Code(s.lastRun(), 60), s.howItEnded(), kept, inert.Code(s.stateRef(), 80)), nil
}

func (s *session) issueSpend() money.USD { return s.saved.State.IssueBefore.Add(s.saved.State.Spent) }

func (s *session) lastRun() string {
	if n := len(s.saved.Runs); n > 0 {
		return s.saved.Runs[n-1]
	}
	return "unknown"
}

func (s *session) howItEnded() string {
	if s.saved.State.End == nil {
		return "was lost with its machine before it could end"
	}
	return "ended " + inert.Code(string(s.saved.State.End.Terminal), 40)
}

// sayWhy explains the last ending from what was saved of it.
func (s *session) sayWhy(ctx context.Context) (string, error) {
	h, err := s.store.Holder(ctx, s.remote, s.leaseRef())
	if err != nil {
		return "", fmt.Errorf("look who works on the issue: %w", err)
	}
	if err := s.recall(ctx); err != nil {
		return "", err
	}
	switch {
	case h.Holder != "":
		return fmt.Sprintf("Run %s has not ended: it works on this issue. The status comment shows each step.", inert.Code(h.Holder, 60)), nil
	case s.saved.State.Version == 0:
		return "No run has saved anything for this issue. One that ended before its first tick says why in the status comment.", nil
	case s.saved.State.End == nil:
		return fmt.Sprintf("Run %s %s, after tick %d. %s goes on from there.", inert.Code(s.lastRun(), 60), s.howItEnded(), s.saved.State.Tick, inert.Code(s.prefix()+" resume", 60)), nil
	}
	end := s.saved.State.End
	return evidence.Explanation(s.lastRun(), string(end.Terminal), s.red.String(end.Reason), s.red.String(end.Next), s.saved.State.Tick), nil
}
