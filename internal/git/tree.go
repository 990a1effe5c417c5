package git

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// treeEntry is one line of a tree object.
type treeEntry struct {
	name string
	Entry
}

// parseTree reads a tree object. Modes that git once wrote (100664) are given as git reads them today.
func (f format) parseTree(content []byte) ([]treeEntry, error) {
	var entries []treeEntry
	for len(content) > 0 {
		space := bytes.IndexByte(content, ' ')
		if space < 0 {
			return nil, fmt.Errorf("malformed tree: no mode")
		}
		mode, err := strconv.ParseUint(string(content[:space]), 8, 32)
		if err != nil {
			return nil, fmt.Errorf("malformed tree: mode %q", content[:space])
		}
		content = content[space+1:]
		end := bytes.IndexByte(content, 0)
		if end <= 0 || len(content) < end+1+f.size {
			return nil, fmt.Errorf("malformed tree: cut entry")
		}
		name := string(content[:end])
		// Such a name would lead a checkout out of its directory.
		if name == "." || name == ".." || strings.Contains(name, "/") {
			return nil, fmt.Errorf("malformed tree: entry named %q", name)
		}
		id := ID(hex.EncodeToString(content[end+1 : end+1+f.size]))
		entries = append(entries, treeEntry{name, Entry{canonical(Mode(mode)), id}})
		content = content[end+1+f.size:]
	}
	return entries, nil
}

func canonical(m Mode) Mode {
	switch m & 0o170000 {
	case 0o040000:
		return ModeTree
	case 0o120000:
		return ModeSymlink
	case 0o160000:
		return ModeGitlink
	}
	if m&0o100 != 0 {
		return ModeExecutable
	}
	return ModeFile
}

// encodeTree writes entries in git's order: bytewise, a directory as if its name ended in "/".
func encodeTree(entries []treeEntry) ([]byte, error) {
	slices.SortFunc(entries, func(a, b treeEntry) int { return strings.Compare(a.sortKey(), b.sortKey()) })
	var b bytes.Buffer
	for _, e := range entries {
		raw, err := hex.DecodeString(string(e.ID))
		if err != nil {
			return nil, fmt.Errorf("tree entry %q: %w", e.name, err)
		}
		fmt.Fprintf(&b, "%o %s\x00", uint32(e.Mode), e.name)
		b.Write(raw)
	}
	return b.Bytes(), nil
}

func (e treeEntry) sortKey() string {
	if e.Mode == ModeTree {
		return e.name + "/"
	}
	return e.name
}

// readTree reads one tree. The empty id is the empty tree. Results are shared: do not change them.
func (s *Store) readTree(ctx context.Context, id ID) ([]treeEntry, error) {
	if id == "" {
		return nil, nil
	}
	if entries, ok := s.trees.get(id); ok {
		return entries, nil
	}
	content, err := s.bytes(ctx, id, "tree", 0)
	if err != nil {
		return nil, err
	}
	entries, err := s.fmt.parseTree(content)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w", id, err)
	}
	s.trees.put(id, entries)
	return entries, nil
}

// Walk calls fn for every file, symlink and gitlink below the tree, in git's order. An error of fn ends it.
func (s *Store) Walk(ctx context.Context, tree ID, fn func(path string, e Entry) error) error {
	return s.walk(ctx, tree, "", func(path string, e Entry) error {
		if e.Mode == ModeTree {
			return nil
		}
		return fn(path, e)
	})
}

// walk visits trees too, each before what it holds. fs.SkipDir from fn skips a tree.
func (s *Store) walk(ctx context.Context, tree ID, prefix string, fn func(path string, e Entry) error) error {
	entries, err := s.readTree(ctx, tree)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := prefix + e.name
		err := fn(path, e.Entry)
		if err == fs.SkipDir && e.Mode == ModeTree {
			continue
		}
		if err != nil {
			return err
		}
		if e.Mode == ModeTree {
			if err := s.walk(ctx, e.ID, path+"/", fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// Diff lists every path that differs between two trees, sorted bytewise. It reads only the directories
// that differ. The empty id is the empty tree.
func (s *Store) Diff(ctx context.Context, oldTree, newTree ID) ([]Change, error) {
	var changes []Change
	if err := s.diff(ctx, oldTree, newTree, "", &changes); err != nil {
		return nil, err
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes, nil
}

func (s *Store) diff(ctx context.Context, oldTree, newTree ID, prefix string, changes *[]Change) error {
	if oldTree == newTree {
		return nil
	}
	before, err := s.byName(ctx, oldTree)
	if err != nil {
		return err
	}
	after, err := s.byName(ctx, newTree)
	if err != nil {
		return err
	}
	for name, old := range before {
		if err := s.diffEntry(ctx, prefix+name, old, after[name], changes); err != nil {
			return err
		}
	}
	for name, now := range after {
		if _, both := before[name]; !both {
			if err := s.diffEntry(ctx, prefix+name, Entry{}, now, changes); err != nil {
				return err
			}
		}
	}
	return nil
}

// diffEntry compares one name. A file on one side and a directory on the other are a change of the
// file plus changes of all that the directory holds.
func (s *Store) diffEntry(ctx context.Context, path string, old, now Entry, changes *[]Change) error {
	if old == now {
		return nil
	}
	var oldTree, newTree ID
	if old.Mode == ModeTree {
		oldTree, old = old.ID, Entry{}
	}
	if now.Mode == ModeTree {
		newTree, now = now.ID, Entry{}
	}
	if old != now {
		*changes = append(*changes, Change{Path: path, Old: old, New: now})
	}
	if oldTree == "" && newTree == "" {
		return nil
	}
	return s.diff(ctx, oldTree, newTree, path+"/", changes)
}

func (s *Store) byName(ctx context.Context, tree ID) (map[string]Entry, error) {
	entries, err := s.readTree(ctx, tree)
	if err != nil {
		return nil, err
	}
	m := make(map[string]Entry, len(entries))
	for _, e := range entries {
		m[e.name] = e.Entry
	}
	return m, nil
}

// lookup finds a path in a tree. A missing path is a zero Entry.
func (s *Store) lookup(ctx context.Context, tree ID, path string) (Entry, error) {
	entry := Entry{Mode: ModeTree, ID: tree}
	for name := range strings.SplitSeq(path, "/") {
		if entry.Mode != ModeTree {
			return Entry{}, nil
		}
		entries, err := s.readTree(ctx, entry.ID)
		if err != nil {
			return Entry{}, err
		}
		i := slices.IndexFunc(entries, func(e treeEntry) bool { return e.name == name })
		if i < 0 {
			return Entry{}, nil
		}
		entry = entries[i].Entry
	}
	return entry, nil
}

// ReadFile reads a file of a commit. fs.ErrNotExist when the path is absent there; more than max bytes
// (0: no bound) is a *TooLargeError; a directory, symlink or submodule is an error, symlinks are not followed.
func (s *Store) ReadFile(ctx context.Context, commit ID, path string, max int64) ([]byte, error) {
	tree, err := s.Tree(ctx, commit)
	if err != nil {
		return nil, err
	}
	entry, err := s.lookup(ctx, tree, path)
	switch {
	case err != nil:
		return nil, err
	case entry.Mode == 0:
		return nil, &fs.PathError{Op: "read", Path: string(commit) + ":" + path, Err: fs.ErrNotExist}
	case !entry.Mode.IsFile():
		return nil, fmt.Errorf("read %s:%s: mode %s is no regular file", commit, path, entry.Mode)
	}
	return s.ReadBlob(ctx, entry.ID, max)
}

// Entry is what a commit has at a path; a zero Mode when it has nothing there.
func (s *Store) Entry(ctx context.Context, commit ID, path string) (Entry, error) {
	tree, err := s.Tree(ctx, commit)
	if err != nil {
		return Entry{}, err
	}
	return s.lookup(ctx, tree, path)
}
