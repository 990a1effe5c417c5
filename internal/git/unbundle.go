package git

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// maxBundle bounds a bundle that is read: far more than a change that passes policy.max, and far less than a disk.
const maxBundle = 1 << 30

// BundleError is a bundle that is not what [Store.Bundle] writes for this base and commit.
type BundleError struct{ Said string }

func (e *BundleError) Error() string { return "the bundle " + e.Said }

// Unbundle brings the objects of a bundle that another machine wrote with [Store.Bundle] into the store. It trusts nothing of it: the
// bundle has to stand on the store's own base and end in commit, its objects are hashed and checked for their form, and only what commit
// reaches through [Store.Line] is anybody's work. What else the pack holds stays unreachable. A bundle of another form is a *BundleError.
func (s *Store) Unbundle(ctx context.Context, file string, commit ID) error {
	if err := s.checkID(commit); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read bundle: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return fmt.Errorf("read bundle: %w", err)
	} else if !info.Mode().IsRegular() || info.Size() > maxBundle {
		return &BundleError{fmt.Sprintf("is no file of at most %d bytes", maxBundle)}
	}
	in := bufio.NewReader(f)
	if err := s.readBundleHead(in, commit); err != nil {
		return err
	}
	c := s.command("index-pack", "--stdin", "--fix-thin", "--strict", fmt.Sprintf("--max-input-size=%d", maxBundle))
	c.stdin = in
	if err := s.git.run(ctx, c); err != nil {
		return &BundleError{"holds no sound pack: " + oneLine(err.Error(), 300)}
	}
	if _, err := s.Tree(ctx, commit); err != nil {
		return &BundleError{"does not hold commit " + string(commit)}
	}
	return nil
}

// readBundleHead takes the lines of gitformat-bundle(5) that stand before the pack, of the one form that Bundle writes.
func (s *Store) readBundleHead(in *bufio.Reader, commit ID) error {
	want := []string{"# v2 git bundle"}
	if s.fmt.name == "sha256" {
		want = []string{"# v3 git bundle", "@object-format=sha256"}
	}
	for _, w := range append(want, "-"+string(s.base)) {
		line, err := headLine(in)
		if err != nil {
			return err
		}
		if got, _, _ := strings.Cut(line, " "); line != w && !(strings.HasPrefix(w, "-") && got == w) {
			return &BundleError{fmt.Sprintf("begins with %q and not with %q: it was made on another base, or by another program", oneLine(line, 80), w)}
		}
	}
	line, err := headLine(in)
	if err != nil {
		return err
	}
	if id, name, _ := strings.Cut(line, " "); id != string(commit) || checkRefName(name) != nil {
		return &BundleError{fmt.Sprintf("ends in %q and not in commit %s", oneLine(line, 120), commit)}
	}
	if line, err = headLine(in); err == nil && line != "" {
		return &BundleError{"names more than one commit"}
	}
	return err
}

// headLine is one line of the head; none of ours is longer than a ref's name and an id.
func headLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	if err == io.EOF || err == bufio.ErrBufferFull {
		return "", &BundleError{"has no head"}
	}
	if err != nil {
		return "", fmt.Errorf("read bundle: %w", err)
	}
	return strings.TrimSuffix(string(line), "\n"), nil
}

// Line are the commits from the base to tip, oldest first, the base left out. Each has to be of this program, with the one before it as its
// only parent: a run makes no other, and whatever else hung on a commit would be pushed with it unseen.
func (s *Store) Line(ctx context.Context, tip ID) ([]Commit, error) {
	var line []Commit
	for at := tip; at != s.base; {
		if len(line) == maxBranch {
			return nil, &BundleError{fmt.Sprintf("has more than %d commits between base and tip", maxBranch)}
		}
		c, err := s.ReadCommit(ctx, at)
		if err != nil {
			return nil, fmt.Errorf("follow the commits from %s to the base: %w", tip, err)
		}
		switch {
		case len(c.Parents) != 1:
			return nil, &BundleError{fmt.Sprintf("holds commit %s with %d parents: a run's commits stand in one line on the base", c.ID, len(c.Parents))}
		case !s.ours(c) || c.Author != s.identity():
			return nil, &BundleError{fmt.Sprintf("holds commit %s of %q, committed by %q, which no run made", c.ID, oneLine(c.Author, 80), oneLine(c.Committer, 80))}
		}
		line = append(line, c)
		at = c.Parents[0]
	}
	slices.Reverse(line)
	return line, nil
}
