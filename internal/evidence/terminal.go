package evidence

import "github.com/proctor-ci/proctor/internal/money"

// Names of the terminals. Every run ends in exactly one.
const (
	Done             = "done"
	AlreadySatisfied = "already_satisfied"
	Answered         = "answered"     // a comment's command was answered, or there was none in it: no run
	Reproduced       = "reproduced"   // by command: a proof was repeated and is what it was claimed to be
	Differs          = "differs"      // by command: a proof was repeated and is not
	NotRepeated      = "not_repeated" // by command: a proof could not be repeated here
	Approved         = "approved"     // by command: the reviewer approves the whole change
	Rejected         = "rejected"     // by command: the reviewer rejects it
	StoppedBudget    = "stopped_budget"
	StoppedTime      = "stopped_time"
	NoProgress       = "no_progress"
	ReviewStall      = "review_stall"
	PlanStall        = "plan_stall"
	Overfit          = "overfit"
	TickCap          = "tick_cap"
	NotReproduced    = "not_reproduced" // of a run split into jobs: the proof did not hold on the second machine
	SafetyHalt       = "safety_halt"
	GateBroken       = "gate_broken"
	GateFlaky        = "gate_flaky"
	JudgeUnavailable = "judge_unavailable"
	AgentUnavailable = "agent_unavailable"
	InternalError    = "internal_error" // a fault of the harness itself: a full disk, a panic
	PublishFailed    = "publish_failed"
	Refused          = "refused"
	Cancelled        = "cancelled"
	UsageError       = "usage_error" // a wrong flag, input or configuration
)

// Terminal is one way for a run to end: its exit code, what people are told it means, and what they
// do next when the run has nothing more exact to say.
type Terminal struct {
	Name      string
	Exit      int
	Title     string // two or three words for a heading
	Meaning   string // one sentence
	Next      string
	Resumable bool
}

// Terminals lists every terminal in the order of the documentation. The slice is the caller's own.
func Terminals() []Terminal {
	return []Terminal{
		{Done, 0, "Proved", "The change passed every gate in a pristine checkout of exactly this commit.",
			"Review the change and decide.", false},
		{AlreadySatisfied, 0, "Already satisfied", "There was nothing to do, and the gates showed it.",
			"Close the issue, or add an acceptance test that shows what is missing.", false},
		{Answered, 0, "Answered", "The comment asked for no run: its command was answered, or there was none in it.",
			"Read the answer below the comment.", false},
		{Reproduced, 0, "Reproduced", "The proof was repeated in a clean checkout, and every id and every gate is what was claimed.",
			"Review the change and decide.", false},
		{Differs, 2, "Differs", "The proof was repeated, and something is not what was claimed.",
			"Do not merge on the strength of the claim: read what differs, then have the change worked on or proved anew.", false},
		{NotRepeated, 5, "Not repeated", "The proof could not be repeated here. That says nothing about the change.",
			"Mend what the reason names, such as a program that is missing in the job, then write the command again.", false},
		{Approved, 0, "Approved", "The reviewer read the whole change once more and approves it. No gate ran.",
			"Review the change and decide.", false},
		{Rejected, 2, "Rejected", "The reviewer read the whole change once more and rejects it. Nothing was closed and nothing was changed.",
			"Read the findings and decide: have them worked on, or overrule them by merging.", false},
		{StoppedBudget, 3, "Stopped: budget", "The money ceiling was reached. The work is kept.",
			"Raise stops.max_cost_usd or the budget, then add the label again to resume.", true},
		{StoppedTime, 3, "Stopped: time", "The time ceiling was reached. The work is kept.",
			"Raise stops.max_duration, then add the label again to resume.", true},
		{NoProgress, 2, "No progress", "The agent stopped getting closer: the same trees or the same failures came back.",
			"Read the last failure, then make the issue more exact or take over from the kept commit.", true},
		{ReviewStall, 2, "Review stall", "The gates are green but the reviewer keeps rejecting the change.",
			"Read the findings and decide: correct the rubric, or take over from the kept commit.", true},
		{PlanStall, 2, "Plan stall", "The run stopped getting items of its plan done.",
			"Read what came of the first open item; split it, say it more plainly, or do it by hand and tick it off.", true},
		{Overfit, 2, "Overfit", "The visible tests pass and the held-out acceptance gate does not.",
			"Look at the change: it satisfies the tests it could see and not the goal. Make the issue more exact.", true},
		{TickCap, 2, "Tick cap", "The largest number of ticks was reached without a proof.",
			"Read the last failure; raise stops.max_ticks and add the label again to go on.", true},
		{NotReproduced, 2, "Not reproduced", "The agent's job calls the change proved, and the proof did not hold when another job repeated it on a fresh machine.",
			"Look for what the two machines have different (a tool, a service, a cache, the clock), and at the change: it may know where it runs.", false},
		{SafetyHalt, 4, "Safety halt", "A guard rule was broken. The branch is back at the last good commit.",
			"Read the finding. If the change is wanted, a person makes it, or the policy allows it on the default branch.", false},
		{GateBroken, 5, "Gate broken", "A gate could not start, so nothing could be proved.",
			"Run the gate's command on a clean checkout, mend it, then add the label again.", true},
		{GateFlaky, 5, "Gate flaky", "A gate gave two answers on the same tree, so its answer proves nothing.",
			"Make the gate repeatable, then add the label again.", true},
		{JudgeUnavailable, 5, "Reviewer unavailable", "The reviewer gave no usable verdict. That is not a rejection.",
			"Check the reviewer's model, key and quota, then add the label again to resume.", true},
		{AgentUnavailable, 5, "Agent unavailable", "The agent could not be started or could not reach its model.",
			"Check the agent's installation, key and quota, then add the label again to resume.", true},
		{InternalError, 5, "Internal error", "Proctor itself failed. That says nothing about the change.",
			"Read the log, then add the label again to resume; report it if it comes back.", true},
		{PublishFailed, 6, "Not published", "The change was proved but could not be published. The commit is kept.",
			"Do what the message says, then add the label again to resume.", true},
		{Refused, 7, "Refused", "This request may not start a run here.",
			"See the reason: who may ask, and how, is set in the trigger section of the configuration.", false},
		{Cancelled, 130, "Cancelled", "The run was asked to stop. The work is kept.",
			"Add the label again to resume.", true},
		{UsageError, 1, "Usage error", "A flag, an input or the configuration is wrong.",
			"Correct what the message names and run again.", false},
	}
}

// FindTerminal returns the terminal of that name.
func FindTerminal(name string) (Terminal, bool) {
	for _, t := range Terminals() {
		if t.Name == name {
			return t, true
		}
	}
	return Terminal{}, false
}

// Finish sets the terminal, its exit code, the reason, and what to do next; an empty next takes the
// table's. An unknown name becomes InternalError and the reason says so: a run never ends without an exit code.
func (r *Record) Finish(name, reason, next string) {
	t, ok := FindTerminal(name)
	if !ok {
		t, _ = FindTerminal(InternalError)
		reason = "the run ended as " + name + ", which is no terminal: " + reason
	}
	if next == "" {
		next = t.Next
	}
	r.Terminal, r.ExitCode, r.Reason, r.Next = t.Name, t.Exit, reason, next
}

// Settle fills the totals from the ticks, the calls and the two times, each tick's cost from its
// calls, so that they reconcile. earlier is what the issue had cost before this run.
//
// The run's length is taken by the monotonic clock where the times carry it, and Ended follows from
// it: a machine's clock that is set while a run goes on must not make a proved run look wrong.
func (r *Record) Settle(earlier money.USD) {
	length := max(0, r.Ended.Sub(r.Started))
	r.Started = r.Started.UTC()
	r.Ended = r.Started.Add(length)
	byTick := map[int]money.USD{}
	total := money.USD(0)
	for _, c := range r.Calls {
		byTick[c.Tick] = byTick[c.Tick].Add(c.CostUSD)
		total = total.Add(c.CostUSD)
	}
	for i := range r.Ticks {
		r.Ticks[i].CostUSD = byTick[r.Ticks[i].N]
	}
	r.Totals = Totals{
		Ticks: len(r.Ticks), Calls: len(r.Calls), CostUSD: total,
		Millis: length.Milliseconds(), IssueUSD: earlier.Add(total),
	}
}
