package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// RemoveAll removes path and everything below, whatever an untrusted process did to permissions and depth.
// It follows no symlink; a path that does not exist is no error.
func RemoveAll(path string) error { return removeTree(path) }

// ErrBranchExists: Export never moves a branch that is there.
var ErrBranchExists = errors.New("the branch exists already")

// Export makes commit the branch of a checkout, for runs that no forge asked for. A branch that exists stays as it is
// (ErrBranchExists). Git does not run in the checkout: a pack and a ref are put down beside what is there, so that no hook
// and no setting of it has a say, and neither its files nor its index nor its HEAD change. Where refs are no files the
// objects are put down all the same, and the error says which command makes the branch.
func (s *Store) Export(ctx context.Context, checkoutDir, branch string, commit ID) error {
	name := "refs/heads/" + branch
	if err := checkRefName(name); err != nil {
		return err
	}
	to, err := s.git.readCheckout(ctx, checkoutDir)
	if err != nil {
		return fmt.Errorf("open checkout %s: %w", checkoutDir, err)
	}
	if !to.refless {
		if err := to.freeFor(name); err != nil {
			return fmt.Errorf("make branch %s in %s: %w", branch, checkoutDir, err)
		}
	}
	if err := s.pack(ctx, to.common, strings.NewReader(string(commit)+"\n^"+string(s.base)+"\n"), "--revs"); err != nil {
		return fmt.Errorf("write the commit into %s: %w", checkoutDir, err)
	}
	if to.refless {
		return fmt.Errorf("checkout %s keeps its refs in a table, which only git itself may write; the commit is there. Next: git -C %s branch %s %s", checkoutDir, checkoutDir, branch, commit)
	}
	return writeRef(filepath.Join(to.common, filepath.FromSlash(name)), branch, commit)
}

// freeFor says whether a ref can be made: there is none of that name, and none that stands where its directory would be.
func (c *checkout) freeFor(name string) error {
	for ref := name; strings.Count(ref, "/") > 1; ref = ref[:strings.LastIndexByte(ref, '/')] {
		if info, err := os.Stat(filepath.Join(c.common, filepath.FromSlash(ref))); err == nil && info.IsDir() {
			if ref == name {
				return fmt.Errorf("branches lie below that name. Next: choose another publish.branch: %w", ErrBranchExists)
			}
			continue
		}
		var unreadable *fs.PathError
		switch _, err := c.ref(ref); {
		case err == nil && ref == name:
			return ErrBranchExists
		case err == nil:
			return fmt.Errorf("the branch %s stands in its way. Next: rename that one with git branch -m, or choose another publish.branch", strings.TrimPrefix(ref, "refs/heads/"))
		case errors.As(err, &unreadable):
			return err
		}
	}
	return nil
}

// writeRef makes a ref that another process may make at the same time.
func writeRef(file, branch string, commit ID) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("make branch %s: %w", branch, err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make branch %s: %w", branch, ErrBranchExists)
	}
	if err != nil {
		return fmt.Errorf("make branch %s: %w", branch, err)
	}
	if _, err := f.WriteString(string(commit) + "\n"); err != nil {
		f.Close()
		return fmt.Errorf("make branch %s: %w", branch, err)
	}
	return f.Close()
}
