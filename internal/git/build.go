package git

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// overlay maps paths to what they hold instead of the base's entry; a zero Mode deletes.
type overlay map[string]Entry

// buildTree writes the trees of base plus overlay and returns the root. Only directories on the way to
// a changed path are read and written. Where a file would take the place of a directory that still
// holds something, the directory stays: this is how sealed files survive whatever lies in their way.
func (s *Store) buildTree(ctx context.Context, base ID, changes overlay) (ID, error) {
	paths := make([]string, 0, len(changes))
	for path := range changes {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	id, err := s.buildDir(ctx, base, "", paths, changes)
	if err != nil || id != "" {
		return id, err
	}
	return s.loose.write("tree", nil)
}

// buildDir returns the empty id for a directory that holds nothing.
func (s *Store) buildDir(ctx context.Context, base ID, prefix string, paths []string, changes overlay) (ID, error) {
	if len(paths) == 0 {
		return base, nil
	}
	names, err := s.byName(ctx, base)
	if err != nil {
		return "", err
	}
	// The file "a" and the paths below "a/" need not be neighbours ("a-b" sorts between): group by name.
	direct := map[string]Entry{}
	below := map[string][]string{}
	for _, path := range paths {
		name, _, deeper := strings.Cut(path[len(prefix):], "/")
		if name == "" {
			return "", fmt.Errorf("path %q has an empty component", path)
		}
		if deeper {
			below[name] = append(below[name], path)
		} else {
			direct[name] = changes[path]
		}
	}
	for name, list := range below {
		var sub ID
		if names[name].Mode == ModeTree {
			sub = names[name].ID
		}
		sub, err := s.buildDir(ctx, sub, prefix+name+"/", list, changes)
		switch {
		case err != nil:
			return "", err
		case sub != "":
			names[name] = Entry{ModeTree, sub}
		case names[name].Mode == ModeTree:
			delete(names, name)
		}
	}
	for name, e := range direct {
		switch {
		case names[name].Mode == ModeTree && len(below[name]) == 0 && e.Mode != 0:
			return "", fmt.Errorf("path %q is a directory of the base and a file of the change", prefix+name)
		case names[name].Mode == ModeTree:
		case e.Mode == 0:
			delete(names, name)
		default:
			names[name] = e
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	entries := make([]treeEntry, 0, len(names))
	for name, e := range names {
		entries = append(entries, treeEntry{name, e})
	}
	content, err := encodeTree(entries)
	if err != nil {
		return "", err
	}
	if id := s.fmt.hash("tree", content); id == base {
		return base, nil
	}
	return s.loose.write("tree", content)
}
