package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oddFiles are contents and names that conversions, quoting or shells would damage.
func oddFiles() files {
	return files{
		"crlf.txt": "a\r\nb\r\n", "mixed": "a\nb\r\n", "nul.bin": "a\x00b", "latin1": "caf\xe9\n", "empty": "", "no newline": "x",
		"run": "#!/bin/sh\n", "link": "->crlf.txt", "dangling": "->nowhere/at/all", "dir/link": "->../empty",
		"name with\nnewline": "1", "quote\"d": "2", "\xff\xfebytes": "3", "tab\there": "4", "caf\u00e9": "5", "cafe\u0301": "6", "$(touch x)": "7",
		"back\\slash": "8", "-dash": "9", ":colon": "10", "{\"json\"}": "11", "space ": "12",
		"big.bin":        "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 12345\n",
		"ident.c":        "$Id$\n",
		".gitattributes": "* text=auto eol=lf ident\n*.bin filter=lfs diff=lfs merge=lfs -text\nutf16 text working-tree-encoding=UTF-16\n*.txt export-subst eol=crlf\n",
		"utf16":          "\xff\xfea\x00\n\x00",
		"a-b":            "sorts between a and a/b", "a/b": "x", "a.b": "y",
	}
}

// INV-18: what the agent left arrives at a real git http-backend byte for byte, mode for mode, whatever
// attributes say; 5,000 more files, a rename and a deletion go along. INV-15: what arrives has the id
// of what was snapshotted. The control shows plain git damaging the same files.
func TestOddFilesSurviveThePushByteForByte(t *testing.T) {
	t.Parallel()
	checkout := initRepo(t, with(sample(), files{"old/name": "moved\n", "gone": "x"}))
	f := newForge(t, checkout)
	sp := newSpace(t, checkout, heldOut)
	dir := sp.agent.Dir()
	for path, content := range oddFiles() {
		put(t, dir, path, content)
	}
	for i := range 5000 {
		put(t, dir, fmt.Sprintf("many/%d/f%04d", i%7, i), fmt.Sprint(i))
	}
	put(t, dir, "huge", strings.Repeat("0123456789abcdef", 200_000))
	if err := os.Rename(dir+"/old/name", dir+"/name"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir + "/gone"); err != nil {
		t.Fatal(err)
	}
	snap := sp.snapshot(t, "")
	if len(snap.Problems) > 0 {
		t.Fatalf("problems: %v", snap.Problems)
	}
	started := sp.git.Started()
	if err := sp.store.Push(t.Context(), f.remote(), []RefUpdate{{Name: "refs/heads/proctor/issue-7", New: snap.Commit}}); err != nil {
		t.Fatal(err)
	}
	if n := sp.git.Started() - started; n != 1 {
		t.Errorf("the push started %d processes of ours, want 1", n)
	}
	if got := f.ref(t, "refs/heads/proctor/issue-7"); got != snap.Commit {
		t.Fatalf("the branch is at %s, want %s", got, snap.Commit)
	}
	plain(t, f.bare, "fsck", "--strict", "--no-dangling")

	// A second store that knows nothing but the forge's repository checks it out again.
	other := openStore(t, newGit(t), f.bare, "refs/heads/proctor/issue-7")
	proof, err := other.NewProof(t.Context(), filepath.Join(t.TempDir(), "proof"), snap.Commit)
	if err != nil {
		t.Fatal(err)
	}
	want := with(contents(t, dir), files{"tests/acceptance/sum_test.txt": "1 2 3\n"})
	if diff := cmp.Diff(want, contents(t, proof.Dir)); diff != "" {
		t.Errorf("checked out again (-agent +forge):\n%s", diff)
	}
	info, err := os.Stat(proof.Dir + "/run")
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("run has mode %v, %v", info.Mode(), err)
	}

	plain(t, dir, "add", "--", ".gitattributes", "crlf.txt")
	plain(t, dir, "commit", "-qm", "by hand")
	if got := plain(t, dir, "cat-file", "blob", "HEAD:crlf.txt"); got == "a\r\nb\r\n" {
		t.Error("control: attributes should have changed the bytes in plain git's commit")
	}
}

// INV-18, with the shared fixtures: each agent's leavings go to a real backend and come back equal.
func TestFixturesSurviveTheRoundTrip(t *testing.T) {
	t.Parallel()
	out := fixtures(t)
	for _, c := range readFixtureCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(out, c.ID)
			base, err := os.ReadFile(filepath.Join(dir, "base-sha"))
			if err != nil {
				t.Fatal(err)
			}
			f := newForge(t, filepath.Join(dir, "origin.git"))
			s := openStore(t, newGit(t), filepath.Join(dir, "origin.git"), strings.TrimSpace(string(base)))
			snap, err := adopt(t, s, filepath.Join(dir, "repo"), nil).Snapshot(t.Context(), SnapshotOptions{Meta: Meta{Run: "r"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Push(t.Context(), f.remote(), []RefUpdate{{Name: "refs/proctor/7/work", New: snap.Commit}}); err != nil {
				t.Fatal(err)
			}
			tree := ID(strings.TrimSpace(plain(t, f.bare, "rev-parse", "refs/proctor/7/work^{tree}")))
			if tree != snap.Tree || f.ref(t, "refs/proctor/7/work") != snap.Commit {
				t.Errorf("the forge has tree %s, want %s", tree, snap.Tree)
			}
			if exists(filepath.Join(dir, "marker")) {
				t.Error("a planted program ran")
			}
		})
	}
}

// INV-8: shallow, detached, linked worktrees, SHA-256, no identity, no HOME: all give a commit that a
// backend accepts.
func TestEveryKindOfCheckoutWorks(t *testing.T) {
	t.Parallel()
	cases := map[string]func(t *testing.T) (checkout, origin string){
		"plain": func(t *testing.T) (string, string) { r := initRepo(t, sample()); return r, r },
		"shallow and detached": func(t *testing.T) (string, string) {
			r := initRepo(t, sample())
			for _, n := range []string{"two", "three"} {
				plain(t, r, "commit", "-q", "--allow-empty", "-m", n)
			}
			c := filepath.Join(t.TempDir(), "c")
			plain(t, "/", "clone", "-q", "--depth=1", "file://"+r, c)
			plain(t, c, "checkout", "-q", "--detach")
			return c, r
		},
		"linked worktree": func(t *testing.T) (string, string) {
			r := initRepo(t, sample())
			c := filepath.Join(t.TempDir(), "c")
			plain(t, r, "worktree", "add", "-q", c)
			return c, r
		},
		"packed refs": func(t *testing.T) (string, string) {
			r := initRepo(t, sample())
			plain(t, r, "gc", "-q")
			return r, r
		},
		"sha256": func(t *testing.T) (string, string) { r := initRepo(t, sample(), "--object-format=sha256"); return r, r },
		"separate git directory": func(t *testing.T) (string, string) {
			r := initRepo(t, sample(), "--separate-git-dir="+filepath.Join(t.TempDir(), "elsewhere"))
			return r, r
		},
		"a path with odd characters": func(t *testing.T) (string, string) {
			r := initRepo(t, sample())
			c := filepath.Join(t.TempDir(), "# odd $(x) path:a")
			plain(t, "/", "clone", "-q", "file://"+r, c)
			return c, r
		},
		"borrowed objects": func(t *testing.T) (string, string) {
			r := initRepo(t, sample())
			c := filepath.Join(t.TempDir(), "c")
			plain(t, "/", "clone", "-q", "--shared", r, c)
			return c, r
		},
	}
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkout, origin := make(t)
			f := newForge(t, origin)
			sp := newSpace(t, checkout, heldOut)
			put(t, sp.agent.Dir(), "pkg/sum.go", "changed\n")
			if status := plain(t, sp.agent.Dir(), "status", "--porcelain"); status != " M pkg/sum.go\n" {
				t.Errorf("git status for the agent:\n%s", status)
			}
			snap := sp.snapshot(t, "")
			if diff := cmp.Diff([]string{"M pkg/sum.go"}, paths(snap.Changes)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if err := sp.store.Push(t.Context(), f.remote(), []RefUpdate{{Name: "refs/heads/proctor/issue-7", New: snap.Commit}}); err != nil {
				t.Fatal(err)
			}
			plain(t, f.bare, "fsck", "--strict", "--no-dangling")
			if got := f.ref(t, "refs/heads/proctor/issue-7"); got != snap.Commit {
				t.Errorf("the branch is at %q", got)
			}
		})
	}
}

func TestCheckoutsThatCannotWorkAreRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	origin := initRepo(t, sample())
	plain(t, origin, "config", "uploadpack.allowfilter", "true")
	first := strings.TrimSpace(plain(t, origin, "rev-parse", "HEAD"))
	put(t, origin, "later", "x")
	plain(t, origin, "add", "-A")
	plain(t, origin, "commit", "-qm", "later")
	clone := func(t *testing.T, args ...string) string {
		c := filepath.Join(t.TempDir(), "c")
		plain(t, "/", append(append([]string{"clone", "-q"}, args...), "file://"+origin, c)...)
		return c
	}
	cases := map[string]struct {
		make func(t *testing.T) string
		base string
		want []string
	}{
		"no repository": {func(t *testing.T) string { return t.TempDir() }, "", []string{"no git repository", "actions/checkout"}},
		"sparse": {func(t *testing.T) string {
			c := clone(t)
			plain(t, c, "sparse-checkout", "set", "pkg")
			return c
		}, "", []string{"sparse", "remove sparse-checkout"}},
		"partial": {func(t *testing.T) string { return clone(t, "--filter=blob:none", "--no-checkout") }, "",
			[]string{"partial clone", "remove filter"}},
		"shallow without the base": {func(t *testing.T) string { return clone(t, "--depth=1") }, first, []string{first, "fetch-depth: 0"}},
		"empty":                    {func(t *testing.T) string { d := t.TempDir(); plain(t, d, "init", "-q"); return d }, "", []string{"no commit at"}},
		"a short id":               {func(t *testing.T) string { return clone(t) }, first[:10], []string{"40 lower-case hex digits"}},
		"a ref that climbs":        {func(t *testing.T) string { return clone(t) }, "refs/../../x", []string{"refs/../../x"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newGit(t).OpenStore(t.Context(), StoreOptions{Checkout: c.make(t), Dir: filepath.Join(t.TempDir(), "s"), Base: c.base})
			if err == nil {
				t.Fatal("it was opened")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in: %v", want, err)
				}
			}
		})
	}
	t.Run("partial but complete for its base", func(t *testing.T) {
		t.Parallel()
		openStore(t, newGit(t), clone(t, "--filter=blob:none"), "")
	})
}
