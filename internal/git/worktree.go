package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Worktree is a directory that shows a commit without its sealed files: the agent's, or the one in
// which iteration gates run. Its methods run one at a time; nothing else may write the directory
// meanwhile, or what they report is of no use (they stay safe).
type Worktree struct {
	store  *Store
	dir    string
	gate   bool
	sealed func(string) bool
	owner  *Owner

	mu     sync.Mutex
	want   *dir // agent: the base; gate: the commit last synced to
	commit ID   // of want
	extra  map[string]extraFile
}

// WorktreeOption changes how a worktree is made.
type WorktreeOption func(*Worktree)

// OwnedBy gives every file of the worktree to an account, for an agent that runs as another user.
func OwnedBy(owner Owner) WorktreeOption {
	return func(w *Worktree) { w.owner = &owner }
}

// NewAgent makes the agent's directory from the base commit, without the paths for which sealed is
// true, and with a throw-away repository of its own. dir must not exist or be empty. sealed nil:
// nothing is held out.
func (s *Store) NewAgent(ctx context.Context, dir string, sealed func(path string) bool, opts ...WorktreeOption) (*Worktree, error) {
	w, err := s.newWorktree(ctx, dir, s.base, sealed, opts)
	if err != nil {
		return nil, err
	}
	if err := w.projectGit(ctx, s.base); err != nil {
		return nil, fmt.Errorf("make the agent's repository in %s: %w", dir, err)
	}
	return w, nil
}

// NewGate makes the directory in which iteration gates run. It shows the base commit; Sync moves it.
// It has no .git.
func (s *Store) NewGate(ctx context.Context, dir string, sealed func(path string) bool, opts ...WorktreeOption) (*Worktree, error) {
	w, err := s.newWorktree(ctx, dir, s.base, sealed, opts)
	if err != nil {
		return nil, err
	}
	w.gate = true
	return w, nil
}

func (s *Store) newWorktree(ctx context.Context, path string, commit ID, sealed func(string) bool, opts []WorktreeOption) (*Worktree, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	w := &Worktree{store: s, dir: path, sealed: sealed, commit: commit}
	for _, opt := range opts {
		opt(w)
	}
	if err := makeEmpty(path, w.owner); err != nil {
		return nil, fmt.Errorf("make worktree: %w", err)
	}
	tree, err := s.Tree(ctx, commit)
	if err != nil {
		return nil, err
	}
	if w.want, err = s.load(ctx, tree, "", w.sealed, nil); err != nil {
		return nil, err
	}
	files := make([]found, 0, w.want.shown)
	w.want.each("", func(path string, n *node) { files = append(files, found{path: path, node: n}) })
	slices.SortFunc(files, func(a, b found) int { return strings.Compare(a.path, b.path) })
	return w, w.withRoot(func(root int) error { return w.writer(root).write(ctx, files) })
}

func makeEmpty(dir string, owner *Owner) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty: give a new directory to every run", dir))
	}
	if owner != nil {
		return os.Chown(dir, owner.UID, owner.GID)
	}
	return nil
}

// Dir is the worktree's directory.
func (w *Worktree) Dir() string { return w.dir }

func (w *Worktree) writer(root int) *writer {
	return &writer{store: w.store, owner: w.owner, root: root}
}

// withRoot opens the directory itself, which must still be one and no symlink.
func (w *Worktree) withRoot(fn func(root int) error) error {
	root, err := unix.Open(w.dir, directoryFlags, 0)
	if err != nil {
		return fmt.Errorf("open worktree %s: %w", w.dir, err)
	}
	defer unix.Close(root)
	return fn(root)
}

// Drift is what a gate did to the directory it ran in.
type Drift struct {
	Changed []string // tracked files that no longer equalled the commit
	Left    []string // files it left that are neither tracked nor ignored
}

// Empty reports whether nothing was touched.
func (d Drift) Empty() bool { return len(d.Changed) == 0 && len(d.Left) == 0 }

// Sync makes tracked files equal the commit, without its sealed paths: it writes only what differs,
// removes what is neither tracked nor ignored by the commit's rules, and leaves ignored files alone.
func (w *Worktree) Sync(ctx context.Context, commit ID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gate {
		return errors.New("sync: the agent's directory is moved by Restore only")
	}
	_, err := w.move(ctx, commit)
	return err
}

// Check reports what differs from the commit last synced to, and repairs it.
func (w *Worktree) Check(ctx context.Context) (Drift, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gate {
		return Drift{}, errors.New("check: only a gate's directory must equal its commit")
	}
	diff, err := w.move(ctx, w.commit)
	return diff.drift(), err
}

func (s scanned) drift() (d Drift) {
	for _, f := range s.changed {
		d.Changed = append(d.Changed, f.path)
	}
	for _, f := range s.extra {
		d.Left = append(d.Left, f.path)
	}
	return d
}

// Restore puts the directory back to a commit: the agent's files and its throw-away repository.
// Ignored files stay.
func (w *Worktree) Restore(ctx context.Context, commit ID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.move(ctx, commit); err != nil || w.gate {
		return err
	}
	if err := w.projectGit(ctx, commit); err != nil {
		return fmt.Errorf("restore the agent's repository in %s: %w", w.dir, err)
	}
	// The agent's changes are counted from the base, wherever it was put back to.
	want, err := w.store.load(ctx, w.store.tree, "", w.sealed, w.want)
	if err != nil {
		return err
	}
	w.want, w.commit, w.extra = want, w.store.base, nil
	return nil
}

// move compares the disk with the commit and repairs every difference.
func (w *Worktree) move(ctx context.Context, commit ID) (scanned, error) {
	want := w.want
	if commit != w.commit {
		tree, err := w.store.Tree(ctx, commit)
		if err != nil {
			return scanned{}, fmt.Errorf("move %s to %s: %w", w.dir, commit, err)
		}
		if want, err = w.store.load(ctx, tree, "", w.sealed, w.want); err != nil {
			return scanned{}, err
		}
	}
	var diff scanned
	err := w.withRoot(func(root int) (err error) {
		if diff, err = w.scan(ctx, root, want, false, 0); err != nil {
			return err
		}
		for _, f := range diff.extra {
			if err := removePath(root, f.path); err != nil {
				return err
			}
		}
		if err := w.writer(root).write(ctx, diff.changed); err != nil {
			return err
		}
		return removeEmpty(root, diff.dirs)
	})
	if err != nil {
		return diff, err
	}
	w.want, w.commit = want, commit
	return diff, nil
}

// removeEmpty removes those untracked directories that hold nothing any more, deepest first.
func removeEmpty(root int, dirs []string) error {
	for _, dir := range slices.Backward(dirs) {
		fd, name := root, dir
		if i := strings.LastIndexByte(dir, '/'); i >= 0 {
			sub, err := unix.Openat(root, dir[:i], directoryFlags, 0)
			if err != nil {
				continue
			}
			fd, name = sub, dir[i+1:]
		}
		err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
		if fd != root {
			unix.Close(fd)
		}
		switch {
		case err == nil, errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EEXIST):
		default:
			return fmt.Errorf("remove %q: %w", dir, err)
		}
	}
	return nil
}
