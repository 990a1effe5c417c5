package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Proof is a pristine checkout of one commit, sealed files in place, for gates that decide. It has no
// .git. Remove it before anything that the agent or its code could read runs again.
type Proof struct {
	Dir  string // the checkout
	Home string // HOME, empty
	Tmp  string // TMPDIR, empty
	root string
	tree *Worktree
}

// NewProof makes dir, which must not exist or be empty, with "tree", "home" and "tmp" in it.
func (s *Store) NewProof(ctx context.Context, dir string, commit ID, opts ...WorktreeOption) (_ *Proof, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		return nil, fmt.Errorf("make proof: %s is not empty: every proof needs a new directory", dir)
	}
	p := &Proof{Dir: filepath.Join(dir, "tree"), Home: filepath.Join(dir, "home"), Tmp: filepath.Join(dir, "tmp"), root: dir}
	defer func() {
		if err != nil {
			_ = p.Remove()
		}
	}()
	w, err := s.newWorktree(ctx, p.Dir, commit, nil, opts)
	if err != nil {
		return nil, fmt.Errorf("make proof of %s: %w", commit, err)
	}
	p.tree = w
	for _, sub := range []string{p.Home, p.Tmp} {
		if err := makeEmpty(sub, w.owner); err != nil {
			return nil, fmt.Errorf("make proof: %w", err)
		}
	}
	return p, nil
}

// Remove wipes the proof whole, whatever ran in it did to permissions. It may be called again.
func (p *Proof) Remove() error { return removeTree(p.root) }

// Carry brings ignored paths along, as Worktree.Carry does; from must be out of reach of what the agent
// or an earlier gate wrote.
func (p *Proof) Carry(ctx context.Context, from string, paths []string) ([]string, error) {
	return p.tree.Carry(ctx, from, paths)
}
