package sandbox

import (
	"encoding/json"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// selfExe starts the running binary again, also when its file was replaced since.
const selfExe = "/proc/self/exe"

// Child must be the first call of every main (and TestMain) whose process starts a Box. In the harness
// it returns at once. In the process that a Box started from the same binary it confines and starts
// the untrusted program, minds its tree until nothing of it is left, and never returns.
func Child() {
	if len(os.Args) == 0 || os.Args[0] != shimName {
		return
	}
	// Not os.Exit: exit hooks of the binary (coverage, profiles) would write to the program's output.
	unix.Exit(supervise())
}

// Exit codes of the child itself, for the log; what the program did is told in the report.
const (
	childDone   = 0
	childUsage  = 96
	childBroken = 97
)

func supervise() int {
	if err := keepFiles(); err != nil {
		return childUsage
	}
	if _, err := unix.GetsockoptInt(controlFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return childUsage // somebody gave a program this name by hand
	}
	control := os.NewFile(controlFD, "control")
	in := json.NewDecoder(control)
	out := json.NewEncoder(control)
	var s spec
	if err := in.Decode(&s); err != nil {
		return childUsage
	}
	// Whatever the tree leaves behind comes to us, however it was forked.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return failed(out, "system", "become the reaper of the process tree: "+err.Error())
	}
	// Nothing untrusted may look into us or stop us by tracing; the tree may run as the same user.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return failed(out, "system", "make the supervisor non-dumpable: "+err.Error())
	}
	outliveSignals()
	// Before the machine looks different, so that what is missing is told from what is closed.
	s.find()
	if s.Namespaces.any() {
		refused, err := settle(&s)
		switch {
		case err != nil:
			return failed(out, "system", err.Error())
		case len(refused) > 0:
			if out.Encode(report{Lacking: refused}) != nil {
				return childBroken
			}
			return childDone
		}
	}
	t := &tree{spec: s, out: out}
	return t.mind(in)
}

// keepFiles keeps every open file but the three streams from the program. The harness may itself have been started with
// more (a job server's pipe, a lock, a file that a step of the job opened), they came down to us, and Landlock
// says nothing of a file that is open.
func keepFiles() error {
	err := unix.CloseRange(controlFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// Linux before 5.11, and container profiles that do not know the call.
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd >= controlFD {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// settle furnishes the namespaces and sends the harness its doors.
func settle(s *spec) (refused map[string]string, err error) {
	if refused = furnish(s); len(refused) > 0 {
		return refused, nil
	}
	var fds []int
	if s.Namespaces.Network {
		if fds, err = doors(s.Ports); err != nil {
			return nil, err
		}
	}
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	// An empty report: files can only come with bytes.
	return nil, unix.Sendmsg(controlFD, []byte("{}\n"), rights, nil, 0)
}

func failed(out *json.Encoder, kind, detail string) int {
	if out.Encode(report{Failed: &failure{Kind: kind, Detail: detail}}) != nil {
		return childBroken
	}
	return childDone
}
