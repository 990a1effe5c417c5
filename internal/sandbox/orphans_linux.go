package sandbox

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes the harness the next reaper above its supervisors. It is needed for one case
// only: a supervisor that is killed itself, by the kernel for want of memory or by a person.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: become the reaper of orphaned processes: %w", err)
	}
	return nil
}

// killOrphans kills the trees that dead supervisors left to us: children in a session that is not
// ours. What the harness starts itself (git, supervisors) stays in its own session and is not touched,
// nor is what lies below a living supervisor.
func killOrphans() (killed int, left []int) {
	self, ok := readProc(os.Getpid())
	if !ok {
		return 0, nil
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		left = nil
		for _, p := range descendants(self.pid) {
			if p.parent != self.pid || p.session == self.session {
				continue
			}
			killed += len(killBelow(p.pid)) + 1
			_ = p.signal(unix.SIGKILL)
			left = append(left, p.pid)
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return killed, left
		}
		for _, pid := range left {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		time.Sleep(time.Millisecond)
	}
}
