package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Merge is what joining two commits gives.
type Merge struct {
	Tree ID // of all files; those in Conflicts hold both sides between git's markers, which bear the commits' ids
	// Conflicts are the paths that git could not settle, sorted; none: the merge is clean.
	Conflicts []string
	// Unmarked are those of Conflicts in which nothing shows that there is one: Tree has one side there, as a rule ours. So it is
	// with a binary file, one that a side deleted, a symlink, a submodule, and a mode.
	Unmarked []string
}

// Merge joins two commits that share a history, in the store alone: no work tree, and no merge driver of the repository.
func (s *Store) Merge(ctx context.Context, ours, theirs ID) (Merge, error) {
	if err := errors.Join(s.checkID(ours), s.checkID(theirs)); err != nil {
		return Merge{}, err
	}
	out, err := s.git.output(ctx, s.command("merge-tree", "--write-tree", "--no-messages", "-z", string(ours), string(theirs)))
	var exit *ExitError
	if err != nil && (!errors.As(err, &exit) || exit.Code != 1) {
		return Merge{}, fmt.Errorf("merge %s into %s: %w. Next: if git is older than 2.38, use a newer one", theirs, ours, err)
	}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	m := Merge{}
	if m.Tree, err = s.fmt.objectID(strings.TrimSpace(fields[0])); err != nil {
		return Merge{}, fmt.Errorf("merge %s into %s: %w", theirs, ours, err)
	}
	split, err := conflicts(fields[1:])
	if err != nil {
		return Merge{}, fmt.Errorf("merge %s into %s: %w", theirs, ours, err)
	}
	m.Conflicts = slices.Sorted(maps.Keys(split))
	if exit != nil && len(m.Conflicts) == 0 {
		return Merge{}, fmt.Errorf("merge %s into %s: git found a conflict and names no file. Next: merge them by hand", theirs, ours)
	}
	for _, path := range m.Conflicts {
		marked, err := s.settleable(ctx, m.Tree, path, split[path], ours, theirs)
		if err != nil {
			return Merge{}, fmt.Errorf("merge %s into %s: look for marks in %q: %w", theirs, ours, path, err)
		}
		if !marked {
			m.Unmarked = append(m.Unmarked, path)
		}
	}
	return m, nil
}

// modes are what the fork and the two sides have at a path, as git numbers them; "" where one has nothing.
type modes [3]string

// conflicts reads the lines of "mode id stage<TAB>path" that git merge-tree writes.
func conflicts(lines []string) (map[string]modes, error) {
	out := map[string]modes{}
	for _, line := range lines {
		info, path, tab := strings.Cut(line, "\t")
		f := strings.Fields(info)
		if !tab || path == "" || len(f) != 3 || len(f[2]) != 1 || f[2] < "1" || f[2] > "3" {
			return nil, fmt.Errorf("git names a conflict in another form: %q", line)
		}
		m := out[path]
		m[f[2][0]-'1'] = f[0]
		out[path] = m
	}
	return out, nil
}

// settleable tells whether whoever reads the merged file sees all that the two sides disagree about.
func (s *Store) settleable(ctx context.Context, tree ID, path string, m modes, ours, theirs ID) (bool, error) {
	if m[1] == "" || m[2] == "" || m[1] != m[2] && m[1] != m[0] && m[2] != m[0] {
		return false, nil
	}
	e, err := s.lookup(ctx, tree, path)
	if err != nil || !e.Mode.IsFile() {
		return false, err
	}
	found, err := s.Marks(ctx, e.ID, ours, theirs)
	return found.Open > 0, err
}

// Marks are the lines of a file by which git parts the two sides of a conflict, and those that look like such a line.
type Marks struct {
	Open  int // that begin a conflict between the two commits asked about
	Close int // that end one
	Alike int // of git's own shape, whoever is named behind it; Open and Close are of it, as a rule
}

// Any tells whether the file still shows a conflict between the two commits.
func (m Marks) Any() bool { return m.Open > 0 || m.Close > 0 }

// Others counts the lines that look like a mark beside those that git wrote for its own conflicts, three for each.
func (m Marks) Others() int { return max(m.Alike-3*m.Open, 0) }

// Marks looks through a file of any size.
func (s *Store) Marks(ctx context.Context, blob, ours, theirs ID) (m Marks, err error) {
	err = s.read(ctx, blob, "blob", func(_ int64, body io.Reader) (err error) {
		m, err = marksIn(body, ours, theirs)
		return err
	})
	return m, err
}

// marksIn reads lines of any length: what makes one a mark stands at its beginning.
func marksIn(file io.Reader, ours, theirs ID) (m Marks, err error) {
	lines := bufio.NewReader(file)
	for within := false; ; {
		line, more, err := lines.ReadLine()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		if !within {
			m.count(string(line), ours, theirs)
		}
		within = more
	}
}

func (m *Marks) count(line string, ours, theirs ID) {
	switch {
	case marks(line, "<", ours):
		m.Open++
	case marks(line, ">", theirs):
		m.Close++
	}
	if alike(line) {
		m.Alike++
	}
}

// markSize is git's own, and the only one here: a bare store has no attributes.
const markSize = 7

// alike tells whether a line has the shape of a mark, as git itself looks for those that were left.
func alike(line string) bool {
	if len(line) < markSize || !strings.ContainsRune("<=>|", rune(line[0])) || strings.Trim(line[:markSize], line[:1]) != "" {
		return false
	}
	return len(line) == markSize || line[0] != '=' && line[markSize] == ' '
}

// marks tells whether a line is a run of one sign and the id. Where a side has renamed the file, git writes the side's path behind
// the id: "<<<<<<< <id>:new name". How long the run is, conflict-marker-size in attributes says.
func marks(line, sign string, id ID) bool {
	name, signed := strings.CutPrefix(strings.TrimLeft(line, sign), " "+string(id))
	return signed && strings.HasPrefix(line, sign) && (name == "" || strings.ContainsAny(name[:1], ": \r"))
}

// Join writes a merge commit of ours: the tree, and both commits as parents, ours first.
func (s *Store) Join(tree, ours, theirs ID, meta Meta) (ID, error) {
	if err := errors.Join(s.checkID(tree), s.checkID(ours), s.checkID(theirs)); err != nil {
		return "", err
	}
	return s.writeCommit(tree, []ID{ours, theirs}, meta.message(s.base))
}

// Idle writes a commit of ours onto another that changes nothing.
func (s *Store) Idle(ctx context.Context, onto ID, meta Meta) (ID, error) {
	tree, err := s.Tree(ctx, onto)
	if err != nil {
		return "", err
	}
	return s.writeCommit(tree, []ID{onto}, meta.message(onto))
}

// Wrote tells whether this program wrote a commit, and for which issue, as its trailer has it.
func (s *Store) Wrote(ctx context.Context, id ID) (issue string, ours bool, err error) {
	c, err := s.ReadCommit(ctx, id)
	if err != nil || !s.ours(c) {
		return "", false, err
	}
	return c.Trailer(TrailerIssue), true, nil
}

// Deepen brings the history that a shallow store lacks: whoever looks for what two commits share needs it.
func (s *Store) Deepen(ctx context.Context, remote Remote, refs ...string) error {
	if !s.shallow() {
		return nil
	}
	e, err := remote.endpoint()
	if err != nil {
		return err
	}
	args := []string{"fetch", "--quiet", "--unshallow", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--force", "--", e.url}
	for _, ref := range refs {
		if err := s.checkRefspec(ref); err != nil {
			return fmt.Errorf("fetch the whole history from %s: %w", remote.host(), err)
		}
		args = append(args, ref)
	}
	if err := s.git.run(ctx, s.remote(e, args...)); err != nil {
		return classify("fetch the whole history from "+remote.host(), err, e)
	}
	return nil
}

// shallow tells whether the store's history ends somewhere above the first commit.
func (s *Store) shallow() bool {
	data, err := os.ReadFile(filepath.Join(s.dir, "shallow"))
	return err == nil && len(bytes.TrimSpace(data)) > 0
}
