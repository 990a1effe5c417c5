package loop

// Terminal is how a run ended. The words are the ones of the record, the outputs and the docs.
type Terminal string

// The terminals the loop itself can reach. publish_failed and refused belong to the stations
// around it.
const (
	Done             Terminal = "done"
	AlreadySatisfied Terminal = "already_satisfied"
	StoppedBudget    Terminal = "stopped_budget"
	StoppedTime      Terminal = "stopped_time"
	NoProgress       Terminal = "no_progress"
	ReviewStall      Terminal = "review_stall"
	PlanStall        Terminal = "plan_stall"
	Overfit          Terminal = "overfit"
	TickCap          Terminal = "tick_cap"
	SafetyHalt       Terminal = "safety_halt"
	GateBroken       Terminal = "gate_broken"
	GateFlaky        Terminal = "gate_flaky"
	JudgeUnavailable Terminal = "judge_unavailable"
	AgentUnavailable Terminal = "agent_unavailable"
	Cancelled        Terminal = "cancelled"
)

// precedence orders the terminals that can hold in one tick, strongest first. A cancel is told even
// when the work was just proved, because nothing may be published after it; a broken rule outranks
// every excuse for it; a fault of the infrastructure outranks a verdict that rests on it.
var precedence = [...]Terminal{
	Cancelled, SafetyHalt,
	AgentUnavailable, JudgeUnavailable, GateBroken, GateFlaky,
	Done, AlreadySatisfied,
	StoppedBudget, StoppedTime,
	Overfit, NoProgress, ReviewStall, PlanStall, TickCap,
}

// Stop is a terminal with its reason.
type Stop struct {
	Terminal Terminal `json:"terminal"`
	Reason   string   `json:"reason"` // one sentence, names numbers
	Next     string   `json:"next,omitempty"`
}

// strongest picks the stop that outranks the others; ok is false when there is none.
func strongest(stops []Stop) (Stop, bool) {
	for _, t := range precedence {
		for _, s := range stops {
			if s.Terminal == t {
				return s, true
			}
		}
	}
	return Stop{}, false
}
