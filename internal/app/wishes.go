package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/prompt"
	"github.com/proctor-ci/proctor/internal/publish"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// Bounds of what a round takes along; the checkpoint holds it.
const (
	maxWishes    = 30
	maxWishText  = 8 << 10
	maxWishHunk  = 4 << 10
	hunkAbove    = 6 // lines shown above the one that a comment is about, where the forge gives no diff
	maxHunkBytes = 1 << 20
)

// writers remembers who of a discussion may write here; each account costs a call.
type writers map[string]bool

// mayWrite asks at most maxAuthors accounts; whoever comes later is left out, as are bots.
func (s *session) mayWrite(ctx context.Context, known writers, u forge.User) bool {
	may, asked := known[u.Login]
	if u.Bot || u.Login == "" || !asked && len(known) == maxAuthors {
		return false
	}
	if !asked {
		role, err := s.req.forge.Role(ctx, u.Login)
		if err != nil {
			s.note("the comments of " + prompt.Inline(u.Login, 60) + " are left out: the forge did not say what the account may do")
		}
		may = err == nil && slices.Contains(policy.DefaultRoles(), role)
		known[u.Login] = may
	}
	return may
}

// collect reads what is asked of the pull request: the text of the command, reviews that request changes, and threads that
// nobody has resolved and that wait for an answer, of all of them only what writers wrote; and jobs of its CI that failed.
func (s *session) collect(ctx context.Context, r *round) error {
	if s.trigger.Command != nil {
		text := trigger.CommandText(s.order.comment.Body, s.prefix())
		r.add(wish{Wish: prompt.Wish{From: "command", By: s.trigger.Actor.Login, Text: text}})
	}
	known := writers{}
	if err := s.collectReviews(ctx, r, known); err != nil {
		return err
	}
	if err := s.collectThreads(ctx, r, known); err != nil {
		return err
	}
	s.collectChecks(ctx, r)
	return nil
}

// add keeps a wish that says something.
func (r *round) add(w wish) bool {
	if w.Text = strings.TrimSpace(w.Text); w.Text == "" || len(r.Wishes) == maxWishes {
		return false
	}
	w.Text, w.Hunk = cutRunes(w.Text, maxWishText), lastRunes(w.Hunk, maxWishHunk)
	r.Wishes = append(r.Wishes, w)
	return true
}

// cutRunes and lastRunes keep at most n bytes, from the beginning and to the end; the forges' texts are valid UTF-8.
func cutRunes(s string, n int) string { return strings.ToValidUTF8(s[:min(n, len(s))], "") }

func lastRunes(s string, n int) string { return strings.ToValidUTF8(s[len(s)-min(n, len(s)):], "") }

func (s *session) collectReviews(ctx context.Context, r *round, known writers) error {
	reader, ok := s.req.forge.(forge.ReviewReader)
	if !ok {
		return nil
	}
	all, err := reader.Reviews(ctx, r.Pull)
	if err != nil {
		return fmt.Errorf("read the reviews of pull request %d: %w", r.Pull, err)
	}
	settled, last, n := s.saved.settledReviews(), decisions(all), 0
	for _, rv := range all {
		if rv.State != forge.ChangesRequested || settled[rv.ID] || last[rv.Author.ID] != forge.ChangesRequested || !s.mayWrite(ctx, known, rv.Author) {
			continue
		}
		r.Reviews = append(r.Reviews, rv.ID)
		n++
		r.add(wish{Wish: prompt.Wish{From: fmt.Sprintf("review %d", n), By: rv.Author.Login, Text: rv.Body}})
	}
	return nil
}

// decisions are each reviewer's newest: who has approved since requests nothing any more, though the older review stays as it was.
func decisions(all []forge.Review) map[int64]string {
	out := map[int64]string{}
	for _, r := range all { // oldest first
		if r.State == forge.ChangesRequested || r.State == "approved" || r.State == "dismissed" {
			out[r.Author.ID] = r.State
		}
	}
	return out
}

func (s *session) collectThreads(ctx context.Context, r *round, known writers) error {
	talker, ok := s.req.forge.(forge.ThreadTalker)
	if !ok {
		return nil
	}
	all, err := talker.Threads(ctx, r.Pull)
	if err != nil {
		return fmt.Errorf("read the review threads of pull request %d: %w", r.Pull, err)
	}
	mine, err := publish.Self(ctx, s.req.forge)
	if err != nil {
		return fmt.Errorf("ask who we are: %w", err)
	}
	n := 0
	for _, t := range all {
		if t.Resolved || mine(t.Comments[len(t.Comments)-1].Author) {
			continue // it is settled, or waits for the reviewer
		}
		w := wish{Thread: t.ID, Comment: t.Comments[0].ID}
		w.Path, w.Line = t.Path, t.Line
		w.By, w.Text = s.saidBy(ctx, known, t)
		if w.Hunk, err = s.linesOf(ctx, r.Tip, t); err != nil {
			return err
		}
		w.From = fmt.Sprintf("thread %d", n+1)
		if r.add(w) {
			n++
		}
	}
	return nil
}

// collectChecks takes along the ends of what failed jobs printed. Where something is held out, the user's own CI runs it too, as a rule,
// and its log would tell of it (INV-27): then the agent hears no more than a job's name. A token that may not read CI ends nothing.
func (s *session) collectChecks(ctx context.Context, r *round) {
	reader, ok := s.req.forge.(forge.JobReader)
	if !ok {
		return
	}
	jobs, err := reader.FailedJobs(ctx, forge.Tip{Pull: r.Pull, Branch: r.Branch, Commit: string(r.Tip)})
	if err != nil {
		s.note("how CI went for the pull request was not read: " + err.Error())
		return
	}
	for n, j := range jobs {
		text := "The job " + prompt.Inline(j.Name, 200) + " failed."
		if s.cfg.Gates.HeldOut() > 0 {
			text += " What it printed is left out: held-out tests may have run in it."
		} else if len(j.Log) > 0 {
			text += " The end of what it printed:\n" + lastRunes(s.red.String(string(j.Log)), maxWishText-400)
		}
		r.add(wish{Wish: prompt.Wish{From: fmt.Sprintf("check %d", n+1), Text: text, Log: true}})
	}
}

// saidBy is what writers wrote in a thread, each with a name, and who began.
func (s *session) saidBy(ctx context.Context, known writers, t forge.Thread) (by, text string) {
	var said []string
	for _, c := range t.Comments {
		if !s.mayWrite(ctx, known, c.Author) {
			continue
		}
		if by == "" {
			by = c.Author.Login
		} else {
			said = append(said, "Then "+prompt.Inline(c.Author.Login, 60)+" wrote:")
		}
		said = append(said, c.Body)
	}
	return by, strings.Join(said, "\n\n")
}

// linesOf are the lines that a thread is about: the forge's part of the diff or, where it gives none, the branch's own. Of a
// sealed file nothing is shown (INV-27). What cannot be read is left out: the agent has the file.
func (s *session) linesOf(ctx context.Context, tip git.ID, t forge.Thread) (string, error) {
	sealed, err := s.sealed()
	switch {
	case err != nil:
		return "", usage(err)
	case t.Path == "" || sealed != nil && sealed(t.Path):
		return "", nil
	case t.Hunk != "" || t.Line <= 0:
		return t.Hunk, nil
	}
	data, err := s.store.ReadFile(ctx, tip, t.Path, maxHunkBytes)
	if err != nil {
		return "", nil
	}
	lines := strings.Split(string(data), "\n")
	to := min(t.Line, len(lines))
	return strings.Join(lines[max(to-hunkAbove, 0):to], "\n"), nil
}

// nothingAsked refuses a round without anything to do.
func (s *session) nothingAsked() error {
	return refused("there is nothing to do: the command says nothing more, no thread of somebody with write access waits for an answer, no job of its CI failed, and the base has not moved",
		"write what to change behind "+s.prefix()+" fix, or comment on a line")
}

// heedReview fetches a review again, by its id, and holds the event to it, as heed does with a comment.
func (s *session) heedReview(ctx context.Context) error {
	number := s.trigger.Change.Number
	s.order.place = forge.Place{Number: number, Change: true}
	reader, ok := s.req.forge.(forge.ReviewReader)
	if !ok {
		return refused("the client of this forge cannot read reviews", "write "+s.prefix()+" fix on the pull request")
	}
	said, err := reader.Review(ctx, number, s.trigger.Review.ID)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		return fmt.Errorf("read the review that asked: %w", err)
	}
	again := "write " + s.prefix() + " fix on the pull request"
	author := trigger.Actor{Login: said.Author.Login, ID: said.Author.ID, Bot: said.Author.Bot}
	switch {
	case err != nil:
		return refused("the review that asked is gone, and so is its wish", again)
	case said.State != forge.ChangesRequested:
		return refused("the review requests no changes any more", again)
	case s.trigger.Actor.Login != "" && !s.trigger.Actor.Is(author):
		return refused("the review was written by another account than the one that asks", again)
	case s.env.Now().Sub(said.At) > maxAge:
		return refused("the review is older than a day, and it counts for a day", again)
	}
	s.trigger.Actor = author
	s.rec.Trigger.Actor, s.rec.Trigger.ActorID = author.Login, author.ID
	if err := s.findIssue(ctx); err != nil {
		return err
	}
	if s.trigger.Issue.Number == 0 {
		// People review each other's work all day; none of it is ours to answer.
		return &ended{terminal: "answered", reason: "the review is of a pull request that no run opened"}
	}
	return nil
}

// permittedReview is policy's word on a review.
func (s *session) permittedReview(ctx context.Context, facts policy.Facts) error {
	rules := s.rules(ctx)
	d := policy.Authorise(s.trigger, facts, rules)
	s.order.heard = slices.Contains(rules.Roles, facts.Role) && d.Reason != policy.ReasonSelf && d.Reason != policy.ReasonBot
	switch {
	case !d.Allow:
		return refused(d.Text, "")
	case s.change.State != "open":
		return refused("the pull request is "+s.change.State, "")
	}
	return nil
}
