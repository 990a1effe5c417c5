package sandbox

import (
	"fmt"
	"os"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// confine restricts the calling thread, which must be locked, and says line by line what is in force.
// It goes on after a fault: what could not be applied is a line that is not active, and the caller
// decides whether that is enough.
//
// sockets is the file on which the thread, and what it starts, will ask for sockets: see giveSockets; -1: none.
func confine(s spec) (lines []Enforced, sockets int) {
	limits := Enforced{Name: "limits", Active: true, Detail: fmt.Sprintf("%d processes, %d MiB a file, %d open files, %d MiB of disk, %d MiB of output",
		s.Limits.Processes, s.Limits.FileBytes>>20, s.Limits.OpenFiles, s.Limits.DiskBytes>>20, s.Limits.Output>>20)}
	if err := applyLimits(s.Limits); err != nil {
		limits = Enforced{Name: "limits", Detail: "set resource limits: " + err.Error()}
	}
	descendants := Enforced{Name: "descendants", Active: true, Detail: "every descendant is reaped and killed by a supervisor of its own"}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		descendants = Enforced{Name: "descendants", Detail: "/proc is not mounted, so descendants cannot be found: mount it"}
	}
	if s.Mode == Off {
		out := make([]Enforced, 0, 8)
		for _, name := range []string{"user", "filesystem", "network-tcp", "network-udp", "unix-sockets", "syscalls"} {
			out = append(out, Enforced{Name: name, Detail: switchedOff})
		}
		out = append(out, limits, descendants)
		for _, name := range AllNamespaces().kinds() {
			out = append(out, Enforced{Name: name, Detail: switchedOff, Optional: true})
		}
		return out, -1
	}
	abi := landlockABI(s.Pretend)
	plan := planSockets(s, abi)
	fs, tcp := Enforced{Name: "filesystem"}, Enforced{Name: "network-tcp"}
	calls := Enforced{Name: "syscalls"}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		why := "set no_new_privs: " + err.Error() + ": Linux 3.5 or later, and a container profile that permits it, brings it"
		fs.Detail, tcp.Detail, calls.Detail = why, why, why
		return append([]Enforced{userLine(s, 0), fs, tcp, {Name: "network-udp", Detail: why}, {Name: "unix-sockets", Detail: why}, calls, limits, descendants}, namespaceLines(s)...), -1
	}
	if s.User == nil {
		dropCapabilities()
	}
	fsErr := restrictLandlock(s, abi, plan)
	if fsErr != nil {
		abi = 0
	}
	sockets, filterErr := restrictSyscalls(s, &plan)
	return append([]Enforced{
		userLine(s, abi), filesystemLine(abi, fsErr), tcpLine(s, abi, plan, fsErr, filterErr),
		udpLine(s, filterErr), unixLine(plan, filterErr), syscallLine(s, filterErr), limits, descendants,
	}, namespaceLines(s)...), sockets
}

const switchedOff = "switched off (sandbox: off); auto or strict brings it back"

// landlockABI is what the kernel offers: 0 means none.
func landlockABI(p Capability) int {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil || p.MaxLandlock < 0 {
		return 0
	}
	if p.MaxLandlock > 0 {
		abi = min(abi, p.MaxLandlock)
	}
	return abi
}

// dropCapabilities is for a tree that stays the harness's own user: where that is root, what is started
// is root by name only, and nobody inherits what the supervisor has in a user namespace. Without
// privileges there is nothing to drop, and that is no fault.
func dropCapabilities() {
	for c := range unix.CAP_LAST_CAP + 1 {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

func userLine(s spec, abi int) Enforced {
	const name = "user"
	switch {
	case s.User != nil:
		return Enforced{Name: name, Active: true, Detail: fmt.Sprintf("user %d of its own, without groups or privileges", s.User.UID)}
	case s.Namespaces.Processes:
		return Enforced{Name: name, Active: true, Detail: fmt.Sprintf("the harness's own user %d, in a process namespace where nothing else can be signalled or traced (start the harness as root for a user of its own)", os.Geteuid())}
	case abi >= 6:
		return Enforced{Name: name, Active: true, Detail: fmt.Sprintf("the harness's own user %d, its signals and traces kept inside by Landlock ABI %d (start the harness as root for a user of its own)", os.Geteuid(), abi)}
	default:
		return Enforced{Name: name, Detail: fmt.Sprintf("it runs as the harness's own user %d and may signal its processes: start the harness as root, or use Linux 6.12 or later (Landlock ABI 6; this has %d)", os.Geteuid(), abi)}
	}
}

func filesystemLine(abi int, err error) Enforced {
	e := Enforced{Name: "filesystem"}
	switch {
	case err != nil:
		e.Detail = err.Error()
	case abi == 0:
		e.Detail = "no Landlock: Linux 5.13 or later with landlock among its security modules (lsm=landlock,…), and a container profile that permits it, brings it"
	case abi < 3:
		e.Detail = fmt.Sprintf("Landlock ABI %d cannot refuse truncation of foreign files: Linux 6.2 or later brings it", abi)
	default:
		e.Active, e.Detail = true, fmt.Sprintf("Landlock ABI %d", abi)
	}
	return e
}

func tcpLine(s spec, abi int, plan socketPlan, fsErr, filterErr error) Enforced {
	e := Enforced{Name: "network-tcp"}
	switch {
	case filterErr != nil:
		e.Detail = "without a system-call filter other stream protocols stay open: " + filterErr.Error()
	case s.Namespaces.Network:
		e.Active, e.Detail = true, reachable(s)+" (network namespace)"
	case plan.noInternet:
		e.Active, e.Detail = true, "no internet sockets at all (seccomp)"
	case fsErr != nil:
		e.Detail = fsErr.Error()
	case abi < 4:
		e.Detail = fmt.Sprintf("Landlock ABI %d knows no ports: Linux 6.7 or later brings it", abi)
	case plan.asks:
		e.Active, e.Detail = true, fmt.Sprintf("connections to ports %v of this machine's loopback only (Landlock ABI %d, and sockets that the supervisor binds to it)", s.Ports, abi)
	case len(s.Ports) == 0:
		e.Active, e.Detail = true, fmt.Sprintf("no connection (Landlock ABI %d)", abi)
	default:
		e.Detail = fmt.Sprintf("connections to ports %v only, but on any host (Landlock ABI %d): no filter that asks the supervisor could be set: %v: a container manager that has one of its own (LXD, sysbox) is in the way; network namespaces bring it too", s.Ports, abi, plan.unasked)
	}
	return e
}

func udpLine(s spec, err error) Enforced {
	switch {
	case err != nil:
		return Enforced{Name: "network-udp", Detail: err.Error()}
	case s.Namespaces.Network:
		return Enforced{Name: "network-udp", Active: true, Detail: "its loopback and nothing else (network namespace); no raw sockets (seccomp)"}
	}
	return Enforced{Name: "network-udp", Active: true, Detail: "no datagram or raw sockets (seccomp)"}
}

func unixLine(plan socketPlan, err error) Enforced {
	e := Enforced{Name: "unix-sockets", Active: err == nil, Detail: plan.unixWhy}
	if err != nil {
		e.Detail = err.Error()
	}
	return e
}

func syscallLine(s spec, err error) Enforced {
	if err != nil {
		return Enforced{Name: "syscalls", Detail: err.Error()}
	}
	ipc := "System V IPC, "
	if s.Namespaces.IPC {
		ipc = ""
	}
	return Enforced{Name: "syscalls", Active: true, Detail: "no_new_privs and seccomp: no tracing, mounts, namespaces, bpf, keys, " + ipc + "io_uring or foreign system-call tables"}
}
