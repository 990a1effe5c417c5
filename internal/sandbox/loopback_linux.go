package sandbox

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock allows a port on every host of the world. Where there is no network namespace, a stranger who listens on
// all ports could so be reached by the meter's number. The filter therefore asks the supervisor for each TCP
// socket, and gets one that is bound to 127.0.0.1 already: the kernel connects such a socket to this machine's
// loopback and to nothing else. To bind it anew is what Landlock refuses then.

// The kernel's structures for filters that ask (seccomp_unotify(2)).
type (
	askedCall struct {
		id    uint64
		pid   uint32
		flags uint32
		nr    int32
		arch  uint32
		ip    uint64
		args  [6]uint64
	}
	answeredCall struct {
		id    uint64
		val   int64
		errno int32
		flags uint32
	}
	addedFile struct {
		id       uint64
		flags    uint32
		file     uint32
		newFile  uint32
		newFlags uint32
	}
)

const (
	newListener     = 1 << 3 // SECCOMP_FILTER_FLAG_NEW_LISTENER
	waitKillable    = 1 << 5 // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, Linux 5.19
	addAndAnswer    = 1 << 1 // SECCOMP_ADDFD_FLAG_SEND, Linux 5.14
	bindWithoutPort = 24     // IP_BIND_ADDRESS_NO_PORT
)

// setAskingFilter puts the filter on the calling thread and gives the file on which it asks.
func setAskingFilter(prog *unix.SockFprog) (int, error) {
	for _, flags := range []uintptr{newListener | waitKillable, newListener} {
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(prog)))
		if errno == 0 {
			return int(fd), nil
		}
		if errno != unix.EINVAL {
			return -1, errno
		}
	}
	return -1, unix.EINVAL
}

// giveSockets answers until there is nobody left who could ask. Its thread hears no signal: one that interrupts the kernel between
// the answer and the file, such as the Go runtime's own, would have the asker's socket(2) return 0, which is its standard input.
func giveSockets(listener int) {
	runtime.LockOSThread() // never unlocked
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil) // fails for a bad argument only
	for {
		var asked askedCall
		if err := control(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&asked)); err != nil {
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT) {
				continue // who asked is gone
			}
			return
		}
		if err := giveSocket(listener, asked); err != nil {
			no := answeredCall{id: asked.id, errno: -int32(errnoOf(err))}
			_ = control(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&no)) // ENOENT: who asked is gone
		}
	}
}

// giveSocket makes the socket that was asked for. The filter has looked at domain, type and protocol.
func giveSocket(listener int, asked askedCall) error {
	kind := int(uint32(asked.args[1]))
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptInt(fd, unix.SOL_IP, bindWithoutPort, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	add := addedFile{id: asked.id, flags: addAndAnswer, file: uint32(fd), newFlags: uint32(kind & unix.SOCK_CLOEXEC)}
	err = control(listener, unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&add))
	if errors.Is(err, unix.ENOENT) {
		return nil // who asked is gone, or asks again
	}
	return err
}

func control(fd int, what uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), what, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

func errnoOf(err error) unix.Errno {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return unix.EPERM
}
