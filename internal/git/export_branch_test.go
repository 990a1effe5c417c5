package git

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// exported is a checkout with a commit of a run's that can be exported into it.
func exported(t *testing.T) (space, string, ID) {
	t.Helper()
	checkout := initRepo(t, sample())
	sp := newSpace(t, checkout, nil)
	put(t, sp.agent.Dir(), "pkg/sum.go", "package pkg\n")
	return sp, checkout, sp.snapshot(t, sp.store.Base()).Commit
}

// INV-20: no branch is ever moved, however it is stored and whatever lies below its name.
func TestExportMovesNoBranch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		make   []string
		exists bool
		says   string
	}{
		{name: "loose", make: []string{"branch proctor/goal-1"}, exists: true},
		{name: "packed", make: []string{"branch proctor/goal-1", "pack-refs --all"}, exists: true},
		{name: "branches below it", make: []string{"branch proctor/goal-1/more"}, exists: true},
		{name: "a branch above it", make: []string{"branch proctor"}, says: "the branch proctor stands in its way"},
		{name: "a packed branch above it", make: []string{"branch proctor", "pack-refs --all"}, says: "the branch proctor stands in its way"},
		{name: "control: free"},
		{name: "control: another beside it", make: []string{"branch proctor/goal-2", "pack-refs --all"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sp, checkout, id := exported(t)
			for _, args := range c.make {
				plain(t, checkout, strings.Fields(args)...)
			}
			before := plain(t, checkout, "for-each-ref")
			err := sp.store.Export(t.Context(), checkout, "proctor/goal-1", id)
			if errors.Is(err, ErrBranchExists) != c.exists || (err == nil) != (!c.exists && c.says == "") || c.says != "" && !strings.Contains(fmt.Sprint(err), c.says) {
				t.Fatalf("Export: %v", err)
			}
			if err == nil {
				before = strings.TrimSpace(before + fmt.Sprintf("%s commit\trefs/heads/proctor/goal-1", id))
			}
			if got, want := lines(plain(t, checkout, "for-each-ref")), lines(before); got != want {
				t.Errorf("the refs are\n%s\nwant\n%s", got, want)
			}
			plain(t, checkout, "fsck", "--strict", "--no-dangling")
			if status := plain(t, checkout, "status", "--porcelain"); status != "" {
				t.Errorf("the checkout has changes: %s", status)
			}
		})
	}
}

// lines sorts, so that lists are compared whatever their order.
func lines(s string) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// Refs in a table are git's alone to write. The commit is there all the same, and the command that names it is told.
func TestExportIntoARefTableKeepsTheCommit(t *testing.T) {
	t.Parallel()
	sp, checkout, id := exported(t)
	plain(t, checkout, "config", "extensions.refstorage", "reftable")
	err := sp.store.Export(t.Context(), checkout, "proctor/goal-1", id)
	if next := fmt.Sprintf("git -C %s branch proctor/goal-1 %s", checkout, id); err == nil || !strings.Contains(err.Error(), next) {
		t.Fatalf("Export: %v, want the command %q", err, next)
	}
	plain(t, checkout, "config", "--unset", "extensions.refstorage") // this git may know no tables
	plain(t, checkout, "branch", "proctor/goal-1", string(id))
	if got := plain(t, checkout, "show", "proctor/goal-1:pkg/sum.go"); got != "package pkg\n" {
		t.Errorf("the commit holds %q", got)
	}
}
