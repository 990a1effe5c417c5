package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// INV-15: of what another machine hands over only the named commit counts, on our own base and in one line of a run's commits. The control is
// what Bundle wrote, in both object formats; each case is what a machine that somebody else has could hand over instead.
func TestABundleIsTakenForNothingButTheNamedCommitOnOurBase(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sha1", "sha256"} {
		checkout := initRepo(t, sample(), "--object-format="+kind)
		sp := newSpace(t, checkout, heldOut)
		put(t, sp.agent.Dir(), "pkg/one.go", "package pkg\n")
		first := sp.snapshot(t, sp.store.Base()).Commit
		put(t, sp.agent.Dir(), "pkg/two.go", "package pkg\n\nvar two = 2\n")
		second := sp.snapshot(t, first).Commit
		bundle := func(id ID) string {
			t.Helper()
			file := filepath.Join(t.TempDir(), "a.bundle")
			if err := sp.store.Bundle(t.Context(), file, "proctor/issue-1", id); err != nil {
				t.Fatal(err)
			}
			return file
		}
		good := bundle(second)
		fresh := func() *Store { return openStore(t, sp.git, checkout, "") }
		s := fresh()
		if _, err := s.Tree(t.Context(), second); err == nil {
			t.Fatal("the store has the commit already, so the bundle shows nothing")
		}
		if err := s.Unbundle(t.Context(), good, second); err != nil {
			t.Fatalf("%s: the control: %v", kind, err)
		}
		line, err := s.Line(t.Context(), second)
		if err != nil || len(line) != 2 || line[0].ID != first || line[1].ID != second {
			t.Fatalf("%s: the control's line is %+v, %v", kind, line, err)
		}
		raw, err := os.ReadFile(good)
		if err != nil {
			t.Fatal(err)
		}
		base := string(sp.store.Base())
		zero := strings.Repeat("1", len(base))
		for name, change := range map[string]func(string) string{
			"another base": func(b string) string { return strings.Replace(b, "-"+base, "-"+zero, 1) },
			"no base":      func(b string) string { return strings.Replace(b, "-"+base+"\n", "", 1) },
			"another tip":  func(b string) string { return strings.Replace(b, string(second)+" ", string(first)+" ", 1) },
			"a second tip": func(b string) string {
				return strings.Replace(b, "\n\nPACK", "\n"+string(first)+" refs/heads/x\n\nPACK", 1)
			},
			"a bad name":          func(b string) string { return strings.Replace(b, "refs/heads/proctor", "refs/heads/../proctor", 1) },
			"a cut pack":          func(b string) string { return b[:len(b)-30] },
			"changed bytes":       func(b string) string { return b[:len(b)-40] + "x" + b[len(b)-39:] },
			"nothing":             func(string) string { return "" },
			"a line without end":  func(string) string { return strings.Repeat("a", 1<<20) },
			"another git's kind":  func(b string) string { return "# v4 git bundle" + b[len("# v2 git bundle"):] },
			"a filter capability": func(b string) string { return "# v3 git bundle\n@filter=blob:none" + b[len("# v2 git bundle"):] },
		} {
			file := filepath.Join(t.TempDir(), "b.bundle")
			if err := os.WriteFile(file, []byte(change(string(raw))), 0o600); err != nil {
				t.Fatal(err)
			}
			var wrong *BundleError
			if err := fresh().Unbundle(t.Context(), file, second); !errors.As(err, &wrong) {
				t.Errorf("%s: %s: %v", kind, name, err)
			}
		}
		var wrong *BundleError
		if err := fresh().Unbundle(t.Context(), bundle(first), second); !errors.As(err, &wrong) {
			t.Errorf("%s: a bundle of another commit: %v", kind, err)
		}
		if err := fresh().Unbundle(t.Context(), t.TempDir(), second); !errors.As(err, &wrong) {
			t.Errorf("%s: a directory: %v", kind, err)
		}
	}
}

// Line says which commits are a run's own and nothing else is pushed with them.
func TestALineHoldsARunsCommitsAlone(t *testing.T) {
	t.Parallel()
	checkout := initRepo(t, sample())
	sp := newSpace(t, checkout, heldOut)
	put(t, sp.agent.Dir(), "pkg/one.go", "package pkg\n")
	ours := sp.snapshot(t, sp.store.Base()).Commit
	tree, err := sp.store.Tree(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	base := string(sp.store.Base())
	who := sp.store.identity() + " 1700000000 +0000"
	commit := func(head, message string) ID {
		t.Helper()
		id, err := sp.store.loose.write("commit", []byte("tree "+string(tree)+"\n"+head+"\n\n"+message))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	const message = "Work\n\nProctor-Run: r1\n"
	if line, err := sp.store.Line(t.Context(), commit("parent "+base+"\nauthor "+who+"\ncommitter "+who, message)); err != nil || len(line) != 1 {
		t.Fatalf("the control: %v, %v", line, err)
	}
	hidden := commit("author "+who+"\ncommitter "+who, message)
	for name, id := range map[string]ID{
		"a second parent":   commit("parent "+base+"\nparent "+string(hidden)+"\nauthor "+who+"\ncommitter "+who, message),
		"no parent":         hidden,
		"another author":    commit("parent "+base+"\nauthor Maya <maya@example.com> 1700000000 +0000\ncommitter "+who, message),
		"another committer": commit("parent "+base+"\nauthor "+who+"\ncommitter Maya <maya@example.com> 1700000000 +0000", message),
		"no run":            commit("parent "+base+"\nauthor "+who+"\ncommitter "+who, "Work\n"),
		"a person's below":  commit("parent "+string(commit("parent "+base+"\nauthor M <m@e> 1 +0000\ncommitter M <m@e> 1 +0000", "Hi\n"))+"\nauthor "+who+"\ncommitter "+who, message),
	} {
		var wrong *BundleError
		if line, err := sp.store.Line(t.Context(), id); !errors.As(err, &wrong) {
			t.Errorf("%s: %v, %v", name, line, err)
		}
	}
	if line, err := sp.store.Line(t.Context(), sp.store.Base()); err != nil || len(line) != 0 {
		t.Errorf("the base itself: %v, %v", line, err)
	}
}
