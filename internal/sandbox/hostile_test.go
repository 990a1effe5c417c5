//go:build linux

package sandbox_test

import (
	bin "encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	hostileArg = "hostile"
	refused    = 77 // the attempt was made and refused
	misused    = 78
)

// hostile makes one attempt and exits 0 when it came through.
func hostile(what string, args []string) int {
	attempt, ok := attempts()[what]
	if !ok {
		attempt, ok = keeperAttempts()[what]
	}
	if !ok {
		fmt.Println("no such attempt:", what)
		return misused
	}
	if err := attempt(args); err != nil {
		fmt.Println(what+":", err)
		return refused
	}
	return 0
}

func attempts() map[string]func([]string) error {
	return map[string]func([]string) error{
		"write":    func(a []string) error { return os.WriteFile(a[0], []byte("x"), 0o644) },
		"read":     func(a []string) error { return show(a[0]) },
		"list":     func(a []string) error { _, err := os.ReadDir(a[0]); return err },
		"truncate": func(a []string) error { return os.Truncate(a[0], 0) },
		"remove":   func(a []string) error { return os.Remove(a[0]) },
		"link":     func(a []string) error { return os.Link(a[0], a[1]) },
		"rename":   func(a []string) error { return os.Rename(a[0], a[1]) },
		"follow":   func(a []string) error { return follow(a[0], a[1]) },
		"dial":     func(a []string) error { return dial(a[0], a[1]) },
		"escape":   func(a []string) error { return escape(a[0], a[1]) },
		"ask":      func(a []string) error { return ask(a[0]) },
		"fastopen": func(a []string) error { return fastOpen(a[0]) },
		"socket":   func(a []string) error { return socket(number(a[0]), number(a[1]), number(a[2])) },
		"ptrace":   func(a []string) error { return seize(number(a[0])) },
		"traceme":  func([]string) error { return call(unix.SYS_PTRACE, unix.PTRACE_TRACEME) },
		"vmread":   func(a []string) error { return vmRead(number(a[0])) },
		"signal":   func(a []string) error { return unix.Kill(number(a[0]), unix.SIGCONT) },
		"exec":     func(a []string) error { return execute(a) },
		"mount":    func(a []string) error { return unix.Mount("none", a[0], "tmpfs", 0, "") },
		"chroot":   func(a []string) error { return unix.Chroot(a[0]) },
		"unshare":  func([]string) error { return unix.Unshare(unix.CLONE_NEWUTS) },
		"userns":   func([]string) error { return userNamespace() },
		"keyctl":   func([]string) error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true); return err },
		"uring":    func([]string) error { return ring() },
		"shm":      func([]string) error { return sharedMemory() },
		"leave":    func(a []string) error { return leaveWord(number(a[0])) },
		"find":     func(a []string) error { return findWord(number(a[0])) },
		"crowd":    func(a []string) error { return crowd(a[0], number(a[1])) },
		"mq":       func([]string) error { return queue() },
		"uffd":     func([]string) error { return call(unix.SYS_USERFAULTFD, 0) },
		"netlink":  func(a []string) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, number(a[0])) },
		"ifaces":   func([]string) error { _, err := net.Interfaces(); return err },
		"serve":    func([]string) error { return serve() },
		"serveudp": func([]string) error { return serveUDP() },
		"search":   search,
		"hunt":     hunt,
		"hang":     func([]string) error { time.Sleep(time.Hour); return nil },
	}
}

func number(s string) int {
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		panic(err)
	}
	return int(n)
}

func show(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Printf("%s", raw)
	return nil
}

// follow reads a file outside through a symbolic link inside.
func follow(target, link string) error {
	if err := os.Symlink(target, link); err != nil {
		panic(err)
	}
	return show(link)
}

func dial(network, addr string) error {
	c, err := net.DialTimeout(network, addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if network == "udp" {
		_, err = c.Write([]byte("x"))
		return err
	}
	got, err := io.ReadAll(c)
	if err == nil && string(got) != "hello\n" {
		err = fmt.Errorf("answer %q", got)
	}
	return err
}

// ask sends a datagram and wants it back.
func ask(addr string) error {
	c, err := net.Dial("udp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(3 * time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 8))
	return err
}

// echoUDP sends back what comes.
func echoUDP(l net.PacketConn) {
	buf := make([]byte, 64)
	for {
		n, from, err := l.ReadFrom(buf)
		if err != nil {
			return
		}
		_, _ = l.WriteTo(buf[:n], from)
	}
}

// fastOpen connects by sending.
func fastOpen(addr string) error {
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	to := &unix.SockaddrInet4{Port: a.Port}
	copy(to.Addr[:], a.IP.To4())
	if err := unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, to); err != nil {
		return err
	}
	buf := make([]byte, 6)
	_, err = unix.Read(fd, buf)
	return err
}

// socket takes whole registers: the kernel looks at the low half of each.
func socket(domain, kind, protocol int) error {
	return call(unix.SYS_SOCKET, uintptr(domain), uintptr(kind), uintptr(protocol))
}

func call(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func seize(pid int) error {
	if err := call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid)); err != nil {
		return err
	}
	return call(unix.SYS_PTRACE, unix.PTRACE_INTERRUPT, uintptr(pid))
}

// vmRead reads a foreign process's memory at an address of its own.
func vmRead(pid int) error {
	buf := make([]byte, 8)
	local := []unix.Iovec{{Base: &buf[0], Len: 8}}
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: stackOf(pid), Len: 8}}, 0)
	return err
}

func stackOf(pid int) uintptr {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
	if err != nil {
		return 0x1000
	}
	var nr, sp, pc uint64
	var a [6]uint64
	_, _ = fmt.Sscanf(string(raw), "%d %v %v %v %v %v %v %v %v", &nr, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &sp, &pc)
	return uintptr(sp)
}

// execute runs a program and compares its first line of output with what success would print.
func execute(a []string) error {
	out, err := exec.Command(a[1], a[2:]...).CombinedOutput()
	fmt.Printf("%s", out)
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if string(out) != a[0]+"\n" {
		return fmt.Errorf("printed %q", out)
	}
	return nil
}

func userNamespace() error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	return cmd.Run()
}

func ring() error {
	params := make([]byte, 120)
	return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])))
}

// sharedMemory makes a segment that would outlive its maker, and removes it.
func sharedMemory() error {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600)
	if err == nil {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
	return err
}

// leaveWord makes a segment that the next process of the user may find by its key.
func leaveWord(key int) error {
	_, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o666)
	return err
}

func findWord(key int) error {
	id, err := unix.SysvShmGet(key, 4096, 0)
	if err == nil {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
	return err
}

// crowd opens many connections at once and wants an answer on each.
func crowd(addr string, n int) error {
	var all sync.WaitGroup
	errs := make(chan error, n)
	for range n {
		all.Go(func() { errs <- dial("tcp4", addr) })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func queue() error {
	name := []byte("proctor-test\x00")
	p := uintptr(unsafe.Pointer(&name[0]))
	err := call(unix.SYS_MQ_OPEN, p, unix.O_CREAT|unix.O_RDWR, 0o600, 0)
	if err == nil {
		_ = call(unix.SYS_MQ_UNLINK, p)
	}
	return err
}

// serve is what a test suite does: a server and a client in one process.
func serve() error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go answer(l)
	return dial("tcp4", l.Addr().String())
}

func serveUDP() error {
	l, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go echoUDP(l)
	return ask(l.LocalAddr().String())
}

// foreignTable is a program that asks for a UDP socket by the i386 system-call table (int 0x80) and
// exits 0 when it got one.
func foreignTable(path string) error {
	code := []byte{
		0xb8, 0x67, 0x01, 0x00, 0x00, // mov eax, 359 (socket)
		0xbb, 0x02, 0x00, 0x00, 0x00, // mov ebx, AF_INET
		0xb9, 0x02, 0x00, 0x00, 0x00, // mov ecx, SOCK_DGRAM
		0x31, 0xd2, // xor edx, edx
		0xcd, 0x80, // int 0x80
		0x89, 0xc7, // mov edi, eax
		0xc1, 0xef, 0x1f, // shr edi, 31
		0xb8, 0x3c, 0x00, 0x00, 0x00, // mov eax, 60 (exit)
		0x0f, 0x05, // syscall
	}
	const base, header = 0x400000, 64 + 56
	file := make([]byte, header, header+len(code))
	copy(file, "\x7fELF\x02\x01\x01")
	le := bin.LittleEndian
	le.PutUint16(file[16:], 2)  // executable
	le.PutUint16(file[18:], 62) // amd64
	le.PutUint32(file[20:], 1)
	le.PutUint64(file[24:], base+header)
	le.PutUint64(file[32:], 64) // program headers
	le.PutUint16(file[52:], 64)
	le.PutUint16(file[54:], 56)
	le.PutUint16(file[56:], 1)
	p := file[64:]
	le.PutUint32(p[0:], 1) // load
	le.PutUint32(p[4:], 5) // read, execute
	le.PutUint64(p[16:], base)
	le.PutUint64(p[24:], base)
	le.PutUint64(p[32:], uint64(header+len(code)))
	le.PutUint64(p[40:], uint64(header+len(code)))
	le.PutUint64(p[48:], 0x1000)
	return errors.Join(os.WriteFile(path, append(file, code...), 0o755), os.Chmod(path, 0o755))
}
