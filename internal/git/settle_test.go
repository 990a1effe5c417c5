package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// INV-24, INV-27: whatever commands left in a proof, the held-out files and all tracked ones are as in the commit
// afterwards, and nothing is written outside.
func TestAProofIsSettledBeforeItsHeldOutGate(t *testing.T) {
	t.Parallel()
	sealed := func(p string) bool { return strings.HasPrefix(p, "exam/") || p == "tests/test_held.py" }
	tree := files{"exam/a.txt": "the exam\n", "tests/test_held.py": "held\n", "tests/test_seen.py": "seen\n", "src/x.txt": "x\n", ".gitignore": "__pycache__/\nbuild/\n"}
	for name, mess := range map[string]func(t *testing.T, dir, outside string){
		"nothing": func(*testing.T, string, string) {},
		"files at sealed paths": func(t *testing.T, dir, _ string) {
			put(t, dir, "exam/a.txt", "mine\n")
			put(t, dir, "exam/more/b.txt", "mine\n")
			put(t, dir, "tests/test_held.py", "mine\n")
		},
		"a link in the place of a sealed directory": func(t *testing.T, dir, outside string) {
			if err := os.Symlink(outside, filepath.Join(dir, "exam")); err != nil {
				t.Fatal(err)
			}
		},
		"a file in the place of a sealed directory": func(t *testing.T, dir, _ string) { put(t, dir, "exam", "mine\n") },
		"compiled files, which are ignored": func(t *testing.T, dir, _ string) {
			put(t, dir, "tests/__pycache__/test_held.cpython-312.pyc", "mine\n")
		},
		"a changed tracked file":                         func(t *testing.T, dir, _ string) { put(t, dir, "src/x.txt", "mine\n") },
		"a directory in the place of a file that's held": func(t *testing.T, dir, _ string) { put(t, dir, "tests/test_held.py/x", "mine\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outside := t.TempDir()
			put(t, outside, "a.txt", "untouched\n")
			s := openStore(t, newGit(t), initRepo(t, tree), "")
			p, err := s.NewProof(t.Context(), filepath.Join(t.TempDir(), "p"), s.Base(), Without(sealed))
			if err != nil {
				t.Fatal(err)
			}
			if got := contents(t, p.Dir); got["exam/a.txt"] != "" || got["tests/test_held.py"] != "" {
				t.Fatalf("the setup would meet the exam: %v", got)
			}
			mess(t, p.Dir, outside)
			put(t, p.Dir, "build/out", "stays\n")
			put(t, p.Dir, "generated.txt", "stays\n")
			if err := p.Settle(t.Context(), sealed); err != nil {
				t.Fatal(err)
			}
			want := files{"build/out": "stays\n", "generated.txt": "stays\n"}
			for path, text := range tree {
				want[path] = text
			}
			if d := cmp.Diff(want, contents(t, p.Dir)); d != "" {
				t.Errorf("the proof (-want +got):\n%s", d)
			}
			if b, _ := os.ReadFile(filepath.Join(outside, "a.txt")); string(b) != "untouched\n" {
				t.Errorf("INV-27 wrote through a link: %q", b)
			}
		})
	}
}

// INV-13, INV-16: a file that a snapshot keeps is as the base has it, and what the directory held is told.
func TestASnapshotKeepsAFileAsTheBaseHasIt(t *testing.T) {
	t.Parallel()
	const plan = "docs/PLAN.md"
	keep := func(p string) bool { return p == plan }
	for _, c := range []struct {
		name string
		do   func(t *testing.T, dir string)
		kept bool
		gone bool // the change stays, for the guard to see
	}{
		{"untouched", func(*testing.T, string) {}, false, false},
		{"changed", func(t *testing.T, dir string) { put(t, dir, plan, "- [x] one\n") }, true, false},
		{"deleted", func(t *testing.T, dir string) { mustDo(t, os.Remove(filepath.Join(dir, plan))) }, true, false},
		{"made executable", func(t *testing.T, dir string) { mustDo(t, os.Chmod(filepath.Join(dir, plan), 0o755)) }, true, false},
		{"a link", func(t *testing.T, dir string) {
			mustDo(t, os.Remove(filepath.Join(dir, plan)))
			mustDo(t, os.Symlink("/etc/passwd", filepath.Join(dir, plan)))
		}, true, false},
		{"a file in its directory's place", func(t *testing.T, dir string) {
			mustDo(t, os.RemoveAll(filepath.Join(dir, "docs")))
			put(t, dir, "docs", "mine\n")
		}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, newGit(t), initRepo(t, files{plan: "- [ ] one\n", "a.txt": "a\n"}), "")
			w, err := s.NewAgent(t.Context(), filepath.Join(t.TempDir(), "agent"), nil)
			if err != nil {
				t.Fatal(err)
			}
			c.do(t, w.Dir())
			put(t, w.Dir(), "a.txt", "changed\n")
			snap, err := w.Snapshot(t.Context(), SnapshotOptions{Keep: keep})
			if err != nil {
				t.Fatal(err)
			}
			touched := false
			for _, ch := range snap.Changes {
				touched = touched || ch.Path == plan
			}
			if _, kept := snap.Kept[plan]; kept != c.kept || touched != c.gone {
				t.Errorf("kept %v, want %v; the plan is among the changes: %v, want %v", snap.Kept, c.kept, touched, c.gone)
			}
			if len(snap.Changes) == 0 {
				t.Error("the control: the file beside it is no change either")
			}
		})
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
