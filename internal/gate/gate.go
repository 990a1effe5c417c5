// Package gate owns the commands whose exit codes decide. It must never read a verdict from what a
// command prints, nor run one with the harness's environment.
package gate

import "time"

// Class says where a gate stands in a tick.
type Class string

// Classes of gates.
const (
	Iteration  Class = "iteration"
	Regression Class = "regression"
	Acceptance Class = "acceptance"
	Setup      Class = "setup"
)

// Spec is one gate from the base commit's configuration.
type Spec struct {
	Class   Class
	Name    string
	Argv    []string // ["sh", "-c", line] for a line of shell
	Shown   string   // what a person reads instead of Argv; empty: Argv
	Timeout time.Duration
}

// Status of a gate that was asked to run.
type Status string

// Statuses. Broken means that it could not start or cannot have tested anything (exit 126, 127, a missing
// program): infrastructure, not a verdict.
const (
	Passed   Status = "passed"
	Failed   Status = "failed"
	Broken   Status = "broken"
	TimedOut Status = "timed_out"
	Stopped  Status = "stopped" // the run was cancelled
)

// Result of one gate run.
type Result struct {
	Class     Class
	Name      string
	Argv      []string
	Shown     string // of the Spec
	Status    Status
	ExitCode  int
	Signal    string
	Duration  time.Duration
	Digest    string // "sha256:…" of the whole output
	Bytes     int64
	Output    []byte // whole output up to 8 MiB head and 8 MiB tail; nil for a gate of the proof or when it was not to be kept
	Sealed    bool   // it ran beside held-out files: of it the agent hears name and status, nothing else
	Survivors int
	Excess    string // which limit of the sandbox ended it, in words; of a sealed gate nothing is said
	Detail    string // one line: why it is broken, what limit it met
}
