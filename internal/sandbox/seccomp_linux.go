package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The filter refuses by list. Three things make a list hold that are easily missed: a foreign system-call
// table (i386 or x32 on amd64) has other numbers for the same calls, so it is refused whole; arguments of
// type int are compared by their low half only, because the kernel ignores the rest of the register; and
// clone3, whose flags a filter cannot see, is said not to exist, so that libraries fall back to clone.

// Offsets in struct seccomp_data, and the parts of a filter's answer.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16

	x32Bit = 0x40000000
)

func refuse(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// restrictSyscalls puts the filter on the calling thread. Where it is to ask for sockets, listener is the file on
// which it does, and -1 where that cannot be had, which is noted in the plan.
func restrictSyscalls(s spec, plan *socketPlan) (listener int, err error) {
	if plan.asks {
		if listener, err = setFilter(s, *plan); err == nil {
			return listener, nil
		}
		plan.asks, plan.unasked = false, err
	}
	_, err = setFilter(s, *plan)
	return -1, err
}

func setFilter(s spec, plan socketPlan) (listener int, err error) {
	if s.Pretend.NoSeccomp {
		return -1, fmt.Errorf("no seccomp filters: a kernel with CONFIG_SECCOMP_FILTER, and a container profile that permits them, brings it")
	}
	arch, ok := auditArch()
	if !ok {
		return -1, fmt.Errorf("no system-call filter for %s: amd64 and arm64 have one", runtime.GOARCH)
	}
	raw, err := bpf.Assemble(filterProgram(arch, plan))
	if err != nil {
		return -1, fmt.Errorf("assemble the system-call filter: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if plan.asks {
		if s.Pretend.NoAsking {
			return -1, unix.EBUSY
		}
		return setAskingFilter(&prog)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, fmt.Errorf("set the system-call filter: %w: a kernel with CONFIG_SECCOMP_FILTER, and a container profile that permits it, brings it", errno)
	}
	return -1, nil
}

func auditArch() (uint32, bool) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, true
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, true
	}
	return 0, false
}

// filterProgram is the whole filter. Each block ends with the system-call number in the accumulator.
func filterProgram(arch uint32, plan socketPlan) []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		refuse(unix.ENOSYS),
		bpf.LoadAbsolute{Off: dataNumber, Size: 4},
	}
	if arch == unix.AUDIT_ARCH_X86_64 {
		// All of its numbers have this bit; minus one, by which a tracer skips a call, has it too.
		p = append(p, bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: x32Bit, SkipTrue: 1}, refuse(unix.ENOSYS))
	}
	denied := deniedCalls()
	if !plan.ownIPC {
		denied = append(denied, letterBoxes()...)
	}
	for _, nr := range denied {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: 1}, refuse(unix.EPERM))
	}
	p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1}, refuse(unix.ENOSYS))
	p = append(p, whenCall(unix.SYS_CLONE, refuseBits(0, newNamespaces)...)...)
	if !plan.ownNetwork {
		// Opening a connection with the first data goes past Landlock's check of connect(2).
		p = append(p, whenCall(unix.SYS_SENDTO, refuseBits(3, unix.MSG_FASTOPEN)...)...)
		p = append(p, whenCall(unix.SYS_SENDMSG, refuseBits(2, unix.MSG_FASTOPEN)...)...)
		p = append(p, whenCall(unix.SYS_SENDMMSG, refuseBits(3, unix.MSG_FASTOPEN)...)...)
	}
	// Landlock lets a process change the limits of others of its user, the harness among them.
	p = append(p, whenCall(unix.SYS_PRLIMIT64, allowOnlyValue(0, 0)...)...)
	// Typing into the terminal of whoever started us.
	p = append(p, whenCall(unix.SYS_IOCTL, refuseValues(1, unix.TIOCSTI, unix.TIOCLINUX)...)...)
	p = append(p, whenCall(unix.SYS_SOCKETPAIR, allowOnlyValue(0, unix.AF_UNIX)...)...)
	p = append(p, whenCall(unix.SYS_SOCKET, socketRules(plan)...)...)
	return append(p, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}

const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// whenCall runs a block, which must return or fall off its end, for one system call only.
func whenCall(nr uint32, block ...bpf.Instruction) []bpf.Instruction {
	out := []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: uint8(len(block) + 1)}}
	out = append(out, block...)
	return append(out, bpf.LoadAbsolute{Off: dataNumber, Size: 4})
}

// loadArg loads the low half of an argument; both machines are little-endian.
func loadArg(n uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: dataArgs + 8*n, Size: 4}
}

func refuseBits(arg, bits uint32) []bpf.Instruction {
	return []bpf.Instruction{
		loadArg(arg),
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: bits, SkipTrue: 1},
		refuse(unix.EPERM),
	}
}

func refuseValues(arg uint32, values ...uint32) []bpf.Instruction {
	out := []bpf.Instruction{loadArg(arg)}
	for _, v := range values {
		out = append(out, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: 1}, refuse(unix.EPERM))
	}
	return out
}

func allowOnlyValue(arg, value uint32) []bpf.Instruction {
	return []bpf.Instruction{
		loadArg(arg),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipTrue: 1},
		refuse(unix.EPERM),
	}
}

// socketRules is the allow list of sockets: everything else, datagrams, raw packets, virtual machines'
// and other stream protocols that Landlock does not know (MPTCP, SCTP, SMC), is refused. In a network
// namespace of its own datagrams reach its loopback only, and are allowed.
func socketRules(plan socketPlan) []bpf.Instruction {
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	p := []bpf.Instruction{loadArg(0)}
	if !plan.noUnix {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_UNIX, SkipTrue: 1}, allow)
	}
	// Listing one's own interfaces: many servers and runtimes do it at start, and it changes nothing.
	p = append(p,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_NETLINK, SkipTrue: 4},
		loadArg(2),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.NETLINK_ROUTE, SkipTrue: 1}, allow,
		refuse(unix.EPERM),
	)
	if plan.noInternet {
		return append(p, refuse(unix.EPERM))
	}
	if plan.asks {
		// Bound to ::1 a socket could be bound anew to another address of IPv4; a machine without IPv6 says this.
		p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_INET6, SkipTrue: 1}, refuse(unix.EAFNOSUPPORT))
		allow = bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF}
	}
	p = append(p,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1},
		refuse(unix.EPERM),
		loadArg(1),
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf}, // the rest are flags
	)
	if plan.ownNetwork {
		p = append(p,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SOCK_DGRAM, SkipTrue: 5},
			loadArg(2),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_UDP, SkipTrue: 1},
			allow,
			refuse(unix.EPERM),
		)
	}
	return append(p,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 1},
		refuse(unix.EPERM),
		loadArg(2),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 1},
		// What a kernel without the protocol answers: servers that prefer MPTCP then use TCP.
		refuse(unix.EPROTONOSUPPORT),
		allow,
	)
}

// deniedCalls are refused whatever their arguments.
func deniedCalls() []uint32 {
	return append([]uint32{
		// looking into and steering other processes
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
		unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		// the view of the file system
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT,
		unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_MOUNT_SETATTR, openTreeAttr, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		// namespaces
		unix.SYS_UNSHARE, unix.SYS_SETNS,
		// the kernel's programmable and most attacked parts
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		// keys of the session
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		// the machine
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
		unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_SETTIMEOFDAY,
		unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	}, deniedCallsArch()...)
}

// letterBoxes make and find what outlives its maker and every other process of the user finds: a way to
// leave word for the next run, unless the IPC namespace goes with the tree.
func letterBoxes() []uint32 {
	return []uint32{
		unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_SHMAT, unix.SYS_MSGRCV, unix.SYS_MSGSND, unix.SYS_MQ_OPEN,
	}
}

// openTreeAttr is open_tree_attr(2), Linux 6.15, the same number everywhere.
const openTreeAttr = 467
