package git

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadingFilesOfACommit(t *testing.T) {
	t.Parallel()
	sp := newSpace(t, initRepo(t, sample()), nil)
	s := sp.store
	text, err := s.ReadFile(t.Context(), s.Base(), "pkg/sum.go", 1000)
	if err != nil || string(text) != sample()["pkg/sum.go"] {
		t.Errorf("%q, %v", text, err)
	}
	for _, path := range []string{"nowhere", "pkg/nowhere", "README.md/x", "", "/", "pkg//sum.go", "../x", "pkg/"} {
		if _, err := s.ReadFile(t.Context(), s.Base(), path, 0); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, path := range []string{"pkg", "link"} {
		if _, err := s.ReadFile(t.Context(), s.Base(), path, 0); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", path, err)
		}
	}
	var large *TooLargeError
	if _, err := s.ReadFile(t.Context(), s.Base(), "pkg/sum.go", 5); !errors.As(err, &large) || large.Max != 5 {
		t.Errorf("a file over the limit: %v", err)
	}
	// The long-lived process is still in step after an answer that was not read.
	if text, err := s.ReadFile(t.Context(), s.Base(), "README.md", 100); err != nil || string(text) != "# sample\n" {
		t.Errorf("the next file: %q, %v", text, err)
	}
	if _, err := s.ReadBlob(t.Context(), ID(strings.Repeat("1", 40)), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing object: %v", err)
	}
	if _, err := s.ReadBlob(t.Context(), s.Base(), 0); err == nil {
		t.Error("a commit was read as a file")
	}
	if _, err := s.ReadBlob(t.Context(), "HEAD", 0); err == nil {
		t.Error("a name was taken for an id")
	}
}

// Trees built from changes equal those that git writes, and the differences equal git's.
func TestTreesAndDifferencesEqualGits(t *testing.T) {
	t.Parallel()
	names := []string{"a", "a-b", "a.b", "a0", "b", "ab", "z/", "\xff", "A"}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 3))
			pick := func() string {
				var parts []string
				for range 1 + rnd.IntN(3) {
					parts = append(parts, strings.TrimSuffix(names[rnd.IntN(len(names))], "/"))
				}
				return strings.Join(parts, "/")
			}
			checkout := initRepo(t, sample())
			sp := newSpace(t, checkout, nil)
			dir := sp.agent.Dir()
			parent := ID("")
			for range 5 {
				for range 12 {
					path := pick()
					if rnd.IntN(3) == 0 {
						_ = removeTree(dir + "/" + path)
						continue
					}
					top := dir
					for part := range strings.SplitSeq(path, "/") {
						top += "/" + part
						if top != dir+"/"+path && exists(top) && !isDir(top) {
							_ = removeTree(top)
						}
					}
					_ = removeTree(top)
					put(t, dir, path, fmt.Sprint(rnd.IntN(4)))
				}
				snap := sp.snapshot(t, parent)
				plain(t, dir, "add", "-A")
				if want := strings.TrimSpace(plain(t, dir, "write-tree")); want != string(snap.Tree) {
					t.Fatalf("tree %s, git's is %s", snap.Tree, want)
				}
				raw := plain(t, sp.store.Dir(), "diff-tree", "-r", "-z", "--no-renames", "--name-status", string(sp.store.BaseTree()), string(snap.Tree))
				fields := strings.Split(raw, "\x00")
				var want []string
				for i := 0; i+1 < len(fields); i += 2 {
					want = append(want, fields[i]+" "+fields[i+1])
				}
				if diff := cmp.Diff(want, paths(snap.Changes)); diff != "" {
					t.Fatalf("differences (-git +ours):\n%s", diff)
				}
				parent = snap.Commit
			}
		})
	}
}

func FuzzParseTree(f *testing.F) {
	f.Add([]byte("100644 a\x00aaaaaaaaaaaaaaaaaaaa40000 b\x00bbbbbbbbbbbbbbbbbbbb"))
	f.Add([]byte("100644 ../x\x00aaaaaaaaaaaaaaaaaaaa"))
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, err := sha1Format().parseTree(content)
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.name == "" || e.name == ".." || strings.Contains(e.name, "/") {
				t.Errorf("entry %q", e.name)
			}
		}
	})
}

func FuzzParseCommit(f *testing.F) {
	f.Add("tree " + strings.Repeat("a", 40) + "\nparent " + strings.Repeat("b", 40) + "\ncommitter A <a@b> 1 +0000\n\nx\n\nProctor-Run: r\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := sha1Format().parseCommit(text)
		if err == nil && len(c.Tree) != 40 {
			t.Errorf("tree %q", c.Tree)
		}
		c.Trailer(TrailerRun)
	})
}
