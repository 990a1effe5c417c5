package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/prompt"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// goal is what the agent is asked to do: visible text only.
type goal struct {
	title, body string
}

// intake reads the trigger, asks the forge again whatever the event said, and decides whether this
// run may be.
func (s *session) intake(ctx context.Context) error {
	t, err := s.req.parse(s.cfg)
	if err != nil {
		var ignored *trigger.Ignored
		if errors.As(err, &ignored) && ignored.Reason == trigger.ReasonNoCommand {
			return &ended{terminal: evidence.Answered, reason: "there is no command in this comment"}
		}
		if errors.As(err, &ignored) && ignored.Reason == trigger.ReasonOtherRun {
			return forNothing("CI did not fail here, or not on a branch of this repository")
		}
		if errors.As(err, &ignored) {
			return refused("this event asks for no run: "+ignored.Error(), "")
		}
		return usage(err)
	}
	s.keepTrigger(t)
	if err := s.splittable(); err != nil {
		return err
	}
	if s.req.forge == nil {
		return s.localGoal()
	}
	return s.authorise(ctx)
}

func (s *session) keepTrigger(t trigger.Trigger) {
	s.trigger = t
	s.labels = policy.Labels{Trigger: s.cfg.Trigger.Label}
	s.rec.Trigger = evidence.Trigger{
		Forge: string(t.Forge), Kind: string(t.Kind), Event: t.Event, Delivery: t.Delivery, Repo: t.Repo.FullName(),
		Issue: t.Issue.Number, Actor: t.Actor.Login, ActorID: t.Actor.ID, Snapshot: t.Snapshot,
	}
}

// localGoal takes a goal from a person at this machine; there is nobody else to ask.
func (s *session) localGoal() error {
	if s.trigger.Goal == "" {
		return usage(errors.New("there is neither an issue nor a goal. Next: proctor run --goal \"what to do\""))
	}
	s.rec.Trigger.Repo = filepath.Base(s.req.checkout)
	s.setGoal("", s.trigger.Goal)
	return nil
}

// nameLocal finds whose token a person at this machine uses: budget.per_actor_day_usd is each one's own.
func (s *session) nameLocal(ctx context.Context) {
	if !s.req.local || s.trigger.Actor.ID != 0 {
		return
	}
	self, err := s.req.forge.Self(ctx)
	if err != nil {
		s.note("the token's account could not be read, so this run shares budget.per_actor_day_usd with others of which that is so: " + err.Error())
		return
	}
	s.trigger.Actor.ID, s.rec.Trigger.ActorID = self.ID, self.ID
}

// authorise asks the forge for everything the decision rests on; what the event or the webhook said is not
// trusted for any of it.
func (s *session) authorise(ctx context.Context) error {
	repo, err := s.req.forge.Repository(ctx)
	if err != nil {
		return err
	}
	s.trigger.Repo = trigger.Repo{Owner: repo.Owner, Name: repo.Name, ID: repo.ID, DefaultBranch: repo.DefaultBranch, Archived: repo.Archived, Private: repo.Private}
	s.rec.Trigger.Repo = s.trigger.Repo.FullName()
	s.connectGit()
	if err := s.ruledByMain(ctx); err != nil {
		return err
	}
	s.nameLocal(ctx)
	if err := s.recallApproval(ctx); err != nil {
		return err
	}
	if err := s.hearAsker(ctx); err != nil {
		return err
	}
	facts := policy.Facts{Archived: repo.Archived, Started: true}
	if n := s.trigger.Issue.Number; n != 0 {
		if err := s.readIssue(ctx, n, &facts); err != nil {
			return err
		}
	}
	if !s.req.local {
		if err := s.inform(ctx, &facts); err != nil {
			return err
		}
		if err := s.permit(ctx, facts); err != nil {
			return err
		}
	}
	if s.trigger.Command != nil {
		s.acknowledge(ctx, forge.ReactionSeen)
		if err := s.obey(ctx); err != nil {
			return err
		}
	}
	if s.trigger.Issue.Number == 0 {
		s.setGoal("", s.trigger.Goal)
		return nil
	}
	s.rec.Trigger.Verified = true
	s.setGoal(s.issue.Title, s.issue.Body)
	return s.readComments(ctx)
}

// inform asks what the asker may do, and how much room there is. Where CI failed nobody asked, and its draft has its room.
func (s *session) inform(ctx context.Context, facts *policy.Facts) (err error) {
	if s.trigger.Check != nil {
		return nil
	}
	if facts.Role, err = s.req.forge.Role(ctx, s.trigger.Actor.Login); err != nil {
		return fmt.Errorf("ask what %s may do: %w", s.trigger.Actor.Login, err)
	}
	s.rec.Trigger.Role = string(facts.Role)
	facts.OpenPulls, err = s.openPulls(ctx)
	return err
}

func (s *session) permit(ctx context.Context, facts policy.Facts) error {
	switch {
	case s.trigger.Command != nil:
		return s.permitted(ctx, facts)
	case s.trigger.Review != nil:
		return s.permittedReview(ctx, facts)
	case s.trigger.Check != nil:
		return s.permittedCheck(ctx, facts)
	}
	return s.decide(ctx, facts)
}

// hearAsker fetches again what people wrote to ask for this run, where they wrote something, or the draft whose CI asks.
func (s *session) hearAsker(ctx context.Context) error {
	switch {
	case s.trigger.Command != nil:
		return s.heed(ctx)
	case s.trigger.Review != nil:
		return s.heedReview(ctx)
	case s.trigger.Check != nil:
		return s.heedCheck(ctx)
	}
	return nil
}

// ruledByMain refuses a job that was started anywhere but on the default branch: whoever can push a branch could bring gates
// of their own along. GitHub starts a review's job on the pull request's merge; there the base commit must be of the default
// branch all the same, which the job has checked out by its name.
func (s *session) ruledByMain(ctx context.Context) error {
	main := "refs/heads/" + s.trigger.Repo.DefaultBranch
	if s.req.ref == "" || s.req.ref == main {
		return nil
	}
	if c := s.trigger.Change; s.trigger.Kind != trigger.KindReview || s.req.ref != fmt.Sprintf("refs/pull/%d/merge", c.Number) {
		return refused("the job was started on "+s.req.ref+", and configuration and gates count only as they are on "+main, "start the workflow on the default branch")
	}
	if err := s.store.Fetch(ctx, s.remote, main+":"+main); err != nil {
		return fmt.Errorf("fetch the default branch: %w", err)
	}
	tip, err := s.store.Ref(main)
	if err != nil {
		return err
	}
	of, err := s.store.Contains(ctx, tip, s.store.Base())
	if err == nil && !of {
		return refused("the job has checked out "+s.rec.Base.ID+", which is no commit of "+main+", and configuration and gates count only as they are there",
			"give actions/checkout `ref: ${{ github.event.repository.default_branch }}`, as the workflow of `proctor init` does")
	}
	return err
}

// maxComments bounds what is read of an issue's discussion.
const maxComments = 30

// readComments keeps the newest comments of people who may write here. Everybody else's are no part of what
// was approved.
func (s *session) readComments(ctx context.Context) error {
	if s.cfg.Prompt.Comments != "writers" {
		return nil
	}
	all, err := s.req.forge.Comments(ctx, s.issue.Number)
	if err != nil {
		return fmt.Errorf("read the comments of issue %d: %w", s.issue.Number, err)
	}
	known, err := s.writers(ctx)
	if err != nil {
		return err
	}
	for i := len(all) - 1; i >= 0 && len(s.comments) < maxComments; i-- {
		if c := all[i]; !known.self.Said(c) && s.mayWrite(ctx, known, c.Author) {
			s.comments = append([]prompt.Comment{{Author: c.Author.Login, Body: c.Body}}, s.comments...)
		}
	}
	if left := known.left(); left != "" {
		s.note(left)
	}
	return nil
}

// readIssue fetches the issue and, where a label asked, who added it last.
func (s *session) readIssue(ctx context.Context, number int, facts *policy.Facts) error {
	issue, err := s.req.forge.Issue(ctx, number)
	if errors.Is(err, forge.ErrNotFound) {
		return refused(fmt.Sprintf("there is no issue %d in %s, or the token cannot see it", number, s.trigger.Repo.FullName()), "check the number and the token's permission on issues")
	}
	if err != nil {
		return err
	}
	s.issue, facts.Issue = &issue, &issue
	s.rec.Trigger.IssueURL = issue.URL
	if s.rec.Trigger.Snapshot = s.trigger.Approved(); s.rec.Trigger.Snapshot == "" {
		s.rec.Trigger.Snapshot = trigger.SnapshotOf(issue.Title, issue.Body)
	}
	if s.trigger.Kind != trigger.KindLabel && s.trigger.Asked == (trigger.Asked{}) {
		return nil
	}
	label, err := s.req.forge.LabelEvent(ctx, number, s.cfg.Trigger.Label)
	if errors.Is(err, forge.ErrNotFound) {
		return refused(fmt.Sprintf("issue %d does not carry the label %q", number, s.cfg.Trigger.Label), "add the label to ask for a run")
	}
	if err != nil {
		return err
	}
	facts.LabelEvent, s.labelEvent = &label, label.ID
	if s.trigger.Kind == trigger.KindDispatch && s.trigger.Actor.ID == 0 {
		// A dispatch is made by the webhook's own account: who asked is who added the label.
		s.trigger.Actor = trigger.Actor{Login: label.Actor.Login, ID: label.Actor.ID, Bot: label.Actor.Bot}
		s.rec.Trigger.Actor, s.rec.Trigger.ActorID = label.Actor.Login, label.Actor.ID
	}
	return nil
}

func (s *session) rules(ctx context.Context) policy.Rules {
	r := policy.Rules{Label: s.cfg.Trigger.Label, Bots: s.cfg.Trigger.Bots, MaxOpen: s.cfg.Trigger.MaxOpen}
	for _, role := range s.cfg.Trigger.Roles {
		r.Roles = append(r.Roles, forge.Role(role))
	}
	if self, err := s.req.forge.Self(ctx); err == nil {
		r.Self = trigger.Actor{Login: self.Login, ID: self.ID, Bot: self.Bot}
	}
	return r
}

// setGoal keeps what a reader of the forge saw, and lists what they did not.
func (s *session) setGoal(title, body string) {
	var hidden []prompt.Removal
	s.goal.title, hidden = prompt.VisibleTitle(title)
	s.removed("title", hidden)
	s.goal.body, hidden = prompt.Visible(body)
	s.removed("body", hidden)
	if title != "" {
		s.rec.Trigger.Title = prompt.Inline(s.goal.title, 300)
	} else {
		s.rec.Trigger.Goal = prompt.Inline(s.goal.body, 300)
	}
	if s.rec.Trigger.Snapshot == "" {
		s.rec.Trigger.Snapshot = trigger.SnapshotOf(title, body)
	}
}

func (s *session) removed(where string, hidden []prompt.Removal) {
	for _, h := range hidden {
		s.rec.Removed = append(s.rec.Removed, evidence.Removal{Kind: h.Kind, Count: h.Count, Where: where})
	}
}
