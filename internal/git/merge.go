package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Merge is what joining two commits gives.
type Merge struct {
	Tree ID // of all files; those in Conflicts hold both sides between git's markers, which bear the commits' ids
	// Conflicts are the paths that git could not settle, sorted; none: the merge is clean.
	Conflicts []string
}

// Merge joins two commits that share a history, in the store alone: no work tree, and no merge driver of the repository.
func (s *Store) Merge(ctx context.Context, ours, theirs ID) (Merge, error) {
	if err := errors.Join(s.checkID(ours), s.checkID(theirs)); err != nil {
		return Merge{}, err
	}
	out, err := s.git.output(ctx, s.command("merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", string(ours), string(theirs)))
	var exit *ExitError
	if err != nil && (!errors.As(err, &exit) || exit.Code != 1) {
		return Merge{}, fmt.Errorf("merge %s into %s: %w. Next: if git is older than 2.38, use a newer one", theirs, ours, err)
	}
	fields := strings.Split(strings.TrimRight(string(out), "\x00\n"), "\x00")
	m := Merge{}
	if m.Tree, err = s.fmt.objectID(fields[0]); err != nil {
		return Merge{}, fmt.Errorf("merge %s into %s: %w", theirs, ours, err)
	}
	m.Conflicts = fields[1:]
	if exit != nil && len(m.Conflicts) == 0 {
		return Merge{}, fmt.Errorf("merge %s into %s: git found a conflict and names none", theirs, ours)
	}
	return m, nil
}

// Marked tells whether a file still holds a line by which git parts the two sides of a conflict between these commits.
func Marked(content []byte, ours, theirs ID) bool {
	for line := range strings.Lines(string(content)) {
		if marks(line, "<", ours) || marks(line, ">", theirs) {
			return true
		}
	}
	return false
}

// marks tells whether a line is a run of one sign and the id. Where a side has renamed the file, git writes the side's path behind
// the id: "<<<<<<< <id>:new name". How long the run is, conflict-marker-size in attributes says.
func marks(line, sign string, id ID) bool {
	name, signed := strings.CutPrefix(strings.TrimLeft(line, sign), " "+string(id))
	return signed && strings.HasPrefix(line, sign) && (name == "" || strings.ContainsAny(name[:1], ": \r\n"))
}

// Join writes a merge commit of ours: the tree, and both commits as parents, ours first.
func (s *Store) Join(tree, ours, theirs ID, meta Meta) (ID, error) {
	if err := errors.Join(s.checkID(tree), s.checkID(ours), s.checkID(theirs)); err != nil {
		return "", err
	}
	return s.writeCommit(tree, []ID{ours, theirs}, meta.message(s.base))
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
