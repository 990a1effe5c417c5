//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// trees are ways to outlive the program that was started. Each writes the numbers of the processes that
// should be gone to the file pids, and then a line, so that the test knows it is set up.
func trees() map[string]string {
	const ready = "echo ready; "
	return map[string]string{
		"a background child":               "sleep 300 & echo $! > pids; " + ready,
		"a child that ignores SIGTERM":     "sh -c 'trap \"\" TERM HUP INT; echo $$ > pids; while :; do sleep 1; done' & while [ ! -s pids ]; do :; done; " + ready,
		"a child in a session of its own":  "setsid sh -c 'echo $$ > pids; exec sleep 300' & while [ ! -s pids ]; do :; done; " + ready,
		"a double fork":                    "(setsid sh -c 'sh -c \"echo \\$\\$ > pids; exec sleep 300\" &' &) ; while [ ! -s pids ]; do :; done; " + ready,
		"a daemon that ignores everything": "(setsid sh -c 'trap \"\" TERM HUP INT QUIT USR1; echo $$ > pids; exec >/dev/null 2>&1 </dev/null; while :; do sleep 1; done' &) ; while [ ! -s pids ]; do :; done; " + ready,
		"many children":                    "for i in $(seq 20); do sleep 300 & echo $! >> pids; done; " + ready,
		"a stopped child":                  "sleep 300 & echo $! > pids; kill -STOP $!; " + ready,
	}
}

// TestNoDescendantSurvivesATimeout is INV-23.
func TestNoDescendantSurvivesATimeout(t *testing.T) {
	t.Parallel()
	for name, line := range trees() {
		for _, kind := range []struct {
			name    string
			mode    sandbox.Mode
			pretend sandbox.Capability
		}{
			{"with namespaces", sandbox.Auto, sandbox.Capability{}},
			{"without", sandbox.Auto, weaker},
			{"off", sandbox.Off, sandbox.Capability{}},
		} {
			t.Run("INV-23 "+name+" "+kind.name, func(t *testing.T) {
				t.Parallel()
				l := newLab(t, sandbox.Config{Pretend: kind.pretend})
				c := l.command("sh", "-c", line+"sleep 300")
				c.Policy.Mode = kind.mode
				c.Timeout, c.Grace = 3*time.Second, 100*time.Millisecond // a busy machine needs some for twenty children
				r, out := l.run(t, c)
				if !r.TimedOut || out != "ready\n" {
					t.Errorf("timed out %v, output %q", r.TimedOut, out)
				}
				wantDead(t, l)
			})
		}
	}
}

// TestNoDescendantSurvivesTheProgram is INV-23 for a program that ends by itself: what it left is
// killed and counted.
func TestNoDescendantSurvivesTheProgram(t *testing.T) {
	t.Parallel()
	for name, line := range trees() {
		t.Run("INV-23 "+name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, sandbox.Config{})
			if len(name)%2 == 0 { // both ways, at half the time
				l = newLab(t, sandbox.Config{Pretend: weaker})
			}
			r, out := l.shell(t, line+"exit 4")
			if r.ExitCode != 4 || r.TimedOut || out != "ready\n" {
				t.Errorf("exit %d, timed out %v, output %q", r.ExitCode, r.TimedOut, out)
			}
			if r.Survivors == 0 {
				t.Error("no survivor was told")
			}
			wantDead(t, l)
		})
	}
}

// TestTheTreesDoOutliveAPlainKill is the positive control of INV-23: killing the program's group, as a
// simple runner does, leaves descendants.
func TestTheTreesDoOutliveAPlainKill(t *testing.T) {
	t.Parallel()
	line := trees()["a daemon that ignores everything"]
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	for _, pid := range readPIDs(t, dir) {
		if !alive(pid) {
			t.Errorf("process %d did not outlive a plain kill of its group", pid)
		}
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// wantDead looks for the tree's processes by their environment: the numbers that they wrote are those
// of a process namespace.
func wantDead(t *testing.T, l lab) {
	t.Helper()
	readPIDs(t, l.work)
	wantNothingOf(t, l)
}

func readPIDs(t *testing.T, dir string) []int {
	t.Helper()
	raw, err := os.ReadFile(dir + "/pids")
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, f := range strings.Fields(string(raw)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, pid)
	}
	if len(out) == 0 {
		t.Fatal("the tree wrote no process numbers")
	}
	return out
}

func TestCancellingEndsTheTree(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	c := l.command("sh", "-c", "sleep 300 & echo $! > pids; echo ready; wait")
	c.Stdout = writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	r, err := l.box.Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Cancelled || r.TimedOut || r.Signal != "terminated" {
		t.Errorf("%+v", r)
	}
	wantDead(t, l)
	if _, err := l.box.Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("starting under a cancelled context: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestAPoliteProgramMayCleanUp(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	c := l.command("sh", "-c", "trap 'echo bye; exit 7' TERM; echo ready; while :; do :; done")
	c.Timeout, c.Grace = 500*time.Millisecond, 30*time.Second
	r, out := l.run(t, c)
	if diff := cmp.Diff(sandbox.Result{ExitCode: 7, TimedOut: true}, r, ignoreTimes()); diff != "" || out != "ready\nbye\n" {
		t.Errorf("output %q, result (-want +got):\n%s", out, diff)
	}
}

// A process that waits for its work is ended by no clock before it has it. The control waits under a clock.
func TestTheTimeOfAWaitingProcessBeginsWhenItIsTold(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	c := l.command("sh", "-c", "echo ready; read line; echo got $line; sleep 3600")
	c.Timeout = time.Nanosecond
	in, _ := io.Pipe()
	defer in.Close()
	c.Stdin = in
	if r, out := l.run(t, c); !r.TimedOut || strings.Contains(out, "got") {
		t.Errorf("control: %+v after %q", r, out)
	}

	clock := make(chan time.Duration, 1)
	in, work := io.Pipe()
	defer in.Close()
	var out safeBuffer
	c.Stdin, c.Clock = in, clock
	c.Stdout = writerFunc(func(p []byte) (int, error) {
		n, err := out.Write(p)
		if out.String() == "ready\n" {
			_, _ = io.WriteString(work, "work\n")
		} else {
			clock <- time.Millisecond
		}
		return n, err
	})
	if r, _ := l.run(t, c); !r.TimedOut || out.String() != "ready\ngot work\n" {
		t.Errorf("%+v after %q", r, out.String())
	}
}

func ignoreTimes() cmp.Option {
	return cmpopts.IgnoreFields(sandbox.Result{}, "Duration", "Enforced", "Limits")
}

// TestStandInsOfAgents runs the processes that hang, detach or hold pipes from the corpus.
func TestStandInsOfAgents(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs("../../../shared/corpus/agent-streams/process")
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		t.Skip("needs the corpus of agent streams beside the repository (../shared/corpus): put it there")
	}
	const hour = time.Hour
	for _, c := range []struct {
		script  string
		timeout time.Duration
		want    sandbox.Result
		output  int // at least so many bytes
	}{
		{"P01-hang-after-result.sh", time.Second, sandbox.Result{ExitCode: -1, Signal: "terminated", TimedOut: true}, 100},
		{"P02-grandchild-holds-stdout.sh", hour, sandbox.Result{Survivors: 1}, 100},
		{"P03-ignores-term.sh", time.Second, sandbox.Result{ExitCode: -1, Signal: "killed", TimedOut: true}, 10},
		{"P05-waits-for-stdin.sh", hour, sandbox.Result{}, 100},
		{"P06-stderr-flood.sh", hour, sandbox.Result{}, 200 << 20},
		{"P07-no-newline-then-idle.sh", time.Second, sandbox.Result{ExitCode: -1, Signal: "terminated", TimedOut: true}, 19},
		{"P09-dies-by-signal.sh", hour, sandbox.Result{ExitCode: -1, Signal: "segmentation fault"}, 0},
	} {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, sandbox.Config{})
			script, err := os.ReadFile(dir + "/" + c.script)
			if err != nil {
				t.Fatal(err)
			}
			var got counter
			cmd := l.command("sh", "-c", string(script))
			cmd.Timeout, cmd.Grace, cmd.Stdout, cmd.Stderr = c.timeout, 300*time.Millisecond, &got.out, &got.err
			r, _ := l.run(t, cmd)
			if diff := cmp.Diff(c.want, r, ignoreTimes()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := got.out.n + got.err.n; n < c.output {
				t.Errorf("%d bytes of output, want at least %d", n, c.output)
			}
		})
	}
}

// counter counts each stream, which is written by one goroutine.
type counter struct{ out, err count }

type count struct{ n int }

func (c *count) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

func TestALargePromptGoesThroughStdin(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	c := l.command("wc", "-c")
	c.Stdin = strings.NewReader(strings.Repeat("x", 200_000))
	if r, out := l.run(t, c); r.ExitCode != 0 || strings.TrimSpace(out) != "200000" {
		t.Errorf("exit %d, output %q", r.ExitCode, out)
	}
}

func TestAnInputThatNeverEndsDoesNotHold(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	in, out, err := os.Pipe() // never written, never closed by the test before Run returns
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), out.Close() })
	c := l.command("true")
	c.Stdin = in
	if r, _ := l.run(t, c); r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
}

// TestTreesDoNotMixUp runs several at once: each sees only its own survivors.
func TestTreesDoNotMixUp(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	for _, n := range []int{0, 1, 2, 3, 4} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			r, _ := l.shell(t, "for i in $(seq "+strconv.Itoa(n)+"); do setsid sleep 300 & done; sleep 0.3; exit 0")
			if r.Survivors != n {
				t.Errorf("%d survivors, want %d", r.Survivors, n)
			}
		})
	}
}

func TestOneWriterForBothStreamsKeepsTheirOrder(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	var want strings.Builder
	for i := range 200 {
		want.WriteString(strconv.Itoa(i) + "\nE" + strconv.Itoa(i) + "\n")
	}
	_, out := l.shell(t, "for i in $(seq 0 199); do echo $i; echo E$i >&2; done")
	if diff := cmp.Diff(want.String(), out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
