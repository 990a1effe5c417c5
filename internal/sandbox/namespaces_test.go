//go:build linux

package sandbox_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// machine is a way to run a test: with namespaces as root and as an ordinary user, and without.
type machine struct {
	name    string
	uid     int
	pretend sandbox.Capability
}

func machines() []machine {
	return []machine{
		{"root", 0, sandbox.Capability{}},
		{"ordinary user", ordinary, sandbox.Capability{}},
		{"root without namespaces", 0, weaker},
		{"ordinary user without namespaces", ordinary, weaker},
	}
}

// noProcesses says that this machine gives no process namespaces, as a container that masks parts of
// /proc does not. The other kinds are taken for granted by the tests.
func noProcesses(t *testing.T) bool {
	t.Helper()
	lines, err := newLab(t, sandbox.Config{}).box.Probe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	switch lost := names(lines, false); lost {
	case "":
		return false
	case "processes":
		return true
	default:
		t.Skipf("needs a machine that enforces everything, and here it is not: %s: run the tests as root outside a container", lost)
		return false
	}
}

// attempt runs the hostile program under a harness of the machine's user.
func (m machine) attempt(t *testing.T, mode sandbox.Mode, ports []uint16, args ...string) (bool, string) {
	t.Helper()
	l := ownedLab(t, m.uid)
	o := runAs(t, m.uid, job{
		Root: l.root, Mode: mode, Argv: append([]string{binary(), hostileArg}, args...), Harden: true, Pretend: m.pretend, Ports: ports,
	})
	if o.Err != "" || o.Result.ExitCode != 0 && o.Result.ExitCode != refused {
		t.Fatalf("%s: exit %d %s: %s %s", m.name, o.Result.ExitCode, o.Result.Signal, o.Output, o.Err)
	}
	return o.Result.ExitCode == 0, o.Output
}

// TestAnAllowedPortIsTheHarnessesAlone is INV-38: in a network namespace TCP goes to the meter and to no other
// address of loopback that has the same port open.
func TestAnAllowedPortIsTheHarnessesAlone(t *testing.T) {
	t.Parallel()
	needRoot(t)
	meter, port := listen(t)
	other, err := net.Listen("tcp4", "127.0.0.2:"+strconv.Itoa(int(port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	go answer(other)
	for _, m := range machines() {
		t.Run("INV-38 "+m.name, func(t *testing.T) {
			t.Parallel()
			if came, out := m.attempt(t, sandbox.Strict, []uint16{port}, "dial", "tcp4", meter); !came {
				t.Errorf("the meter cannot be reached: %s", out)
			}
			// Without namespaces all of loopback is one: that is the control.
			want := m.pretend == weaker
			if came, out := m.attempt(t, sandbox.Strict, []uint16{port}, "dial", "tcp4", other.Addr().String()); came != want {
				t.Errorf("another host with this port: came through %v, want %v: %s", came, want, out)
			}
		})
	}
}

// TestServersOfATreeAreItsOwn: what a gate starts it can use, and what the harness's loopback has it
// cannot reach.
func TestServersOfATreeAreItsOwn(t *testing.T) {
	t.Parallel()
	needRoot(t)
	outside, _ := listen(t)
	for _, m := range machines() {
		for what, args := range map[string][]string{
			"its own TCP server":            {"serve"},
			"its own UDP server":            {"serveudp"},
			"a server outside":              {"dial", "tcp4", outside},
			"a host that is not there":      {"dial", "tcp4", "192.0.2.1:80"},
			"the cloud's metadata server":   {"dial", "tcp4", "169.254.169.254:80"},
			"a name server that is outside": {"dial", "udp", "192.0.2.1:53"},
		} {
			t.Run("INV-38 "+m.name+", "+what, func(t *testing.T) {
				t.Parallel()
				own := strings.HasPrefix(what, "its own")
				if came, out := m.attempt(t, sandbox.Strict, nil, args...); came != (own && m.pretend != weaker) {
					t.Errorf("came through: %v: %s", came, out)
				}
				if what == "a server outside" || own {
					if came, out := m.attempt(t, sandbox.Off, nil, args...); !came {
						t.Errorf("positive control: refused with confinement off too: %s", out)
					}
				}
			})
		}
	}
}

// TestSharedPlacesAreNoChannel is INV-27 and INV-38: what one tree leaves in /tmp and /dev/shm is seen neither
// outside nor by the next tree, and what is there outside is not seen by a tree.
func TestSharedPlacesAreNoChannel(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, m := range machines()[:2] {
		for _, place := range []string{"/tmp", "/dev/shm"} {
			t.Run("INV-27 "+m.name+" "+place, func(t *testing.T) {
				t.Parallel()
				left, host := place+"/left-"+rand.Text(), place+"/host-"+rand.Text()
				t.Cleanup(func() { _, _ = os.Remove(left), os.Remove(host) })
				write(t, host, "of the host\n")
				if came, out := m.attempt(t, sandbox.Strict, nil, "write", left); !came {
					t.Errorf("a tree cannot write %s: %s", left, out)
				}
				if _, err := os.Stat(left); err == nil {
					t.Error("the host sees what the tree left")
				}
				for _, path := range []string{left, host} {
					if came, _ := m.attempt(t, sandbox.Strict, nil, "read", path); came {
						t.Errorf("a tree sees %s", path)
					}
				}
				// The control does the same with confinement off.
				if came, out := m.attempt(t, sandbox.Off, nil, "write", left); !came {
					t.Errorf("positive control: %s", out)
				}
				for _, path := range []string{left, host} {
					if came, out := m.attempt(t, sandbox.Off, nil, "read", path); !came {
						t.Errorf("positive control: %s", out)
					}
				}
			})
		}
	}
}

// TestMessageObjectsAreNoChannel is INV-27 for System V objects, which outlive their maker.
func TestMessageObjectsAreNoChannel(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for i, m := range machines() {
		t.Run("INV-27 "+m.name, func(t *testing.T) {
			t.Parallel()
			key := strconv.Itoa(os.Getpid()<<4 + i)
			if came, out := m.attempt(t, sandbox.Strict, nil, "leave", key); came != (m.pretend != weaker) {
				t.Errorf("made a segment: %v: %s", came, out)
			}
			if came, _ := m.attempt(t, sandbox.Strict, nil, "find", key); came {
				t.Error("the next tree found it")
			}
			for _, what := range []string{"leave", "find"} {
				if came, out := m.attempt(t, sandbox.Off, nil, what, key); !came {
					t.Errorf("positive control: %s: %s", what, out)
				}
			}
		})
	}
}

// TestOtherProcessesAreNotVisible is INV-33: there is nothing to look into.
func TestOtherProcessesAreNotVisible(t *testing.T) {
	t.Parallel()
	needRoot(t)
	if noProcesses(t) {
		t.Skip("needs process namespaces: run the tests outside a container, or with podman run --privileged")
	}
	list := []string{"sh", "-c", "ls /proc | grep -c '^[0-9]'; hostname; echo $PPID"}
	for _, m := range machines()[:2] {
		l := ownedLab(t, m.uid)
		o := runAs(t, m.uid, job{Root: l.root, Mode: sandbox.Strict, Argv: list})
		f := strings.Fields(o.Output)
		if len(f) != 3 || number(f[0]) > 4 || f[1] != "localhost" || f[2] != "1" {
			t.Errorf("INV-33 %s: %q %s, want the supervisor, the shell and its two programs, on localhost", m.name, o.Output, o.Err)
		}
		o = runAs(t, m.uid, job{Root: l.root, Mode: sandbox.Off, Argv: list})
		if f := strings.Fields(o.Output); len(f) != 3 || number(f[0]) < 5 {
			t.Errorf("positive control: %q %s", o.Output, o.Err)
		}
	}
}

// TestReadOnlyBelowAPrivatePlaceStaysReadOnly: Landlock gives a private /tmp to the tree with all that is
// mounted below it.
func TestReadOnlyBelowAPrivatePlaceStaysReadOnly(t *testing.T) {
	t.Parallel()
	for _, pretend := range []sandbox.Capability{{}, weaker} {
		l := newLab(t, sandbox.Config{Pretend: pretend})
		if !strings.HasPrefix(l.root, "/tmp/") {
			t.Skip("needs its directories below /tmp: TMPDIR=/tmp go test ./internal/sandbox/")
		}
		if err := os.Mkdir(l.harness+"/nested", 0o777); err != nil {
			t.Fatal(err)
		}
		c := l.command("sh", "-c", "cat $H/secret; echo x > $H/secret; echo x > $H/new; rm -f $H/secret; mv $H/secret $HOME/; touch $H/nested/file; cat $H/secret")
		c.Env = append(c.Env, "H="+l.harness)
		c.Policy.ReadOnly, c.Policy.ReadWrite = []string{l.harness}, append(c.Policy.ReadWrite, l.harness+"/nested")
		var out safeBuffer
		c.Stdout, c.Stderr = &out, io.Discard
		l.run(t, c)
		if out.String() != "harness secret\nharness secret\n" {
			t.Errorf("output %q", out.String())
		}
		for path, there := range map[string]bool{"/new": false, "/nested/file": true, "/secret": true} {
			if _, err := os.Stat(l.harness + path); (err == nil) != there {
				t.Errorf("%s: %v", path, err)
			}
		}
		c.Policy.Mode = sandbox.Off
		l.run(t, c)
		if _, err := os.Stat(l.harness + "/new"); err != nil {
			t.Errorf("positive control: %v", err)
		}
	}
}

func TestAPathCalledByALinkKeepsItsName(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	link := l.root + "/called"
	if err := os.Symlink(l.tmp, link); err != nil {
		t.Fatal(err)
	}
	c := l.command("sh", "-c", "echo through > $TMPDIR/file; pwd")
	c.Env = sandbox.BaseEnv(l.home, link)
	c.Policy.ReadWrite = []string{l.work, l.home, link}
	if _, out := l.run(t, c); out != l.work+"\n" {
		t.Errorf("output %q", out)
	}
	if got, err := os.ReadFile(l.tmp + "/file"); err != nil || string(got) != "through\n" {
		t.Errorf("%q %v", got, err)
	}
}

// TestAPrivatePlaceIsCapped is INV-39: it is memory, and counts as disk.
func TestAPrivatePlaceIsCapped(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	c := l.command("sh", "-c", "head -c 100000000 /dev/zero > /tmp/big; echo exit $?")
	c.Policy.Limits.DiskBytes = 20 << 20
	r, out := l.run(t, c)
	if r.Exceeded != "" || !strings.Contains(out, "No space left") {
		t.Errorf("INV-39 one place: %+v %s", r, out)
	}
	c = l.command("sh", "-c", "head -c 15000000 /dev/zero > /tmp/big; head -c 15000000 /dev/zero > /dev/shm/big; sleep 300")
	c.Policy.Limits.DiskBytes = 20 << 20
	if r, out := l.run(t, c); r.Exceeded != "disk" {
		t.Errorf("INV-39 both places: %+v %s", r, out)
	}
	c = l.command("sh", "-c", "head -c 15000000 /dev/zero > /tmp/big; sleep 0.5")
	c.Policy.Limits.DiskBytes = 20 << 20
	if r, out := l.run(t, c); r.Exceeded != "" || r.ExitCode != 0 {
		t.Errorf("positive control: %+v %s", r, out)
	}
}

// TestEachNamespaceFallsBackAlone: one that cannot be had is a line that says why, strict starts all the
// same, and the others hold.
func TestEachNamespaceFallsBackAlone(t *testing.T) {
	t.Parallel()
	_, port := listen(t)
	masked := noProcesses(t)
	for name, lost := range map[string]sandbox.Namespaces{
		"network": {Network: true}, "private-tmp": {Temp: true}, "processes": {Processes: true}, "ipc": {IPC: true},
		"network private-tmp processes ipc": sandbox.AllNamespaces(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, sandbox.Config{Mode: sandbox.Strict, Pretend: sandbox.Capability{Without: lost}})
			for _, ports := range [][]uint16{nil, {port}} {
				c := l.command("true")
				c.Policy.ConnectPorts = ports
				r, _ := l.run(t, c)
				if got := names(r.Enforced, false); got != name && !masked {
					t.Errorf("not active: %q", got)
				}
				for _, e := range r.Enforced {
					if !e.Active && (!e.Optional || !strings.Contains(e.Detail, "start the harness as root")) {
						t.Errorf("%+v", e)
					}
				}
			}
			probed, err := l.box.Probe(context.Background())
			if got := names(probed, false); err != nil || got != name && !masked {
				t.Errorf("probe: not active: %q %v", got, err)
			}
		})
	}
}

func TestConnectionsAreCarriedWhole(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() { // answers only when the question has ended
				defer func() { _ = c.Close() }()
				n, _ := io.Copy(io.Discard, c)
				fmt.Fprintf(c, "%d bytes\n", n)
			}()
		}
	}()
	port := uint16(server.Addr().(*net.TCPAddr).Port)
	hello, helloPort := listen(t)
	l := newLab(t, sandbox.Config{})
	t.Run("a long question and its end", func(t *testing.T) {
		t.Parallel()
		py := "import socket,sys\ns=socket.create_connection(('127.0.0.1',int(sys.argv[1])))\ns.sendall(b'x'*50_000_000)\ns.shutdown(socket.SHUT_WR)\nprint(s.makefile().read(),end='')"
		c := l.command("/usr/bin/python3", "-c", py, strconv.Itoa(int(port)))
		c.Policy.ConnectPorts = []uint16{port, helloPort}
		if _, out := l.run(t, c); out != "50000000 bytes\n" {
			t.Errorf("output %q", out)
		}
	})
	t.Run("more at once than a door lets through", func(t *testing.T) {
		t.Parallel()
		if came, out := l.attack(t, sandbox.Auto, []uint16{helloPort}, "crowd", hello, "300"); !came {
			t.Error(out)
		}
	})
	t.Run("nobody serves the port", func(t *testing.T) {
		t.Parallel()
		gone, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := uint16(gone.Addr().(*net.TCPAddr).Port)
		_ = gone.Close()
		if came, out := l.attack(t, sandbox.Auto, []uint16{port}, "dial", "tcp4", gone.Addr().String()); came || !strings.Contains(out, "reset") {
			t.Errorf("came through %v: %s", came, out)
		}
	})
}

// TestACarriedConnectionEndsWithItsTree: the meter must see that nobody listens any more.
func TestACarriedConnectionEndsWithItsTree(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		c, err := server.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer func() { _ = c.Close() }()
		one := make([]byte, 1)
		_, _ = io.ReadFull(c, one)
		cancel() // it is connected: now the run is stopped
		_, err = c.Read(one)
		ended <- err
	}()
	l := newLab(t, sandbox.Config{})
	port := server.Addr().(*net.TCPAddr).Port
	c := l.command("/usr/bin/python3", "-c", "import socket,time\ns=socket.create_connection(('127.0.0.1',"+strconv.Itoa(port)+"))\ns.sendall(b'x')\ntime.sleep(300)")
	c.Policy.ConnectPorts = []uint16{uint16(port)}
	r, err := l.box.Run(ctx, c)
	if err != nil || !r.Cancelled {
		t.Errorf("%+v %v", r, err)
	}
	if diff := cmp.Diff(io.EOF.Error(), fmt.Sprint(<-ended)); diff != "" {
		t.Errorf("the server saw (-want +got):\n%s", diff)
	}
}
