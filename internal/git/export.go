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

// Export makes commit the branch of a checkout, for runs that no forge asked for. The branch must not
// exist. Git does not run in the checkout: a pack and a ref are put down beside what is there, so that no hook and
// no setting of it has a say.
func (s *Store) Export(ctx context.Context, checkoutDir, branch string, commit ID) error {
	name := "refs/heads/" + branch
	if err := checkRefName(name); err != nil {
		return err
	}
	to, err := s.git.readCheckout(ctx, checkoutDir)
	if err != nil {
		return fmt.Errorf("open checkout %s: %w", checkoutDir, err)
	}
	if to.refless {
		return fmt.Errorf("checkout %s keeps its refs in a table, which only git itself may write. Next: git fetch %s %s:%s before the run's directory is gone", checkoutDir, s.dir, commit, name)
	}
	var unreadable *fs.PathError
	switch _, err := to.ref(name); {
	case err == nil:
		return fmt.Errorf("branch %s exists already in %s. Next: rename it with git branch -m, then run again", branch, checkoutDir)
	case errors.As(err, &unreadable):
		return fmt.Errorf("look for branch %s: %w", branch, err)
	}
	if err := s.pack(ctx, to.common, strings.NewReader(string(commit)+"\n^"+string(s.base)+"\n"), "--revs"); err != nil {
		return fmt.Errorf("write the commit into %s: %w", checkoutDir, err)
	}
	file := filepath.Join(to.common, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("make branch %s: %w", branch, err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("make branch %s: %w", branch, err)
	}
	if _, err := f.WriteString(string(commit) + "\n"); err != nil {
		f.Close()
		return fmt.Errorf("make branch %s: %w", branch, err)
	}
	return f.Close()
}
