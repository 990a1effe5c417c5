package git

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
)

// Settle makes a proof ready for a held-out gate when other commands ran in it before: every tracked file is put back,
// and those that sealed names are put in place, also where the proof was made without them. What else lies at such paths
// goes first, ignored or not, and so do Python's caches beside them, which would be run instead. The rest of what the
// commands left stays.
func (p *Proof) Settle(ctx context.Context, sealed func(path string) bool) error {
	w := p.tree
	w.mu.Lock()
	defer w.mu.Unlock()
	tree, err := w.store.Tree(ctx, w.commit)
	if err != nil {
		return fmt.Errorf("settle %s: %w", p.Dir, err)
	}
	want, err := w.store.load(ctx, tree, "", nil, nil)
	if err != nil {
		return fmt.Errorf("settle %s: %w", p.Dir, err)
	}
	err = w.withRoot(func(root int) error {
		if err := p.clear(root, want, sealed); err != nil {
			return err
		}
		diff, err := w.scan(ctx, root, want, false, 0)
		if err != nil {
			return err
		}
		return w.writer(root).write(ctx, diff.changed)
	})
	if err != nil {
		return fmt.Errorf("settle %s: %w", p.Dir, err)
	}
	w.want, w.sealed = want, nil
	return nil
}

// clear removes what lies at sealed paths, and compiled Python beside them.
func (p *Proof) clear(root int, want *dir, sealed func(string) bool) error {
	if sealed == nil {
		return nil
	}
	beside := map[string]bool{}
	want.each("", func(name string, _ *node) {
		if sealed(name) {
			beside[path.Dir(name)] = true
		}
	})
	var gone []string
	err := filepath.WalkDir(p.Dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == p.Dir {
			return err
		}
		name, err := filepath.Rel(p.Dir, file)
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "__pycache__" && beside[path.Dir(name)]:
			gone = append(gone, name)
			return fs.SkipDir
		case !d.IsDir() && sealed(name):
			gone = append(gone, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range gone {
		if err := removePath(root, name); err != nil {
			return err
		}
	}
	return nil
}
