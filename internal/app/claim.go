package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/judge"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/publish"
)

// checkpoint is what outlives this machine: the blob beside the commit on refs/proctor/<issue>/state.
type checkpoint struct {
	State  loop.State  `json:"state"`
	Runs   []string    `json:"runs"`             // ids of the runs that worked on it, oldest first
	Pushed []string    `json:"pushed"`           // commits of ours that were pushed to the branch, or were about to be
	Signed *signedWork `json:"signed,omitempty"` // what the forge signed of it last
	Base   string      `json:"base"`             // the base commit; another one begins anew
	Goal   string      `json:"goal"`             // the snapshot the work is for

	Raised []raise `json:"raised,omitempty"` // what comments added to the issue's budget

	Round  *round       `json:"round,omitempty"`  // what the work is for, where that is a pull request's review
	Rounds []spentRound `json:"rounds,omitempty"` // all that were begun, oldest first

	Dropped *dropped `json:"dropped,omitempty"` // why nobody goes on with Round

	Booked []string `json:"booked,omitempty"` // agents' jobs of split runs whose spending is in State already, newest last

	Published string    `json:"published,omitempty"` // the run whose draft is open
	Asked     string    `json:"asked,omitempty"`     // the request that the last of the runs was made for
	By        requester `json:"by,omitzero"`         // the account that asked last

	Reviews judge.Ledger    `json:"reviews"`        // the judge's verdict on each tree
	Said    []judge.Verdict `json:"said,omitempty"` // all verdicts, oldest first: the next one is told

	Held money.USD `json:"held_usd,omitempty"` // what may have been spent since, beyond State.Spent: counts until it is settled
}

const (
	leaseTime  = 3 * time.Minute
	leaseEvery = 20 * time.Second // also how soon a request to stop is heard
)

// key names this run's work among the refs of the forge; it is made of digits or hex only.
func (s *session) key() string {
	if n := s.trigger.Issue.Number; n != 0 {
		return strconv.Itoa(n)
	}
	return "goal-" + s.rec.Trigger.Snapshot[:12]
}

func (s *session) stateRef() string { return "refs/proctor/" + s.key() + "/state" }
func (s *session) leaseRef() string { return "refs/proctor/" + s.key() + "/lease" }

// claim makes sure that nobody else works on the issue, finds what an earlier run left, and chooses the
// branch. A dry run looks and takes nothing.
func (s *session) claim(ctx context.Context) error {
	if s.req.forge == nil {
		return nil
	}
	if err := s.takeLease(ctx); err != nil {
		return err
	}
	if err := s.steer(ctx); err != nil {
		return err
	}
	if err := s.takeUp(ctx); err != nil {
		return err
	}
	if s.round != nil {
		return s.aimRound(ctx)
	}
	return s.aim(ctx)
}

// takeLease makes sure that nobody else works on the issue, by a lease where this job may write, and finds what an earlier run left.
func (s *session) takeLease(ctx context.Context) error {
	switch {
	case s.writes():
		lease, err := s.store.Acquire(ctx, s.remote, s.leaseRef(), s.id, leaseTime, s.stateRef(), dayRef)
		if err != nil {
			return fmt.Errorf("claim the issue: %w", err)
		}
		s.lease = lease
		// What is fetched and made ready before the loop may take longer than the lease. That it was lost, or that it
		// was asked to end, the loop's own renewal finds.
		_, s.unhold = s.holdLease(ctx)
	case s.req.stage == stageAgent:
		if err := s.store.Free(ctx, s.remote, s.leaseRef(), s.stateRef(), dayRef); err != nil {
			return fmt.Errorf("see whether the issue is free: %w", err)
		}
	}
	if err := s.recall(ctx); err != nil {
		return err
	}
	if s.req.stage.splits() && s.saved.Round != nil {
		s.astray = "a run that is split into jobs goes on with no round"
	}
	return nil
}

// recall loads what an earlier run saved. A damaged or foreign checkpoint is told and not trusted.
func (s *session) recall(ctx context.Context) error {
	st, err := s.store.LoadState(ctx, s.remote, s.stateRef())
	var distrust *git.StateError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.As(err, &distrust):
		s.kept.expect = distrust.ID
		s.note("an earlier checkpoint is not trusted and not used: " + err.Error())
		return nil
	case err != nil:
		return fmt.Errorf("look for an earlier checkpoint: %w", err)
	}
	var c checkpoint
	if err := json.Unmarshal(st.Blob, &c); err != nil || c.State.Version != loop.StateVersion {
		s.kept.expect = st.ID
		s.note("an earlier checkpoint has another form and is not used")
		return nil
	}
	s.kept.expect = st.ID
	// Nobody knows what the calls of a lost machine have cost: as much as was held for them, until it is shown otherwise.
	c.State.Spent, c.Held, s.unsettled = c.State.Spent.Add(c.Held), 0, c.Held
	s.saved = c
	s.rec.Resumed = c.Runs
	return nil
}

// resumable says whether the saved work is for this very goal on this very base, and why not.
func (s *session) resumable() (bool, string) {
	switch c := s.saved; {
	case c.State.Version == 0:
		return false, ""
	case s.newRound:
		return false, "a round on a pull request was asked for"
	case s.astray != "":
		return false, s.astray
	case c.Dropped != nil && c.Dropped.Asked != s.request(): // the same request looks again
		return false, c.Dropped.Why + ", and an earlier run's round on it was dropped"
	case s.anew && c.Asked != s.request(): // the same job again goes on with what it began
		return false, "it was asked to start again from the base commit"
	case c.Goal != s.rec.Trigger.Snapshot:
		return false, "an earlier run worked on another text of this issue"
	case c.Base != s.rec.Base.ID:
		return false, "the default branch has moved since an earlier run"
	case c.State.End != nil && c.State.End.Terminal == loop.SafetyHalt:
		return false, "an earlier run broke a rule"
	case c.State.End != nil && c.State.End.Terminal == loop.Done && c.Published == c.Runs[len(c.Runs)-1] && c.Asked != s.request():
		return false, "an earlier run was published"
	}
	return true, ""
}

// begun is the state the loop starts from: an earlier run's, or a new one that still knows what the issue has cost.
func (s *session) begun() loop.State {
	switch ok, why := s.resumable(); {
	case s.newRound:
		s.note(fmt.Sprintf("a round on pull request %d from commit %s: asked for are %s", s.round.Pull, s.round.Tip, plural(int64(len(s.round.Wishes)), "thing")))
	case ok:
		s.note(fmt.Sprintf("resumed after tick %d of run %s, %s spent so far%s", s.saved.State.Tick, s.saved.Runs[len(s.saved.Runs)-1], s.saved.State.IssueBefore.Add(s.saved.State.Spent), s.heldFor()))
	case why != "":
		s.note(why + ": this one begins anew, and what was spent counts" + s.heldFor())
	}
	return s.begun0()
}

// begun0 is begun without its note, for stations that need the spend before the loop does.
func (s *session) begun0() loop.State {
	if ok, _ := s.resumable(); ok {
		return loop.Resume(s.saved.State, s.askedAgain())
	}
	s.saved.forget()
	st := loop.Begin(loop.Commit{ID: s.rec.Base.ID, Tree: s.rec.Base.Tree})
	st.IssueBefore = s.saved.State.IssueBefore.Add(s.saved.State.Spent)
	return st
}

// heldFor says how much of an earlier run's spending is not known but bounded.
func (s *session) heldFor() string {
	if s.unsettled == 0 {
		return ""
	}
	return fmt.Sprintf("; %s of it were held for model calls when its machine was lost, and count as spent", s.unsettled)
}

// request tells requests apart: a machine that was lost after its draft was opened is no new one.
func (s *session) request() string {
	if s.labelEvent != 0 {
		return fmt.Sprintf("label event %d", s.labelEvent)
	}
	if id := s.order.comment.ID; id != 0 {
		return fmt.Sprintf("comment %d", id)
	}
	if r := s.trigger.Review; r != nil {
		return "review " + r.Key()
	}
	if c := s.trigger.Check; c != nil {
		return "CI of " + c.SHA // however many of its workflows fail
	}
	return s.req.runURL
}

// askedAgain tells a new request by a person from the continuation of one whose machine was lost: the latter
// left no terminal.
func (s *session) askedAgain() bool { return s.saved.State.End != nil }

// aim chooses the branch before any money is spent.
func (s *session) aim(ctx context.Context) error {
	name := s.branchName()
	base := s.baseBranch()
	p := publish.Publisher{Forge: s.req.forge, Push: s, Log: s.log, Redact: s.red}
	t, err := p.Aim(ctx, name, base, s.saved.Pushed)
	if err != nil {
		return err
	}
	s.target = t
	s.rec.Branch = t.Branch
	s.remote.Branch, s.remote.DefaultBranch = t.Branch, s.trigger.Repo.DefaultBranch
	if t.Note != "" {
		s.note(t.Note)
	}
	if t.Tip == "" {
		return nil
	}
	// What is replaced must be known, or nobody could say that only commits of ours are.
	if err := s.store.Fetch(ctx, s.remote, "refs/heads/"+t.Branch+":refs/heads/"+t.Branch); err != nil {
		return fmt.Errorf("fetch branch %s: %w", t.Branch, err)
	}
	return s.spares(ctx, t)
}

// spares refuses before anything is spent what the push would refuse at the end: to move the branch over a person's commit (INV-20),
// which may well lie below one of ours, where a round has built upon it.
func (s *session) spares(ctx context.Context, t publish.Target) error {
	onto := git.ID(s.rec.Base.ID)
	if s.cfg.Publish.History != "squash" {
		onto = git.ID(s.begun0().Good.ID)
	}
	err := s.store.Replaceable(ctx, t.Branch, git.ID(t.Tip), onto)
	var lost *git.RemoteError
	if errors.As(err, &lost) { // or so it seems, where history ends early
		if err := s.store.Deepen(ctx, s.remote, "refs/heads/"+s.trigger.Repo.DefaultBranch, "refs/heads/"+t.Branch); err != nil {
			return err
		}
		err = s.store.Replaceable(ctx, t.Branch, git.ID(t.Tip), onto)
	}
	if !errors.As(err, &lost) {
		return err
	}
	next := fmt.Sprintf("rename branch %s, or delete it where nobody needs it, then ask again", t.Branch)
	if t.Open != 0 {
		next = fmt.Sprintf("write %s fix on pull request %d, which builds upon it; or close that one, and %s", s.prefix(), t.Open, next)
	}
	return refused(fmt.Sprintf("a new run would put branch %s over a person's work: %s", t.Branch, lost.Said), next)
}

// announce tells the issue that a run has begun.
func (s *session) announce(ctx context.Context) {
	started := []slog.Attr{
		slog.String(evidence.KeyRun, s.id), slog.String(evidence.KeyRunURL, s.req.runURL), slog.String(evidence.KeyRepo, s.rec.Trigger.Repo),
		slog.Int(evidence.KeyIssue, s.trigger.Issue.Number), slog.String(evidence.KeyActor, s.trigger.Actor.Login),
		slog.String(evidence.KeyAgent, s.cfg.Agent.Name), slog.String(evidence.KeyModel, s.cfg.Agent.Model), slog.String(evidence.KeyBase, s.rec.Base.ID),
		slog.Int(evidence.KeyMaxTicks, s.cfg.Stops.MaxTicks), evidence.Cost(evidence.KeyMaxCost, s.cfg.Stops.MaxCost),
	}
	if cause := s.rec.Trigger.Cause; cause != "" {
		started = append(started, slog.String(evidence.KeyCause, cause))
	}
	s.emit(evidence.RunStarted, 0, started...)
	if !s.writes() || s.issue == nil {
		return
	}
	s.status.start(publish.NewStatus(s.req.forge, s.issue.Number, s.env.Now, s.red))
	if s.trigger.Command != nil {
		s.acknowledge(ctx, forge.ReactionAccepted)
	}
	s.move(ctx, policy.EventStarted)
}

// move sets the issue's state label.
func (s *session) move(ctx context.Context, ev policy.Event) {
	if !s.writes() || s.issue == nil {
		return
	}
	issue, err := s.req.forge.Issue(ctx, s.issue.Number)
	if err != nil {
		s.note("the state label could not be set: " + err.Error())
		return
	}
	add, remove := s.labels.Next(issue.Labels, ev)
	if err := publish.SetLabels(ctx, s.req.forge, issue.Number, add, remove); err != nil {
		s.note("the state label could not be set: " + err.Error())
	}
}

// letLease ends the renewal that claim began, if it did. It may be called twice.
func (s *session) letLease() {
	if s.unhold != nil {
		s.unhold()
	}
}

// holdLease renews until stop is called. A lost lease ends the run: somebody else works on the issue. So does a
// request to stop.
func (s *session) holdLease(ctx context.Context) (context.Context, func()) {
	if s.lease == nil {
		return ctx, func() {}
	}
	held, lost := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s.env.Sleep(held, leaseEvery) == nil {
			err := s.lease.Renew(held, leaseTime)
			var stop *git.StopError
			if errors.Is(err, git.ErrLeaseLost) || errors.As(err, &stop) {
				lost(err)
			}
		}
	}()
	return held, func() { lost(nil); <-done }
}
