package sandbox

import (
	"encoding/json"
	"os"

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
	unix.CloseOnExec(controlFD)
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
	t := &tree{spec: s, out: out}
	return t.mind(in)
}

func failed(out *json.Encoder, kind, detail string) int {
	if out.Encode(report{Failed: &failure{Kind: kind, Detail: detail}}) != nil {
		return childBroken
	}
	return childDone
}
