package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Contains reports whether commit is tip or one of its ancestors.
func (s *Store) Contains(ctx context.Context, tip, commit ID) (bool, error) {
	if err := errors.Join(s.checkID(tip), s.checkID(commit)); err != nil {
		return false, err
	}
	err := s.git.run(ctx, s.command("merge-base", "--is-ancestor", string(commit), string(tip)))
	var exit *ExitError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &exit) && exit.Code == 1:
		return false, nil
	}
	return false, fmt.Errorf("look for %s in the history of %s: %w", commit, tip, err)
}

// maxBranch bounds how far ByOthers goes down a branch.
const maxBranch = 1000

// ByOthers are the paths that others than this program changed on a branch: of each commit along its first parents that is not ours, down to
// the base or to where one of our runs began. What such a commit merged counts as changed by it.
func (s *Store) ByOthers(ctx context.Context, tip ID) (map[string]bool, error) {
	out, stop := map[string]bool{}, map[ID]bool{s.base: true}
	for range maxBranch {
		if stop[tip] {
			break
		}
		c, err := s.ReadCommit(ctx, tip)
		if err != nil {
			return nil, fmt.Errorf("look who changed the branch: %w", err)
		}
		if s.ours(c) {
			stop[ID(c.Trailer(TrailerBase))] = true
		}
		if len(c.Parents) == 0 {
			break
		}
		parent, err := s.ReadCommit(ctx, c.Parents[0])
		var missing *MissingObjectError
		if errors.As(err, &missing) {
			break // the edge of a shallow clone
		}
		if err != nil {
			return nil, fmt.Errorf("look who changed the branch: %w", err)
		}
		if !s.ours(c) {
			changes, err := s.Diff(ctx, parent.Tree, c.Tree)
			if err != nil {
				return nil, fmt.Errorf("look who changed the branch: %w", err)
			}
			for _, ch := range changes {
				out[ch.Path] = true
			}
		}
		tip = c.Parents[0]
	}
	return out, nil
}

// MergeBase is the newest commit that both histories share; fs.ErrNotExist when there is none.
func (s *Store) MergeBase(ctx context.Context, a, b ID) (ID, error) {
	if err := errors.Join(s.checkID(a), s.checkID(b)); err != nil {
		return "", err
	}
	out, err := s.git.output(ctx, s.command("merge-base", string(a), string(b)))
	var exit *ExitError
	if errors.As(err, &exit) && exit.Code == 1 {
		return "", fmt.Errorf("%s and %s share no history: %w", a, b, fs.ErrNotExist)
	}
	if err != nil {
		return "", fmt.Errorf("find where %s left %s: %w", b, a, err)
	}
	return s.fmt.objectID(strings.TrimSpace(string(out)))
}

// Resolve finds the commit that a person means by name in a checkout: HEAD, a branch, a tag, a remote
// branch ("origin/main"), a full ref name, or an id of at least four digits. The store must borrow from that
// checkout. fs.ErrNotExist when there is none.
func (s *Store) Resolve(ctx context.Context, checkoutDir, name string) (ID, error) {
	from, err := s.git.readCheckout(ctx, checkoutDir)
	if err != nil {
		return "", fmt.Errorf("open checkout %s: %w", checkoutDir, err)
	}
	for _, ref := range []string{name, "refs/heads/" + name, "refs/tags/" + name, "refs/remotes/" + name} {
		if ref != "HEAD" && checkRefName(ref) != nil {
			continue
		}
		if id, err := from.resolve(ref); err == nil {
			return s.peel(ctx, string(id))
		}
	}
	if len(name) >= 4 && strings.Trim(name, "0123456789abcdef") == "" {
		return s.peel(ctx, name)
	}
	return "", fmt.Errorf("there is no branch, tag or commit %q here: %w", name, fs.ErrNotExist)
}

// peel makes a full commit id of an abbreviated one, or of a tag's. id is hex digits only.
func (s *Store) peel(ctx context.Context, id string) (ID, error) {
	out, err := s.git.output(ctx, s.command("rev-parse", "--verify", "--quiet", "--end-of-options", id+"^{commit}"))
	var exit *ExitError
	if errors.As(err, &exit) && exit.Code > 0 {
		return "", fmt.Errorf("there is no commit %s here, or more than one: %w", id, fs.ErrNotExist)
	}
	if err != nil {
		return "", fmt.Errorf("look for commit %s: %w", id, err)
	}
	return s.fmt.objectID(strings.TrimSpace(string(out)))
}
