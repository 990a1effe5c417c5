package policy

import (
	"errors"
	"testing"
)

// INV-22 and E106: our own rules, pair by pair. Every row with a match is the control of one without.
func TestGlobPairs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"*.go", "main.go", true},
		{"*.go", "cmd/main.go", false},
		{"*.go", ".hidden.go", true},
		{"*", "README.md", true},
		{"*", ".env", true},
		{"*", "src/a", false},
		{"**", "a", true},
		{"**", "a/b/c", true},
		{"**", ".a/.b", true},
		{"**/*.go", "main.go", true},
		{"**/*.go", "a/b/main.go", true},
		{"**/*.go", "a/b/main.gox", false},
		{"**/x", "x", true},
		{"**/x", "a/x", true},
		{"**/x", "a/b/x", true},
		{"**/x", "ax", false},
		{"**/x", "a/bx", false},
		{"**/x", "a/x/y", true},
		{"x/**", "x/y", true},
		{"x/**", "x/y/z", true},
		{"x/**", "x/.y", true},
		{"x/**", "x", true},
		{"x/**", "xy", false},
		{"x/**", "a/x/y", false},
		{"x/**/**", "x", true},
		{"x/", "x", true},
		{"x/", "x/y", true},
		{"x/", "x/y/z", true},
		{"x/", "xy/z", false},
		{"x", "x", true},
		{"x", "x/y", true},
		{"x", "y/x", false},
		{"x*", "xa", true},
		{"x*", "xa/y", false},
		{"x*/", "xa/y", true},
		{"x*/", "xa", true},
		{"x/*", "x/y", true},
		{"x/*", "x/y/z", false},
		{"x/*", "x", false},
		{"x/*/z", "x/y/z", true},
		{"x/*/z", "x/z", false},
		{"x/**/z", "x/z", true},
		{"x/**/z", "x/a/b/z", true},
		{"x/**/z", "x/a/b/zz", false},
		{"**/a/**", "a", true},
		{"**/a/**", "b/a/c", true},
		{"**/a/**", "b/ac/c", false},
		{"tests/*_test.py", "tests/a_test.py", true},
		{"tests/*_test.py", "tests/sub/a_test.py", false},
		{"?.txt", "a.txt", true},
		{"?.txt", "ab.txt", false},
		{"a?b", "a/b", false},
		{"[ab].txt", "a.txt", true},
		{"[ab].txt", "c.txt", false},
		{"[^ab].txt", "c.txt", true},
		{"{a,b}/c", "b/c", true},
		{"{a,b}/c", "d/c", false},
		{"*.{js,ts}", "x.ts", true},
		{"a\\b", "a\\b", true},
		{"a\\b", "ab", false},
		{"a\\*", "a\\x", true},
		{"[*]", "*", true},
		{"[*]", "a", false},
		{"A.md", "a.md", false},
		{"caf\u00e9", "cafe\u0301", false},
		{"a b/c", "a b/c", true},
		{"a\nb", "a\nb", true},
		{"**", "../a", false},
		{"**", "/a", false},
		{"**", "a//b", false},
		{"**", "a/./b", false},
		{"**", "", false},
	} {
		g, err := Compile([]string{c.pattern}, false)
		if err != nil {
			t.Errorf("INV-22 %q: %v", c.pattern, err)
			continue
		}
		if got, ok := g.Match(c.path); ok != c.want || ok && got != c.pattern {
			t.Errorf("INV-22 %q against %q: %q, %v, want %v", c.pattern, c.path, got, ok, c.want)
		}
	}
}

// INV-22: what case folding, Unicode and file systems take for the protected name is the protected name.
func TestFoldedGlobsAreNotEvaded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{".github/workflows/", ".GitHub/Workflows/ci.yml", true},
		{"**/CLAUDE.md", "sub/claude.MD", true},
		{"**/CLAUDE.md", "sub/CLAUDE.md.bak", false},
		{"tests/acceptance/**", "Tests/ACCEPTANCE", true},
		{"tests/acceptance/**", "tests/acceptance2/x", false},
		{"caf\u00e9/", "cafe\u0301/x", true},
		{"cafe\u0301/", "caf\u00e9/x", true},
		{"kit/*", "\u212ait/x", true},
		{"tests/**", "te\u017fts/x", true},
		{"strasse/", "stra\u00dfe/x", true},
		{"**/.claude/", ".cla\u200cude/settings.json", true},
		{"**/.claude/", ".claude\ufeff/settings.json", true},
		{"**/.git/", "a/.g\u200bit/config", true},
		{".github/", ".github./workflows/x", true},
		{".github/", ".github /workflows/x", true},
		{"**/.mcp.json", ".mcp.json::$DATA", true},
		{"**/.mcp.json", "a/.mcp.json.", true},
		{"*.lock", "Cargo.LOCK", true},
		{"*.lock", "a/Cargo.lock", false},
		{".github/", "\uff0egithub/workflows/x", true}, // wide forms
		{"a/\ufb01n/", "a/fin/x", true},
		{"docs/\uff3bx\uff3d.md", "docs/[X].md", true},
		{"docs/x./y", "DOCS/X./y", true},
		{"docs/x.", "docs/X", true},
		{"a/**", "b/../a/x", true},
		{"a/**", "/a/x", true},
		{"a/**", "b/x", false},
	} {
		g, err := Compile([]string{c.pattern}, true)
		if err != nil {
			t.Fatalf("INV-22 %q: %v", c.pattern, err)
		}
		if _, ok := g.Match(c.path); ok != c.want {
			t.Errorf("INV-22 %q against %q: %v, want %v", c.pattern, c.path, ok, c.want)
		}
		// The control: where the folding makes the difference, an exact set is evaded.
		if exact, _ := Compile([]string{c.pattern}, false); c.want {
			if _, ok := exact.Match(c.path); ok {
				t.Errorf("INV-22 %q against %q: the exact set matches too, so this row shows nothing", c.pattern, c.path)
			}
		}
	}
}

func TestABadPatternIsNamedByItsPlace(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "/", "/etc", "!a", "./a", "a/../b", "..", "a//b", "**.go", "a**/b", "[a", "{a,b", "a\x00b", "a\xffb", string(make([]byte, 2000)),
	} {
		_, err := Compile([]string{"ok/**", bad}, true)
		var pe *PatternError
		if !errors.As(err, &pe) || pe.Index != 1 || pe.Problem == "" {
			t.Errorf("%q: %v, want a PatternError at index 1", bad, err)
		}
	}
	if _, ok := (Globs{}).Match("a"); ok {
		t.Error("the empty set matches")
	}
}

// INV-16: whatever the configuration lists.
func TestWhatSteersAgentsAndForgesIsAlwaysProtected(t *testing.T) {
	t.Parallel()
	set, why, err := ProtectedGlobs([]string{"tests/acceptance/**"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{
		".github/workflows/ci.yml", ".github/workflows", ".github/proctor.yml", ".github/Proctor.YAML", ".gitlab-ci.yml", ".github/actions/x/index.js", "tools/action.yml",
		"CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS", "CLAUDE.md", "pkg/deep/CLAUDE.md", "AGENTS.md", "a/agents.md", ".claude/settings.json", "a/.claude/hooks/x.sh",
		".mcp.json", "a/.mcp.json", ".codex/config.toml", "GEMINI.md", ".gemini/settings.json", ".cursor/rules/a.mdc", "a/.cursorrules", ".github/copilot-instructions.md",
		".github/instructions/go.instructions.md", ".gitmodules", "sub/.gitattributes", "a/.git/config", ".husky/pre-commit", ".vscode/tasks.json", ".envrc",
		"tests/acceptance/a_test.py", "opencode.json", ".windsurfrules",
	} {
		pattern, ok := set.Match(p)
		if !ok || why(pattern) == "" {
			t.Errorf("INV-16 %s is not protected", p)
		}
	}
	for _, p := range []string{"main.go", "src/claude.go", "docs/agents.txt", ".github/ISSUE_TEMPLATE/bug.md", "github/workflows/x.yml", "README.md", "tests/unit/a_test.py"} {
		if pattern, ok := set.Match(p); ok {
			t.Errorf("control: %s is protected by %s", p, pattern)
		}
	}
	if got := why("tests/acceptance/**"); got != "the configuration protects it" {
		t.Errorf("reason of a configured pattern: %q", got)
	}
	if _, _, err := ProtectedGlobs([]string{"a", "../b"}); err == nil || err.(*PatternError).Index != 1 {
		t.Errorf("%v, want the index in the configured list", err)
	}
}

func FuzzGlobs(f *testing.F) {
	f.Add("**/CLAUDE.md", "a/claude.md")
	f.Add("{a,[b-c]}/**", "b/x")
	f.Add("a\\*", "a\\b")
	f.Add("?", "\u00df")
	f.Add("a*", "a\u0301b")
	f.Add("x.", "x.")
	f.Add("[\uff3b]", "\uff3b")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if len(pattern) > 40 || len(path) > 60 {
			t.Skip("long patterns are bounded elsewhere")
		}
		exact, err := Compile([]string{pattern}, false)
		if err != nil {
			return
		}
		folded, err := Compile([]string{pattern}, true)
		if err != nil {
			t.Fatalf("%q compiles exactly and not folded: %v", pattern, err)
		}
		_, loose := folded.Match(path)
		if _, ok := exact.Match(path); ok && !loose {
			t.Errorf("%q matches %q exactly and not folded", pattern, path)
		}
	})
}

func BenchmarkProtectedMatch(b *testing.B) {
	set, _, err := ProtectedGlobs(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		set.Match("internal/policy/some/deep/directory/file_name_test.go")
	}
}
