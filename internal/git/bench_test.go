package git

import (
	"fmt"
	"os"
	"os/exec"
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

func bigRepo(b *testing.B, count, history int) string {
	b.Helper()
	dir := b.TempDir()
	plain(b, dir, "init", "-q", "-b", "main")
	for i := range count {
		put(b, dir, fmt.Sprintf("d%02d/e%02d/f%05d.txt", i%40, i/40%25, i), fmt.Sprintf("file %d\n%s", i, strings.Repeat("x", 200)))
	}
	plain(b, dir, "-c", "core.fsync=none", "add", "-A")
	plain(b, dir, "-c", "gc.auto=0", "-c", "maintenance.auto=false", "commit", "-q", "-m", "base")
	if history > 0 {
		var stream strings.Builder
		for i := range history {
			fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter A <a@example.com> %d +0000\ndata 2\nx\n", 1_700_000_000+i)
			if i == 0 {
				stream.WriteString("from refs/heads/main^0\n")
			}
		}
		cmd := exec.Command("git", "-C", dir, "fast-import", "--quiet")
		cmd.Stdin = strings.NewReader(stream.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("fast-import: %v: %s", err, out)
		}
	}
	plain(b, dir, "repack", "-adq")
	return dir
}

// way is one way to do a tick's git work: by hand as a user does it, or as the smallest program that does the same
// steps as ours (one status walk, plumbing, a gate directory of its own).
type way struct {
	name string
	dir  string // the work tree
	gate string // a second work tree of the same repository
	took time.Duration
}

func (w *way) tick(b *testing.B) {
	began := time.Now()
	if w.gate == "" {
		for _, args := range [][]string{{"status", "--porcelain"}, {"add", "-A"}, {"commit", "-q", "-m", "x"}, {"diff", "HEAD~1"}} {
			plain(b, w.dir, args...)
		}
	} else {
		plain(b, w.dir, "add", "-A")
		tree := strings.TrimSpace(plain(b, w.dir, "write-tree"))
		commit := strings.TrimSpace(plain(b, w.dir, "commit-tree", "-p", "HEAD", "-m", "x", tree))
		plain(b, w.dir, "diff-tree", "-r", "HEAD", commit)
		plain(b, w.dir, "update-ref", "HEAD", commit)
		plain(b, w.gate, "reset", "-q", "--hard", commit)
		plain(b, w.gate, "status", "--porcelain")
	}
	w.took += time.Since(began)
}

// BenchmarkTick measures one tick without agent, gate and push: snapshot, and the gate's directory
// synced and checked; interleaved with the same edits by hand and by the smallest program. The budget is 1.0
// against by hand. Run: go test -run xxx -bench Tick -benchtime 5x ./internal/git
func BenchmarkTick(b *testing.B) {
	for _, size := range []struct {
		name           string
		count, history int
	}{{"files=10", 10, 0}, {"files=1000", 1000, 0}, {"files=10000", 10_000, 0}, {"files=50000", 50_000, 0}, {"files=1000,commits=5000", 1000, 5000}} {
		b.Run(size.name, func(b *testing.B) {
			checkout := bigRepo(b, size.count, size.history)
			hand := &way{name: "hand", dir: filepath.Join(b.TempDir(), "hand")}
			plumbing := &way{name: "plumbing", dir: filepath.Join(b.TempDir(), "plumbing"), gate: filepath.Join(b.TempDir(), "gate")}
			for _, w := range []*way{hand, plumbing} {
				plain(b, "/", "clone", "-q", "file://"+checkout, w.dir)
			}
			plain(b, plumbing.dir, "worktree", "add", "-q", "--detach", plumbing.gate)
			sp := newSpace(b, checkout, heldOut)
			var ours time.Duration
			parent, n := sp.store.Base(), 0
			for b.Loop() {
				n++
				for _, dir := range []string{sp.agent.Dir(), hand.dir, plumbing.dir} {
					put(b, dir, "d00/e00/f00000.txt", fmt.Sprintf("edit %d\n", n))
					put(b, dir, fmt.Sprintf("d01/new%d.txt", n), "new\n")
				}
				began := time.Now()
				parent = ourTick(b, sp, parent)
				ours += time.Since(began)
				hand.tick(b)
				plumbing.tick(b)
			}
			var memory runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&memory)
			runtime.KeepAlive(sp)
			b.ReportMetric(float64(memory.HeapAlloc)/1e6, "heap-MB")
			b.ReportMetric(float64(ours.Microseconds())/1000/float64(n), "ours-ms/tick")
			b.ReportMetric(float64(hand.took.Microseconds())/1000/float64(n), "hand-ms/tick")
			b.ReportMetric(float64(ours)/float64(hand.took), "ratio-to-hand")
			b.ReportMetric(float64(ours)/float64(plumbing.took), "ratio-to-plumbing")
		})
	}
}

func ourTick(b *testing.B, sp space, parent ID) ID {
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
	return snap.Commit
}

// BenchmarkPrepare measures opening the store and making agent/, gate/ and proof/.
func BenchmarkPrepare(b *testing.B) {
	for _, count := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("files=%d", count), func(b *testing.B) {
			checkout := bigRepo(b, count, 0)
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
