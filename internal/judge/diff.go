package judge

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/inert"
	"github.com/proctor-ci/proctor/internal/patch"
)

// contextLines surround each change.
const contextLines = 8

// maxFileBytes is the longest file whose text is shown. A longer one bars a verdict, unless its name is none of a
// text's: then its size is told, as for any binary.
const maxFileBytes = 4 << 20

// Blobs reads objects; [git.Store] is one.
type Blobs = patch.Blobs

// File is one changed file as the reviewer sees it.
type File struct {
	Path           string
	Added, Removed int
	header         string
	hunks          []string // each with its @@ line
	unshown        string   // why the change cannot be shown; then there is no verdict
}

// Diff renders every change of a candidate. It reads blobs itself: no attribute, filter or driver of the
// repository has a say in what the reviewer sees, and nothing is left out for being binary or generated.
func Diff(ctx context.Context, changes []git.Change, blobs Blobs) ([]File, error) {
	out := make([]File, 0, len(changes))
	for _, c := range changes {
		f, err := diffFile(ctx, c, blobs)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func diffFile(ctx context.Context, c git.Change, blobs Blobs) (File, error) {
	f := File{Path: c.Path, header: header(c)}
	p, err := patch.Read(ctx, c, blobs, patch.Options{Around: contextLines, Max: maxFileBytes})
	if err != nil {
		return f, fmt.Errorf("show the reviewer: %w", err)
	}
	switch {
	case p.Binary:
		f.hunks = []string{fmt.Sprintf("binary: %d bytes (%.12s) before, %d bytes (%.12s) after\n", p.OldSize, c.Old.ID, p.NewSize, c.New.ID)}
	case p.Long:
		f.unshown = fmt.Sprintf("%s has %d bytes, more than the %d that are shown", name(c.Path), max(p.OldSize, p.NewSize), maxFileBytes)
	default:
		f.hunks, f.Added, f.Removed = hunks(p.Text), p.Added, p.Removed
	}
	return f, nil
}

func header(c git.Change) string {
	what := map[string]string{"A": "added", "D": "deleted", "T": "replaced", "M": "changed"}[c.Status()]
	s := fmt.Sprintf("%s %s", what, name(c.Path))
	switch {
	case c.Status() == "A" && c.New.Mode != git.ModeFile:
		s += fmt.Sprintf(", mode %s", c.New.Mode)
	case c.Old.Mode != 0 && c.New.Mode != 0 && c.Old.Mode != c.New.Mode:
		s += fmt.Sprintf(", mode %s → %s", c.Old.Mode, c.New.Mode)
	}
	return s
}

// name is a path on one line: quoted as soon as anything in it is odd.
func name(path string) string {
	for _, r := range path {
		if !unicode.IsPrint(r) || r == '"' || r == utf8.RuneError {
			return fmt.Sprintf("%+q", path)
		}
	}
	return path
}

// hunks are what differs as a patch, each with its @@ line; line ends that changed are told in a line of their own.
func hunks(t patch.Text) []string {
	var out []string
	if t.Ends != "" {
		out = append(out, t.Ends+"\n")
	}
	for _, h := range t.Hunks {
		var s strings.Builder
		fmt.Fprintf(&s, "@@ -%d,%d +%d,%d @@\n", h.Old, h.OldLines, h.New, h.NewLines)
		for _, l := range h.Lines {
			s.WriteByte(l.Mark)
			s.WriteString(visible(l.Text))
			s.WriteByte('\n')
			if l.Open {
				s.WriteString("\\ no newline at the end of the file\n")
			}
		}
		out = append(out, s.String())
	}
	return out
}

// visible shows text of one or more lines as it runs, each with the end that it has.
func visible(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		text, cr := strings.CutSuffix(l, "\r")
		if lines[i] = inert.Source(text); cr {
			lines[i] += "\r"
		}
	}
	return strings.Join(lines, "\n")
}
