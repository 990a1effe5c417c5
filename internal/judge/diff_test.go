package judge

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/patch"
)

// The patch that the reviewer reads is the change: git applies it.
func TestAHunkIsAPatchThatGitApplies(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 20 {
		var before, after strings.Builder
		for n := range 120 {
			l := fmt.Sprintf("line %d\n", n)
			if r.IntN(15) != 0 {
				before.WriteString(l)
			}
			if r.IntN(15) != 0 {
				after.WriteString(l)
			}
		}
		hs := hunks(patch.Compare([]byte(before.String()), []byte(after.String()), patch.Options{Around: contextLines}))
		if len(hs) == 0 {
			continue
		}
		dir := t.TempDir()
		file := filepath.Join(dir, "f")
		if err := os.WriteFile(file, []byte(before.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("git", "apply", "-")
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}
		cmd.Stdin = strings.NewReader("--- a/f\n+++ b/f\n" + strings.Join(hs, ""))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("case %d: git apply: %v\n%s", i, err, out)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(after.String(), string(got)); d != "" {
			t.Fatalf("case %d (-want +got):\n%s", i, d)
		}
	}
}

func TestTheReviewerSeesWhatAttributesAndCharactersWouldHide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, path, before, after, want string }{
		{"a NUL in a source file", "a.go", "x\n", "x\x00\nos.RemoveAll(\"/\")\n", `+os.RemoveAll("/")`},
		{"a zero-width character", "a.go", "x\n", "if admin\u200b {\n", `+if admin\u{200b} {`},
		{"bidirectional override", "a.go", "x\n", "\u202e evil\n", `+\u{202e} evil`},
		{"tag characters", "a.md", "x\n", "x\U000E0041\n", `+x\u{e0041}`},
		{"bytes that are no UTF-8", "a.txt", "x\n", "caf\xe9 au lait\n", `+caf\xe9 au lait`},
		{"an escape sequence", "a.txt", "x\n", "\x1b[2Kgone\n", `+\u{1b}[2Kgone`},
		{"a binary", "a.png", "x\n", "\x89PNG\x00\x01\x02\x03\x04\x05", "binary: 2 bytes"},
		{"line ends", "a.txt", "a\nb\nc\n", "a\r\nB\r\nc\r\n", "line ends: 0 of 3 lines ended in CR LF before, 3 of 3 after"},
		{"the real change among new line ends", "a.txt", "a\nb\nc\n", "a\r\nB\r\nc\r\n", " a\n-b\n+B\n c"},
		{"a generated file", "dist/app.min.js", "x\n", "fetch(evil)\n", "+fetch(evil)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := input(t, c.path, c.before, c.after)
			parts, err := split(in.Files, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if got := parts[0].text; !strings.Contains(got, c.want) {
				t.Errorf("%q is not in\n%s", c.want, got)
			}
		})
	}
}

func TestModesKindsAndOddNamesStandInTheHeader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change git.Change
		want   string
	}{
		{git.Change{Path: "run.sh", Old: git.Entry{Mode: git.ModeFile, ID: "1"}, New: git.Entry{Mode: git.ModeExecutable, ID: "1"}}, "changed run.sh, mode 100644 → 100755"},
		{git.Change{Path: "a\nb", New: git.Entry{Mode: git.ModeFile, ID: "1"}}, `added "a\nb"`},
		{git.Change{Path: "l", New: git.Entry{Mode: git.ModeSymlink, ID: "1"}}, "added l, mode 120000"},
		{git.Change{Path: "gone", Old: git.Entry{Mode: git.ModeFile, ID: "1"}}, "deleted gone"},
	} {
		if got := header(c.change); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// INV-30: whatever the sizes, every line of the diff is in a question, under its file's name.
func TestNothingIsLostWhenADiffIsSplit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		var files []File
		var want []string
		for i := range 1 + r.IntN(5) {
			f := File{header: fmt.Sprintf("changed file%d.go", i)}
			for range 1 + r.IntN(4) {
				h := "@@ -1,1 +1,1 @@\n"
				for range 1 + r.IntN(30) {
					l := fmt.Sprintf("+%d-%d\n", i, r.IntN(1e9))
					h += l
					want = append(want, l)
				}
				f.hunks = append(f.hunks, h)
			}
			files = append(files, f)
		}
		max := 120 + r.IntN(400)
		parts, err := split(files, max)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range parts {
			if len(p.text) > max {
				t.Fatalf("a part of %d bytes, the limit is %d", len(p.text), max)
			}
			if !strings.HasPrefix(p.text, "changed file") {
				t.Fatalf("a part begins without its file's name: %q", p.text)
			}
			for l := range strings.Lines(p.text) {
				if strings.HasPrefix(l, "+") {
					got = append(got, l)
				}
			}
		}
		if !slices.Equal(want, got) {
			t.Fatalf("lines were lost or doubled:\n%s", cmp.Diff(want, got))
		}
	}
}

// INV-30: what does not fit is never cut and approved.
func TestADiffThatIsTooLongHasNoVerdict(t *testing.T) {
	t.Parallel()
	m := &standIn{answers: []func(Request) (string, error){says(approve)}}
	long := input(t, "big.txt", "", strings.Repeat("a line of text\n", 3000))
	for name, j := range map[string]Judge{
		"more parts than allowed": {Model: m, MaxPart: 1000, MaxParts: 3},
	} {
		if v, err := j.Review(t.Context(), long); v.Approved || !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "split the issue") {
			t.Errorf("%s: got %+v, %v", name, v, err)
		}
	}
	line := input(t, "min.js", "", strings.Repeat("x", 5000)+"\n")
	if v, err := (Judge{Model: m, MaxPart: 1000}).Review(t.Context(), line); v.Approved || !errors.Is(err, ErrUnavailable) {
		t.Errorf("an endless line: got %+v, %v", v, err)
	}
	huge := input(t, "gen.go", "", strings.Repeat("x\n", maxFileBytes))
	if v, err := (Judge{Model: m}).Review(t.Context(), huge); v.Approved || !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "gen.go has") {
		t.Errorf("a file that is too long: got %+v, %v", v, err)
	}
	if len(m.asked) != 0 {
		t.Errorf("the model was asked %d times about a diff that cannot be judged whole", len(m.asked))
	}
	// The control: the same diff is approved where it fits.
	if v, err := (Judge{Model: m}).Review(t.Context(), long); err != nil || !v.Approved {
		t.Errorf("control: got %+v, %v", v, err)
	}
}

func TestOneRejectedPartRejectsTheWhole(t *testing.T) {
	t.Parallel()
	in := input(t, "big.txt", "", strings.Repeat("a line of text\n", 300))
	m := &standIn{answers: []func(Request) (string, error){says(approve), says(reject), says(approve)}}
	v, err := Judge{Model: m, MaxPart: 1000}.Review(t.Context(), in)
	if err != nil || v.Approved || v.Parts < 3 || v.Calls != v.Parts {
		t.Fatalf("got %+v, %v; want a rejection after all parts", v, err)
	}
	m = &standIn{answers: []func(Request) (string, error){says(approve)}}
	if v, err := (Judge{Model: m, MaxPart: 1000}).Review(t.Context(), in); err != nil || !v.Approved {
		t.Fatalf("control: got %+v, %v", v, err)
	}
}

func TestAnEmptyDiffIsNotApproved(t *testing.T) {
	t.Parallel()
	m := &standIn{answers: []func(Request) (string, error){says(approve)}}
	if v, err := (Judge{Model: m}).Review(t.Context(), Input{Goal: "x"}); v.Approved || !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestALargeBinaryIsToldByItsSizes(t *testing.T) {
	t.Parallel()
	in := input(t, "video.mp4", "", strings.Repeat("\x00\x01", maxFileBytes))
	parts, err := split(in.Files, 1000)
	if err != nil || !strings.Contains(parts[0].text, fmt.Sprintf("binary: 0 bytes () before, %d bytes", 2*maxFileBytes)) {
		t.Errorf("got %v, %v", parts, err)
	}
}

func TestAMissingObjectIsAnErrorAndNoEmptyDiff(t *testing.T) {
	t.Parallel()
	if _, err := Diff(t.Context(), []git.Change{{Path: "a", New: git.Entry{Mode: git.ModeFile, ID: "1"}}}, blobs{}); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("got %v", err)
	}
}

func FuzzHunksShowNoControlCharacter(f *testing.F) {
	f.Add("a\nb\n", "a\nc\n")
	f.Add("a\r\n", "a\n")
	f.Add("", "x\x00y")
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, h := range hunks(patch.Compare([]byte(before), []byte(after), patch.Options{Around: contextLines})) {
			for l := range strings.Lines(h) {
				if strings.ContainsFunc(strings.TrimSuffix(strings.TrimSuffix(l, "\n"), "\r"), func(r rune) bool { return r < ' ' && r != '\t' }) {
					t.Fatalf("a control character is shown raw: %q", l)
				}
			}
		}
	})
}
