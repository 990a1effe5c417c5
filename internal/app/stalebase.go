package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/guard"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/prompt"
)

// layRound makes the commit that a round's work is put on: the branch's tip, joined with the base where that has moved. What stands
// there is held to the policy before anything is spent: people may have put something on the branch that no run may publish.
func (s *session) layRound(ctx context.Context) error {
	r := s.round
	if r == nil {
		return nil
	}
	if s.newRound {
		if err := s.joinBase(ctx, r); err != nil {
			return err
		}
		if err := s.worthIt(ctx, r); err != nil {
			return err
		}
	} else if len(r.Conflicts) > 0 {
		if err := s.markConflicts(ctx, r); err != nil {
			return err
		}
	}
	var err error
	if r.theirs, err = s.store.ByOthers(ctx, r.Tip); err != nil {
		return err
	}
	return s.lawful(ctx, r)
}

// worthIt refuses a round in which nothing is asked of anybody: neither by people, nor by a base that moved.
func (s *session) worthIt(ctx context.Context, r *round) error {
	if len(r.Wishes) > 0 || len(r.Conflicts) > 0 {
		return nil
	}
	if r.Start == r.Tip {
		return s.nothingAsked(r)
	}
	tree, err := s.store.Tree(ctx, r.Start)
	if err == nil && tree == s.store.BaseTree() {
		return refused(fmt.Sprintf("%s holds all that branch %s changes", s.trigger.Repo.DefaultBranch, r.Branch), "close the pull request")
	}
	return err
}

// joinBase merges the base into the branch, where it is not in it.
func (s *session) joinBase(ctx context.Context, r *round) error {
	base := s.store.Base()
	if fresh, err := s.store.Contains(ctx, r.Tip, base); err != nil || fresh {
		return err
	}
	main := s.trigger.Repo.DefaultBranch
	if s.cfg.Fix.StaleBase == "off" {
		return refused(fmt.Sprintf("%s has moved since branch %s left it, and fix.stale_base is off", main, r.Branch), fmt.Sprintf("merge %s into %s, then ask again", main, r.Branch))
	}
	if err := s.store.Deepen(ctx, s.remote, "refs/heads/"+main, "refs/heads/"+r.Branch); err != nil {
		return err
	}
	_, err := s.store.MergeBase(ctx, r.Tip, base)
	if errors.Is(err, fs.ErrNotExist) {
		return refused(fmt.Sprintf("%s and branch %s share no history any more", main, r.Branch), "add the label to the issue for a new run, after you have renamed or deleted "+r.Branch)
	}
	if err != nil {
		return err
	}
	m, err := s.store.Merge(ctx, r.Tip, base)
	if err != nil {
		return err
	}
	if len(m.Conflicts) > 0 {
		s.note(fmt.Sprintf("%s has moved and conflicts with branch %s in %s", main, r.Branch, files(m.Conflicts)))
		return s.mark(r, m)
	}
	meta := s.meta(0)
	meta.Subject = fmt.Sprintf("Merge %s into %s", main, r.Branch)
	if r.Start, err = s.store.Join(m.Tree, r.Tip, base, meta); err != nil {
		return err
	}
	s.note(fmt.Sprintf("%s has moved and was merged into branch %s", main, r.Branch))
	return nil
}

// markConflicts makes anew what mark made on a machine that is gone.
func (s *session) markConflicts(ctx context.Context, r *round) error {
	if err := s.store.Deepen(ctx, s.remote, "refs/heads/"+s.trigger.Repo.DefaultBranch, "refs/heads/"+r.Branch); err != nil {
		return err
	}
	m, err := s.store.Merge(ctx, r.Tip, s.store.Base())
	if err != nil {
		return err
	}
	return s.mark(r, m)
}

// maxConflicts bounds the files that an agent is asked to settle: of more it could not even be shown the names.
const maxConflicts = 100

// mark makes the commit that shows the agent both sides. A conflict that no mark shows is a person's: whoever left it alone would
// have settled it in the branch's favour, and undone what the base did there.
func (s *session) mark(r *round, m git.Merge) (err error) {
	main := s.trigger.Repo.DefaultBranch
	if n := len(m.Conflicts); n > maxConflicts {
		return refused(fmt.Sprintf("%s has moved and conflicts with branch %s in %d files, and a round settles at most %d", main, r.Branch, n, maxConflicts), fmt.Sprintf("merge %s into %s, then ask again", main, r.Branch))
	}
	if len(m.Unmarked) > 0 {
		return refused(fmt.Sprintf("%s has moved and conflicts with branch %s where no mark can show both sides (binary, deleted, renamed, a link, a submodule or a mode); settle by hand: %s", main, r.Branch, files(m.Unmarked)),
			fmt.Sprintf("merge %s into %s, then ask again", main, r.Branch))
	}
	r.Conflicts = m.Conflicts // anew each time: a checkpoint keeps no name that is not UTF-8
	r.marked, err = s.store.Join(m.Tree, r.Tip, s.store.Base(), s.meta(0))
	return err
}

// lawful holds the start to the policy: over the whole difference from the base, as each candidate. A conflict is only held to what
// would end a run; the rest the agent may mend with it.
func (s *session) lawful(ctx context.Context, r *round) error {
	at := r.Start
	if r.marked != "" {
		at = r.marked
	}
	tree, err := s.store.Tree(ctx, at)
	if err != nil {
		return err
	}
	in := guard.Input{Blobs: s.store}
	if in.Changes, err = s.store.Diff(ctx, s.store.BaseTree(), tree); err != nil {
		return fmt.Errorf("compare branch %s with the base: %w", r.Branch, err)
	}
	in.Tick = in.Changes
	if in.Paths, err = s.pathsOf(ctx, tree); err != nil {
		return err
	}
	v, err := s.guard.Check(ctx, in)
	if err != nil {
		return fmt.Errorf("check the patch policy: %w", err)
	}
	if worst := v.Worst(); worst == guard.Halt || worst == guard.Block && r.marked == "" {
		f := v.At(worst)[0]
		return refused(fmt.Sprintf("branch %s, joined with the base, breaks a rule before anything is done: %s %s: %s", r.Branch, f.Rule, prompt.Inline(f.Path, 200), prompt.Inline(f.Detail, 200)),
			"take it out of the branch, or bring it to the default branch by itself, then ask again")
	}
	return nil
}

// shareOf is what a round has done itself: the difference from what the agent found. Of a file in conflict it is the one from the branch's
// version, since between the marks everything stands twice.
func (s *session) shareOf(ctx context.Context, candidate git.ID) ([]git.Change, error) {
	r := s.round
	at := r.Start
	if r.marked != "" {
		at = r.marked
	}
	before, err := s.store.Tree(ctx, at)
	if err != nil {
		return nil, err
	}
	changes, err := s.store.Diff(ctx, before, candidate)
	if err != nil {
		return nil, fmt.Errorf("compare with where the round began: %w", err)
	}
	for i, c := range changes {
		if !slices.Contains(r.Conflicts, c.Path) {
			continue
		}
		if changes[i].Old, err = s.store.Entry(ctx, r.Tip, c.Path); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// byPeople tells the paths where taking power from a test is taking it from people's.
func (r *round) byPeople(path string) bool { return r.theirs[path] }

func (s *session) pathsOf(ctx context.Context, tree git.ID) ([]string, error) {
	var out []string
	err := s.store.Walk(ctx, tree, func(p string, _ git.Entry) error {
		out = append(out, p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the candidate: %w", err)
	}
	return out, nil
}

// unsettledIn names the first file that still holds both sides of a conflict, "" when there is none: one of the conflict's that is as
// the agent found it or shows marks under other names, or any that it has written since, for marks may move with what stands between them.
func (s *session) unsettledIn(ctx context.Context, candidate loop.Commit) (string, error) {
	if s.round == nil || len(s.round.Conflicts) == 0 {
		return "", nil
	}
	before, err := s.store.Tree(ctx, s.round.marked)
	if err != nil {
		return "", err
	}
	changes, err := s.store.Diff(ctx, before, git.ID(candidate.Tree))
	if err != nil {
		return "", fmt.Errorf("look for conflict marks: %w", err)
	}
	written := map[string]git.Change{}
	for _, c := range changes {
		written[c.Path] = c
	}
	for _, path := range s.round.Conflicts {
		if c, ok := written[path]; !ok || c.Old.ID == c.New.ID {
			return path, nil
		}
	}
	for _, c := range changes {
		if holds, err := s.holdsMarks(ctx, c); err != nil || holds {
			return c.Path, err
		}
	}
	return "", nil
}

// holdsMarks looks at one file that the agent wrote.
func (s *session) holdsMarks(ctx context.Context, c git.Change) (bool, error) {
	if !c.New.Mode.IsFile() {
		return false, nil // deleted, which settles it
	}
	tip, base := s.round.Tip, s.store.Base()
	is, err := s.store.Marks(ctx, c.New.ID, tip, base)
	if err == nil && !is.Any() && slices.Contains(s.round.Conflicts, c.Path) {
		var was git.Marks
		was, err = s.store.Marks(ctx, c.Old.ID, tip, base)
		return is.Alike > was.Others(), err
	}
	return is.Any(), err
}
