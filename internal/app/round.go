package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/prompt"
)

// round is one go at an open pull request of ours: what was asked for, and the commit that the work is put on. It lies in
// the checkpoint, so that a machine that takes the work up knows what it is for.
type round struct {
	Pull      int      `json:"pull"`
	Branch    string   `json:"branch"`
	Asked     string   `json:"asked"`               // the request that began it
	Tip       git.ID   `json:"tip"`                 // what the branch pointed at
	Start     git.ID   `json:"start"`               // what the first commit is put on: the tip, or its merge with the base
	Conflicts []string `json:"conflicts,omitempty"` // paths in which the tip and the base conflict: the first commit joins the two
	Wishes    []wish   `json:"wishes,omitempty"`
	Reviews   []int64  `json:"reviews,omitempty"` // ids among the wishes
	Checks    []string `json:"checks,omitempty"`  // jobs of CI that failed for the tip
	Tree      git.ID   `json:"tree,omitempty"`    // the tip's, where there are such jobs
	Left      []string `json:"left,omitempty"`    // notes on what was asked for and left out

	over   int             // wishes without room
	marked git.ID          // the conflicts with both sides in them; a commit that is never pushed
	theirs map[string]bool // paths of the branch that people have changed
}

// wish is one thing that is asked for. A thread's is answered in it.
type wish struct {
	prompt.Wish
	Thread  string `json:"thread,omitempty"`
	Comment int64  `json:"comment,omitempty"` // the thread's first
}

// spentRound is a round that was begun, for fix.max_rounds.
type spentRound struct {
	Pull    int     `json:"pull"`
	Asked   string  `json:"asked"`
	Reviews []int64 `json:"reviews,omitempty"`
	Done    bool    `json:"done,omitempty"` // and published: its reviews are settled

	Checks []string `json:"checks,omitempty"` // jobs of CI that failed before it
	Tree   git.ID   `json:"tree,omitempty"`   // for this content
}

// fixing says that the request is for a round on an open pull request.
func (s *session) fixing() bool {
	c := s.trigger.Command
	return s.trigger.Review != nil || s.trigger.Check != nil || c != nil && c.Name == "fix"
}

// openRound looks at the pull request before anything is spent: may it have another round, is its branch one that we wrote, and
// what is asked for.
func (s *session) openRound(ctx context.Context) error {
	s.newRound, s.rec.Trigger.Revise = true, true
	used := s.saved.roundsOf(s.change.Number, s.request())
	if limit := s.cfg.Fix.MaxRounds; used >= limit {
		return refused(fmt.Sprintf("pull request %d has had %d of fix.max_rounds: %d rounds", s.change.Number, used, limit),
			"finish it by hand, or raise fix.max_rounds on the default branch and ask again")
	}
	r := &round{Pull: s.change.Number, Branch: s.change.Head, Asked: s.request()}
	if err := s.ownBranch(ctx, r); err != nil {
		return err
	}
	if err := s.collect(ctx, r); err != nil {
		return err
	}
	if err := s.noteTree(ctx, r); err != nil {
		return err
	}
	s.round = r
	s.noteLeft(r)
	return nil
}

// noteLeft tells what the round was asked for and leaves out, in the record and so in the pull request.
func (s *session) noteLeft(r *round) {
	for _, text := range r.Left {
		s.note(text)
	}
}

// roundsOf counts the rounds of a pull request that other requests began.
func (c checkpoint) roundsOf(pull int, but string) int {
	n := 0
	for _, r := range c.Rounds {
		if r.Pull == pull && r.Asked != but {
			n++
		}
	}
	return n
}

// ownBranch fetches the branch and holds it to be the one that a run of ours pushed for this issue: what that run published is in
// its history, by our hand. What people put on top stays and is built upon (INV-20).
func (s *session) ownBranch(ctx context.Context, r *round) error {
	tip, err := s.fetchBranch(ctx, r.Branch)
	if errors.Is(err, fs.ErrNotExist) {
		return refused(fmt.Sprintf("branch %s of pull request %d is gone", r.Branch, r.Pull), "add the label to the issue for a new run, which makes the branch anew")
	}
	if err != nil {
		return err
	}
	r.Tip, r.Start = tip, tip
	published := git.ID(evidence.PullRequestHead(s.change.Body))
	foreign := refused(fmt.Sprintf("branch %s does not hold the commit that pull request %d was published with", r.Branch, r.Pull),
		"add the label to the issue for a new run, or bring that commit back")
	if published == "" {
		return foreign
	}
	issue, ours, err := s.store.Wrote(ctx, published)
	var missing *git.MissingObjectError
	switch {
	case errors.As(err, &missing) || err == nil && (!ours || issue != s.issueName()):
		return foreign
	case err != nil:
		return fmt.Errorf("read the commit that was published: %w", err)
	}
	holds, err := s.store.Contains(ctx, r.Tip, published)
	if err == nil && !holds {
		return foreign
	}
	return err
}

// fetchBranch brings a branch and tells where it is: what the forge's API says may be older. fs.ErrNotExist where it is gone.
func (s *session) fetchBranch(ctx context.Context, name string) (git.ID, error) {
	ref := "refs/heads/" + name
	if err := s.store.Fetch(ctx, s.remote, ref+":"+ref); err != nil {
		return "", fmt.Errorf("fetch branch %s: %w", name, err)
	}
	return s.store.Ref(ref)
}

// issueName is how a commit of ours names the issue.
func (s *session) issueName() string {
	return fmt.Sprintf("%s#%d", s.rec.Trigger.Repo, s.trigger.Issue.Number)
}

// beside is the second parent of the commit that settles a conflict with the base.
func (s *session) beside(parent loop.Commit) git.ID {
	if s.round == nil || len(s.round.Conflicts) == 0 || parent.ID != string(s.round.Tip) {
		return ""
	}
	return s.store.Base()
}

// takenUp is the commit that the agent's directory shows first.
func (s *session) takenUp(ctx context.Context) (loop.Commit, error) {
	st, err := s.began(ctx, s.begun0())
	if err == nil && s.round != nil && s.round.marked != "" && st.Good.ID == string(s.round.Tip) {
		return loop.Commit{ID: string(s.round.marked)}, nil
	}
	return st.Good, err
}

// began puts a state that has not begun on the commit that its round starts from.
func (s *session) began(ctx context.Context, st loop.State) (loop.State, error) {
	if !s.newRound {
		return st, nil
	}
	return s.beginOn(ctx, st)
}

// beginOn is the loop's first state in a round.
func (s *session) beginOn(ctx context.Context, st loop.State) (loop.State, error) {
	r := s.round
	tree, err := s.store.Tree(ctx, r.Start)
	if err != nil {
		return st, err
	}
	start := loop.Commit{ID: string(r.Start), Tree: string(tree)}
	from := loop.Commit{}
	switch {
	case r.marked != "": // whatever else is asked, the conflict has to be settled
		if tree, err = s.store.Tree(ctx, r.marked); err != nil {
			return st, err
		}
		from = loop.Commit{ID: string(r.marked), Tree: string(tree)}
	case len(r.Wishes) > 0:
		from = start
	}
	return st.On(start, from), nil
}

// idle says that nothing is asked of the agent: the base moved, and joined with it the gates have to pass again.
func (r *round) idle() bool { return r != nil && len(r.Wishes) == 0 && len(r.Conflicts) == 0 }

// parents are what the round's first commit has, for history: squash.
func (r *round) parents(base git.ID) []git.ID {
	switch {
	case r == nil:
		return nil
	case len(r.Conflicts) > 0:
		return []git.ID{r.Tip, base}
	}
	return []git.ID{r.Start}
}

// prompt is the round as the agent reads it.
func (r *round) prompt(base git.ID) *prompt.Round {
	if r == nil || r.idle() {
		return nil
	}
	out := &prompt.Round{Conflicts: r.Conflicts, Ours: string(r.Tip), Theirs: string(base)}
	for _, w := range r.Wishes {
		out.Wishes = append(out.Wishes, w.Wish)
	}
	return out
}

// asks is the visible text of what writers ask for, for the reviewer; "" where nothing is. Of a failed job it has a sentence of
// ours and no more: its log and, in a matrix, its name are what the draft's code printed, which the agent wrote.
func (r *round) asks() string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	if len(r.Conflicts) > 0 {
		b.WriteString("\n\nThe base has moved, and the change conflicted with it in the files below. It has to settle that too, so that both sides keep their meaning:\n")
		for _, path := range r.Conflicts {
			b.WriteString(prompt.Inline(path, 300) + "\n")
		}
	}
	if len(r.Wishes) == 0 {
		return b.String()
	}
	b.WriteString("\n\nThe change is open for review, and this is asked of it now:\n")
	for _, w := range r.Wishes {
		text, _ := prompt.Visible(w.Text)
		if w.Log {
			text = "a job of its CI fails, and should pass"
		}
		if w.Path != "" {
			text = fmt.Sprintf("on %s:%d: %s", prompt.Inline(w.Path, 300), w.Line, text)
		}
		b.WriteString("\n" + text + "\n")
	}
	return b.String()
}

// spend puts the round into the checkpoint's list, once.
func (c *checkpoint) spend(r *round) {
	if r == nil || slices.ContainsFunc(c.Rounds, func(u spentRound) bool { return u.Asked == r.Asked }) {
		return
	}
	c.Rounds = append(slices.Clone(c.Rounds), spentRound{Pull: r.Pull, Asked: r.Asked, Reviews: r.Reviews, Checks: r.Checks, Tree: r.Tree})
}

// settle notes that the round was published.
func (c *checkpoint) settle(r *round) {
	for i, u := range c.Rounds {
		if r != nil && u.Asked == r.Asked {
			c.Rounds[i].Done = true
		}
	}
}

// settledReviews are the reviews that a published round worked on.
func (c checkpoint) settledReviews() map[int64]bool {
	out := map[int64]bool{}
	for _, r := range c.Rounds {
		for _, id := range r.Reviews {
			out[id] = out[id] || r.Done
		}
	}
	return out
}

// threadOf is where a wish is answered.
func (w wish) threadOf() forge.Thread { return forge.Thread{ID: w.Thread, First: w.Comment} }

// tellTakenOut names in the record, and so in the draft, the files of people that the round leaves out: it may have been asked to.
func (s *session) tellTakenOut(ctx context.Context) error {
	if s.round == nil {
		return nil
	}
	var gone []string
	for _, path := range slices.Sorted(maps.Keys(s.round.theirs)) {
		was, err := s.store.Entry(ctx, s.round.Tip, path)
		if err != nil {
			return err
		}
		is, err := s.store.Entry(ctx, s.proved, path)
		if err != nil {
			return err
		}
		if was != (git.Entry{}) && is == (git.Entry{}) {
			gone = append(gone, path)
		}
	}
	if len(gone) > 0 {
		s.note("what people put on the branch is not in the change any more: " + files(gone))
	}
	return nil
}
