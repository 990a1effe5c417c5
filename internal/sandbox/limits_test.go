//go:build linux

package sandbox_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// TestAForkBombIsContainedAndTold is INV-39. The bomb is finite by the kernel's limit; the watcher ends
// it and says why.
func TestAForkBombIsContainedAndTold(t *testing.T) {
	t.Parallel()
	needRoot(t) // with the harness's own user the bomb would count against everything this user runs
	l := newLab(t, sandbox.Config{})
	c := l.command("sh", "-c", "bomb() { bomb & bomb & wait; sleep 300; }; bomb")
	c.Policy.Limits.Processes = 50
	r, _ := l.run(t, c)
	if r.Exceeded != "processes" || r.TimedOut {
		t.Errorf("INV-39: %+v", r)
	}
	wantNothingOf(t, l)
}

// TestProcessesUnderTheLimitRun is the positive control: as many as allowed are no bomb.
func TestProcessesUnderTheLimitRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	c := l.command("sh", "-c", "for i in $(seq 40); do sleep 0.5 & done; wait; echo done")
	c.Policy.Limits.Processes = 50
	if r, out := l.run(t, c); r.Exceeded != "" || out != "done\n" {
		t.Errorf("%+v, output %q", r, out)
	}
}

func wantNothingOf(t *testing.T, l lab) {
	t.Helper()
	for _, pid := range processesOf(t, l) {
		t.Errorf("process %d is alive", pid)
	}
}

// processesOf are those that have the lab's home in their environment.
func processesOf(t *testing.T, l lab) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && strings.Contains(string(env), "HOME="+l.home+"\x00") {
			pids = append(pids, number(e.Name()))
		}
	}
	return pids
}

func TestTooMuchDiskEndsTheTree(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"many files":                "i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > f$i; done",
		"in TMPDIR":                 "i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > $TMPDIR/f$i; done",
		"a file without name":       "exec 9> gone; rm gone; while :; do head -c 4000000 /dev/zero >&9; done",
		"deep and hidden":           "mkdir -p .a/b/c; cd .a/b/c; i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > f$i; done",
		"written in the background": "(setsid sh -c 'i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > f$i; done' &); sleep 300",
	} {
		t.Run("INV-39 "+name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, sandbox.Config{})
			c := l.command("sh", "-c", line)
			c.Policy.Limits.DiskBytes = 60 << 20
			if r, out := l.run(t, c); r.Exceeded != "disk" {
				t.Errorf("%+v %s", r, out)
			}
			wantNothingOf(t, l)
		})
	}
}

// TestWhatWasThereBeforeIsNoGrowth is the positive control of the disk limit.
func TestWhatWasThereBeforeIsNoGrowth(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	if err := os.WriteFile(l.work+"/old", make([]byte, 8<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := l.box.Own(l.work); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // past the grain of file times; nothing is waited for
	c := l.command("sh", "-c", "cat old > /dev/null; head -c 1000 /dev/zero > new; sleep 0.5")
	c.Policy.Limits.DiskBytes = 4 << 20
	if r, out := l.run(t, c); r.Exceeded != "" || r.ExitCode != 0 {
		t.Errorf("%+v %s", r, out)
	}
}

func TestOneHugeFileIsCutOff(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	c := l.command("sh", "-c", "head -c 10000000000 /dev/zero > huge; echo exit $?; wc -c < huge")
	c.Policy.Limits.FileBytes = 5 << 20
	r, out := l.run(t, c)
	if r.ExitCode != 0 || !strings.Contains(out, "5242880") {
		t.Errorf("INV-39: %+v %s", r, out)
	}
}

func TestTooMuchOutputEndsTheTree(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"lines":           "yes",
		"an endless line": "tr '\\0' x < /dev/zero",
		"on stderr":       "yes >&2",
		"by a descendant": "(setsid yes &); sleep 300",
	} {
		t.Run("INV-39 "+name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, sandbox.Config{})
			var got counter
			c := l.command("sh", "-c", line)
			c.Stdout, c.Stderr, c.Policy.Limits.Output = &got.out, &got.err, 3<<20
			r, _ := l.run(t, c)
			if r.Exceeded != "output" || got.out.n+got.err.n != 3<<20 {
				t.Errorf("%+v with %d bytes", r, got.out.n+got.err.n)
			}
			wantNothingOf(t, l)
		})
	}
}

func TestAGigabyteOfOutputPassesWhenAllowed(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	var got counter
	c := l.command("head", "-c", "1073741824", "/dev/zero")
	c.Stdout, c.Policy.Limits.Output = &got.out, 2<<30
	if r, _ := l.run(t, c); r.ExitCode != 0 || got.out.n != 1<<30 {
		t.Errorf("%+v with %d bytes", r, got.out.n)
	}
}

func TestAFailingWriterDoesNotStopTheTree(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	c := l.command("sh", "-c", "head -c 1000000 /dev/zero; echo ok > done")
	c.Stdout = writerFunc(func([]byte) (int, error) { return 0, os.ErrClosed })
	if r, _ := l.run(t, c); r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(l.work + "/done"); err != nil {
		t.Error(err)
	}
}

func TestOpenFilesAndCoresAreLimited(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	c := l.command("sh", "-c", "ulimit -n; ulimit -Hn; ulimit -c; ulimit -Hc")
	c.Policy.Limits.OpenFiles = 100
	if _, out := l.run(t, c); out != "100\n100\n0\n0\n" {
		t.Errorf("limits %q", out)
	}
}
