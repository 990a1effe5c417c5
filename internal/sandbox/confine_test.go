//go:build linux

package sandbox_test

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// refusedByContainer says that a container's own profile refuses an attempt, so that its control cannot come through
// there: the same row has its control where the tests run outside. e2e/container sets the variable.
func refusedByContainer(attempt string) bool {
	return os.Getenv("PROCTOR_TEST_CONTAINER") != "" && slices.Contains([]string{
		"handle page faults", "make an io_uring", "make a namespace", "make a user namespace", "mount", "use the kernel's keys",
		"read the memory of a foreign process of the same user", "trace a foreign process of the same user",
		"read the environment of a foreign process of the same user", "read the harness's memory map", "read the harness's environment",
	}, attempt)
}

// TestConfinementTable is INV-38: each attempt fails inside, with namespaces and without, and comes
// through with confinement off as the positive control.
func TestConfinementTable(t *testing.T) {
	t.Parallel()
	needRoot(t)
	tcp, _ := listen(t)
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	go echoUDP(udp)
	const highHalf = 1 << 32
	mptcp := strconv.Itoa(unix.IPPROTO_MPTCP)
	inet, stream, dgram, raw := strconv.Itoa(unix.AF_INET), strconv.Itoa(unix.SOCK_STREAM), strconv.Itoa(unix.SOCK_DGRAM), strconv.Itoa(unix.SOCK_RAW)

	// These are harmless where the network and the message objects go with the tree.
	shared := map[string]bool{}
	harmless := func(name string) string { shared[name] = true; return name }
	cases := []struct {
		name string
		args func(t *testing.T, l lab) []string
	}{
		{"write a harness file", at("write", "harness/secret")},
		{"write a new file in a harness directory", at("write", "harness/new")},
		{"write a file that every user may write", at("write", "open")},
		{"read a harness file", at("read", "harness/secret")},
		{"read a harness file through a link", func(_ *testing.T, l lab) []string {
			return []string{"follow", l.harness + "/secret", l.tmp + "/link"}
		}},
		{"list a harness directory", at("list", "harness")},
		{"truncate a harness file", at("truncate", "harness/secret")},
		{"remove a harness file", at("remove", "harness/secret")},
		{"link a harness file into the workspace", func(_ *testing.T, l lab) []string {
			return []string{"link", l.harness + "/secret", l.work + "/linked"}
		}},
		{"rename a harness file into the workspace", func(_ *testing.T, l lab) []string {
			return []string{"rename", l.harness + "/secret", l.work + "/moved"}
		}},
		{"list the root directory", fixed("list", "/")},
		{"read the password file", fixed("read", "/etc/shadow")},
		{"read the harness's environment", fixed("read", fmt.Sprintf("/proc/%d/environ", os.Getpid()))},
		{"read the harness's memory map", fixed("read", fmt.Sprintf("/proc/%d/maps", os.Getpid()))},
		{"read the environment of a foreign process of the same user", func(t *testing.T, l lab) []string {
			return []string{"read", fmt.Sprintf("/proc/%d/environ", victim(t, l, "CANARY=1"))}
		}},
		{"connect to another TCP port", fixed("dial", "tcp4", tcp)},
		{"connect by sending (TCP fast open)", fixed("fastopen", tcp)},
		{"open a multipath TCP socket", fixed("socket", inet, stream, mptcp)},
		{harmless("send a datagram"), fixed("dial", "udp", udp.LocalAddr().String())},
		{"hear from a UDP server outside", fixed("ask", udp.LocalAddr().String())},
		{"connect to an abstract unix socket outside", func(t *testing.T, _ lab) []string {
			return []string{"dial", "unix", listenUnix(t, "@"+rand.Text(), 0)}
		}},
		{harmless("open a UDP socket"), fixed("socket", inet, dgram, "0")},
		{harmless("open a UDP socket with rubbish in the high half"), fixed("socket", strconv.Itoa(unix.AF_INET+highHalf), strconv.Itoa(unix.SOCK_DGRAM+highHalf), "0")},
		{harmless("open a UDP socket for IPv6"), fixed("socket", strconv.Itoa(unix.AF_INET6), dgram, "0")},
		{"open a raw socket with rubbish in the high half", fixed("socket", strconv.Itoa(unix.AF_INET+highHalf), strconv.Itoa(unix.SOCK_RAW+highHalf), "1")},
		{"open a raw socket", fixed("socket", inet, raw, "1")},
		{"open a packet socket", fixed("socket", strconv.Itoa(unix.AF_PACKET), raw, "0")},
		{"watch the kernel's events", fixed("netlink", strconv.Itoa(unix.NETLINK_KOBJECT_UEVENT))},
		{"trace a foreign process of the same user", withVictim("ptrace")},
		{"read the memory of a foreign process of the same user", withVictim("vmread")},
		{"signal a foreign process of the same user", withVictim("signal")},
		{"be traced", fixed("traceme")},
		{"reach docker.sock", func(t *testing.T, l lab) []string {
			return []string{"dial", "unix", listenUnix(t, l.harness+"/docker.sock", 0o660)}
		}},
		{"reach docker.sock open to all", func(t *testing.T, l lab) []string {
			return []string{"dial", "unix", listenUnix(t, l.harness+"/open.sock", 0o666)}
		}},
		{"mount", func(t *testing.T, l lab) []string {
			t.Cleanup(func() { _ = unix.Unmount(l.work, unix.MNT_DETACH) })
			return []string{"mount", l.work}
		}},
		{"change the root directory", at("chroot", "work")},
		{"make a namespace", fixed("unshare")},
		{"make a user namespace", fixed("userns")},
		{"use the kernel's keys", fixed("keyctl")},
		{harmless("leave shared memory behind"), fixed("shm")},
		{harmless("leave a message queue behind"), fixed("mq")},
		{"make an io_uring", fixed("uring")},
		{"handle page faults", fixed("uffd")},
	}
	for _, c := range cases {
		t.Run("INV-38 "+c.name, func(t *testing.T) {
			t.Parallel()
			for _, pretend := range []sandbox.Capability{{}, weaker} {
				if shared[c.name] && pretend != weaker {
					continue
				}
				inside := newLab(t, sandbox.Config{Pretend: pretend})
				write(t, inside.root+"/open", "x")
				came, out := inside.attack(t, sandbox.Auto, nil, c.args(t, inside)...)
				if came {
					t.Errorf("it came through confinement (namespaces: %v): %s", pretend != weaker, out)
				}
			}
			off := newLab(t, sandbox.Config{})
			write(t, off.root+"/open", "x")
			if came, out := off.attack(t, sandbox.Off, nil, c.args(t, off)...); !came && !refusedByContainer(c.name) {
				t.Errorf("positive control: it does not work with confinement off either: %s", out)
			}
		})
	}
}

func TestProcessOneIsClosed(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	if came, _ := l.attack(t, sandbox.Auto, nil, "read", "/proc/1/environ"); came {
		t.Error("INV-38: the environment of process 1 can be read inside")
	}
	if _, err := os.ReadFile("/proc/1/environ"); err != nil {
		return // even the harness may not: there is no control on this machine
	}
	if came, out := l.attack(t, sandbox.Off, nil, "read", "/proc/1/environ"); !came {
		t.Errorf("positive control: not readable with confinement off: %s", out)
	}
}

func fixed(args ...string) func(*testing.T, lab) []string {
	return func(*testing.T, lab) []string { return args }
}

func at(what, path string) func(*testing.T, lab) []string {
	return func(_ *testing.T, l lab) []string { return []string{what, l.root + "/" + path} }
}

func withVictim(what string) func(*testing.T, lab) []string {
	return func(t *testing.T, l lab) []string { return []string{what, strconv.Itoa(victim(t, l))} }
}

func TestASetuidProgramGainsNothing(t *testing.T) {
	t.Parallel()
	needRoot(t)
	l := newLab(t, sandbox.Config{})
	// sudo in small: a program that runs as root whoever starts it, and says so.
	id, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		t.Skip("needs /usr/bin/id, which coreutils brings")
	}
	become := l.root + "/become"
	if err := os.WriteFile(become, id, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(become, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	c := l.command(become, "-u")
	c.Policy.ReadOnly = append(c.Policy.ReadOnly, become)
	if _, out := l.run(t, c); out != "65534\n" {
		t.Errorf("INV-38: a setuid program inside runs as user %q, want 65534", out)
	}
	// The control starts as the same unprivileged user, without confinement.
	c = l.command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", become, "-u")
	c.Policy.Mode = sandbox.Off
	if _, out := l.run(t, c); out != "0\n" {
		t.Errorf("positive control: with confinement off it runs as %q, want 0", out)
	}
}

func TestAForeignSystemCallTableIsRefused(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("the i386 table exists on amd64 only")
	}
	l := newLab(t, sandbox.Config{})
	program := l.work + "/int80"
	if err := foreignTable(program); err != nil {
		t.Fatal(err)
	}
	c := l.command(program)
	c.Policy.Mode = sandbox.Off
	want := 1
	switch r, out := l.run(t, c); {
	case r.Signal == "segmentation fault":
		want = -1 // this kernel was booted or built without the table, for everybody
	case r.ExitCode != 0:
		t.Errorf("positive control: with confinement off exit %d %s %s, want 0", r.ExitCode, r.Signal, out)
	}
	if r, out := l.run(t, l.command(program)); r.ExitCode != want {
		t.Errorf("INV-38: a UDP socket through int 0x80 gave exit %d %s %s, want %d", r.ExitCode, r.Signal, out, want)
	}
}

// TestWhatIsAllowedWorks keeps confinement from passing its own tests by refusing everything.
func TestWhatIsAllowedWorks(t *testing.T) {
	t.Parallel()
	meter, port := listen(t)
	for _, c := range []struct {
		name string
		args func(*testing.T, lab) []string
	}{
		{"connect to the meter", fixed("dial", "tcp4", meter)},
		{"write in the workspace", at("write", "work/new")},
		{"write in HOME", at("write", "home/new")},
		{"write in TMPDIR", at("write", "tmp/new")},
		{"list its own directory", at("list", "work")},
		{"read the system's files", fixed("read", "/etc/passwd")},
		{"read its own environment", fixed("read", "/proc/self/environ")},
		{"list network interfaces", fixed("ifaces")},
		{"write to /dev/null", fixed("write", "/dev/null")},
		{"start programs", fixed("exec", "hi", "echo", "hi")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, pretend := range []sandbox.Capability{{}, weaker} {
				l := newLab(t, sandbox.Config{Pretend: pretend})
				if came, out := l.attack(t, sandbox.Strict, []uint16{port}, c.args(t, l)...); !came {
					t.Errorf("it was refused (namespaces: %v): %s", pretend != weaker, out)
				}
			}
		})
	}
}

func TestStreamsCanBeOpenedByName(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	c := l.command("sh", "-c", "cat /dev/stdin > /dev/stdout; echo to stderr > /dev/stderr")
	c.Stdin = strings.NewReader("to stdout\n")
	var out, errs safeBuffer
	c.Stdout, c.Stderr = &out, &errs
	l.run(t, c)
	if out.String() != "to stdout\n" || errs.String() != "to stderr\n" {
		t.Errorf("stdout %q, stderr %q", out.String(), errs.String())
	}
}
