package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Submodule is a gitlink of the base tree.
type Submodule struct {
	Path   string
	Commit ID
	URL    string // as .gitmodules of the base commit has it, not checked; empty: it names none
}

// modulesFile is where a repository says what its gitlinks are.
const modulesFile = ".gitmodules"

// Submodules lists the base tree's gitlinks, sorted by path. Of .gitmodules only path and url are read, as data: names,
// update commands and whatever else stands there have no effect.
func (s *Store) Submodules(ctx context.Context) ([]Submodule, error) {
	var subs []Submodule
	err := s.Walk(ctx, s.tree, func(path string, e Entry) error {
		if e.Mode == ModeGitlink {
			subs = append(subs, Submodule{Path: path, Commit: e.ID})
		}
		return nil
	})
	if err != nil || len(subs) == 0 {
		return nil, err
	}
	slices.SortFunc(subs, func(a, b Submodule) int { return strings.Compare(a.Path, b.Path) })
	urls, err := s.moduleURLs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s of the base commit: %w", modulesFile, err)
	}
	for i := range subs {
		subs[i].URL = urls[subs[i].Path]
	}
	return subs, nil
}

// moduleURLs maps paths to addresses. Git parses the file; it follows no include and applies nothing.
func (s *Store) moduleURLs(ctx context.Context) (map[string]string, error) {
	text, err := s.ReadFile(ctx, s.base, modulesFile, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := call{args: []string{"config", "--file", "-", "--no-includes", "--null", "--list"}, dir: "/", stdin: bytes.NewReader(text)}
	out, err := s.git.output(ctx, c)
	if err != nil {
		return nil, err
	}
	paths, urls := map[string]string{}, map[string]string{}
	for record := range strings.SplitSeq(string(out), "\x00") {
		key, value, _ := strings.Cut(record, "\n")
		section, named := strings.CutPrefix(key, "submodule.")
		dot := strings.LastIndexByte(section, '.')
		if !named || dot < 0 {
			continue
		}
		switch section[dot+1:] {
		case "path":
			paths[section[:dot]] = value
		case "url":
			urls[section[:dot]] = value
		}
	}
	byPath := map[string]string{}
	for name, path := range paths {
		if _, twice := byPath[path]; twice {
			return nil, fmt.Errorf("two submodules have the path %q", path)
		}
		byPath[path] = urls[name]
	}
	return byPath, nil
}

// Enter fetches a submodule's commit, without its history. From now on every worktree and proof shows its files where the
// commit is linked: read only, as far as a change is concerned, since no commit of the run can hold them. Its own
// submodules stay empty; nested says whether there are any. Do it before the worktrees are made.
func (s *Store) Enter(ctx context.Context, sub Submodule, remote Remote) (nested bool, err error) {
	id, err := s.FetchCommit(ctx, remote, string(sub.Commit))
	if err != nil {
		return false, err
	}
	tree, err := s.Tree(ctx, id)
	if err != nil {
		return false, err
	}
	err = s.Walk(ctx, tree, func(path string, e Entry) error {
		if why := refusedPath(path); why != "" {
			return fmt.Errorf("%q: %s", path, why)
		}
		nested = nested || e.Mode == ModeGitlink
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("read commit %s: %w", id, err)
	}
	s.entered.Store(sub.Commit, tree)
	return nested, nil
}

// inside is the tree that a gitlink's directory shows; false where it stays empty.
func (s *Store) inside(e Entry) (ID, bool) {
	if e.Mode != ModeGitlink {
		return "", false
	}
	tree, ok := s.entered.Load(e.ID)
	if !ok {
		return "", false
	}
	return tree.(ID), true
}

// entries visits what a commit holds: each, but for an entered submodule its gitlink instead of its files.
func (d *dir) entries(prefix string, fn func(path string, n *node)) {
	for _, n := range d.nodes {
		switch {
		case n.dir != nil && n.want.Mode != ModeGitlink:
			n.dir.entries(prefix+n.name+"/", fn)
		case !n.sealed:
			fn(prefix+n.name, n)
		}
	}
}

// submodules lists the entered submodules below d, each path with a slash behind it.
func (d *dir) submodules(prefix string) []string {
	if d == nil || d.entered == 0 {
		return nil
	}
	var out []string
	for _, n := range d.nodes {
		switch {
		case n.dir == nil:
		case n.want.Mode == ModeGitlink:
			out = append(out, prefix+n.name+"/")
		default:
			out = append(out, n.dir.submodules(prefix+n.name+"/")...)
		}
	}
	return out
}

// outside takes what lies in entered submodules out of what was found and tells of it, once per submodule.
func (w *Worktree) outside(list []found, told map[string]string) []found {
	subs := w.want.submodules("")
	if len(subs) == 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(f found) bool {
		for _, sub := range subs {
			if rest, below := strings.CutPrefix(f.path, sub); below {
				if _, known := told[sub]; !known {
					told[sub] = rest
				}
				return true
			}
		}
		return false
	})
}
