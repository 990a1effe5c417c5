package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/publish"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// order is the comment command that asked for this run, as far as it was looked into.
type order struct {
	place   forge.Place   // where it was written
	comment forge.Comment // as it is now
	heard   bool          // its author may ask, so that an answer is owed
	answer  string        // Markdown; "" while there is none
}

// maxAge is how old a comment may be when a run reads it: a job that is run again much later, or dispatched by
// hand with the id of somebody's old comment, is no wish of its author any more.
const maxAge = 24 * time.Hour

// heed fetches the comment of a command again and holds the event, or the dispatch, to it: it must still be there, be
// written by the actor, and still hold that command (INV-48). For a command on a pull request it finds the issue.
func (s *session) heed(ctx context.Context) error {
	c := s.trigger.Command
	s.order.place = forge.Place{Number: s.trigger.Issue.Number}
	if s.trigger.Change != nil {
		s.order.place = forge.Place{Number: s.trigger.Change.Number, Change: true}
	}
	talker, ok := s.req.forge.(forge.Talker)
	if !ok {
		return refused("the client of this forge cannot read comments", "use the label")
	}
	said, err := talker.CommentAt(ctx, s.order.place, c.CommentID)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return refused("the comment that asked is gone, and so is its wish", "write the command again")
	case err != nil:
		return fmt.Errorf("read the comment that asked: %w", err)
	}
	s.order.comment = said
	author := trigger.Actor{Login: said.Author.Login, ID: said.Author.ID, Bot: said.Author.Bot}
	now, found := trigger.FindCommand(said.Body, s.prefix())
	switch {
	case s.trigger.Actor.Login != "" && !s.trigger.Actor.Is(author):
		return refused("the comment was written by another account than the one that asks", "write the command in a comment of your own")
	case !found || !sameCommand(now, *c):
		return refused("the comment was changed after it asked", "write the command in a new comment")
	case s.env.Now().Sub(said.CreatedAt) > maxAge:
		return refused("the comment was written on "+said.CreatedAt.UTC().Format(time.DateOnly)+", and a command counts for a day", "write the command in a new comment")
	}
	s.trigger.Actor = author
	s.rec.Trigger.Actor, s.rec.Trigger.ActorID = author.Login, author.ID
	if s.trigger.Change == nil {
		return nil
	}
	return s.findIssue(ctx)
}

// sameCommand compares names, and amounts where the command has one.
func sameCommand(a, b trigger.Command) bool {
	x, _ := a.Canonical()
	y, _ := b.Canonical()
	return a.Name == b.Name && x == y
}

func (s *session) prefix() string { return first(s.cfg.Trigger.Commands, trigger.DefaultPrefix) }

// findIssue reads the pull request that a command was written on. What the command is about is then the issue
// that it was opened for; none where no run of ours opened it.
func (s *session) findIssue(ctx context.Context) error {
	reader, ok := s.req.forge.(forge.PullReader)
	if !ok {
		return refused("the client of this forge cannot read pull requests", "write the command on the issue")
	}
	pr, err := reader.PullRequest(ctx, s.trigger.Change.Number)
	if err != nil {
		return fmt.Errorf("read pull request %d: %w", s.trigger.Change.Number, err)
	}
	return s.about(ctx, pr)
}

// about makes an open pull request the subject, and the issue that a run of ours opened it for.
func (s *session) about(ctx context.Context, pr forge.PullRequest) (err error) {
	s.trigger.Change = &trigger.ChangeRef{
		Number: pr.Number, Head: pr.Head, Base: pr.Base, HeadSHA: pr.HeadSHA, Draft: pr.Draft, Merged: pr.State == "merged",
		FromFork: pr.HeadRepoID != s.trigger.Repo.ID,
	}
	s.change = &pr
	// The event's title, text and state are the pull request's; what was approved is the issue's.
	s.trigger.Issue, s.trigger.Snapshot = trigger.Issue{}, ""
	if s.trigger.Issue.Number, err = s.issueOf(ctx, pr); err != nil {
		return err
	}
	s.rec.Trigger.Issue, s.rec.Trigger.Snapshot = s.trigger.Issue.Number, ""
	return nil
}

// issueOf is the issue that a run of ours opened a pull request for, 0 where none did.
func (s *session) issueOf(ctx context.Context, pr forge.PullRequest) (int, error) {
	mine, err := publish.Ours(ctx, s.req.forge, pr)
	n, ok := trigger.IssueOfBranch(pr.Head, s.cfg.Publish.Branch)
	if err != nil || !ok || !mine || pr.HeadRepoID != s.trigger.Repo.ID {
		return 0, err
	}
	return n, nil
}

// permitted is policy's word on a command. One that is only answered asks for no more than help does.
func (s *session) permitted(ctx context.Context, facts policy.Facts) error {
	t, rules := s.trigger, s.rules(ctx)
	_, replied := t.Command.Reply(s.prefix())
	if replied {
		t.Command = &trigger.Command{Name: "help"}
	}
	d := policy.Authorise(t, facts, rules)
	s.order.heard = slices.Contains(rules.Roles, facts.Role) && d.Reason != policy.ReasonSelf && d.Reason != policy.ReasonBot
	info, _ := s.trigger.Command.Info()
	switch {
	case !d.Allow:
		return refused(d.Text, "")
	case replied:
		return nil
	case t.Command.Name == "fix" && s.change == nil:
		return refused("this is an issue, and fix works on what is open for review", "write the command on the pull request that a run opened for this issue")
	case t.Issue.Number == 0:
		return refused("no run of Proctor's opened this pull request", "write the command on an issue, or on a pull request that a run opened for one")
	case info.Check && s.change != nil && s.change.State != "open":
		return refused("the pull request is "+s.change.State, "give `proctor "+info.Name+"` its commits on a machine of your own")
	case info.Starts && s.change != nil && s.change.State != "open":
		return refused("the pull request is "+s.change.State, "write the command on the issue for a new run")
	}
	return nil
}

// answers are the commands that start nothing and need the repository. With trigger.Command.Reply, inspections and the
// commands that begin a run they are all there are.
func (s *session) answers() map[string]func(context.Context) (string, error) {
	return map[string]func(context.Context) (string, error){"stop": s.askToStop, "status": s.sayStatus, "explain": s.sayWhy}
}

// obey carries out a command that starts nothing and ends the job there; it returns nil where a run begins.
func (s *session) obey(ctx context.Context) error {
	c := s.trigger.Command
	text, ok := c.Reply(s.prefix())
	if !ok {
		engine, steers := s.answers()[c.Name]
		if !steers {
			return nil
		}
		var err error
		if text, err = engine(ctx); err != nil {
			return err
		}
	}
	s.order.answer = text
	reason := "the command " + c.Name + " was answered"
	if _, known := c.Info(); !known {
		reason = "a command that does not exist was answered with the list"
	}
	return &ended{terminal: evidence.Answered, reason: reason}
}

// acknowledge reacts to the command. Trouble with it is noted and changes nothing.
func (s *session) acknowledge(ctx context.Context, r forge.Reaction) {
	talker, ok := s.req.forge.(forge.Talker)
	if !ok || s.order.comment.ID == 0 || !s.writes() {
		return
	}
	if err := talker.Acknowledge(ctx, s.order.place, s.order.comment.ID, r); err != nil {
		s.note("the command got no reaction: " + err.Error())
	}
}

// reply tells the end of a command that never became a run, below the comment that asked: for one that looked at a pull request, what it saw. Who may not ask gets a
// reaction only: nobody else can make us write.
func (s *session) reply(ctx context.Context) {
	text := s.order.answer
	switch {
	case s.rec.Inspection != nil:
		text = evidence.InspectionAnswer(s.rec, evidence.MaxGitHubBody-len(evidence.AnswerMarker)-1)
	case s.rec.Terminal != evidence.Answered:
		s.acknowledge(ctx, forge.ReactionRefused)
		text = evidence.Refusal(s.rec)
	}
	talker, ok := s.req.forge.(forge.Talker)
	if !ok || !s.order.heard || text == "" {
		return
	}
	if _, err := talker.Answer(ctx, s.order.place, evidence.AnswerMarker+"\n"+s.red.String(text)); err != nil {
		s.note("the command could not be answered: " + err.Error())
	}
}
