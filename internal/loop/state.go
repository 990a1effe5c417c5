package loop

import (
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// StateVersion is the version of State's JSON form, as it lies beside a checkpoint.
const StateVersion = 1

// Limits bound a run. They are fixed when it starts, from the base commit's configuration and what
// the door narrowed.
type Limits struct {
	MaxTicks    int
	MaxCost     money.USD     // over the whole run, resumes included; the smallest of the ceilings that apply
	CostCeiling string        // which ceiling MaxCost is, by its key: the reason and the next step name it
	MaxDuration time.Duration // of this process; a resumed run gets a new clock, never new money
	Reserve     time.Duration // kept back from MaxDuration so that publishing always fits

	NoProgressAfter  int // stale ticks in a row
	ReviewStallAfter int // rejections in a row
	Attempts         int // red acceptance proofs
	AgentFailures    int // equal failures of the agent in a row
	PlanStallAfter   int // ticks in a row without an item of the plan getting done

	Regression bool // a regression gate is configured
	Review     bool // the judge is on
	MustFail   bool // acceptance must be red on the base
}

// Phase is what the controller waits for.
type Phase string

// Phases of a tick. An empty phase is a run that has not begun.
const (
	AtBaseline   Phase = "baseline"
	AtAgent      Phase = "agent"
	AtSnapshot   Phase = "snapshot"
	AtGuard      Phase = "guard"
	AtIteration  Phase = "iteration"
	AtRegression Phase = "regression"
	AtItem       Phase = "item" // the review of one item's share of the change
	AtReview     Phase = "review"
	AtProof      Phase = "proof"
	AtRestore    Phase = "restore"
	AtCheckpoint Phase = "checkpoint"
	AtEnd        Phase = "end"
)

// Commit is a snapshot: both ids, hex.
type Commit struct {
	ID   string `json:"commit"`
	Tree string `json:"tree"`
}

// State is everything a run knows about itself. It is plain data: a fresh runner that reads it from a
// checkpoint goes on with the same spend, attempts, verdicts and feedback.
type State struct {
	Version int    `json:"version"`
	Phase   Phase  `json:"phase"`
	Tick    int    `json:"tick"` // the tick in flight, or the last one
	Base    Commit `json:"base"`
	Good    Commit `json:"good"`      // the last commit the guard passed; the base before there is one
	Current Commit `json:"candidate"` // this tick's snapshot

	From Commit `json:"from,omitzero"` // where the work was taken up, when that alone cannot be its end; see On

	TickFloor int `json:"tick_floor"` // ticks of earlier askings; the cap counts from here

	IssueBefore money.USD `json:"issue_before_usd"` // spent on this issue by earlier askings

	Spent   money.USD `json:"spent_usd"` // over all processes of this run
	Earlier money.USD `json:"-"`         // spent before this process; Observation.Spent is added to it

	Trees        []string        `json:"trees"`        // seen, base first
	Fingerprints []string        `json:"fingerprints"` // of failures seen
	Stale        int             `json:"stale"`
	Rejections   int             `json:"rejections"`
	RedProofs    int             `json:"red_proofs"` // acceptance only
	Failures     int             `json:"agent_failures"`
	Failure      string          `json:"agent_failure,omitempty"` // the one that repeats
	Verdicts     map[string]bool `json:"verdicts"`                // judge's verdict per tree id
	Healthy      bool            `json:"healthy"`                 // this tick's agent call ended well

	Plan      []Item          `json:"plan,omitempty"`
	PlanFrom  Commit          `json:"plan_from,omitzero"` // where the last item was ticked off; the base before
	PlanStale int             `json:"plan_stale,omitempty"`
	Shares    map[string]bool `json:"shares,omitempty"` // reviewer's verdict per item and delta

	Feedback []Feedback `json:"feedback"` // for the next tick's prompt
	Pending  []Stop     `json:"pending"`  // stops that hold in this tick
	End      *Stop      `json:"end,omitempty"`
}

// Feedback is one thing the agent is told about its last tick. Text never comes from a sealed gate.
type Feedback struct {
	From     string `json:"from"`            // "agent", "guard", "plan", "setup", "iteration", "regression", "fail_first", "review", "proof"
	Gate     string `json:"gate,omitempty"`  // proof: the gate that failed; setup: the command
	Count    string `json:"count,omitempty"` // proof, with feedback: count: "3 of 7 failed"
	Exit     int    `json:"exit,omitempty"`  // of a gate outside the proof
	TimedOut bool   `json:"timed_out,omitempty"`
	Text     string `json:"text"`
}

// Begin is the state of a run that starts on base.
func Begin(base Commit) State {
	return State{
		Version: StateVersion, Phase: AtBaseline, Base: base, Good: base,
		Trees: []string{base.Tree}, Verdicts: map[string]bool{},
	}
}

// On is a run that has not begun and works on what others left: its first commit is put on start. Where
// something has to change, from is what the agent finds, whose tree is no result; zero: it may stay as it is.
func (s State) On(start, from Commit) State {
	s = s.clone()
	s.Good, s.From = start, from
	s.Trees = append(s.Trees, start.Tree)
	return s
}

// Resume is a saved state in a new process. States are saved at the end of a tick, so a tick that was in
// flight is begun again under its own number. The
// terminal is lifted, and what was spent, seen and decided stays. A run that was proved but not published
// goes straight to its proof, for nothing has to be paid twice.
//
// asked says that a person asked again (a label, a command), which is a new run over the same work: it gets the
// run's own ceilings anew, while the issue's spend, the verdicts and the red proofs stay.
func Resume(saved State, asked bool) State {
	s := saved.clone()
	proved := s.End != nil && s.End.Terminal == Done
	if last, held := strongest(s.Pending); s.End == nil && held {
		// The machine was lost between a tick's end and the run's.
		proved = last.Terminal == Done
	}
	s.Phase, s.End, s.Pending = AtBaseline, nil, nil
	if proved {
		s.Phase, s.Current, s.Healthy = AtProof, s.Good, true
	}
	if asked {
		s.IssueBefore = s.IssueBefore.Add(s.Spent)
		s.Spent, s.TickFloor = 0, s.Tick
		s.Stale, s.Rejections, s.Failures, s.Failure, s.PlanStale = 0, 0, 0, "", 0
	}
	s.Earlier = s.Spent
	return s
}
