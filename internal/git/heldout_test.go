package git

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exam is another repository with held-out tests in its second commit.
func exam(t *testing.T) string {
	t.Helper()
	dir := initRepo(t, files{"README.md": "# exam, first\n"})
	for path, text := range (files{"exam/tests/held/a_test.txt": "1\n", "exam/tests/held/run.sh": "#!/bin/sh\nexit 0\n", "exam/link": "->tests/held/run.sh", "notes.txt": "n\n"}) {
		put(t, dir, path, text)
	}
	plain(t, dir, "add", "-A")
	plain(t, dir, "commit", "-q", "-m", "exam")
	plain(t, dir, "tag", "-a", "v1", "-m", "one")
	plain(t, dir, "branch", "held")
	return dir
}

func TestACommitIsFetchedAsideFromTheStore(t *testing.T) {
	t.Parallel()
	source := exam(t)
	f := newForge(t, source)
	want := ID(strings.TrimSpace(plain(t, source, "rev-parse", "HEAD")))
	for _, ref := range []string{"held", "v1", "refs/heads/held", "refs/tags/v1", string(want), ""} {
		t.Run("ref "+ref, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, newGit(t), initRepo(t, sample()), "")
			got, err := s.FetchCommit(t.Context(), f.remote(), ref)
			if err != nil || got != want {
				t.Fatalf("got %s, %v, want %s", got, err, want)
			}
			tree, err := s.Tree(t.Context(), got)
			if err != nil {
				t.Fatal(err)
			}
			list, err := s.Files(t.Context(), tree, "exam")
			if err != nil {
				t.Fatal(err)
			}
			if len(list) != 3 || list["tests/held/run.sh"].Mode != ModeExecutable || list["link"].Mode != ModeSymlink {
				t.Errorf("files: %v", list)
			}
			// Nothing of it may steer a later push or fetch: no ref, no shallow mark, nothing beside the store.
			for _, trace := range []string{"shallow", "FETCH_HEAD", "packed-refs"} {
				if _, err := os.Lstat(filepath.Join(s.Dir(), trace)); err == nil {
					t.Errorf("the store has a %s", trace)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(s.Dir(), "aside-*")); len(left) > 0 {
				t.Errorf("left %v", left)
			}
			if out := plain(t, s.Dir(), "for-each-ref"); out != "" {
				t.Errorf("refs of the store: %s", out)
			}
		})
	}
}

func TestAMissingRefRepositoryOrPathIsTold(t *testing.T) {
	t.Parallel()
	f := newForge(t, exam(t))
	s := openStore(t, newGit(t), initRepo(t, sample()), "")
	if _, err := s.FetchCommit(t.Context(), f.remote(), "nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing ref: %v", err)
	}
	gone := f.remote()
	gone.URL = f.URL + "/o/other.git"
	var remote *RemoteError
	if _, err := s.FetchCommit(t.Context(), gone, "held"); !errors.As(err, &remote) || remote.Kind != NotFound || strings.Contains(err.Error(), f.token) {
		t.Errorf("missing repository: %v", err)
	}
	for _, ref := range []string{"--upload-pack=x", "a b", "refs/heads/../x"} {
		if _, err := s.FetchCommit(t.Context(), f.remote(), ref); err == nil {
			t.Errorf("%q was taken for a ref", ref)
		}
	}
	if _, err := s.Files(t.Context(), s.BaseTree(), "no/such"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing path: %v", err)
	}
}

func TestADirectoryIsImportedAsItIs(t *testing.T) {
	t.Parallel()
	s := openStore(t, newGit(t), initRepo(t, sample()), "")
	dir := t.TempDir()
	for path, text := range (files{"held/a": "a\n", "held/run": "#!/bin/sh\n", "held/to": "->a", ".git/config": "[core]\n", "b": ""}) {
		put(t, dir, path, text)
	}
	tree, err := s.ImportDir(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Mode{}
	if err := s.Walk(t.Context(), tree, func(path string, e Entry) error { got[path] = e.Mode; return nil }); err != nil {
		t.Fatal(err)
	}
	want := map[string]Mode{"held/a": ModeFile, "held/run": ModeExecutable, "held/to": ModeSymlink, "b": ModeFile}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, spoil := range map[string]func(dir string){
		"a link that leads out":  func(dir string) { put(t, dir, "held/out", "->../../x") },
		"a link to the root":     func(dir string) { put(t, dir, "held/out", "->/etc/passwd") },
		"a fifo":                 func(dir string) { mkfifo(t, dir+"/held/pipe") },
		"a repository inside it": func(dir string) { put(t, dir, "held/.git/config", "x") },
	} {
		bad := t.TempDir()
		put(t, bad, "held/a", "a")
		spoil(bad)
		if _, err := s.ImportDir(t.Context(), bad); err == nil {
			t.Errorf("%s was imported", name)
		}
	}
	if _, err := s.ImportDir(t.Context(), t.TempDir()); err == nil {
		t.Error("an empty directory was imported")
	}
	if _, err := s.ImportDir(t.Context(), filepath.Join(dir, "nowhere")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// INV-27: whatever the candidate plants where held-out files will lie, nothing is written outside.
func TestHeldOutFilesAreLaidOverWithoutFollowingAnything(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	put(t, outside, "victim.txt", "untouched\n")
	checkout := initRepo(t, with(sample(), files{"held": "->" + outside, "flat": "a file in a directory's place\n", "deep/a.txt/x": "x\n"}))
	s := openStore(t, newGit(t), checkout, "")
	blob, err := s.WriteBlob([]byte("the exam\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := Entry{ModeFile, blob}
	p, err := s.NewProof(t.Context(), filepath.Join(t.TempDir(), "p"), s.Base(), Without(heldOut))
	if err != nil {
		t.Fatal(err)
	}
	// Positive control: a plain copy would write through the planted link.
	if err := os.WriteFile(filepath.Join(p.Dir, "held/victim.txt"), []byte("overwritten\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(outside, "victim.txt")); string(b) != "overwritten\n" {
		t.Fatalf("control: %q", b)
	}
	put(t, outside, "victim.txt", "untouched\n")
	over := map[string]Entry{"held/victim.txt": e, "flat/b.txt": e, "deep/a.txt": e, "README.md": e, "link": e}
	if err := p.LayOver(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(outside, "victim.txt")); string(b) != "untouched\n" {
		t.Errorf("INV-27 wrote through a link of the candidate: %q", b)
	}
	got := contents(t, p.Dir)
	for path := range over {
		if got[path] != "the exam\n" {
			t.Errorf("%s holds %q", path, got[path])
		}
	}
	if _, ok := got["tests/acceptance/sum_test.txt"]; ok {
		t.Error("a proof without the sealed paths holds one")
	}
	// What a gate did to the proof is undone, and held-out files are gone with it.
	put(t, p.Dir, "pkg/sum.go", "package cheat\n")
	put(t, p.Dir, "planted.py", "x\n")
	put(t, p.Dir, "dist/cache", "ignored\n")
	if _, err := p.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := contents(t, checkout)
	delete(want, "tests/acceptance/sum_test.txt")
	want["dist/cache"] = "ignored\n"
	if diff := cmp.Diff(want, contents(t, p.Dir)); diff != "" {
		t.Errorf("after Reset (-want +got):\n%s", diff)
	}
}

func TestAVariantIsTheBaseWithOtherFiles(t *testing.T) {
	t.Parallel()
	sp := newSpace(t, initRepo(t, sample()), heldOut)
	blob, err := sp.store.WriteBlob([]byte("new test\n"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := sp.store.Variant(t.Context(), sp.store.Base(), map[string]Entry{"tests/unit/b_test.txt": {ModeFile, blob}, "README.md": {}})
	if err != nil {
		t.Fatal(err)
	}
	before := contents(t, sp.gate.Dir())
	if err := sp.gate.Sync(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(before)
	delete(want, "README.md")
	want["tests/unit/b_test.txt"] = "new test\n"
	if diff := cmp.Diff(want, contents(t, sp.gate.Dir())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c, err := sp.store.ReadCommit(t.Context(), v)
	if err != nil || sp.store.ours(c) {
		t.Errorf("a variant counts as ours to push: %v", err)
	}
}
