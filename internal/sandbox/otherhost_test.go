//go:build linux

package sandbox_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// escape tries every way to make a TCP socket that the program was given reach another host: as it is, bound anew,
// made new by a disconnect, tied to an interface, by IPv6. own is an address of this machine.
func escape(to, own string) error {
	addr := netip.MustParseAddrPort(to)
	there := &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	home := &unix.SockaddrInet4{Addr: netip.MustParseAddr(own).As4()}
	disconnect := func(fd int) {
		raw := [16]byte{} // AF_UNSPEC
		_, _, _ = unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw)), 16)
	}
	ways := map[string]func(fd int) unix.Sockaddr{
		"as it is":             func(int) unix.Sockaddr { return there },
		"bound to any":         func(fd int) unix.Sockaddr { _ = unix.Bind(fd, &unix.SockaddrInet4{}); return there },
		"bound to its own":     func(fd int) unix.Sockaddr { _ = unix.Bind(fd, home); return there },
		"made new":             func(fd int) unix.Sockaddr { disconnect(fd); return there },
		"made new, then bound": func(fd int) unix.Sockaddr { disconnect(fd); _ = unix.Bind(fd, home); return there },
		"listened, made new": func(fd int) unix.Sockaddr {
			_ = unix.Listen(fd, 1)
			disconnect(fd)
			_ = unix.Shutdown(fd, unix.SHUT_RDWR)
			disconnect(fd)
			return there
		},
		"tied to an interface": func(fd int) unix.Sockaddr { _ = unix.BindToDevice(fd, "a0"); return there },
		"transparent": func(fd int) unix.Sockaddr {
			_ = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1)
			_ = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_FREEBIND, 1)
			_ = unix.Bind(fd, home)
			return there
		},
	}
	var told []string
	try := func(name string, domain int, ready func(int) unix.Sockaddr) bool {
		fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			defer func() { _ = unix.Close(fd) }()
			_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 5})
			err = unix.Connect(fd, ready(fd))
		}
		told = append(told, fmt.Sprintf("%s: %v", name, err))
		return err == nil
	}
	for name, ready := range ways {
		if try(name, unix.AF_INET, ready) {
			fmt.Println("reached", name)
			return nil
		}
	}
	mapped := &unix.SockaddrInet6{Port: int(addr.Port()), Addr: netip.AddrFrom16(addr.Addr().As16()).As16()}
	if try("by IPv6", unix.AF_INET6, func(int) unix.Sockaddr { return mapped }) {
		fmt.Println("reached by IPv6")
		return nil
	}
	return errors.New(strings.Join(told, "; "))
}

// otherHost is a network of two hosts without anybody else: the calling goroutine's thread is on the one from now on,
// and address is a server on the other.
func otherHost(t *testing.T) (address, own string) {
	t.Helper()
	ip := func(args ...string) {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %q: %v %s", args, err, out)
		}
	}
	leave := func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
		}
	}
	holder, linked, served := make(chan int), make(chan bool), make(chan error)
	const there = "10.9.8.2:4711"
	go func() {
		leave()
		sleep := exec.Command("sleep", "300") // by its number the namespace has a name
		sleep.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := sleep.Start(); err != nil {
			holder <- 0
			return
		}
		defer func() { _ = sleep.Process.Kill(); _ = sleep.Wait() }()
		holder <- sleep.Process.Pid
		<-linked
		for _, line := range []string{"addr add 10.9.8.2/24 dev b0", "link set b0 up"} {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				served <- fmt.Errorf("ip %s: %w %s", line, err, out)
				return
			}
		}
		l, err := net.Listen("tcp4", there)
		served <- err
		if err == nil {
			go answer(l)
			<-t.Context().Done()
			_ = l.Close()
		}
	}()
	pid := <-holder
	if pid == 0 {
		t.Fatal("the other host has no process")
	}
	leave()
	ip("link", "set", "lo", "up")
	ip("link", "add", "a0", "type", "veth", "peer", "name", "b0", "netns", strconv.Itoa(pid))
	ip("addr", "add", "10.9.8.1/24", "dev", "a0")
	ip("link", "set", "a0", "up")
	linked <- true
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	for range 200 { // until the wire is up
		if c, err := net.DialTimeout("tcp4", there, time.Second); err == nil {
			_ = c.Close()
			return there, "10.9.8.1"
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the other host cannot be reached")
	return "", ""
}

// TestAnAllowedPortOfAnotherHostIsClosed is INV-38: whoever listens on the meter's port elsewhere hears nothing, whether
// the machine has namespaces or not.
func TestAnAllowedPortOfAnotherHostIsClosed(t *testing.T) {
	needRoot(t)
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip, to make a network of two hosts: apt-get install iproute2")
	}
	there, own := otherHost(t)
	meter, err := net.Listen("tcp4", "127.0.0.1:4711")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = meter.Close() }()
	go answer(meter)
	ports := []uint16{4711}
	for _, m := range machines() {
		if came, out := m.attempt(t, sandbox.Strict, ports, "escape", there, own); came {
			t.Errorf("INV-38 %s: another host was reached: %s", m.name, out)
		}
		if came, out := m.attempt(t, sandbox.Strict, ports, "dial", "tcp4", "127.0.0.1:4711"); !came {
			t.Errorf("%s: the meter cannot be reached: %s", m.name, out)
		}
	}
	// The controls: by Landlock's number alone, and with nothing.
	byNumber := machine{"by number", 0, sandbox.Capability{Without: sandbox.AllNamespaces(), NoAsking: true}}
	if came, out := byNumber.attempt(t, sandbox.Auto, ports, "escape", there, own); !came {
		t.Errorf("the control by number reaches nobody either: %s", out)
	}
	if came, out := byNumber.attempt(t, sandbox.Off, nil, "escape", there, own); !came {
		t.Errorf("the control without confinement reaches nobody either: %s", out)
	}
}

// TestManySocketsAreGivenAtOnce: the supervisor answers threads that ask together, and programs that end meanwhile. Where its
// thread heard signals, one try of seven gave somebody standard input for a socket.
func TestManySocketsAreGivenAtOnce(t *testing.T) {
	t.Parallel()
	addr, port := listen(t)
	l := newLab(t, sandbox.Config{Mode: sandbox.Strict, Pretend: weaker})
	c := l.command(binary(), hostileArg, "crowd", addr, "200")
	c.Policy.ConnectPorts = []uint16{port}
	for range 10 {
		if r, out := l.run(t, c); r.ExitCode != 0 {
			t.Fatalf("%+v %s", r, out)
		}
	}
	c = l.command("sh", "-c", "for i in $(seq 20); do timeout -s KILL 0.05 "+binary()+" "+hostileArg+" crowd "+addr+" 500 & done; wait; "+binary()+" "+hostileArg+" dial tcp4 "+addr)
	c.Policy.ConnectPorts = []uint16{port}
	if r, out := l.run(t, c); r.ExitCode != 0 {
		t.Errorf("after programs that were killed while they asked: %+v %s", r, out)
	}
}
