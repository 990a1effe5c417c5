package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/guard"
	"github.com/proctor-ci/proctor/internal/inert"
	"github.com/proctor-ci/proctor/internal/patch"
)

// What of a change is put beside the record as text: lines around each edit, and bytes of the longest file.
const (
	changeAround    = 3
	changeFileBytes = 512 << 10
)

// writeChange puts what the run's commit changes beside the record, as text: the record itself names paths and counts
// lines. A run without a commit of its own has none.
func (s *session) writeChange(ctx context.Context) error {
	if s.rec.Head == nil || s.store == nil {
		return nil
	}
	changes, err := s.store.Diff(ctx, git.ID(s.rec.Base.Tree), git.ID(s.rec.Head.Tree))
	if err != nil {
		return fmt.Errorf("compare base and head: %w", err)
	}
	c := evidence.Change{FilesCut: max(0, len(changes)-maxFiles)}
	for _, one := range s.telling(changes) {
		// A cancelled run has seconds for all of its last words, and this is the last of them.
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("show what changed as text: %w", err)
		}
		f, err := patch.Read(ctx, one, s.store, patch.Options{Around: changeAround, Max: changeFileBytes, Mask: s.red.Mask})
		if err != nil {
			return err
		}
		shown := changedFile(f)
		shown.Risk = strings.Join(guard.Marks(one), "; ")
		c.Files = append(c.Files, shown)
	}
	return evidence.WriteChange(s.req.reports, s.rec, c, s.red)
}

// telling are the changes that are shown, by path: of more than maxFiles those first of which something was found.
func (s *session) telling(changes []git.Change) []git.Change {
	if len(changes) <= maxFiles {
		return changes
	}
	found := map[string]bool{}
	for _, f := range s.verdict.Findings {
		found[f.Path] = true
	}
	marked := func(c git.Change) int {
		if found[c.Path] || len(guard.Marks(c)) > 0 {
			return 0
		}
		return 1
	}
	out := slices.Clone(changes)
	slices.SortStableFunc(out, func(a, b git.Change) int { return marked(a) - marked(b) })
	out = out[:maxFiles]
	slices.SortFunc(out, func(a, b git.Change) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func changedFile(f patch.File) evidence.ChangedFile {
	out := evidence.ChangedFile{FileDelta: deltaOf(f.Change), Words: inWords(f)}
	out.Added, out.Removed = f.Added, f.Removed
	for _, h := range f.Hunks {
		lines := make([]string, 0, len(h.Lines))
		for _, l := range h.Lines {
			text := l.Text
			if f.Ended {
				text = strings.TrimSuffix(text, "\r")
			}
			lines = append(lines, string(l.Mark)+inert.Source(text))
			if l.Open {
				lines = append(lines, "\\ no newline at the end of the file")
			}
		}
		out.Hunks = append(out.Hunks, evidence.Hunk{Old: h.Old, New: h.New, Lines: lines})
	}
	return out
}

// inWords tells what lines do not show.
func inWords(f patch.File) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	was, now := f.Change.Old, f.Change.New
	for _, side := range []struct {
		when string
		e    git.Entry
	}{{"before", was}, {"after", now}} {
		switch side.e.Mode {
		case git.ModeSymlink:
			say("a symbolic link %s; its text is where it points", side.when)
		case git.ModeGitlink:
			say("a submodule %s, at commit %.12s", side.when, side.e.ID)
		}
	}
	switch {
	case was.Mode.IsFile() && now.Mode.IsFile() && was.Mode != now.Mode && now.Mode == git.ModeExecutable:
		say("it becomes executable (mode %s → %s)", was.Mode, now.Mode)
	case was.Mode.IsFile() && now.Mode.IsFile() && was.Mode != now.Mode:
		say("it is executable no longer (mode %s → %s)", was.Mode, now.Mode)
	case was.Mode == 0 && now.Mode == git.ModeExecutable:
		say("it is executable (mode %s)", now.Mode)
	}
	switch {
	case f.Binary:
		say("no text: %d bytes before, %d after", f.OldSize, f.NewSize)
	case f.Long:
		say("%d bytes, longer than the %d of the longest file that is shown", max(f.OldSize, f.NewSize), changeFileBytes)
	case was.Mode.IsFile() && now.Mode == 0 && f.OldSize == 0, was.Mode == 0 && now.Mode.IsFile() && f.NewSize == 0:
		say("an empty file")
	}
	if f.Ends != "" {
		out = append(out, f.Ends)
	}
	return out
}
