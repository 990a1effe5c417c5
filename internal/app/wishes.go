package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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

// maxAhead is how far GitLab's clock, of which a dispatched review's time is, may be ahead of the runner's.
const maxAhead = time.Minute

// openThread is one that nobody has resolved.
type openThread struct {
	forge.Thread
	since []forge.Comment // what was said behind our last answer; all of it where there is none, but for what may stand before it
}

// collect reads what is asked of the pull request: the text of the command, reviews that request changes, and threads that
// nobody has resolved and that wait for an answer, of all of them only what writers wrote; and jobs of its CI that failed.
func (s *session) collect(ctx context.Context, r *round) error {
	if s.trigger.Command != nil {
		text := trigger.CommandText(s.order.comment.Body, s.prefix())
		r.add(wish{Wish: prompt.Wish{From: "command", By: s.trigger.Actor.Login, Text: text}})
	}
	known, err := s.writers(ctx)
	if err != nil {
		return err
	}
	reviews, err := s.openReviews(ctx, r)
	if err != nil {
		return err
	}
	threads, err := s.openThreads(ctx, r, known.self)
	if err != nil {
		return err
	}
	s.meet(ctx, known, wordsOf(reviews, threads))
	s.takeReviews(ctx, r, known, reviews)
	if err := s.takeThreads(ctx, r, known, threads); err != nil {
		return err
	}
	s.collectChecks(ctx, r)
	r.leaveOut(known.left())
	if r.over > 0 {
		r.leaveOut(fmt.Sprintf("left out of this round, and neither answered nor settled: %s that people asked for or that CI found, since a round takes at most %d", plural(int64(r.over), "further thing"), maxWishes))
	}
	return nil
}

func wordsOf(reviews []forge.Review, threads []openThread) []word {
	var out []word
	for _, rv := range reviews {
		out = append(out, word{by: rv.Author, at: rv.At})
	}
	for _, t := range threads {
		for _, c := range t.since {
			out = append(out, word{by: c.Author, at: c.CreatedAt})
		}
	}
	return out
}

// add keeps a wish that says something and that there is room for, and counts those without room. What it tells is whether the
// wish is kept: only then may it be answered or count as settled.
func (r *round) add(w wish) bool {
	switch w.Text = strings.TrimSpace(w.Text); {
	case w.Text == "":
		return false
	case len(r.Wishes) == maxWishes:
		r.over++
		return false
	case len(w.Text) > maxWishText:
		r.leaveOut(fmt.Sprintf("of what %s says only the first %d bytes are told", w.From, maxWishText))
	}
	w.Text, w.Hunk = cutRunes(w.Text, maxWishText), lastRunes(w.Hunk, maxWishHunk)
	r.Wishes = append(r.Wishes, w)
	return true
}

func (r *round) leaveOut(what string) {
	if what != "" {
		r.Left = append(r.Left, what)
	}
}

// cutRunes and lastRunes keep at most n bytes, from the beginning and to the end; the forges' texts are valid UTF-8.
func cutRunes(s string, n int) string { return strings.ToValidUTF8(s[:min(n, len(s))], "") }

func lastRunes(s string, n int) string { return strings.ToValidUTF8(s[len(s)-min(n, len(s)):], "") }

// openReviews are those that request changes still, and that no published round has worked on; oldest first.
func (s *session) openReviews(ctx context.Context, r *round) ([]forge.Review, error) {
	reader, ok := s.req.forge.(forge.ReviewReader)
	if !ok {
		return nil, nil
	}
	found, err := reader.Reviews(ctx, r.Pull)
	if err != nil {
		return nil, fmt.Errorf("read the reviews of pull request %d: %w", r.Pull, err)
	}
	if found.Cut {
		r.leaveOut(fmt.Sprintf("only the newest %d reviews were read: what older ones ask for is left out and not settled; who still asks for it can submit another", len(found.All)))
	}
	settled, last := s.saved.settledReviews(), decisions(found.All)
	return slices.DeleteFunc(found.All, func(rv forge.Review) bool {
		return rv.State != forge.ChangesRequested || settled[rv.ID] || last[rv.Author.ID] != forge.ChangesRequested
	}), nil
}

func (s *session) takeReviews(ctx context.Context, r *round, known *writers, open []forge.Review) {
	for _, rv := range open {
		if !s.mayWrite(ctx, known, rv.Author) {
			continue
		}
		if r.add(wish{Wish: prompt.Wish{From: fmt.Sprintf("review %d", len(r.Reviews)+1), By: rv.Author.Login, Text: rv.Body}}) {
			r.Reviews = append(r.Reviews, rv.ID)
		}
	}
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

// openThreads are those that nobody has resolved, without those in which ours is the last word.
func (s *session) openThreads(ctx context.Context, r *round, self publish.Account) ([]openThread, error) {
	talker, ok := s.req.forge.(forge.ThreadTalker)
	if !ok {
		return nil, nil
	}
	found, err := talker.Threads(ctx, r.Pull, self.Said)
	if err != nil {
		return nil, fmt.Errorf("read the review threads of pull request %d: %w", r.Pull, err)
	}
	if found.Cut {
		r.leaveOut(fmt.Sprintf("only the newest %d review threads were read: older ones are neither answered nor settled; resolve what is done, or write behind %s fix what still counts", len(found.All), s.prefix()))
	}
	var open []openThread
	long := 0
	for _, t := range found.All {
		if t.Resolved {
			continue
		}
		since, whole := behindAnswer(t, self)
		if !whole {
			long++
		}
		if len(since) > 0 {
			t.Comments = slices.DeleteFunc(slices.Clone(t.Comments), self.Said)
			open = append(open, openThread{Thread: t, since: since})
		}
	}
	if long > 0 {
		r.leaveOut(fmt.Sprintf("of %s only the newest comments were read, since there are too many: what was asked there before is neither answered nor settled; write it again if it still counts", plural(int64(long), "review thread")))
	}
	return open, nil
}

// behindAnswer is what was said behind our last answer, and whether that is known to be all. Where the answer may stand among comments that
// nobody has read, the thread's first one counts as answered: outsiders must not make us work on it again.
func behindAnswer(t forge.Thread, self publish.Account) (since []forge.Comment, whole bool) {
	for i, c := range slices.Backward(t.Comments) {
		if self.Said(c) {
			return t.Comments[i+1:], true
		}
	}
	if t.Cut {
		return t.Comments[1:], false
	}
	return t.Comments, true
}

// takeThreads keeps the threads in which a writer had a word behind our last answer: what outsiders write there opens none again.
func (s *session) takeThreads(ctx context.Context, r *round, known *writers, open []openThread) error {
	n := 0
	for _, t := range open {
		if !slices.ContainsFunc(t.since, func(c forge.Comment) bool { return s.mayWrite(ctx, known, c.Author) }) {
			continue
		}
		w := wish{Thread: t.ID, Comment: t.First}
		w.From, w.Path, w.Line = fmt.Sprintf("thread %d", n+1), t.Path, t.Line
		w.By, w.Text = s.saidBy(ctx, known, t.Thread)
		var err error
		if w.Hunk, err = s.linesOf(ctx, r.Tip, t.Thread); err != nil {
			return err
		}
		if !r.add(w) {
			continue
		}
		if n++; strings.HasPrefix(w.Text, earlierLeft) {
			r.leaveOut("of what " + w.From + " says the older words are left out: it is too long")
		}
	}
	return nil
}

// collectChecks is readChecks where people ask: a token that may not read CI ends nothing.
func (s *session) collectChecks(ctx context.Context, r *round) {
	if err := s.readChecks(ctx, r); err != nil {
		s.note("how CI went for the pull request was not read: " + err.Error())
	}
}

// readChecks takes along the ends of what failed jobs printed. Where something is held out, the user's own CI runs it too, as a rule,
// and its log would tell of it (INV-27): then the agent hears no more than a job's name.
func (s *session) readChecks(ctx context.Context, r *round) error {
	reader, ok := s.req.forge.(forge.JobReader)
	if !ok {
		return nil
	}
	jobs, err := reader.FailedJobs(ctx, forge.Tip{Pull: r.Pull, Branch: r.Branch, Commit: string(r.Tip)})
	if err != nil {
		return err
	}
	for n, j := range jobs {
		name := prompt.Inline(j.Name, 200)
		text := "The job " + name + " failed."
		if s.cfg.Gates.HeldOut() > 0 {
			text += " What it printed is left out: held-out tests may have run in it."
		} else if len(j.Log) > 0 {
			text += " The end of what it printed:\n" + lastRunes(s.red.String(string(j.Log)), maxWishText-400)
		}
		if r.add(wish{Wish: prompt.Wish{From: fmt.Sprintf("check %d", n+1), Text: text, Log: true}}) {
			r.Checks = append(r.Checks, name)
		}
	}
	return nil
}

// earlierLeft begins the text of a thread whose older words had no room, and betweenLeft stands where some were not read.
const (
	earlierLeft = "What was said before is left out here."
	betweenLeft = "What was said between is left out here."
)

// saidBy is what writers wrote in a thread, each with a name, and who began. Where that is too long, the newest words stay.
func (s *session) saidBy(ctx context.Context, known *writers, t forge.Thread) (by, text string) {
	for i, c := range slices.Backward(t.Comments) {
		switch {
		case !s.mayWrite(ctx, known, c.Author) || strings.TrimSpace(c.Body) == "":
			continue
		case text == "":
			text = c.Body
		case len(c.Body)+len(text) > maxWishText-200:
			return by, earlierLeft + "\n\n" + text
		default:
			then := "Then "
			if i == 0 && t.Cut {
				then = betweenLeft + "\n\nThen "
			}
			text = c.Body + "\n\n" + then + prompt.Inline(by, 60) + " wrote:\n\n" + text
		}
		by = c.Author.Login
	}
	return by, text
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

// nothingAsked refuses a round without anything to do. What was left out may be what somebody waits for.
func (s *session) nothingAsked(r *round) error {
	reason := "there is nothing to do: the command says nothing more, no thread of somebody with write access waits for an answer, no job of its CI failed, and the base has not moved"
	if len(r.Left) > 0 {
		reason += "; but " + strings.Join(r.Left, "; ")
	}
	return refused(reason, "write what to change behind "+s.prefix()+" fix, or comment on a line")
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
	at, now := said.At, s.env.Now()
	told := at.IsZero()
	if told {
		at = s.trigger.Review.At // GitLab tells that changes are requested, and not since when, so whoever dispatches says it
	}
	switch {
	case err != nil:
		return refused("the review that asked is gone, and so is its wish", again)
	case said.State != forge.ChangesRequested:
		return refused("the review requests no changes any more", again)
	case s.trigger.Actor.Login != "" && !s.trigger.Actor.Is(author):
		return refused("the review was written by another account than the one that asks", again)
	case told && at.Sub(now) > maxAhead:
		return refused(fmt.Sprintf("the request to work on the review says that it was written at %s, which is yet to come", at.UTC().Format(time.RFC3339)),
			again+"; if the webhook asked, set the clocks of the runner and of GitLab")
	case now.Sub(at) > maxAge:
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
