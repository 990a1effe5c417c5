package sandbox

import (
	"golang.org/x/sys/unix"
)

// applyLimits sets the limits that hold for the child and everything below it.
func applyLimits(l Limits) error {
	for _, r := range []struct {
		what int
		max  uint64
	}{
		{unix.RLIMIT_CORE, 0}, // a core file would hold what the process knows
		{unix.RLIMIT_FSIZE, uint64(l.FileBytes)},
		{unix.RLIMIT_NOFILE, uint64(l.OpenFiles)},
		{unix.RLIMIT_MEMLOCK, 8 << 20},
	} {
		if err := lower(r.what, r.max); err != nil {
			return err
		}
	}
	return nil
}

// lower never asks for more than the harness itself may have.
func lower(what int, limit uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(what, &now); err != nil {
		return err
	}
	if limit > now.Max {
		limit = now.Max
	}
	return unix.Prlimit(0, what, &unix.Rlimit{Cur: limit, Max: limit}, nil)
}

// The kernel counts threads of the user, on the whole machine; we count processes of the tree. The
// kernel's limit is therefore the wall far behind the fence: it keeps a fork bomb finite between two
// looks of the watcher, which then ends the tree and says why.
func taskLimit(processes int) uint64 { return uint64(2*processes + 512) }

// limitProcesses sets the soft limit that the program inherits, and gives back the way to lift it from
// the child, which may run as the same user and must still be able to start threads.
func limitProcesses(processes int) (restore func(), err error) {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &now); err != nil {
		return nil, err
	}
	limit := min(taskLimit(processes), now.Max)
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: limit, Max: now.Max}); err != nil {
		return nil, err
	}
	return func() { _ = unix.Setrlimit(unix.RLIMIT_NPROC, &now) }, nil
}

// capProcesses makes the program's limit final. It has only just been executed.
func capProcesses(pid, processes int) {
	limit := taskLimit(processes)
	var now unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_NPROC, nil, &now) == nil {
		limit = min(limit, now.Max)
		_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: limit, Max: limit}, nil)
	}
}
