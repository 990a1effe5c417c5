package sandbox

import (
	"errors"
	"fmt"
	"strings"
)

// Why a command was not started. Callers decide on these with errors.Is; the text names the program,
// the place and the next step.
var (
	// ErrProgramMissing: no such program in the PATH of Command.Env (a shell's 127).
	ErrProgramMissing = errors.New("program not found")
	// ErrProgramDenied: the program is there and may not be executed (a shell's 126).
	ErrProgramDenied = errors.New("program may not be executed")
)

// StartError says that a command was never started. Err is ErrProgramMissing, ErrProgramDenied or a
// fault of the system.
type StartError struct {
	Program string
	Detail  string
	Err     error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("start %q: %v: %s", e.Program, e.Err, e.Detail)
}

func (e *StartError) Unwrap() error { return e.Err }

// UnenforcedError says that sandbox: strict refused to start, and what is missing.
type UnenforcedError struct {
	Missing []Enforced // each with a Detail that says what would bring it
}

func (e *UnenforcedError) Error() string {
	parts := make([]string, len(e.Missing))
	for i, m := range e.Missing {
		parts[i] = m.Name + ": " + m.Detail
	}
	return "sandbox: strict refuses to start, because this machine cannot enforce " + strings.Join(parts, "; ") +
		" (bring what is missing, or accept the rest with sandbox: auto)"
}

// LeftoverError says that processes outlived every attempt to kill them: nothing may be started, and
// nothing they could have written may be trusted.
type LeftoverError struct {
	PIDs []int
}

func (e *LeftoverError) Error() string {
	return fmt.Sprintf("kill the process tree: %d processes are still alive (%v); they run as another user or hang in the kernel: end them by hand before the next run", len(e.PIDs), e.PIDs)
}
