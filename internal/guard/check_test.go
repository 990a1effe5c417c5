package guard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/guard/exam"
	"github.com/proctor-ci/proctor/internal/guard/secrets"
)

// token is a credential that no scanner of our repository can find here.
func token(seed uint64) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	r := rand.New(rand.NewPCG(seed, 1))
	b := []byte("gh" + "p_")
	for range 36 {
		b = append(b, alphabet[r.IntN(len(alphabet))])
	}
	return string(b)
}

// INV-17: over every blob of every commit, whatever name or mode; one that a later tick removes still blocks.
func TestACredentialBlocksWhereverItStands(t *testing.T) {
	t.Parallel()
	secret := "x = \"" + token(1) + "\"\n"
	for name, make := range map[string]func(c *candidate){
		"a new file":          func(c *candidate) { c.added("a.go", secret) },
		"a changed file":      func(c *candidate) { c.changed("a.go", "x\n", "x\n"+secret) },
		"a binary":            func(c *candidate) { c.added("a.png", "\x89PNG\x00\x00"+secret) },
		"a lock file":         func(c *candidate) { c.added("package-lock.json", secret) },
		"a test":              func(c *candidate) { c.added("testdata/a_test.go", secret) },
		"an allowing comment": func(c *candidate) { c.added("a.go", strings.TrimSuffix(secret, "\n")+" // gitleaks:allow\n") },
		"a symlink's target":  func(c *candidate) { c.linked("a", token(1)) },
		"an executable": func(c *candidate) {
			c.in.Changes = append(c.in.Changes, Change{Path: "run", New: c.entry(git.ModeExecutable, secret)})
		},
		"another value beside an old one": func(c *candidate) { c.changed("a.go", "y = \""+token(2)+"\"\n", "y = \""+token(2)+"\"\n"+secret) },
		"a commit on the way": func(c *candidate) {
			c.added("a.go", "clean\n")
			c.in.Tick = []Change{{Path: "a.go", New: c.entry(git.ModeFile, secret)}, {Path: "a.go", Old: c.entry(git.ModeFile, secret), New: c.entry(git.ModeFile, "clean\n")}}
		},
		"a file that is gone again": func(c *candidate) {
			c.in.Tick = []Change{{Path: "gone.go", New: c.entry(git.ModeFile, secret)}, {Path: "gone.go", Old: c.entry(git.ModeFile, secret)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCandidate()
			make(c)
			v := c.check(t, Rules{})
			if v.Worst() != Block || v.Passed() || !v.Discard() {
				t.Fatalf("got %v", v.Findings)
			}
			if shown := fmt.Sprintf("%+v %s", v, v.Feedback()); strings.Contains(shown, token(1)) {
				t.Error("the value is printed")
			}
			if v.At(Block)[0].Rule != Secret || !strings.Contains(v.Feedback(), "sha256") {
				t.Errorf("feedback: %s", v.Feedback())
			}
			// The control: shown and not held against it where the policy says so.
			if v := c.check(t, Rules{Secrets: "flag"}); !v.Passed() || len(v.Feedback()) != 0 || v.Findings[len(v.Findings)-1].Rule != Secret {
				t.Errorf("control: got %v", v.Findings)
			}
		})
	}
}

func TestWhatTheBaseHeldIsNotTheAgents(t *testing.T) {
	t.Parallel()
	line := "x = \"" + token(1) + "\"\n"
	for name, c := range map[string]*candidate{
		"an unchanged line":       newCandidate().changed("a.go", line, line+"more\n"),
		"moved within the file":   newCandidate().changed("a.go", line+"more\n", "more\n"+line),
		"moved to another file":   newCandidate().deleted("z.go", line).added("a.go", line),
		"moved from a later file": newCandidate().added("a.go", line).changed("b.go", line, "\n"),
		"removed":                 newCandidate().changed("a.go", line, "\n"),
	} {
		if v := c.check(t, Rules{}); !v.Passed() {
			t.Errorf("%s: got %v", name, v.Findings)
		}
	}
}

func TestTheHarnessesOwnValuesAreLookedFor(t *testing.T) {
	t.Parallel()
	rules := Rules{Known: []secrets.Known{{Name: "forge token", Value: "plain words that are secret"}}}
	c := newCandidate().added("notes.md", "he said: plain words that are secret\n")
	if v := c.check(t, rules); !has(v, Secret, Block, "notes.md") || !strings.Contains(v.Feedback(), "forge token") {
		t.Errorf("got %v", v.Findings)
	}
	if v := c.check(t, Rules{}); !v.Passed() {
		t.Errorf("control: got %v", v.Findings)
	}
}

// INV-19: by name, before any push, in a commit on the way too; never read.
func TestAFileOverTheLimitIsRefusedByName(t *testing.T) {
	t.Parallel()
	huge := sized{store: store{}, sizes: map[git.ID]int64{"huge": ForgeFileLimit + 1, "edge": ForgeFileLimit}}
	change := Change{Path: "big.bin", New: Entry{Mode: git.ModeFile, ID: "huge"}}
	for name, in := range map[string]Input{"candidate": {Changes: []Change{change}, Blobs: huge}, "on the way": {Tick: []Change{change}, Blobs: huge}} {
		v := mustCheck(t, Rules{Always: globs{}}, in)
		if !has(v, FileSize, Block, "big.bin") || !v.Discard() || !strings.Contains(v.Feedback(), `"big.bin"`) {
			t.Errorf("%s: got %v", name, v.Findings)
		}
	}
	c := newCandidate().added("a.txt", strings.Repeat("x\n", 600)).added("b.txt", "x\n")
	if v := c.check(t, Rules{MaxFileBytes: 1000}); !has(v, FileSize, Block, "a.txt") || has(v, FileSize, Block, "b.txt") {
		t.Errorf("policy: got %v", v.Findings)
	}
	if v := c.check(t, Rules{MaxFileBytes: 1200}); !v.Passed() {
		t.Errorf("control: got %v", v.Findings)
	}
	if _, over := (Rules{}).checkFileSize("a", ForgeFileLimit); over {
		t.Error("control: the limit itself is over it")
	}
}

// sized are blobs that only have a length.
type sized struct {
	store
	sizes map[git.ID]int64
}

func (s sized) Size(ctx context.Context, id git.ID) (int64, error) {
	if n, ok := s.sizes[id]; ok {
		return n, nil
	}
	return s.store.Size(ctx, id)
}

func mustCheck(t *testing.T, rules Rules, in Input) Verdict {
	t.Helper()
	g, err := New(rules)
	if err != nil {
		t.Fatal(err)
	}
	v, err := g.Check(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTooManyFilesOrLinesBlock(t *testing.T) {
	t.Parallel()
	c := newCandidate().added("a", "1\n2\n3\n").changed("b", "1\n2\n", "1\n3\n").deleted("c", "1\n")
	v := c.check(t, Rules{MaxFiles: 2, MaxLines: 5})
	if len(v.At(Block)) != 2 || v.Files != 3 || v.Added != 4 || v.Removed != 2 || v.Discard() {
		t.Errorf("got %+v", v)
	}
	if v := c.check(t, Rules{MaxFiles: 3, MaxLines: 6}); !v.Passed() {
		t.Errorf("control: got %v", v.Findings)
	}
}

// INV-31, through the guard: blocks, is shown only, or is not looked at, as the policy says.
func TestTamperingFollowsThePolicy(t *testing.T) {
	t.Parallel()
	before := "package p\n\nfunc TestA(t *testing.T) {\n\tt.Fatal(1)\n}\n"
	c := newCandidate().changed("p_test.go", before, "package p\n")
	for setting, want := range map[string]Level{"": Block, "block": Block, "flag": Flag, "off": ""} {
		v := c.check(t, Rules{TestTampering: setting})
		if v.Worst() != want || v.Discard() {
			t.Errorf("%q: got %v, want %q", setting, v.Findings, want)
		}
	}
}

func TestEveryReasonIsListedInOrder(t *testing.T) {
	t.Parallel()
	c := newCandidate().added("z/CLAUDE.md", "x\n").added("go.mod", "module x\n").added("a.go", "x = \""+token(1)+"\"\n").linked("out", "../../x").added("infra/a.tf", "x\n")
	v := c.check(t, Rules{Always: always(t), Deny: globs{"infra/**"}, MaxFiles: 1})
	var got []string
	for _, f := range v.Findings {
		got = append(got, fmt.Sprintf("%s %s %s", f.Level, f.Rule, f.Path))
	}
	want := []string{
		"halt denied-path infra/a.tf", "halt escaping-symlink out", "halt protected-path z/CLAUDE.md",
		"block diff-size ", "block secret a.go",
		"flag dependency go.mod",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if v.Worst() != Halt || v.Risk != High {
		t.Errorf("worst %s, risk %s", v.Worst(), v.Risk)
	}
	for _, f := range v.Findings {
		if f.Detail == "" || f.Level != Flag && f.Next == "" {
			t.Errorf("a finding does not say what or what next: %+v", f)
		}
	}
}

func TestRiskIsComputedFromTheDiff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		c    *candidate
		want Risk
		why  string
	}{
		{"a small edit", newCandidate().changed("pkg/sum.go", "a\n", "b\n"), Low, ""},
		{"a lock file", newCandidate().changed("go.sum", "a\n", "b\n"), Medium, "lock file"},
		{"a manifest", newCandidate().changed("web/package.json", "a\n", "b\n"), Medium, "manifest"},
		{"many lines", newCandidate().added("a.go", strings.Repeat("x\n", 400)), Medium, "400 lines"},
		{"very many lines", newCandidate().added("a.go", strings.Repeat("x\n", 2000)), High, "2000 lines"},
		{"access control", newCandidate().changed("internal/auth/role.go", "a\n", "b\n"), Medium, "access control"},
		{"a word that only looks like it", newCandidate().changed("internal/author/name.go", "a\n", "b\n"), Low, ""},
		{"a migration", newCandidate().added("db/migrations/2.sql", "a\n"), Medium, "the database"},
		{"a build file", newCandidate().changed("Makefile", "a\n", "b\n"), Medium, "the build"},
		{"a link", newCandidate().linked("a", "b"), Medium, "symlink"},
	} {
		v := c.c.check(t, Rules{})
		if v.Risk != c.want || !strings.Contains(strings.Join(v.Why, "; "), c.why) || (c.want == Low) != (len(v.Why) == 0) {
			t.Errorf("%s: got %s because %q, want %s because of %q", c.name, v.Risk, v.Why, c.want, c.why)
		}
	}
}

func TestAMissingObjectIsAnErrorAndNoVerdict(t *testing.T) {
	t.Parallel()
	g, err := New(Rules{Always: globs{}})
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]Input{
		"new":     {Blobs: store{}, Changes: []Change{{Path: "a", New: Entry{Mode: git.ModeFile, ID: "1"}}}},
		"old":     {Blobs: store{}, Changes: []Change{{Path: "a", Old: Entry{Mode: git.ModeFile, ID: "1"}}}},
		"link":    {Blobs: store{}, Changes: []Change{{Path: "a", New: Entry{Mode: git.ModeSymlink, ID: "1"}}}},
		"way":     {Blobs: store{}, Tick: []Change{{Path: "a", New: Entry{Mode: git.ModeFile, ID: "1"}}}},
		"nothing": {},
	} {
		v, err := g.Check(t.Context(), in)
		if err == nil || len(v.Findings) != 0 {
			t.Errorf("%s: got %v, %v", name, v, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Check(ctx, Input{Blobs: store{}, Changes: []Change{{Path: "a"}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestRulesThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for _, r := range []Rules{{Always: globs{}, Secrets: "off"}, {Always: globs{}, TestTampering: "maybe"}, {Always: globs{}, MaxFiles: -1}} {
		if _, err := New(r); err == nil || !strings.Contains(err.Error(), "write ") {
			t.Errorf("%+v: got %v, want an error that says what to write", r, err)
		}
	}
}

func TestLinesAreCountedUnlessASideIsBinary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, before, after string
		added, removed      int
	}{
		{"line ends", "a\nb\n", "a\r\nb\r\n", 2, 2},
		{"binary before", "\x00", "a\n", 0, 0},
		{"binary after", "a\n", "\x00", 0, 0},
	} {
		if a, r := countLines([]byte(c.before), []byte(c.after)); a != c.added || r != c.removed {
			t.Errorf("%s: got +%d -%d, want +%d -%d", c.name, a, r, c.added, c.removed)
		}
	}
}

// INV-31: what the gates run counts as tests do, through the guard.
func TestWhatAGateRunsMayGrowAndNotShrink(t *testing.T) {
	t.Parallel()
	const script = "set -e\nsh -n bin/total\nbin/total < tests/in | diff - tests/out\n"
	base := map[string]string{"tests/run.sh": script}
	ex := exam.Read([]exam.Gate{{Name: "gates.iteration", Argv: []string{"sh", "tests/run.sh"}}}, func(p string) ([]byte, bool) { return []byte(base[p]), base[p] != "" })
	for _, c := range []struct {
		name, after string
		rules       Rules
		worst       Level
	}{
		{"emptied", "exit 0\n", Rules{Exam: ex}, Block},
		{"emptied, and the policy says flag", "exit 0\n", Rules{Exam: ex, TestTampering: "flag"}, Flag},
		{"emptied, and the policy says off", "exit 0\n", Rules{Exam: ex, TestTampering: "off"}, ""},
		{"grown", script + "bin/total < tests/in2 | diff - tests/out2\n", Rules{Exam: ex}, Flag},
		{"the control: no gate is known to run it", "set -e\nsh -n bin/total\n", Rules{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := newCandidate().changed("tests/run.sh", script, c.after).check(t, c.rules)
			if v.Worst() != c.worst {
				t.Errorf("got %q: %v, want %q", v.Worst(), v.Findings, c.worst)
			}
		})
	}
	swapped := newCandidate()
	swapped.in.Changes = append(swapped.in.Changes, Change{Path: "tests/run.sh", Old: swapped.entry(git.ModeFile, script), New: swapped.entry(git.ModeSymlink, "../bin/true")})
	if v := swapped.check(t, Rules{Exam: ex}); v.Worst() != Block {
		t.Errorf("a script that becomes a link: %v", v.Findings)
	}
}
