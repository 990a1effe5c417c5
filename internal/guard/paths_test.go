package guard

import (
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/policy"
)

func compiled(t *testing.T, fold bool, patterns ...string) Globs {
	t.Helper()
	g, err := policy.Compile(patterns, fold)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// always is the real list of what is protected whatever a user writes.
func always(t *testing.T) Globs {
	t.Helper()
	g, _, err := policy.ProtectedGlobs(nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// INV-16: protected with an empty configuration. The control is the ordinary file beside each.
func TestWhatSteersTheRunIsAlwaysProtected(t *testing.T) {
	t.Parallel()
	rules := Rules{Always: always(t)}
	for _, path := range []string{
		".github/workflows/ci.yml", ".github/actions/x/action.yml", ".github/proctor.yml", ".gitlab-ci.yml", "CLAUDE.md", "pkg/CLAUDE.md", "AGENTS.md",
		".claude/settings.json", "sub/.claude/settings.local.json", ".mcp.json", ".gitattributes", "a/.gitattributes", ".gitmodules", ".husky/pre-commit",
	} {
		if v := newCandidate().added(path, "x\n").check(t, rules); !has(v, Protected, Halt, path) {
			t.Errorf("%s: got %v, want a halt", path, v.Findings)
		}
		if v := newCandidate().added(path, "x\n").check(t, Rules{}); has(v, Protected, Halt, path) {
			t.Errorf("control, %s: halted without the list", path)
		}
	}
	for _, path := range []string{".github/ISSUE_TEMPLATE/bug.md", "workflows/ci.go", "claude.go", "docs/agents.txt", "gitattributes.go"} {
		if v := newCandidate().added(path, "x\n").check(t, rules); !v.Passed() {
			t.Errorf("control, %s: got %v", path, v.Findings)
		}
	}
	if _, err := New(Rules{}); err == nil || !strings.Contains(err.Error(), "always-protected") {
		t.Errorf("a guard without the list is made: %v", err)
	}
}

// INV-13: however the edit is made, in the words of a tree diff.
func TestAProtectedFileIsCaughtHoweverItIsChanged(t *testing.T) {
	t.Parallel()
	rules := Rules{Always: globs{}, Protected: compiled(t, true, "secret/**", "conf/prüfung.txt")}
	file := func(c *candidate, text string) Entry { return c.entry(git.ModeFile, text) }
	for _, c := range []struct {
		name string
		path string
		make func(c *candidate) Change
		says string
	}{
		{"edited", "secret/a", func(c *candidate) Change { return Change{Old: file(c, "a"), New: file(c, "b")} }, "changes"},
		{"added", "secret/new", func(c *candidate) Change { return Change{New: file(c, "b")} }, "adds"},
		{"deleted or renamed out", "secret/a", func(c *candidate) Change { return Change{Old: file(c, "a")} }, "deletes or moves away"},
		{"mode alone", "secret/a", func(c *candidate) Change {
			return Change{Old: file(c, "a"), New: c.entry(git.ModeExecutable, "a")}
		}, "changes the mode (100644 to 100755)"},
		{"swapped for a symlink", "secret/a", func(c *candidate) Change {
			return Change{Old: file(c, "a"), New: c.entry(git.ModeSymlink, "../b")}
		}, "replaces (mode 100644 to 120000)"},
		{"swapped for a submodule", "secret/a", func(c *candidate) Change {
			return Change{Old: file(c, "a"), New: Entry{Mode: git.ModeGitlink, ID: "1"}}
		}, "replaces"},
		{"another case", "SECRET/x", func(c *candidate) Change { return Change{New: file(c, "b")} }, "adds"},
		{"Kelvin sign for k", "conf/prüfung.txt", func(c *candidate) Change { return Change{New: file(c, "b")} }, "adds"},
		{"decomposed umlaut", "conf/pru\u0308fung.txt", func(c *candidate) Change { return Change{New: file(c, "b")} }, "adds"},
		{"a zero-width character", "sec\u200bret/x", func(c *candidate) Change { return Change{New: file(c, "b")} }, "adds"},
		{"a trailing dot", "secret./x", func(c *candidate) Change { return Change{New: file(c, "b")} }, "adds"},
		{"an alternate stream", "secret/a::$DATA", func(c *candidate) Change { return Change{New: file(c, "b")} }, "adds"},
		{"a quoted name", "secret/a\"b\nc", func(c *candidate) Change { return Change{New: file(c, "b")} }, "adds"},
		{"bytes that are no UTF-8", "secret/\xff\xfe", func(c *candidate) Change { return Change{New: file(c, "b")} }, "adds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cand := newCandidate()
			change := c.make(cand)
			change.Path = c.path
			cand.in.Changes = []Change{change}
			v := cand.check(t, rules)
			if !has(v, Protected, Halt, c.path) || !v.Discard() || v.Passed() {
				t.Fatalf("got %v", v.Findings)
			}
			for _, f := range v.At(Halt) {
				if f.Rule == Protected && !strings.HasPrefix(f.Detail, c.says) {
					t.Errorf("detail %q, want it to begin %q", f.Detail, c.says)
				}
				if strings.Contains(f.String(), "\n") || strings.Contains(f.String(), "\xff") {
					t.Errorf("not printable: %q", f.String())
				}
			}
			if w := cand.check(t, Rules{}); has(w, Protected, Halt, c.path) {
				t.Error("control: halted without the list")
			}
		})
	}
}

// A rename into or out of a protected place is seen from both sides, whichever name a list would show.
func TestARenameIsSeenFromBothSides(t *testing.T) {
	t.Parallel()
	rules := Rules{Protected: compiled(t, true, "secret/**")}
	out := newCandidate().deleted("secret/a", "x\n").added("notes.txt", "x\n").check(t, rules)
	in := newCandidate().deleted("notes.txt", "x\n").added("secret/a", "x\n").check(t, rules)
	if !has(out, Protected, Halt, "secret/a") || !has(in, Protected, Halt, "secret/a") {
		t.Errorf("out: %v\nin: %v", out.Findings, in.Findings)
	}
}

// INV-22: a star does not cross a slash, and allow sees only the name as it is.
func TestGlobsMatchTheStringThatIsUsed(t *testing.T) {
	t.Parallel()
	rules := Rules{Allow: compiled(t, false, "src/*.go"), Deny: compiled(t, true, "infra/**"), HighRisk: compiled(t, true, "migrations/**")}
	for path, want := range map[string]Level{
		"src/a.go": "", "src/sub/a.go": Block, "SRC/a.go": Block, "src/a.go ": Block, "src/a.g\u200bo": Block, "infra/a.tf": Halt, "Infra/a.tf": Halt, "x/../src/a.go": Halt, "./src/a.go": Halt,
	} {
		if got := newCandidate().added(path, "x\n").check(t, rules).Worst(); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
	v := newCandidate().added("migrations/1.sql", "x\n").check(t, Rules{HighRisk: rules.HighRisk})
	if !has(v, HighRisk, Flag, "migrations/1.sql") || v.Risk != High || !v.Passed() {
		t.Errorf("high risk: got %v, risk %s", v.Findings, v.Risk)
	}
}

func TestASealedPathIsNeverTouched(t *testing.T) {
	t.Parallel()
	rules := Rules{Sealed: compiled(t, true, "exam/**")}
	for _, path := range []string{"exam/a_test.go", "EXAM/b"} {
		if v := newCandidate().added(path, "x\n").check(t, rules); !has(v, Sealed, Halt, path) {
			t.Errorf("%s: got %v", path, v.Findings)
		}
	}
	c := newCandidate()
	c.in.Problems = []Problem{{Path: "exam/x", Kind: git.SealedTouched, Detail: "something lies\nthere"}}
	if v := c.check(t, rules); !has(v, Sealed, Halt, "exam/x") || strings.Contains(v.Findings[0].Detail, "\n") {
		t.Errorf("from the snapshot: got %v", v.Findings)
	}
	if v := newCandidate().linked("look", "exam/a_test.go").check(t, rules); !has(v, Symlink, Flag, "look") {
		t.Errorf("a link to a sealed file: got %v", v.Findings)
	}
}
