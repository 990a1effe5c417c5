package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/guard"
	"github.com/proctor-ci/proctor/internal/patch"
)

func TestWhatLinesDoNotShowIsToldInWords(t *testing.T) {
	t.Parallel()
	file, run, link, module := git.ModeFile, git.ModeExecutable, git.ModeSymlink, git.ModeGitlink
	for _, c := range []struct {
		name     string
		was, now git.Mode
		f        patch.File
		want     []string
	}{
		{"text", file, file, patch.File{OldSize: 1, NewSize: 2}, nil},
		{"an executable from a file", file, run, patch.File{}, []string{"it becomes executable (mode 100644 → 100755)"}},
		{"a file from an executable", run, file, patch.File{}, []string{"it is executable no longer (mode 100755 → 100644)"}},
		{"a new executable", 0, run, patch.File{NewSize: 3}, []string{"it is executable (mode 100755)"}},
		{"a link from a file", file, link, patch.File{OldSize: 1, NewSize: 3}, []string{"a symbolic link after; its text is where it points"}},
		{"a submodule moved", module, module, patch.File{}, []string{"a submodule before, at commit aaaaaaaaaaaa", "a submodule after, at commit bbbbbbbbbbbb"}},
		{"binary", file, file, patch.File{OldSize: 3, NewSize: 4, Binary: true}, []string{"no text: 3 bytes before, 4 after"}},
		{"long", file, file, patch.File{OldSize: 3, NewSize: 2 << 20, Long: true}, []string{"2097152 bytes, longer than the 524288 of the longest file that is shown"}},
		{"empty", 0, file, patch.File{}, []string{"an empty file"}},
		{"line ends", file, file, patch.File{OldSize: 3, NewSize: 4, Text: patch.Text{Ends: "line ends: changed"}}, []string{"line ends: changed"}},
	} {
		c.f.Change = git.Change{Path: "p", Old: git.Entry{Mode: c.was, ID: "aaaaaaaaaaaaaaaa"}, New: git.Entry{Mode: c.now, ID: "bbbbbbbbbbbbbbbb"}}
		if d := cmp.Diff(c.want, changedFile(c.f).Words); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestLinesOfAChangeShowWhatWouldHide(t *testing.T) {
	t.Parallel()
	read := func(before, after string) []string {
		f := patch.File{Text: patch.Compare([]byte(before), []byte(after), patch.Options{Around: 1})}
		var out []string
		for _, h := range changedFile(f).Hunks {
			out = append(out, h.Lines...)
		}
		return out
	}
	for _, c := range []struct {
		before, after string
		want          []string
	}{
		{"a\r\nb\r\n", "a\r\nB\r\n", []string{" a", "-b", "+B"}},
		{"a\r\nb\n", "a\r\nB\n", []string{` a\u{d}`, "-b", "+B"}},
		{"a\r\nb\n", "a\nb\r\n", []string{`-a\u{d}`, "-b", "+a", `+b\u{d}`}},
		{"", "x\u202e\x00\xff", []string{`+x\u{202e}\u{0}\xff`, `\ no newline at the end of the file`}},
	} {
		if got := read(c.before, c.after); !slices.Equal(got, c.want) {
			t.Errorf("%q to %q: got %q, want %q", c.before, c.after, got, c.want)
		}
	}
}

func TestOfALargeChangeThatIsShownOfWhichSomethingWasFound(t *testing.T) {
	t.Parallel()
	var changes []git.Change
	for i := range maxFiles + 100 {
		changes = append(changes, git.Change{Path: fmt.Sprintf("src/%04d.txt", i), New: git.Entry{Mode: git.ModeFile}})
	}
	changes[maxFiles+10].New.Mode = git.ModeExecutable
	s := &session{}
	s.verdict.Findings = []guard.Finding{{Path: changes[maxFiles+20].Path}}
	got := s.telling(changes)
	if len(got) != maxFiles || !slices.IsSortedFunc(got, func(a, b git.Change) int { return strings.Compare(a.Path, b.Path) }) {
		t.Fatalf("%d files, or out of order", len(got))
	}
	for _, want := range []int{0, maxFiles - 3, maxFiles + 10, maxFiles + 20} {
		if !slices.Contains(got, changes[want]) {
			t.Errorf("%s is not shown", changes[want].Path)
		}
	}
	if few := changes[:maxFiles]; !slices.Equal(s.telling(few), few) {
		t.Error("a change that fits is not shown whole")
	}
}
