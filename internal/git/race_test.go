package git

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// INV-13: a process that goes on writing after the snapshot has no effect on the commit or the gate.
func TestALateWriterChangesNeitherCommitNorGate(t *testing.T) {
	t.Parallel()
	sp := newSpace(t, initRepo(t, sample()), heldOut)
	put(t, sp.agent.Dir(), "pkg/sum.go", "candidate\n")
	snap := sp.snapshot(t, "")
	put(t, sp.agent.Dir(), "pkg/sum.go", "late\n")
	put(t, sp.agent.Dir(), "late.txt", "late\n")
	if err := sp.gate.Sync(t.Context(), snap.Commit); err != nil {
		t.Fatal(err)
	}
	want := with(without(sample(), "tests/acceptance/sum_test.txt"), files{"pkg/sum.go": "candidate\n"})
	if diff := cmp.Diff(want, contents(t, sp.gate.Dir())); diff != "" {
		t.Errorf("gate/ (-want +got):\n%s", diff)
	}
	// Control: the writer did write, and the next snapshot sees it.
	if diff := cmp.Diff([]string{"A late.txt", "M pkg/sum.go"}, paths(sp.snapshot(t, snap.Commit).Changes)); diff != "" {
		t.Errorf("next snapshot (-want +got):\n%s", diff)
	}
}

// INV-13: a directory that is swapped for a symlink and back, over and over, while the harness looks
// and repairs, leads it neither to read nor to write outside.
func TestASwappedSymlinkLeadsNowhere(t *testing.T) {
	t.Parallel()
	sp := newSpace(t, initRepo(t, sample()), nil)
	const secret = "a file outside the agent's reach\n"
	outside := t.TempDir()
	put(t, outside, "sum.go", secret)
	dir := sp.agent.Dir()
	put(t, dir, "trap", "->"+outside)

	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			// Errors are the race itself: the harness repairs at the same time.
			_ = os.Rename(dir+"/pkg", dir+"/aside")
			_ = os.Symlink(outside, dir+"/pkg")
			_ = os.Remove(dir + "/pkg")
			_ = os.Rename(dir+"/aside", dir+"/pkg")
		}
	})
	for range 60 {
		snap, err := sp.agent.Snapshot(t.Context(), SnapshotOptions{})
		if err != nil {
			t.Error(err)
			break
		}
		for _, c := range snap.Changes {
			if !c.New.Mode.IsFile() {
				continue
			}
			if text, err := sp.store.ReadBlob(t.Context(), c.New.ID, 0); err != nil || strings.Contains(string(text), secret) {
				t.Errorf("%s holds %q, %v", c.Path, text, err)
			}
		}
		// A repair may lose the race, and says so; it must not leave the directory.
		_ = sp.agent.Restore(t.Context(), sp.store.Base())
	}
	close(done)
	wait.Wait()
	if diff := cmp.Diff(files{"sum.go": secret}, contents(t, outside)); diff != "" {
		t.Errorf("outside (-want +got):\n%s", diff)
	}
	// Control: a path opened by name goes through such a link.
	if err := removeTree(filepath.Join(dir, "pkg")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "pkg", "->"+outside)
	if text, err := os.ReadFile(dir + "/pkg/sum.go"); err != nil || string(text) != secret {
		t.Errorf("control: %q, %v", text, err)
	}
}
