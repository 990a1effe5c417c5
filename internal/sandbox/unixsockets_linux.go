package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// socketPlan is what the filter does about sockets.
type socketPlan struct {
	noInternet bool  // no AF_INET and AF_INET6 at all
	asks       bool  // the supervisor makes its TCP sockets, which reach loopback only
	unasked    error // why it does not, where it should
	noUnix     bool  // no AF_UNIX but for socketpair(2)
	unixWhy    string
	ownNetwork bool // so that nothing is to be kept from loopback
	ownIPC     bool // so that nothing that is left there is found again
}

// planSockets closes by seccomp what this kernel's Landlock cannot: ports before ABI 4 (only when no
// port is wanted at all), and connections to named unix sockets before ABI 9. The latter are the way to
// a container engine or a session bus, which start processes outside every confinement.
func planSockets(s spec, abi int) socketPlan {
	p := socketPlan{
		noInternet: !s.Namespaces.Network && abi < 4 && len(s.Ports) == 0,
		asks:       !s.Namespaces.Network && abi >= 4 && len(s.Ports) > 0,
		ownNetwork: s.Namespaces.Network, ownIPC: s.Namespaces.IPC,
	}
	switch {
	case abi >= 9:
		p.unixWhy = fmt.Sprintf("only to servers of its own (Landlock ABI %d)", abi)
	case abi < 6:
		p.noUnix, p.unixWhy = true, "none (seccomp): this Landlock cannot keep it from servers outside; Linux 6.12 or later can"
	case s.User == nil:
		p.noUnix, p.unixWhy = true, "none (seccomp): as the harness's own user it could reach a session bus or container engine; start the harness as root, or use Landlock ABI 9"
	default:
		if open := reachableSocket(s); open != "" {
			p.noUnix, p.unixWhy = true, fmt.Sprintf("none (seccomp): %s is open to every user", open)
			return p
		}
		p.unixWhy = "kept from foreign servers by file permissions and Landlock's scope"
	}
	return p
}

// engineSockets may be mounted into a container from outside, where /proc/net/unix does not list them.
func engineSockets() []string {
	return []string{
		"/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock",
		"/run/crio/crio.sock", "/run/buildkit/buildkitd.sock",
	}
}

// reachableSocket finds a listening socket with a name that the user could connect to, but for those of
// the operating system, which every unprivileged user may reach and which do nothing for one.
func reachableSocket(s spec) string {
	for _, path := range append(engineSockets(), s.Listening...) {
		if within(path, []string{"/run/systemd", "/run/dbus", "/run/nscd", "/run/udev", "/run/avahi-daemon", "/run/uuidd"}) ||
			strings.HasPrefix(path, "/run/snapd") || within(path, s.ReadWrite) {
			continue
		}
		// A name that is relative to its server's directory could be anywhere.
		if !filepath.IsAbs(path) || mayConnect(path, *s.User) {
			return path
		}
	}
	return ""
}

// listeningSockets are the named stream sockets of this network namespace. The harness looks, because a
// supervisor in a namespace of its own sees none and could yet connect to them.
func listeningSockets() []string {
	return settled(func() []string {
		// /proc/net is that of the process's first thread, which may be in a network namespace of its own.
		text, err := os.ReadFile("/proc/thread-self/net/unix")
		if err != nil {
			return nil
		}
		return namesOfListeners(string(text))
	})
}

// settled is all that the readings name, of which the last two named nothing new. The kernel's list leaves a
// socket out where another one of its hash bucket is closed between two reads (7 of 20 000 lists on a busy
// machine).
func settled(read func() []string) []string {
	const most = 32 // for a machine that makes new ones all the time
	var out []string
	for silent, n := 0, 0; silent < 2 && n < most; n++ {
		silent++
		for _, path := range read() {
			if !slices.Contains(out, path) {
				out, silent = append(out, path), 0
			}
		}
	}
	return out
}

// namesOfListeners reads the kernel's list: Num RefCount Protocol Flags Type St Inode Path.
func namesOfListeners(list string) []string {
	const accepting = "00010000" // __SO_ACCEPTCON
	var out []string
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) < 8 || fields[3] != accepting || strings.HasPrefix(fields[7], "@") {
			continue
		}
		_, path, _ := strings.Cut(line, fields[6]+" ") // which may have spaces
		out = append(out, strings.Replace(strings.TrimSuffix(path, "\n"), "/var/run/", "/run/", 1))
	}
	return out
}

// mayConnect says whether the user may write to the socket and enter every directory above it.
func mayConnect(path string, user Identity) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK || !permits(st, user, 0o2) {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
		if unix.Stat(dir, &st) != nil || !permits(st, user, 0o1) {
			return false
		}
		if dir == "/" {
			return true
		}
	}
}

// permits is the kernel's rule for a user without privileges and supplementary groups. bit is one of
// 4 (read), 2 (write) and 1 (execute or enter).
func permits(st unix.Stat_t, user Identity, bit uint32) bool {
	switch {
	case int(st.Uid) == user.UID:
		bit <<= 6
	case int(st.Gid) == user.GID:
		bit <<= 3
	}
	return st.Mode&bit != 0
}
