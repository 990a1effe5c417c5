package guard

import (
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/policy"
)

// E100: by component, never by prefix.
func TestAGitDirectoryIsKnownByItsWholeComponent(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]Rule{
		".git/config": NestedRepo, "a/.git/hooks/x": NestedRepo, ".GIT/config": NestedRepo, "a/.Git": NestedRepo,
		"git~1/config": BadName, "a/GIT~1/x": BadName, "git~2": BadName, ".g\u200cit/config": BadName, ".gi\u200dt": BadName, ".git /x": BadName, ".git./x": BadName,
		".git::$INDEX_ALLOCATION/x": BadName, "a\\.git\\x": BadName, ".ｇｉｔ/x": BadName,
		".github/x": "", ".gitx": "", ".gitignore": "", "git/x": "", "x.git": "", "a/.gitkeep": "", "git~": "", "git~10": "", ".git-blame-ignore-revs": "",
	} {
		v := newCandidate().added(path, "x\n").check(t, Rules{})
		got := Rule("")
		for _, f := range v.At(Halt) {
			got = f.Rule
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

// INV-18: odd names are fine as long as git and forges take them.
func TestOddNamesPass(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"a b", "a\nb", "a\tb", "\"q\"", "ü/ö", "日本語", "\xff\xfe", "-rf", "a'b", "$(x)", "con.txt", "a:b", strings.Repeat("x", 255)} {
		if v := newCandidate().added(path, "x\n").check(t, Rules{}); !v.Passed() {
			t.Errorf("%q: got %v", path, v.Findings)
		}
	}
	for _, path := range []string{"", "/a", "a//b", "a/../b", "./a", "a/", "a\x00b", strings.Repeat("x", 256), strings.Repeat("x/", 2100) + "x"} {
		if v := newCandidate().added(path, "x\n").check(t, Rules{}); !has(v, BadName, Halt, path) {
			t.Errorf("control, %.40q: got %v", path, v.Findings)
		}
	}
}

// INV-13: names that a sloppy file system takes for one file.
func TestANewNameMustNotFoldOntoAnother(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, path, other string }{
		{"case", "pkg/Sum.go", "pkg/sum.go"},
		{"case of a directory", "PKG/sum.go", "pkg/sum.go"},
		{"Unicode form", "caf\u00e9.txt", "cafe\u0301.txt"},
		{"Kelvin sign", "\u212aey.txt", "key.txt"},
		{"a file where a directory is", "Docs", "docs/a.md"},
		{"a directory where a file is", "readme/x", "README"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cand := newCandidate().added(c.path, "x\n")
			cand.in.Paths = []string{c.path, c.other, "unrelated"}
			if v := cand.check(t, Rules{}); len(v.At(Halt)) != 1 || v.At(Halt)[0].Rule != BadName {
				t.Errorf("against an unchanged file: got %v", v.Findings)
			}
			both := newCandidate().added(c.path, "x\n").added(c.other, "y\n").check(t, Rules{})
			if len(both.At(Halt)) == 0 {
				t.Errorf("two new files: got %v", both.Findings)
			}
			cand.in.Paths = []string{c.path, "unrelated"}
			if v := cand.check(t, Rules{}); !v.Passed() {
				t.Errorf("control: got %v", v.Findings)
			}
			// What collided before is not the agent's doing.
			old := newCandidate().changed(c.path, "x\n", "y\n")
			old.in.Paths = []string{c.path, c.other}
			if v := old.check(t, Rules{}); !v.Passed() {
				t.Errorf("collided on the base already: got %v", v.Findings)
			}
		})
	}
}

func TestABareRepositoryInTheTreeBlocks(t *testing.T) {
	t.Parallel()
	v := newCandidate().added("fixtures/r/HEAD", "ref: refs/heads/main\n").added("fixtures/r/config", "[core]\n\tfsmonitor = ./x\n").added("fixtures/r/objects/pack/x", "").check(t, Rules{})
	if !has(v, NestedRepo, Block, "fixtures/r/HEAD") {
		t.Errorf("got %v", v.Findings)
	}
	if v := newCandidate().added("docs/HEAD", "").added("src/objects/a.go", "").check(t, Rules{}); !v.Passed() {
		t.Errorf("control: got %v", v.Findings)
	}
}

// E98: links that leave the tree, however they climb.
func TestALinkMustStayInside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, target string
		leaves       bool
	}{
		{"a", "b", false}, {"a/b", "../c", false}, {"a/b/c", "../../d/e", false}, {"a", "nowhere/at/all", false}, {"a", "./b", false}, {"a", "b/", false}, {"a/b", "..", false}, {"a", ".", false},
		{"a", "../b", true}, {"a/b", "../../c", true}, {"a", "/etc/passwd", true}, {"a", "", true}, {"a", "b/../../c", true}, {"a", "b/../c", true}, {"a", ".git", true}, {"a", ".GIT/config", true},
		{"a/b", "../.git/hooks", true}, {"a", "C:\\x", true}, {"a", "\\\\host\\x", true}, {"a", "x\x00y", true}, {"a", strings.Repeat("x/", 3000), true}, {"a", "..", true},
	} {
		v := newCandidate().linked(c.path, c.target).check(t, Rules{})
		if has(v, Symlink, Halt, c.path) != c.leaves {
			t.Errorf("%s -> %.40q: got %v, want leaves %v", c.path, c.target, v.Findings, c.leaves)
		}
	}
	if v := newCandidate().linked(".gitmodules", "x").check(t, Rules{}); !has(v, BadName, Halt, ".gitmodules") {
		t.Errorf("a linked .gitmodules: got %v", v.Findings)
	}
	c := newCandidate()
	c.in.Changes = []Change{{Path: "a", Old: c.entry(git.ModeSymlink, "/etc/passwd")}}
	if v := c.check(t, Rules{}); !v.Passed() {
		t.Errorf("control: deleting such a link is refused: %v", v.Findings)
	}
}

func TestWhatASnapshotCannotSayIsNotLeftOutInSilence(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]Finding{
		git.NestedRepository: {Rule: NestedRepo, Level: Halt}, git.SubmoduleContent: {Rule: Gitlink, Level: Halt}, git.SubmoduleEdited: {Rule: Gitlink, Level: Block}, git.BadName: {Rule: BadName, Level: Halt}, git.TooDeep: {Rule: BadName, Level: Halt},
		git.SealedTouched: {Rule: Sealed, Level: Halt}, git.TooLarge: {Rule: FileSize, Level: Block}, git.Unreadable: {Rule: Unreadable, Level: Block},
		git.OddFile: {Rule: Odd, Level: Flag}, git.BadIgnore: {Rule: Odd, Level: Flag}, "something new": {Rule: BadName, Level: Halt},
	} {
		c := newCandidate()
		c.in.Problems = []Problem{{Path: "p", Kind: kind}}
		if v := c.check(t, Rules{}); !has(v, want.Rule, want.Level, "p") || v.Findings[0].Detail == "" {
			t.Errorf("%s: got %v, want %s %s", kind, v.Findings, want.Rule, want.Level)
		}
	}
}

func FuzzNamesAndLinksNeverPanicAndNeverLeave(f *testing.F) {
	f.Add("a/b", "../c")
	f.Add(".g\u200cit", "x/../..")
	f.Add("\xff", "\xff/..")
	f.Fuzz(func(t *testing.T, path, target string) {
		policy.Fold(path)
		checkName(Change{Path: path, New: Entry{Mode: git.ModeFile, ID: "1"}})
		at, err := resolveLink(path, target)
		if err != nil {
			return
		}
		for part := range strings.SplitSeq(at, "/") {
			if part == ".." || strings.EqualFold(part, ".git") && !strings.Contains(strings.ToLower(path), ".git") {
				t.Fatalf("%q -> %q resolves to %q", path, target, at)
			}
		}
	})
}
