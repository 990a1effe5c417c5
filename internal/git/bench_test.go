package git

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A tick takes one git process, the push; the snapshot, the gate's two looks and the differences take
// none (DESIGN §11 allows three).
func TestATickTakesAtMostThreeGitProcesses(t *testing.T) {
	t.Parallel()
	checkout := initRepo(t, sample())
	f := newForge(t, checkout)
	sp := newSpace(t, checkout, heldOut)
	parent, state := sp.store.Base(), ID("")
	for tick := 1; tick <= 3; tick++ {
		put(t, sp.agent.Dir(), "pkg/sum.go", fmt.Sprintf("tick %d\n", tick))
		put(t, sp.agent.Dir(), fmt.Sprintf("new/%d", tick), "x\n")
		before := sp.git.Started()
		snap := sp.snapshot(t, parent)
		if err := sp.gate.Sync(t.Context(), snap.Commit); err != nil {
			t.Fatal(err)
		}
		if _, err := sp.gate.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range snap.Changes {
			if c.New.Mode == 0 {
				continue
			}
			if _, err := sp.store.ReadBlob(t.Context(), c.New.ID, 0); err != nil {
				t.Fatal(err)
			}
		}
		id, err := sp.store.SaveState(t.Context(), f.remote(), stateRef, snap.Commit, []byte("{}"), state)
		if err != nil {
			t.Fatal(err)
		}
		if n := sp.git.Started() - before; n > 1 {
			t.Errorf("tick %d started %d git processes", tick, n)
		}
		parent, state = snap.Commit, id
	}
}

func bigRepo(b *testing.B, count int) string {
	b.Helper()
	dir := b.TempDir()
	plain(b, dir, "init", "-q", "-b", "main")
	for i := range count {
		put(b, dir, fmt.Sprintf("d%02d/e%02d/f%05d.txt", i%40, i/40%25, i), fmt.Sprintf("file %d\n%s", i, strings.Repeat("x", 200)))
	}
	plain(b, dir, "-c", "core.fsync=none", "add", "-A")
	plain(b, dir, "-c", "gc.auto=0", "-c", "maintenance.auto=false", "commit", "-q", "-m", "base")
	plain(b, dir, "repack", "-adq")
	return dir
}

// BenchmarkTick measures one tick without agent, gate and push: snapshot, and the gate's directory
// synced and checked. By hand is "status; add; commit; diff" in a copy of the same repository, interleaved.
// It reports the ratio; the budget is 1.0. Run: go test -run xxx -bench Tick -benchtime 5x ./internal/git
func BenchmarkTick(b *testing.B) {
	for _, count := range []int{10, 1000, 10_000, 50_000} {
		b.Run(fmt.Sprintf("files=%d", count), func(b *testing.B) {
			checkout := bigRepo(b, count)
			hand := filepath.Join(b.TempDir(), "hand")
			plain(b, "/", "clone", "-q", "file://"+checkout, hand)
			sp := newSpace(b, checkout, heldOut)
			edit := func(dir string, n int) {
				put(b, dir, "d00/e00/f00000.txt", fmt.Sprintf("edit %d\n", n))
				put(b, dir, fmt.Sprintf("d01/new%d.txt", n), "new\n")
			}
			var ours, theirs time.Duration
			parent := sp.store.Base()
			n := 0
			for b.Loop() {
				n++
				edit(sp.agent.Dir(), n)
				edit(hand, n)
				began := time.Now()
				snap, err := sp.agent.Snapshot(b.Context(), SnapshotOptions{Parent: parent})
				if err != nil {
					b.Fatal(err)
				}
				if err := sp.gate.Sync(b.Context(), snap.Commit); err != nil {
					b.Fatal(err)
				}
				if _, err := sp.gate.Check(b.Context()); err != nil {
					b.Fatal(err)
				}
				parent = snap.Commit
				middle := time.Now()
				for _, args := range [][]string{{"status", "--porcelain"}, {"add", "-A"}, {"commit", "-q", "-m", "x"}, {"diff", "HEAD~1"}} {
					plain(b, hand, args...)
				}
				ours += middle.Sub(began)
				theirs += time.Since(middle)
			}
			var memory runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&memory)
			runtime.KeepAlive(sp)
			b.ReportMetric(float64(memory.HeapAlloc)/1e6, "heap-MB")
			b.ReportMetric(float64(ours.Milliseconds())/float64(n), "ours-ms/tick")
			b.ReportMetric(float64(theirs.Milliseconds())/float64(n), "hand-ms/tick")
			b.ReportMetric(float64(ours)/float64(theirs), "ratio")
		})
	}
}

// BenchmarkPrepare measures opening the store and making agent/, gate/ and proof/.
func BenchmarkPrepare(b *testing.B) {
	for _, count := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("files=%d", count), func(b *testing.B) {
			checkout := bigRepo(b, count)
			for b.Loop() {
				dir, err := os.MkdirTemp(b.TempDir(), "run")
				if err != nil {
					b.Fatal(err)
				}
				g := newGit(b)
				s, err := g.OpenStore(b.Context(), StoreOptions{Checkout: checkout, Dir: dir + "/store"})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.NewAgent(b.Context(), dir+"/agent", heldOut); err != nil {
					b.Fatal(err)
				}
				if _, err := s.NewGate(b.Context(), dir+"/gate", heldOut); err != nil {
					b.Fatal(err)
				}
				if _, err := s.NewProof(b.Context(), dir+"/proof", s.Base()); err != nil {
					b.Fatal(err)
				}
				s.Close()
				b.ReportMetric(float64(g.Started()), "processes")
			}
		})
	}
}
