package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// launched is what became of the attempt to start the program.
type launched struct {
	enforced []Enforced
	pid      int // 0 when nothing was started
	failed   *failure
}

// launch confines one thread of the child and forks the program from it. Landlock domains, seccomp
// filters and no_new_privs belong to threads and are inherited across fork, so the rest of the child
// stays free to watch, signal and reap. The thread is kept, blocked, for the life of the child: the
// program's death signal hangs on it.
func launch(s spec) launched {
	answer := make(chan launched, 1)
	offMainThread(func() { answer <- start(s) })
	return <-answer
}

// offMainThread runs do on a thread of its own, never the main one, and keeps that thread for good. The
// kernel takes the main thread for the process: were it the one in the program's Landlock domain, the
// program would be among its own and could signal its keeper.
func offMainThread(do func()) {
	go func() {
		runtime.LockOSThread() // never unlocked
		if unix.Gettid() == unix.Getpid() {
			offMainThread(do) // we hold the main thread, so that the next one cannot be it
		} else {
			do()
		}
		select {}
	}()
}

// find looks for the program.
func (s *spec) find() {
	if s.Probe {
		return
	}
	path, _ := lookupEnv(s.Env, "PATH")
	s.program, s.missing = findProgram(s.Argv[0], s.Dir, path, func(file string) error {
		if s.User == nil || s.Namespaces.Temp && within(file, sharedPlaces()) || strings.HasPrefix(file, "/proc/") {
			return nil // as who we are; or by way of directories that are made anew
		}
		return closedTo(file, *s.User, false)
	})
}

func start(s spec) launched {
	if s.Probe {
		lines, _ := confine(s)
		return launched{enforced: lines}
	}
	program := s.program
	if s.missing != nil {
		return launched{failed: s.missing}
	}
	lines, sockets := confine(s)
	if sockets >= 0 {
		go giveSockets(sockets)
	}
	l := launched{enforced: lines}
	if s.Mode == Strict {
		if lacking := inactive(l.enforced); len(lacking) > 0 {
			l.failed = &failure{Kind: "strict"}
			return l
		}
	}
	restore, err := limitProcesses(s.Limits.Processes)
	if err != nil {
		l.failed = &failure{Kind: "system", Detail: "limit the number of processes: " + err.Error()}
		return l
	}
	defer restore()
	l.pid, err = syscall.ForkExec(program, s.Argv, &syscall.ProcAttr{
		Dir:   s.Dir,
		Env:   s.Env,
		Files: []uintptr{0, 1, 2},
		// A session of its own: no controlling terminal, and one group to address.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: credential(s.User)},
	})
	if err != nil {
		l.pid, l.failed = 0, startFailure(program, err, s.User)
		if _, err := os.Stat(program); errors.Is(err, unix.ENOENT) {
			// It was there before the places of the policy were all that is left.
			l.failed = startFailure(program, unix.EACCES, s.User)
		}
		return l
	}
	capProcesses(l.pid, s.Limits.Processes)
	return l
}

// credential drops every supplementary group too: the docker group is as good as root.
func credential(user *Identity) *syscall.Credential {
	if user == nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(user.UID), Gid: uint32(user.GID), Groups: []uint32{}}
}

func startFailure(program string, err error, user *Identity) *failure {
	f := &failure{Kind: "system", Program: program, Detail: err.Error()}
	switch {
	case errors.Is(err, unix.ENOENT):
		f.Kind, f.Detail = "missing", "its interpreter (the first line of a script, or the loader) does not exist here"
	case errors.Is(err, unix.ENOEXEC):
		f.Kind, f.Detail = "denied", "it is neither a program for this machine nor a script with a first line #!INTERPRETER"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		f.Kind = "denied"
		f.Detail = "its directory is not among those that confinement lets it read: add the directory of the toolchain"
		if user != nil {
			f.Detail = fmt.Sprintf("its directory is not among those that confinement lets it read, or user %d may not enter it: add the directory of the toolchain, and install it where every user can read it", user.UID)
		}
	}
	return f
}

// inactive are the lines that strict refuses to start without.
func inactive(all []Enforced) []Enforced {
	var out []Enforced
	for _, e := range all {
		if !e.Active && !e.Optional {
			out = append(out, e)
		}
	}
	return out
}

// outliveSignals keeps the child alive when somebody signals it: its tree must not lose its keeper. The
// signals are caught, not ignored, because ignoring would be inherited by the program.
func outliveSignals() {
	drop := make(chan os.Signal, 1)
	signal.Notify(drop, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2)
}

// dropStdio lets go of the program's streams, so that their other ends see when the tree is done
// with them, and nothing of ours can be written among its output.
func dropStdio() error {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	defer func() { _ = unix.Close(null) }()
	for fd := range 3 {
		if err := unix.Dup3(null, fd, unix.O_CLOEXEC); err != nil {
			return fmt.Errorf("drop stream %d: %w", fd, err)
		}
	}
	return nil
}
