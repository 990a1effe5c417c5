package git

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gitSees lists what git itself holds to be untracked and not ignored.
func gitSees(t testing.TB, dir string) []string {
	t.Helper()
	// A complaint about an ignore file that is a symlink goes to stderr.
	cmd := exec.Command("git", "-C", dir, "ls-files", "-z", "--others", "--exclude-per-directory=.gitignore")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func weSee(t testing.TB, s *Store, path string) []string {
	t.Helper()
	w := &Worktree{store: s, dir: path}
	var names []string
	err := w.withRoot(func(root int) error {
		diff, err := w.scan(t.Context(), root, &dir{}, true, 0)
		for _, f := range diff.extra {
			names = append(names, f.path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestIgnoreRulesDecideAsGitDoes(t *testing.T) {
	t.Parallel()
	s := openStore(t, newGit(t), initRepo(t, nil), "")
	tree := []string{
		"a", "a.log", "b.txt", "foo", "bar", "foo bar", "foo ", "#x", "!y", "dist/a", "dist/b/c", "x/dist/a", "x/y/z/a.log", "x/y/z/b",
		"foo/bar", "x/foo/bar", "foobaz/x/bar", "fooo", "f*o", "[ab]", "a]b", "a-c", "abc", "aBc", "a\\b", "ÿ", "caf\u00e9/x", ".hidden", ".dir/x",
		"one/two/three/four", "one/a.log", "build/keep.txt", "build/out/x", "nl\nname", "tab\tname", "\xff\xfe", "x/build", "deep/a/b/c/d/e",
	}
	cases := map[string]files{
		"plain":              {".gitignore": "a.log\nfoo/\n"},
		"anchored":           {".gitignore": "/foo\n/x/dist\n"},
		"middle slash":       {".gitignore": "foo/bar\nx/y\n"},
		"star":               {".gitignore": "*.log\nx/*/z\n"},
		"double star":        {".gitignore": "**/dist\none/**\ndeep/**/e\n"},
		"double star inside": {".gitignore": "foo**/bar\n"},
		"double star alone":  {".gitignore": "**\n"},
		"negation":           {".gitignore": "*\n!*.txt\n!x/\n"},
		"below an ignored directory nothing returns": {".gitignore": "build/\n!build/keep.txt\n"},
		"content ignored, one kept":                  {".gitignore": "build/*\n!build/keep.txt\n"},
		"deeper file wins":                           {".gitignore": "*.log\n", "x/.gitignore": "!*.log\n", "x/y/.gitignore": "z\n"},
		"hides itself":                               {"x/.gitignore": "*\n"},
		"all but itself":                             {"x/.gitignore": "*\n!.gitignore\n"},
		"classes":                                    {".gitignore": "[ab].*\n[!f]oo\na[[:upper:]]c\n[]x]\n[a-\n[z-a]\n"},
		"class with a slash":                         {".gitignore": "foo[/]bar\nx[^a]y\n"},
		"escapes":                                    {".gitignore": "\\#x\n\\!y\nf\\*o\n\\[ab]\n"},
		"trailing spaces":                            {".gitignore": "foo \nbar\\ \nfoo\\ \n"},
		"carriage returns":                           {".gitignore": "a.log\r\nfoo\r\n"},
		"byte order mark":                            {".gitignore": "\ufefffoo\n"},
		"no last line break":                         {".gitignore": "foo"},
		"comments and blanks":                        {".gitignore": "# foo\n\n   \n#\na.log\n"},
		"odd lines":                                  {".gitignore": "/\n!\n!/\n//\n//foo\n\\\nx//y\n"},
		"NUL":                                        {".gitignore": "foo\x00bar\na.log\x00\n"},
		"non-ASCII":                                  {".gitignore": "caf\u00e9\n\xff*\n"},
		"question marks":                             {".gitignore": "???\nx?y\n"},
		"directory only, pattern with a slash":       {".gitignore": "x/dist/\nx/build/\n"},
		"an ignore file that is a link":              {".gitignore": "->a"},
		"an ignore file that is a directory":         {".gitignore/x": "x"},
	}
	for name, rules := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			plain(t, dir, "init", "-q")
			for _, path := range tree {
				info, err := os.Stat(dir + "/" + path)
				if err == nil && info.IsDir() {
					continue
				}
				if parent := path[:max(strings.LastIndexByte(path, '/'), 0)]; parent != "" {
					// A file of the same name gives way to the directory.
					top, _, _ := strings.Cut(parent, "/")
					if info, err := os.Lstat(dir + "/" + top); err == nil && !info.IsDir() {
						_ = os.Remove(dir + "/" + top)
					}
				}
				put(t, dir, path, "x")
			}
			for path, content := range rules {
				put(t, dir, path, content)
			}
			if diff := cmp.Diff(gitSees(t, dir), weSee(t, s, dir)); diff != "" {
				t.Errorf("files that count (-git +ours):\n%s", diff)
			}
		})
	}
}

// Random rules over random names, compared with git. The seeds are fixed: a failure can be repeated.
func TestIgnoreRulesDecideAsGitDoesOnRandomInput(t *testing.T) {
	t.Parallel()
	s := openStore(t, newGit(t), initRepo(t, nil), "")
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 7))
			dir := t.TempDir()
			plain(t, dir, "init", "-q")
			alphabet := []string{"a", "b", "c", "ab", "a.b", "-", "[", "]", "a b", "*", "!", "\\", ".x"}
			for range 120 {
				depth := 1 + rnd.IntN(4)
				var parts []string
				for range depth {
					parts = append(parts, alphabet[rnd.IntN(len(alphabet))])
				}
				path := dir + "/" + strings.Join(parts, "/")
				if os.MkdirAll(path[:strings.LastIndexByte(path, '/')], 0o755) == nil {
					_ = os.WriteFile(path, []byte("x"), 0o644)
				}
			}
			for round := range 12 {
				for range 1 + rnd.IntN(3) {
					sub := ""
					if round > 3 && rnd.IntN(2) == 0 {
						sub = alphabet[rnd.IntN(3)] + "/"
					}
					if info, err := os.Lstat(dir + "/" + sub); err == nil && info.IsDir() {
						put(t, dir, sub+".gitignore", randomRules(rnd))
					}
				}
				if diff := cmp.Diff(gitSees(t, dir), weSee(t, s, dir)); diff != "" {
					rules := contents(t, dir)
					for path := range rules {
						if !strings.HasSuffix(path, ".gitignore") {
							delete(rules, path)
						}
					}
					t.Fatalf("round %d, rules %q (-git +ours):\n%s", round, rules, diff)
				}
			}
		})
	}
}

func randomRules(rnd *rand.Rand) string {
	atoms := []string{"a", "b", "c", "ab", ".", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[a-c]", "[", "]", "\\", "\\*", "\\\\", "!", "-", " ", "[[:alpha:]]", "**/", "/**", "/**/", "#", "[]a]", "[^]]", "[\\]]"}
	var b strings.Builder
	for range 1 + rnd.IntN(5) {
		if rnd.IntN(4) == 0 {
			b.WriteString("!")
		}
		if rnd.IntN(5) == 0 {
			b.WriteString("/")
		}
		for range 1 + rnd.IntN(4) {
			b.WriteString(atoms[rnd.IntN(len(atoms))])
		}
		b.WriteString([]string{"\n", "/\n", "\r\n", " \n"}[rnd.IntN(4)])
	}
	return b.String()
}

func TestAHostilePatternCannotStopTheScan(t *testing.T) {
	t.Parallel()
	// Plain backtracking needs more steps than there are atoms in the world.
	for _, slashes := range []bool{false, true} {
		if wildmatch(strings.Repeat("a*", 200)+"b", strings.Repeat("a", 4000), slashes) {
			t.Error("there is no b")
		}
		if wildmatch(strings.Repeat("**/", 100)+"b", strings.Repeat("a/", 1000), slashes) {
			t.Error("there is no b")
		}
	}
}

func FuzzIgnoreRules(f *testing.F) {
	f.Add("*.log\n!x/**/y\n[a-\n\\", "x/a.log")
	f.Add("\ufeff/a\r\n#\n  ", "a")
	f.Add("[[:alpha:]]*[!/]**", "a/b")
	f.Fuzz(func(t *testing.T, rules, path string) {
		if len(rules) > 200 || len(path) > 200 {
			return
		}
		file := &ignoreFile{rules: parseIgnore(rules)}
		file.ignores(path, true)
		file.ignores(path, false)
	})
}
