package git

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// PatchOptions of a unified diff.
type PatchOptions struct {
	Context  int      // lines around a change; 0 means 3, -1 none
	Paths    []string // literal paths or directories; none: all
	MaxBytes int64    // more is a *TooLargeError: a diff is judged whole or in parts, never cut; 0: no bound
}

// Patch is the unified diff between two trees. In-tree attributes have no say: no driver, no textconv,
// nothing is declared binary; a file with NUL bytes is named ("Binary files … differ") without content.
// No renames. Names with odd bytes are quoted as git quotes them. One git process.
func (s *Store) Patch(ctx context.Context, oldTree, newTree ID, opts PatchOptions) ([]byte, error) {
	lines := 3
	switch {
	case opts.Context > 0:
		lines = opts.Context
	case opts.Context < 0:
		lines = 0
	}
	c, err := s.diffTree(oldTree, newTree, opts.Paths, "-p", "--unified="+strconv.Itoa(lines), "--full-index")
	if err != nil {
		return nil, err
	}
	out := &bounded{max: opts.MaxBytes}
	c.stdout = out
	if err := s.git.run(ctx, c); err != nil {
		if out.over {
			return nil, &TooLargeError{What: "the diff", Size: out.total, Max: opts.MaxBytes}
		}
		return nil, fmt.Errorf("diff: %w", err)
	}
	return out.buf, nil
}

// FileStat counts a changed file's lines.
type FileStat struct {
	Path           string
	Added, Removed int
	Binary         bool // it holds NUL bytes; its lines are not counted
}

// Numstat counts the changed lines of every path, sorted as git sorts. One git process.
func (s *Store) Numstat(ctx context.Context, oldTree, newTree ID, paths ...string) ([]FileStat, error) {
	c, err := s.diffTree(oldTree, newTree, paths, "-r", "-z", "--numstat")
	if err != nil {
		return nil, err
	}
	out, err := s.git.output(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("count lines: %w", err)
	}
	var stats []FileStat
	for record := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if record == "" {
			continue
		}
		fields := strings.SplitN(record, "\t", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("count lines: unexpected record %q", record)
		}
		stat := FileStat{Path: fields[2], Binary: fields[0] == "-"}
		if !stat.Binary {
			var err1, err2 error
			stat.Added, err1 = strconv.Atoi(fields[0])
			stat.Removed, err2 = strconv.Atoi(fields[1])
			if err := errors.Join(err1, err2); err != nil {
				return nil, fmt.Errorf("count lines: %w", err)
			}
		}
		stats = append(stats, stat)
	}
	return stats, nil
}

func (s *Store) diffTree(oldTree, newTree ID, paths []string, args ...string) (call, error) {
	for _, id := range []ID{oldTree, newTree} {
		if err := s.checkID(id); err != nil {
			return call{}, fmt.Errorf("diff: %w", err)
		}
	}
	args = append([]string{"diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
		"--ignore-submodules=none", "--src-prefix=a/", "--dst-prefix=b/"}, args...)
	args = append(args, string(oldTree), string(newTree), "--")
	return s.command(append(args, paths...)...), nil
}

// bounded collects output and breaks the pipe when there is too much.
type bounded struct {
	buf        []byte
	max, total int64
	over       bool
}

func (b *bounded) Write(p []byte) (int, error) {
	b.total += int64(len(p))
	if b.max > 0 && b.total > b.max {
		b.over = true
		return 0, errors.New("more output than asked for")
	}
	b.buf = append(b.buf, p...)
	return len(p), nil
}
