package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// plan is what is tried for a tree: everything, until this machine has refused some of it.
func (b *Box) plan(mode Mode) (Namespaces, map[string]string) {
	if mode == Off {
		return Namespaces{}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	want := AllNamespaces()
	want.User = !mayMakeNamespaces()
	if b.refused == nil {
		b.refused = b.pretend.pretended(want.User)
	}
	return want.without(b.refused), maps.Clone(b.refused)
}

func (b *Box) refuse(refused map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.Copy(b.refused, refused)
}

// mayMakeNamespaces says whether the harness can do without a user namespace.
func mayMakeNamespaces() bool {
	return os.Geteuid() == 0 && hasCapabilities(unix.CAP_SYS_ADMIN)
}

// attributes start a supervisor in the namespaces. It keeps what it needs to furnish them, and gives
// none of it on.
func (n Namespaces) attributes() *syscall.SysProcAttr {
	// Out of reach of the terminal's Ctrl-C: we decide when a tree ends.
	attr := &syscall.SysProcAttr{Setpgid: true}
	if !n.any() {
		return attr
	}
	for _, f := range []struct {
		on    bool
		flags uintptr
	}{
		{n.Network, unix.CLONE_NEWNET},
		{n.Temp, unix.CLONE_NEWNS},
		{n.Processes, unix.CLONE_NEWPID | unix.CLONE_NEWNS},
		{n.IPC, unix.CLONE_NEWIPC | unix.CLONE_NEWUTS},
		{n.User, unix.CLONE_NEWUSER},
	} {
		if f.on {
			attr.Cloneflags |= f.flags
		}
	}
	if n.User {
		attr.AmbientCaps = []uintptr{
			unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETUID, unix.CAP_SETGID,
			unix.CAP_SETPCAP, unix.CAP_KILL, unix.CAP_CHOWN, unix.CAP_FOWNER, unix.CAP_DAC_OVERRIDE, unix.CAP_SYS_PTRACE,
		}
	}
	return attr
}

// mapUsers makes the users of a new user namespace the same as outside: all of them where the harness is
// root, else its own. The supervisor has been executed by now: before that it was a copy of the harness,
// whose files in /proc are closed to the harness's own user once it has hardened itself.
func mapUsers(pid int) error {
	dir := "/proc/" + strconv.Itoa(pid)
	uids, gids := fmt.Sprintf("%d %[1]d 1\n", os.Geteuid()), fmt.Sprintf("%d %[1]d 1\n", os.Getegid())
	if os.Geteuid() == 0 {
		uids, gids = sameIDs("/proc/self/uid_map"), sameIDs("/proc/self/gid_map")
	} else if err := os.WriteFile(dir+"/setgroups", []byte("deny"), 0); err != nil {
		return fmt.Errorf("map users: %w", err)
	}
	if err := os.WriteFile(dir+"/uid_map", []byte(uids), 0); err != nil {
		return fmt.Errorf("map users: %w", err)
	}
	if err := os.WriteFile(dir+"/gid_map", []byte(gids), 0); err != nil {
		return fmt.Errorf("map groups: %w", err)
	}
	return nil
}

// sameIDs maps every id of this user namespace to itself.
func sameIDs(file string) string {
	raw, _ := os.ReadFile(file)
	var out strings.Builder
	for line := range strings.Lines(string(raw)) {
		var inside, outside, count int64
		if n, _ := fmt.Sscan(line, &inside, &outside, &count); n == 3 {
			fmt.Fprintf(&out, "%d %d %d\n", inside, inside, count)
		}
	}
	return out.String()
}

// namespaceError says that this machine refused to make namespaces at all.
type namespaceError struct{ err error }

func (e *namespaceError) Error() string { return "make namespaces: " + e.err.Error() }
func (e *namespaceError) Unwrap() error { return e.err }

// refusedByMachine tells a machine that has no (more) such namespaces from other faults.
func refusedByMachine(err error) bool {
	for _, e := range []error{unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOSPC, unix.EUSERS, unix.ENOSYS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// open starts a supervisor in as many namespaces as there are to be had, and hands it its task. What
// the machine refuses is remembered, so that the search is made once.
func (b *Box) open(s spec, stdin, stdout, stderr *os.File) (*session, error) {
	if s.User != nil {
		s.Listening = listeningSockets()
	}
	for {
		s.Namespaces, s.Refused = b.plan(s.Mode)
		c, lacking, err := b.try(s, stdin, stdout, stderr)
		var none *namespaceError
		switch {
		case errors.As(err, &none):
			if lacking, err = b.eachAlone(s, none); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		case len(lacking) == 0:
			return c, nil
		}
		b.refuse(lacking)
		b.log.Debug("namespaces refused", "kinds", len(lacking))
	}
}

// try gives a session, or what the supervisor found refused.
func (b *Box) try(s spec, stdin, stdout, stderr *os.File) (*session, map[string]string, error) {
	c, err := b.start(s, stdin, stdout, stderr)
	if err != nil || !s.Namespaces.any() {
		return c, nil, err
	}
	r, open := <-c.reports
	switch {
	case !open:
		err = c.broken()
	case r.Failed != nil:
		err = startError(r)
	case len(r.Lacking) == 0:
		ports := s.Ports
		if !s.Namespaces.Network {
			ports = nil
		}
		if err = c.carry(ports); err == nil {
			return c, nil, nil
		}
	}
	c.close()
	return nil, r.Lacking, err
}

// eachAlone finds out which kinds are refused when all together were.
func (b *Box) eachAlone(s spec, together error) (map[string]string, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	refused := map[string]string{}
	kinds := s.Namespaces.kinds()
	for _, kind := range kinds {
		one := spec{Mode: s.Mode, Probe: true, Limits: s.Limits, Pretend: s.Pretend, Namespaces: s.Namespaces.only(kind)}
		c, lacking, err := b.try(one, null, null, null)
		var none *namespaceError
		switch {
		case errors.As(err, &none):
			refused[kind] = none.Error()
		case err != nil:
			return nil, err
		case len(lacking) > 0:
			maps.Copy(refused, lacking)
		default:
			c.close()
		}
	}
	if len(refused) == 0 {
		// Each by itself and not together: do without rather than try for ever.
		for _, kind := range kinds {
			refused[kind] = together.Error()
		}
	}
	return refused, nil
}
