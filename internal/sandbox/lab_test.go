//go:build linux

package sandbox_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// lab is a machine in small: what a job gives an agent (work, home, tmp), and what the harness keeps
// for itself. The harness's places are open to every user by file permissions, so that a test which
// is refused there was refused by confinement.
type lab struct {
	root, work, home, tmp, harness string
	box                            *sandbox.Box
}

func newLab(t testing.TB, c sandbox.Config) lab {
	t.Helper()
	root, err := os.MkdirTemp("", "lab-") // short, because names of sockets are
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	l := lab{root: root, work: root + "/work", home: root + "/home", tmp: root + "/tmp", harness: root + "/harness"}
	for _, d := range []string{l.work, l.home, l.tmp, l.harness} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(l.harness, 0o777); err != nil {
		t.Fatal(err)
	}
	// It is a private directory; the harness's own would be passable too.
	for d := root; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, l.harness+"/secret", "harness secret\n")
	if l.box, err = sandbox.New(c); err != nil {
		t.Fatal(err)
	}
	return l
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
}

// weaker is a machine without namespaces, such as a container with its engine's default profile.
var weaker = sandbox.Capability{Without: sandbox.AllNamespaces()}

// command is argv in the lab's own directories.
func (l lab) command(argv ...string) sandbox.Command {
	return sandbox.Command{
		Argv: argv, Env: sandbox.BaseEnv(l.home, l.tmp), Dir: l.work,
		Timeout: 60 * time.Second, Grace: time.Second,
		Policy: sandbox.Policy{ReadWrite: []string{l.work, l.home, l.tmp}, ReadOnly: []string{filepath.Dir(binary())}},
	}
}

// run gives what it printed on both streams.
func (l lab) run(t *testing.T, c sandbox.Command) (sandbox.Result, string) {
	t.Helper()
	var out safeBuffer
	if c.Stdout == nil {
		c.Stdout = &out
	}
	if c.Stderr == nil {
		c.Stderr = &out
	}
	r, err := l.box.Run(context.Background(), c)
	if err != nil {
		t.Fatalf("run %q: %v", c.Argv, err)
	}
	return r, out.String()
}

func (l lab) shell(t *testing.T, line string) (sandbox.Result, string) {
	t.Helper()
	return l.run(t, l.command("sh", "-c", line))
}

// attack runs one attempt of the hostile program and says whether it came through.
func (l lab) attack(t *testing.T, mode sandbox.Mode, ports []uint16, args ...string) (bool, string) {
	t.Helper()
	c := l.command(append([]string{binary(), hostileArg}, args...)...)
	c.Policy.Mode, c.Policy.ConnectPorts = mode, ports
	r, out := l.run(t, c)
	switch {
	case r.ExitCode == 0:
		return true, out
	case r.ExitCode == refused:
		return false, out
	}
	t.Fatalf("attack %q ended with exit %d %s: %s", args, r.ExitCode, r.Signal, out)
	return false, ""
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// binary is a copy of the test binary where every user may execute it.
var binary = sync.OnceValue(func() string {
	if self := exeDir() + "/hostile"; strings.Contains(self, "sandbox-test-bin-") {
		return self // we are the copy
	}
	dir, err := os.MkdirTemp("", "sandbox-test-bin-")
	if err != nil {
		panic(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		panic(err)
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		panic(err)
	}
	defer func() { _ = from.Close() }()
	path := dir + "/hostile"
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		panic(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		panic(err)
	}
	if err := to.Close(); err != nil {
		panic(err)
	}
	return path
})

func cleanBinary() { _ = os.RemoveAll(filepath.Dir(binary())) }

// listen accepts on loopback and answers one line.
func listen(t *testing.T) (addr string, port uint16) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go answer(l)
	return l.Addr().String(), uint16(l.Addr().(*net.TCPAddr).Port)
}

func answer(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Write([]byte("hello\n"))
		_ = c.Close()
	}
}

// listenUnix makes a socket with a name, as a container engine has one.
func listenUnix(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if path[0] != '@' {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	go answer(l)
	return path
}

// victim is a process outside the tree that runs as the untrusted user, so that only confinement
// stands between them.
func victim(t *testing.T, l lab, env ...string) int {
	t.Helper()
	cmd := exec.Command("sleep", "300")
	cmd.Env = env
	if user, other := l.box.User(); other {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user.UID), Gid: uint32(user.GID)}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// alive says whether a process exists and is no zombie.
func alive(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(raw, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}

// needRoot skips what cannot be shown without privileges.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give the untrusted process a user of its own: sudo -E go test ./internal/sandbox/")
	}
}

func ownerOf(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}
