package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/git"
)

// repo is a real repository, worked in as an agent would with its own git.
type repo struct {
	t   *testing.T
	dir string
}

func (r repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.invalid", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.invalid",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repo) put(path, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) commit() git.ID {
	r.t.Helper()
	r.git("add", "-A", "-f")
	r.git("commit", "-q", "-m", "x", "--allow-empty")
	return git.ID(r.git("rev-parse", "HEAD"))
}

// over compares the last of the commits with the base, and hands in every commit on the way.
func (r repo) over(base git.ID, commits ...git.ID) Input {
	r.t.Helper()
	g, err := git.New(git.Options{Now: func() time.Time { return time.Unix(1_700_000_000, 0) }, Path: os.Getenv("PATH")})
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := g.OpenStore(r.t.Context(), git.StoreOptions{Checkout: r.dir, Dir: filepath.Join(r.t.TempDir(), "store"), Base: string(base)})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(s.Close)
	tree := func(commit git.ID) git.ID {
		id, err := s.Tree(r.t.Context(), commit)
		if err != nil {
			r.t.Fatal(err)
		}
		return id
	}
	diff := func(a, b git.ID) []Change {
		changes, err := s.Diff(r.t.Context(), tree(a), tree(b))
		if err != nil {
			r.t.Fatal(err)
		}
		return changes
	}
	in := Input{Blobs: s, Changes: diff(base, commits[len(commits)-1])}
	for i, parent := 0, base; i < len(commits); i++ {
		in.Tick = append(in.Tick, diff(parent, commits[i])...)
		parent = commits[i]
	}
	if err := s.Walk(r.t.Context(), tree(commits[len(commits)-1]), func(path string, _ Entry) error {
		in.Paths = append(in.Paths, path)
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return in
}

// INV-13, INV-17, INV-30: over objects that real git wrote, through the real store, with attributes that would blind a diff.
func TestOverRealTreesNothingGetsPast(t *testing.T) {
	t.Parallel()
	r := repo{t, t.TempDir()}
	r.git("init", "-q", "-b", "main")
	r.put("README.md", "# sample\n")
	r.put("ci/pipeline.yml", "on: push\n")
	r.put("pkg/sum_test.go", "package pkg\n\nfunc TestSum(t *testing.T) {\n\tt.Fatal(1)\n}\n")
	r.put(".gitattributes", "* -diff -text linguist-generated\n*.dat binary\n")
	base := r.commit()
	rules := Rules{Always: always(t), Protected: compiled(t, true, "ci/**")}

	r.put("pkg/sum.go", "package pkg\n")
	clean := r.commit()
	if v := mustCheck(t, rules, r.over(base, clean)); !v.Passed() || v.Added != 1 {
		t.Fatalf("control: got %+v", v)
	}

	r.put("data/x.dat", "\x00key = \""+token(5)+"\"\n")
	leak := r.commit()
	r.git("rm", "-q", "data/x.dat")
	r.put("pkg/sum.go", "package pkg\n\nvar X = 1\n")
	gone := r.commit()
	if v := mustCheck(t, rules, r.over(base, clean, leak, gone)); !has(v, Secret, Block, "data/x.dat") || !v.Discard() {
		t.Errorf("a credential that was removed again: got %v", v.Findings)
	}

	r.git("mv", "ci/pipeline.yml", "notes.yml")
	r.git("rm", "-q", "pkg/sum_test.go")
	r.put("Readme.md", "other\n")
	if err := os.Symlink("../../outside", filepath.Join(r.dir, "pkg/out")); err != nil {
		t.Fatal(err)
	}
	r.git("update-index", "--add", "--cacheinfo", "160000,"+string(base)+",vendor/lib")
	r.git("add", "-f", "notes.yml", "Readme.md", "pkg/out")
	r.git("commit", "-q", "-m", "y")
	v := mustCheck(t, rules, r.over(base, git.ID(r.git("rev-parse", "HEAD"))))
	for _, want := range []struct {
		rule  Rule
		level Level
		path  string
	}{
		{Protected, Halt, "ci/pipeline.yml"}, {Symlink, Halt, "pkg/out"}, {Gitlink, Halt, "vendor/lib"}, {BadName, Halt, "Readme.md"}, {Tampering, Block, "pkg/sum_test.go"},
	} {
		if !has(v, want.rule, want.level, want.path) {
			t.Errorf("%s %s: not in %v", want.rule, want.path, v.Findings)
		}
	}
}
