package git

import (
	"context"
	"errors"
	"fmt"
)

// SnapshotOptions of one snapshot.
type SnapshotOptions struct {
	Parent       ID // empty: the base
	Beside       ID // a second parent, where the directory joins two histories; empty: none
	Meta         Meta
	MaxFileBytes int64 // a larger file is a TooLarge problem and is not stored; 0: no bound
	// Keep names tracked files that stay as the base has them, whatever the directory holds: the agent's version is in
	// Snapshot.Kept and in no commit.
	Keep func(path string) bool
}

// Snapshot is what the agent's directory held.
type Snapshot struct {
	Commit    ID
	Tree      ID
	Unchanged bool     // the tree equals the parent's; Commit is the parent, nothing was written
	Changes   []Change // base → tree, sorted bytewise by path
	Problems  []Problem
	Kept      map[string]Entry // the directory's version of files that Keep named and that differ; zero: deleted there
}

// Lossy reports whether any problem makes the tree differ from what the agent made.
func (s Snapshot) Lossy() bool {
	for _, p := range s.Problems {
		if p.Lossy() {
			return true
		}
	}
	return false
}

// Snapshot commits what the directory holds: the base's tree, changed by what differs on the disk,
// with sealed files as in the base. It reads files only, never the agent's repository, index or
// configuration, and starts no process. An error is fatal to the run: no commit says what is there.
func (w *Worktree) Snapshot(ctx context.Context, opts SnapshotOptions) (Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gate {
		return Snapshot{}, errors.New("snapshot: nothing a gate writes is ever committed")
	}
	s := w.store
	if opts.Parent == "" {
		opts.Parent = s.base
	}
	var diff scanned
	err := w.withRoot(func(root int) (err error) {
		diff, err = w.scan(ctx, root, w.want, true, opts.MaxFileBytes)
		return err
	})
	if err != nil {
		return Snapshot{}, err
	}
	changes, problems := w.overlay(diff)
	snap := Snapshot{Problems: problems, Kept: changes.keep(diff, opts.Keep)}
	if snap.Tree, err = s.buildTree(ctx, s.tree, changes); err != nil {
		return Snapshot{}, fmt.Errorf("snapshot %s: %w", w.dir, err)
	}
	if snap.Changes, err = s.Diff(ctx, s.tree, snap.Tree); err != nil {
		return Snapshot{}, fmt.Errorf("snapshot %s: %w", w.dir, err)
	}
	before, err := s.Tree(ctx, opts.Parent)
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot %s: read the parent: %w", w.dir, err)
	}
	parents := []ID{opts.Parent}
	if opts.Beside != "" {
		parents = append(parents, opts.Beside)
	}
	if before == snap.Tree && opts.Beside == "" {
		snap.Commit, snap.Unchanged = opts.Parent, true
		return snap, nil
	}
	snap.Commit, err = s.writeCommit(snap.Tree, parents, opts.Meta.message(s.base))
	return snap, err
}

// keep takes changes of tracked files out again. One whose directory became something else cannot be kept: that
// change stays, for the guard to see.
func (o overlay) keep(diff scanned, named func(string) bool) map[string]Entry {
	if named == nil {
		return nil
	}
	kept := map[string]Entry{}
	for _, f := range diff.changed {
		if named(f.path) && !o.above(f.path) {
			kept[f.path] = f.now
			delete(o, f.path)
		}
	}
	return kept
}

// above says whether a new entry stands where a directory on the way to path has to be.
func (o overlay) above(path string) bool {
	for i := range len(path) {
		if path[i] == '/' && o[path[:i]] != (Entry{}) {
			return true
		}
	}
	return false
}

// overlay turns what was found into changes of the tree. New files at sealed paths are left out.
func (w *Worktree) overlay(diff scanned) (overlay, []Problem) {
	edited := map[string]string{}
	diff.changed, diff.extra = w.outside(diff.changed, edited), w.outside(diff.extra, edited)
	changes := make(overlay, len(diff.changed)+len(diff.extra))
	problems := diff.problems
	for sub, path := range edited {
		problems = append(problems, Problem{sub + path, SubmoduleEdited, "a file of a submodule was changed or added, which no commit of this repository can hold"})
	}
	for _, f := range diff.changed {
		changes[f.path] = f.now
	}
	w.extra = make(map[string]extraFile, len(diff.extra))
	for _, f := range diff.extra {
		if w.sealed != nil && w.sealed(f.path) {
			problems = append(problems, Problem{f.path, SealedTouched, "a new file at a sealed path is not pushed"})
			continue
		}
		changes[f.path] = f.now
		if f.seen != (stamp{}) {
			w.extra[f.path] = extraFile{f.seen, f.now}
		}
	}
	return changes, problems
}
