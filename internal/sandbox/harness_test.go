//go:build linux

package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// job is what a harness in a process of its own is asked to do.
type job struct {
	Root    string
	Mode    sandbox.Mode
	Argv    []string
	Harden  bool
	Scrub   []string
	Pretend sandbox.Capability
	Ports   []uint16
	Stay    bool // with a long time limit
}

type outcome struct {
	Result sandbox.Result
	Output string
	Err    string
	Values map[string]string // what Scrub gave
}

// harness is the part of the test binary that plays a whole harness: job on stdin, outcome on stdout.
func harness() error {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		return err
	}
	var o outcome
	var err error
	if j.Scrub != nil {
		if o.Values, err = sandbox.Scrub(j.Scrub...); err != nil {
			return err
		}
	}
	if j.Harden {
		if err := sandbox.HardenSelf(); err != nil {
			return err
		}
	}
	box, err := sandbox.New(sandbox.Config{Mode: j.Mode, Pretend: j.Pretend})
	if err != nil {
		return err
	}
	l := lab{work: j.Root + "/work", home: j.Root + "/home", tmp: j.Root + "/tmp"}
	c := l.command(j.Argv...)
	c.Policy.ReadOnly, c.Policy.ConnectPorts = []string{exeDir()}, j.Ports
	var out safeBuffer
	c.Stdout, c.Stderr = &out, &out
	if j.Stay {
		c.Timeout = time.Hour
	}
	signal.Ignore(unix.SIGCONT)
	o.Result, err = box.Run(context.Background(), c)
	if err != nil {
		o.Err = err.Error()
	}
	o.Output = out.String()
	return json.NewEncoder(os.Stdout).Encode(o)
}

func exeDir() string {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		panic(err)
	}
	return filepath.Dir(exe)
}

// asUser starts a harness as an ordinary user, whose untrusted processes have the same user. uid 0 is
// root, as the tests themselves.
func asUser(t *testing.T, uid int, j job, env ...string) *exec.Cmd {
	t.Helper()
	in, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(), hostileArg, "harness")
	cmd.Env, cmd.Stdin = env, bytes.NewReader(in)
	if uid != os.Geteuid() {
		needRoot(t)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	return cmd
}

func runAs(t *testing.T, uid int, j job, env ...string) outcome {
	t.Helper()
	var errs bytes.Buffer
	cmd := asUser(t, uid, j, env...)
	cmd.Stderr = &errs
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("harness: %v %s%s", err, raw, errs.Bytes())
	}
	var o outcome
	if err := json.Unmarshal(raw, &o); err != nil {
		t.Fatalf("harness said %q: %v", raw, err)
	}
	return o
}

const ordinary = 4321 // a user id that has nothing on this machine

// ownedLab belongs to an ordinary user whole.
func ownedLab(t *testing.T, uid int) lab {
	t.Helper()
	l := newLab(t, sandbox.Config{})
	err := filepath.Walk(l.root, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestConfinementWithoutPrivileges is INV-38 on a runner where the harness is no root: the untrusted
// process has the harness's own user, and everything that file permissions would permit is refused.
func TestConfinementWithoutPrivileges(t *testing.T) {
	t.Parallel()
	needRoot(t) // to start the harness as somebody else
	tcp, _ := listen(t)
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	go echoUDP(udp)
	for _, c := range []struct {
		name    string
		control bool // harness not hardened, confinement off: must come through
		args    func(*testing.T, lab) []string
	}{
		{"write a harness file", true, at("write", "harness/secret")},
		{"read a harness file", true, at("read", "harness/secret")},
		{"truncate a harness file", true, at("truncate", "harness/secret")},
		{"connect to another TCP port", true, fixed("dial", "tcp4", tcp)},
		{"hear from a UDP server outside", true, fixed("ask", udp.LocalAddr().String())},
		{"signal the harness", true, fixed("signal-harness")},
		{"signal the supervisor", true, fixed("signal-supervisor")},
		{"read the harness's environment", true, fixed("read-harness", "environ")},
		{"read the harness's memory", true, fixed("read-harness", "mem")},
		{"list the harness's open files", true, fixed("list-harness", "fd")},
		{"change the harness's limits", true, fixed("limit-harness")},
		{"trace the harness", true, fixed("ptrace-harness")},
		// Closed by the supervisor itself, whatever the mode.
		{"read the supervisor's environment", false, fixed("read-supervisor", "environ")},
		{"connect to a session bus or container engine of the same user", true, func(t *testing.T, l lab) []string {
			return []string{"dial", "unix", listenUnix(t, l.harness+"/bus", 0o777)}
		}},
		{"open a raw socket", false, fixed("socket", "2", "3", "1")},
	} {
		t.Run("INV-38 "+c.name, func(t *testing.T) {
			t.Parallel()
			for _, pretend := range []sandbox.Capability{{}, weaker} {
				l := ownedLab(t, ordinary)
				argv := append([]string{binary(), hostileArg}, c.args(t, l)...)
				o := runAs(t, ordinary, job{Root: l.root, Mode: sandbox.Strict, Argv: argv, Harden: true, Pretend: pretend})
				if o.Result.ExitCode != refused {
					t.Errorf("inside (namespaces: %v): exit %d, want %d; %s %s", pretend != weaker, o.Result.ExitCode, refused, o.Output, o.Err)
				}
			}
			if !c.control {
				return
			}
			l := ownedLab(t, ordinary)
			argv := append([]string{binary(), hostileArg}, c.args(t, l)...)
			o := runAs(t, ordinary, job{Root: l.root, Mode: sandbox.Off, Argv: argv})
			if o.Result.ExitCode != 0 {
				t.Errorf("positive control: exit %d with confinement off; %s %s", o.Result.ExitCode, o.Output, o.Err)
			}
		})
	}
}

// ancestor gives the pid of the supervisor (1) or the harness (2) as the hostile program finds it. In a
// process namespace there is no harness; the number that stands for nothing is refused everywhere.
func ancestor(n int) string {
	pid := os.Getppid()
	for range n - 1 {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			panic(err)
		}
		_, rest, _ := strings.Cut(string(raw), ") ")
		if pid = number(strings.Fields(rest)[1]); pid == 0 {
			pid = 1 << 22 // the kernel gives no higher one
		}
	}
	return strconv.Itoa(pid)
}

func keeperAttempts() map[string]func([]string) error {
	return map[string]func([]string) error{
		"harness":           func([]string) error { return harness() },
		"main-thread":       func(a []string) error { return mainThread(a[0] == "as supervisor") },
		"signal-supervisor": func([]string) error { return unix.Kill(number(ancestor(1)), unix.SIGCONT) },
		"signal-harness":    func([]string) error { return unix.Kill(number(ancestor(2)), unix.SIGCONT) },
		"limit-harness": func([]string) error {
			return unix.Prlimit(number(ancestor(2)), unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
		},
		"read-supervisor": func(a []string) error { return peek("/proc/" + ancestor(1) + "/" + a[0]) },
		"read-harness":    func(a []string) error { return peek("/proc/" + ancestor(2) + "/" + a[0]) },
		"list-harness":    func(a []string) error { _, err := os.ReadDir("/proc/" + ancestor(2) + "/" + a[0]); return err },
		"ptrace-harness":  func([]string) error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(number(ancestor(2)))) },
	}
}

// mainThread says whether work that is handed to a thread of its own can land on the main one.
func mainThread(asSupervisor bool) error {
	for range 50 {
		on := make(chan bool)
		work := func() { on <- unix.Gettid() == unix.Getpid() }
		if asSupervisor {
			sandbox.OffMainThread(work)
		} else {
			go func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				work()
			}()
		}
		if <-on {
			return nil
		}
	}
	return errors.New("never in 50 times")
}

// TestTheMainThreadIsNeverConfined is INV-38: the kernel takes the main thread for the process, and one that
// shares the program's Landlock domain may be signalled by it. The control is a goroutine's own thread.
func TestTheMainThreadIsNeverConfined(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]int{"as supervisor": refused, "as any goroutine": 0} {
		cmd := exec.Command(binary(), hostileArg, "main-thread", how)
		cmd.Env = []string{"GOMAXPROCS=1"} // the main thread takes up whatever the main goroutine leaves
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: exit %d, want %d; %s", how, got, want, out)
		}
	}
}

// peek opens and, where there is text, shows it.
func peek(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	n, err := f.Read(buf)
	if strings.HasSuffix(path, "/mem") {
		return nil // opening it is the right that counts
	}
	fmt.Printf("%s", buf[:n])
	return err
}

// TestKillingTheHarnessTakesTheTreeDown is INV-11 and INV-23: nobody is left to give orders.
func TestKillingTheHarnessTakesTheTreeDown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		victim  string
		pretend sandbox.Capability
	}{{"harness", sandbox.Capability{}}, {"supervisor", sandbox.Capability{}}, {"harness", weaker}, {"supervisor", weaker}} {
		victim := c.victim
		t.Run(fmt.Sprintf("%s, namespaces %v", victim, c.pretend != weaker), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, sandbox.Config{})
			line := "(setsid sh -c 'trap \"\" TERM HUP; echo $$ > pids; while :; do sleep 1; done' &); sleep 300 & echo $! > more; while [ ! -s pids ]; do :; done; echo $$ > ready.new; mv ready.new ready; sleep 300"
			cmd := asUser(t, os.Geteuid(), job{Root: l.root, Argv: []string{"sh", "-c", line}, Stay: true, Pretend: c.pretend})
			var out, errs safeBuffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			awaitPID(t, l.work+"/ready")
			supervisor := supervisorOf(t, cmd.Process.Pid)
			pids := processesOf(t, l)
			if len(pids) == 0 && noProcesses(t) {
				t.Skip("needs to read the environment of other users' processes: run the tests outside a container")
			}
			if len(pids) < 4 {
				t.Errorf("%d processes before, want the program, its child, and two in a session of their own", len(pids))
			}
			if victim == "harness" {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			} else {
				_ = syscall.Kill(supervisor, syscall.SIGKILL)
				if err := cmd.Wait(); err != nil {
					t.Errorf("harness: %v %s", err, errs.String())
				}
				if !strings.Contains(out.String(), "the supervisor was ended from outside") {
					t.Errorf("the harness said %s", out.String())
				}
			}
			for _, pid := range append(pids, supervisor) {
				eventually(t, fmt.Sprintf("process %d is dead", pid), func() bool { return !alive(pid) })
			}
		})
	}
}

// supervisorOf is the child of a harness.
func supervisorOf(t *testing.T, harness int) int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		raw, err := os.ReadFile(path)
		_, rest, ok := strings.Cut(string(raw), ") ")
		if err == nil && ok && strings.Fields(rest)[1] == strconv.Itoa(harness) {
			return number(strings.Split(path, "/")[2])
		}
	}
	t.Fatalf("harness %d has no child", harness)
	return 0
}

// awaitPID waits until a file holds a process number.
func awaitPID(t *testing.T, path string) int {
	t.Helper()
	var pid int
	eventually(t, path+" is written", func() bool {
		raw, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(raw)))
		return err == nil
	})
	return pid
}

// eventually polls; the limit is generous because it only bounds a failure.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("it never came that %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestCanariesAreNotFound is INV-33 as far as processes go: secrets that the harness was started with
// are in no environment, argument, file or memory that an untrusted process can open.
func TestCanariesAreNotFound(t *testing.T) {
	t.Parallel()
	needRoot(t)
	canaries := map[string]string{}
	var env, names []string
	for _, n := range []string{"FORGE_TOKEN", "MODEL_KEY", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "APP_KEY"} {
		canaries[n] = "canary-" + strings.ToLower(n) + "-7f3a"
		env, names = append(env, n+"="+canaries[n]), append(names, n)
	}
	for _, uid := range []int{0, ordinary} {
		t.Run(fmt.Sprintf("INV-33 harness of user %d", uid), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, sandbox.Config{})
			if uid != 0 {
				l = ownedLab(t, uid)
			}
			argv := []string{binary(), hostileArg, "search", "canary-", "-7f3a", l.harness}
			write(t, l.harness+"/token", canaries["FORGE_TOKEN"])
			o := runAs(t, uid, job{Root: l.root, Mode: sandbox.Strict, Argv: argv, Harden: true, Scrub: names}, env...)
			if o.Result.ExitCode != refused {
				t.Errorf("found: %s %s (exit %d)", o.Output, o.Err, o.Result.ExitCode)
			}
			for n, want := range canaries {
				if o.Values[n] != want {
					t.Errorf("Scrub gave %q for %s", o.Values[n], n)
				}
			}
			// Without hardening, scrubbing and confinement the same search finds the environment and the file.
			o = runAs(t, uid, job{Root: l.root, Mode: sandbox.Off, Argv: argv}, env...)
			if o.Result.ExitCode != 0 || !strings.Contains(o.Output, "/environ") || !strings.Contains(o.Output, "/token") {
				t.Errorf("positive control: exit %d, found %q %s", o.Result.ExitCode, o.Output, o.Err)
			}
		})
	}
}

// TestScrubAlone shows that scrubbing holds without hardening: a process that may read the harness's
// initial environment finds other variables and not the scrubbed one.
func TestScrubAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	j := job{Root: l.root, Mode: sandbox.Off, Argv: []string{binary(), hostileArg, "read-harness", "environ"}, Scrub: []string{"TOKEN", "ABSENT"}}
	o := runAs(t, os.Geteuid(), j, "FIRST=1", "TOKEN=canary", "TOKEN_URL=kept", "LAST=2")
	got := strings.ReplaceAll(o.Output, "\x00", " ")
	if strings.Contains(got, "canary") || !strings.Contains(got, "TOKEN_URL=kept") || !strings.Contains(got, "LAST=2") {
		t.Errorf("INV-33: environment %q %s", got, o.Err)
	}
	if len(o.Values) != 1 || o.Values["TOKEN"] != "canary" {
		t.Errorf("values %v", o.Values)
	}
	j.Scrub = nil
	if o := runAs(t, os.Geteuid(), j, "TOKEN=canary"); !strings.Contains(o.Output, "canary") {
		t.Errorf("positive control: environment %q", o.Output)
	}
}

// search looks wherever a process may look for a text that starts and ends so. It prints places, and is
// refused when it finds none.
func search(a []string) error {
	head, tail, dir := []byte(a[0]), []byte(a[1]), a[2]
	found := 0
	look := func(path string) {
		raw, err := readSome(path)
		if err != nil {
			return
		}
		if i := bytes.Index(raw, head); i >= 0 && bytes.Contains(raw[i:min(len(raw), i+200)], tail) {
			found++
			fmt.Println(path)
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil || e.Name() == strconv.Itoa(os.Getpid()) {
			continue
		}
		look("/proc/" + e.Name() + "/environ")
		if fds, err := os.ReadDir("/proc/" + e.Name() + "/fd"); err == nil {
			for _, fd := range fds {
				path := "/proc/" + e.Name() + "/fd/" + fd.Name()
				if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
					look(path)
				}
			}
		}
	}
	for _, kv := range os.Environ() {
		if strings.Contains(kv, a[0]) {
			found++
			fmt.Println("own environment")
		}
	}
	_ = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			look(path)
		}
		return nil
	})
	if found == 0 {
		return fmt.Errorf("nothing found")
	}
	return nil
}

func readSome(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	buf := make([]byte, 1<<20)
	n, err := f.Read(buf)
	if n > 0 {
		err = nil
	}
	return buf[:n], err
}
