package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAStoreIsFilledFromTheRemoteAlone(t *testing.T) {
	t.Parallel()
	checkout := initRepo(t, sample())
	base := strings.TrimSpace(plain(t, checkout, "rev-parse", "HEAD"))
	f := newForge(t, checkout)
	plain(t, checkout, "switch", "-q", "-c", "proctor/issue-1")
	put(t, checkout, "new.txt", "new\n")
	plain(t, checkout, "add", "-A")
	plain(t, checkout, "commit", "-q", "-m", "work")
	head := strings.TrimSpace(plain(t, checkout, "rev-parse", "HEAD"))
	plain(t, checkout, "push", "-q", f.bare, "proctor/issue-1")

	for _, borrow := range []string{"", checkout, filepath.Join(t.TempDir(), "missing")} {
		s, err := newGit(t).OpenRemote(t.Context(), RemoteOptions{
			Remote: f.remote(), Refs: []string{"refs/heads/main", "refs/heads/proctor/issue-1", "refs/pull/1/head"},
			Base: base, Checkout: borrow, Dir: filepath.Join(t.TempDir(), "store"),
		})
		if err != nil {
			t.Fatalf("borrowing from %q: %v", borrow, err)
		}
		defer s.Close()
		if tip, err := s.Ref("refs/heads/proctor/issue-1"); err != nil || string(tip) != head {
			t.Errorf("tip %s, %v, want %s", tip, err, head)
		}
		if _, err := s.Ref("refs/pull/1/head"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a ref that the remote lacks: %v", err)
		}
		p, err := s.NewProof(t.Context(), filepath.Join(t.TempDir(), "proof"), ID(head))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(p.Dir, "new.txt")); err != nil || string(b) != "new\n" {
			t.Errorf("%q, %v", b, err)
		}
	}
}

func TestABaseThatNoBranchReachesIsMissing(t *testing.T) {
	t.Parallel()
	checkout := initRepo(t, sample())
	f := newForge(t, checkout)
	_, err := newGit(t).OpenRemote(t.Context(), RemoteOptions{
		Remote: f.remote(), Refs: []string{"refs/heads/main"}, Base: "1111111111111111111111111111111111111111", Dir: filepath.Join(t.TempDir(), "store"),
	})
	var missing *MissingObjectError
	if !errors.As(err, &missing) {
		t.Errorf("got %v", err)
	}
	_, err = newGit(t).OpenRemote(t.Context(), RemoteOptions{Remote: f.remote(), Refs: []string{"refs/heads/gone"}, Base: "1111111111111111111111111111111111111111", Dir: filepath.Join(t.TempDir(), "store")})
	if err == nil {
		t.Error("a store of nothing was made")
	}
}

func TestHistoriesAreCompared(t *testing.T) {
	t.Parallel()
	dir := initRepo(t, sample())
	first := ID(strings.TrimSpace(plain(t, dir, "rev-parse", "HEAD")))
	commit := func(branch, file string) ID {
		plain(t, dir, "switch", "-q", "-C", branch, string(first))
		put(t, dir, file, "x\n")
		plain(t, dir, "add", "-A")
		plain(t, dir, "commit", "-q", "-m", file)
		return ID(strings.TrimSpace(plain(t, dir, "rev-parse", "HEAD")))
	}
	a, b := commit("a", "a.txt"), commit("b", "b.txt")
	plain(t, dir, "switch", "-q", "--orphan", "alone")
	plain(t, dir, "commit", "-q", "--allow-empty", "-m", "alone")
	alone := ID(strings.TrimSpace(plain(t, dir, "rev-parse", "HEAD")))
	s := openStore(t, newGit(t), dir, "")
	for _, c := range []struct {
		tip, commit ID
		want        bool
	}{{a, first, true}, {a, a, true}, {a, b, false}, {first, a, false}} {
		if got, err := s.Contains(t.Context(), c.tip, c.commit); err != nil || got != c.want {
			t.Errorf("%s contains %s: %v, %v", c.tip, c.commit, got, err)
		}
	}
	if got, err := s.MergeBase(t.Context(), a, b); err != nil || got != first {
		t.Errorf("merge base %s, %v", got, err)
	}
	if _, err := s.MergeBase(t.Context(), a, alone); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("histories that share nothing: %v", err)
	}
	if _, err := s.Contains(t.Context(), "--all", a); err == nil {
		t.Error("an option passed for an id")
	}
}

func TestCommitsAreFoundByTheNamesThatPeopleUse(t *testing.T) {
	t.Parallel()
	dir := initRepo(t, sample())
	head := ID(strings.TrimSpace(plain(t, dir, "rev-parse", "HEAD")))
	plain(t, dir, "branch", "topic/one")
	plain(t, dir, "tag", "-a", "-m", "v1", "v1")
	plain(t, dir, "update-ref", "refs/remotes/origin/main", string(head))
	plain(t, dir, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	s := openStore(t, newGit(t), dir, "")
	for _, name := range []string{"HEAD", "topic/one", "refs/heads/topic/one", "v1", "origin/main", "origin/HEAD", string(head), string(head[:8])} {
		if got, err := s.Resolve(t.Context(), dir, name); err != nil || got != head {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, name := range []string{"gone", "../HEAD", "-x", "", "HEAD~1", "abcd1234abcd", "config"} {
		if got, err := s.Resolve(t.Context(), dir, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %s, %v", name, got, err)
		}
	}
}
