package loop

import (
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// Observation is the answer to one action. Spent, Elapsed and Cancelled are always set; of the rest
// only what belongs to the phase.
type Observation struct {
	Spent     money.USD     // by this process so far, every model call
	Elapsed   time.Duration // since this process began the run
	Cancelled bool

	Baseline Baseline
	Agent    AgentSeen
	Snapshot SnapshotSeen
	Guard    GuardSeen
	Gate     GateSeen
	Review   ReviewSeen
	Proof    ProofSeen
}

// GateStatus is a gate's result as the loop needs it.
type GateStatus string

// What a gate can say. The zero value is no answer, which is never a pass.
const (
	GatePassed  GateStatus = "passed"
	GateFailed  GateStatus = "failed"
	GateWasted  GateStatus = "broken"
	GateFlaked  GateStatus = "flaky"
	GateStopped GateStatus = "stopped"
)

// GateSeen is one gate run.
type GateSeen struct {
	Status      GateStatus
	Fingerprint string // normalised; empty when passed
	Detail      string // one line
	Feedback    string // for the prompt; empty for a sealed gate
	Exit        int
	TimedOut    bool
	From        string // who tells the feedback when it is not the gate itself: "setup", "fail_first"
	Command     string // of what failed, when From is set
}

// Baseline is tick 0: the gates on the base commit.
type Baseline struct {
	Iteration  GateSeen
	Regression GateSeen // zero when not configured
	Acceptance GateSeen // zero when there is none, or it was not asked to run on the base
}

// AgentHealth is what an agent's outcome means to the loop.
type AgentHealth string

// Healthy calls may end in done. Unhealthy ones are fed back; Gone ones end the run, because the
// next call would end the same way (a refused key, a used-up quota, a missing program).
const (
	AgentHealthy   AgentHealth = "healthy"
	AgentUnhealthy AgentHealth = "unhealthy"
	AgentGone      AgentHealth = "gone"
)

// AgentSeen is how a call ended.
type AgentSeen struct {
	Health AgentHealth
	Kind   string // the outcome's word; equal kinds in a row count
	Detail string
	Next   string
	Broke  bool // what is left does not pay for another call
	Sticky bool // counts as an equal failure even when the tree changed (a crash, not a time-out)
}

// SnapshotSeen is the candidate.
type SnapshotSeen struct {
	Commit Commit
	Claims []int // items of the plan that the agent's files call done
}

// GuardLevel is the guard's worst finding.
type GuardLevel string

// Levels as the loop needs them. GuardBlock commits are never kept: the agent mends them in the
// next tick. The zero value is no answer and treated as GuardHalt.
const (
	GuardPass  GuardLevel = "pass"
	GuardBlock GuardLevel = "block"
	GuardHalt  GuardLevel = "halt"
)

// GuardSeen is the guard's verdict.
type GuardSeen struct {
	Level    GuardLevel
	Detail   string
	Feedback string
}

// ReviewSeen is the judge's verdict. Neither Approved nor Rejected means that there was none.
type ReviewSeen struct {
	Approved    bool
	Rejected    bool
	OverBudget  bool // there was none because asking would have passed the ceiling
	Fingerprint string
	Detail      string
	Feedback    string
}

// ProofSeen is the proof in the pristine checkout.
type ProofSeen struct {
	Stopped    bool // by the clock or a cancel: says nothing
	Passed     bool
	Broken     bool
	Acceptance bool   // it was the held-out gate that failed
	Gate       string // the name of the gate that failed
	Count      string // with feedback: count, "3 of 7 failed"; else empty
}
