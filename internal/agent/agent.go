// Package agent owns how a coding agent is started and how what it prints is read. It must never
// say that the work is right: an Outcome tells how a call ended, exit codes of gates tell the rest.
package agent

import (
	"context"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// Kind tells how one call of an agent ended.
type Kind string

// The outcomes (shared vocabulary of every adapter).
const (
	OK           Kind = "ok"
	AgentError   Kind = "agent_error"   // it failed in its own way; one is feedback, three equal ones are not
	LimitTurns   Kind = "limit_turns"   // its own cap on turns
	LimitBudget  Kind = "limit_budget"  // its own or the meter's cap on money
	LimitUsage   Kind = "limit_usage"   // a plan's quota: no retry before it resets
	LimitRate    Kind = "limit_rate"    // a short throttle or overload
	Auth         Kind = "auth"          // the key or login was refused
	Incomplete   Kind = "incomplete"    // it ended without saying how
	Timeout      Kind = "timeout"       // we ended it
	RefusedStart Kind = "refused_start" // it could not be started at all
)

// Task is one call.
type Task struct {
	Run     string
	Tick    int    // from 1
	Dir     string // agent/: the only place it may change
	Home    string // HOME, outside Dir, kept between ticks of a run
	Tmp     string // TMPDIR, outside Dir
	Prompt  string // a fixed text of ours plus data in fences; goes to stdin
	Model   string // empty: the agent's own default
	Args    []string
	Timeout time.Duration
	Grace   time.Duration // between SIGTERM and SIGKILL; 0 means 2 s
	Gateway Gateway
}

// Gateway is how the agent reaches a model: the meter's loopback address and the run's nonce. Zero
// when the agent needs none.
type Gateway struct {
	BaseURL string // "http://127.0.0.1:PORT"
	Nonce   string // stands where the API key would
	Port    uint16 // for confinement's allow list
}

// Usage is what the agent itself claims; the meter's count is the one that is billed.
type Usage struct {
	InputTokens, OutputTokens, CacheRead, CacheWrite int64
	CostUSD                                          money.USD
	CostKnown                                        bool
	Turns                                            int
}

// Outcome of one call.
type Outcome struct {
	Kind      Kind
	Detail    string // one line, ours or the agent's, made printable, at most 500 bytes
	Next      string // what a person does about it, for kinds that stop the run
	ExitCode  int
	Signal    string
	Duration  time.Duration
	Usage     Usage
	Final     string        // the agent's last words, untrusted, at most 64 KiB
	RetryIn   time.Duration // for LimitRate: as told by the provider; 0 unknown
	ResetAt   time.Time     // for LimitUsage: zero when unknown
	Skipped   int           // lines of the stream that were no event
	Stderr    string        // tail, at most 8 KiB
	Denied    []string      // tools that were asked for and not permitted
	Survivors int           // processes that outlived the agent and were killed
	Excess    string        // which limit of the sandbox ended it, in words, whatever it had told before
	Lasting   bool          // the same call would fail the same way again
	Session   string        // the agent's own name for the conversation, untrusted
	Warnings  []string      // "bad_line", "killed_after_result", "permission_denials", …: noticed, not decided on
}

// Event is one thing an agent did, for the live account. Text is untrusted and at most 300 bytes.
type Event struct {
	Kind string // "start", "message", "tool", "result", "noise"
	Tool string
	Text string
}

// Agent is one adapter. Run starts a process, waits until it and all its descendants are gone, and
// reads what it printed. It returns an error only for a fault of the harness itself (a full disk,
// a sandbox that cannot be set up); whatever the agent does is an Outcome. It never retries.
type Agent interface {
	Name() string
	// Check says whether the agent could be started, without spending: nil, or an error that names
	// what is missing and the command that brings it.
	Check(ctx context.Context) error
	Run(ctx context.Context, task Task, on func(Event)) (Outcome, error)
}
