package app

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/demo"
)

// binary builds the command line as it is shipped.
func binary(b *testing.B) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "proctor")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "../../cmd/proctor")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return file
}

func bench(b *testing.B, dir, program string, args ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return time.Since(began)
}

// BenchmarkStart measures the program's start to its first own line (budget 15 ms), beside a program that does nothing.
func BenchmarkStart(b *testing.B) {
	file := binary(b)
	var ours, bare time.Duration
	n := 0
	for b.Loop() {
		n++
		ours += bench(b, "/", file, "version")
		bare += bench(b, "/", "true")
	}
	b.ReportMetric(float64(ours.Microseconds())/1000/float64(n), "ours-ms")
	b.ReportMetric(float64(bare.Microseconds())/1000/float64(n), "true-ms")
}

// byHand is a one-tick run with bare tools: the same clones, commands, commit and checkouts, one after the other, without
// confinement, policy, record or report.
const byHand = `set -e
git clone -q --shared . "$1/agent"
rm -r "$1/agent/tests/held-out"
sh tests/run.sh >/dev/null
sh tests/held-out/total.sh >/dev/null || true
cp "$2" "$1/agent/bin/total"
cd "$1/agent"
git status --porcelain >/dev/null
git add bin
git -c user.name=a -c user.email=a@b commit -q -m x
git diff HEAD~1 >/dev/null
git worktree add -q --detach "$1/gate" HEAD
(cd "$1/gate" && sh tests/run.sh >/dev/null)
git clone -q --shared . "$1/proof"
(cd "$1/proof" && sh tests/run.sh >/dev/null && sh tests/held-out/total.sh >/dev/null)
rm -rf "$1/proof" "$1/gate"
`

// BenchmarkOneTickToDone measures a whole local run that is done after one tick, proof included, beside the same steps
// by hand; both interleaved.
func BenchmarkOneTickToDone(b *testing.B) {
	file := binary(b)
	repo, fixed := b.TempDir(), filepath.Join(b.TempDir(), "total")
	if err := demo.Write(repo, demo.Script, "", demo.Scenario{Name: demo.HeldOut}); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(fixed, []byte(demo.Fixed()), 0o755); err != nil {
		b.Fatal(err)
	}
	plan := fmt.Sprintf("ticks:\n  - - write: {path: bin/total, mode: \"0755\", content: %q}\n", demo.Fixed())
	if err := os.WriteFile(filepath.Join(repo, ".github/demo-agent.yml"), []byte(plan), 0o644); err != nil {
		b.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "base"}} {
		bench(b, repo, "git", args...)
	}
	var ours, hand time.Duration
	n := 0
	for b.Loop() {
		n++
		ours += bench(b, repo, file, "run", "--goal", fmt.Sprint("Totals are a cent short ", n), "--report", filepath.Join(b.TempDir(), fmt.Sprint("report", n)))
		dir := filepath.Join(b.TempDir(), fmt.Sprint("hand", n))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		hand += bench(b, repo, "sh", "-c", byHand, "sh", dir, fixed)
	}
	b.ReportMetric(float64(ours.Microseconds())/1000/float64(n), "ours-ms")
	b.ReportMetric(float64(hand.Microseconds())/1000/float64(n), "hand-ms")
	b.ReportMetric(float64(ours)/float64(hand), "ratio-to-hand")
}
