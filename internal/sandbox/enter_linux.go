package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// furnish makes the new namespaces fit to live in, from inside. It runs before anything is confined, and
// says which of them this machine does not let us furnish.
func furnish(s *spec) (refused map[string]string) {
	refused = map[string]string{}
	n := s.Namespaces
	if n.Temp || n.Processes {
		// Nothing that is mounted from here on may be seen outside.
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			why := "keep mounts private: " + err.Error()
			refused[lineTemp], refused[lineProcesses] = why, why
			n.Temp, n.Processes = false, false
		}
	}
	if n.Network {
		if err := raiseLoopback(); err != nil {
			refused[lineNetwork] = err.Error()
		}
	}
	if n.Temp {
		var err error
		if s.private, err = privateTemp(*s); err != nil {
			refused[lineTemp] = err.Error()
		}
	}
	if n.Processes {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			refused[lineProcesses] = "mount /proc: " + err.Error()
		}
	}
	if n.IPC {
		// A name that every machine can resolve: its own is nobody's business. A container's profile may
		// refuse that, and then its name is the container's.
		_ = unix.Sethostname([]byte("localhost"))
	}
	return refused
}

// raiseLoopback starts the one interface of a new network namespace.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("raise the loopback interface: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("raise the loopback interface: %w", err)
	}
	return nil
}

// doors are listeners on this network namespace's loopback, one for each port, for the harness to serve.
func doors(ports []uint16) ([]int, error) {
	var fds []int
	for _, port := range ports {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("listen on port %d: %w", port, err)
		}
		fds = append(fds, fd)
		at := &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}
		if err := unix.Bind(fd, at); err != nil {
			return nil, fmt.Errorf("listen on port %d: %w", port, err)
		}
		if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
			return nil, fmt.Errorf("listen on port %d: %w", port, err)
		}
	}
	return fds, nil
}
