package evidence

import (
	"fmt"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// Progress is a run as its events tell it so far. It holds no text of strangers but names, and is
// what the status comment and a watcher show while the run goes on.
type Progress struct {
	Run, RunURL, Repo  string
	Issue              int
	Actor, Agent       string
	Cause              string // why it began, where nobody asked
	MaxTicks           int
	MaxCost, Cost      money.USD
	Calls              int
	Started, Updated   time.Time
	Baseline           []Step
	Ticks              []TickProgress
	Now                string // what is being done at this moment
	Terminal, Reason   string
	Branch, PublishURL string
	Notes              []string
}

// TickProgress is one tick so far.
type TickProgress struct {
	N       int
	Steps   []Step
	Verdict string
	Cost    money.USD
}

// Step is one station that was passed. Mark is "passed", "failed", … as gates have it.
type Step struct{ Name, Mark, Detail string }

// Apply takes the next event in. Kinds it does not know change nothing but the time.
func (p *Progress) Apply(e Event) {
	if p.Started.IsZero() {
		p.Started = e.Time
	}
	p.Updated = e.Time
	switch e.Kind {
	case RunStarted:
		p.Run, p.RunURL, p.Repo, p.Issue = e.Text(KeyRun), e.Text(KeyRunURL), e.Text(KeyRepo), int(e.Int(KeyIssue))
		p.Actor, p.Agent, p.Cause = e.Text(KeyActor), e.Text(KeyAgent), e.Text(KeyCause)
		p.MaxTicks, p.MaxCost = int(e.Int(KeyMaxTicks)), e.USD(KeyMaxCost)
		p.Now = "preparing the run"
	case TickStarted:
		p.tick(e.Tick)
		p.Now = "starting the agent"
	case AgentStarted, AgentEvent:
		p.Now = "the agent is at work"
	case AgentEnded:
		p.step(e, Step{"agent", outcomeMark(e.Text(KeyOutcome)), strings.ReplaceAll(e.Text(KeyOutcome), "_", " ")})
		p.Now = "taking the snapshot"
	case Snapshot:
		p.step(e, Step{"snapshot", "passed", count(int(e.Int(KeyFiles)), "file") + " at " + short(e.Text(KeyCommit))})
		p.Now = "checking the patch policy"
	case Guard:
		p.step(e, guardStep(e))
	case GateStarted:
		p.Now = fmt.Sprintf("the %s gate is running on the %s", e.gate().label(), place(e.Text(KeyWhere)))
	case GateEnded:
		g := e.gate()
		p.step(e, Step{g.label(), g.Status, place(g.Where)})
		p.Now = ""
	case ReviewEvent:
		m, d := "failed", "rejected"
		if e.Bool(KeyApproved) {
			m, d = "passed", "approved"
		}
		p.step(e, Step{"review", m, d})
		p.Now = ""
	case PlanProgress:
		m := "passed"
		if e.Text(KeyStatus) == "rejected" {
			m = "failed"
		}
		p.step(e, Step{fmt.Sprintf("item %d", e.Int(KeyNumber)), m, e.Text(KeyStatus)})
		p.Now = ""
	case ProofStarted:
		p.Now = "proving the commit in a pristine checkout"
	case ModelCall:
		p.Calls++
		p.Cost = p.Cost.Add(e.USD(KeyCost))
		if t := p.tick(e.Tick); t != nil {
			t.Cost = t.Cost.Add(e.USD(KeyCost))
		}
	case TickEnded:
		if t := p.tick(e.Tick); t != nil {
			t.Verdict = strings.ReplaceAll(e.Text(KeyVerdict), "_", " ")
		}
		p.Now = ""
	case Ended:
		p.Terminal, p.Reason = e.Text(KeyTerminal), e.Text(KeyReason)
		p.Now = "finishing"
	case PublishedPR:
		p.Branch, p.PublishURL = e.Text(KeyBranch), e.Text(KeyURL)
	case Note:
		p.Notes = append(p.Notes, e.Text(KeyNote))
	case RunEnded:
		p.Now = ""
	}
}

func (e Event) gate() Gate {
	g := Gate{Class: e.Text(KeyClass), Name: e.Text(KeyGate), Where: e.Text(KeyWhere), Status: e.Text(KeyStatus)}
	return g
}

// tick returns the tick of that number, made when it is the first to be heard of; nil for 0.
func (p *Progress) tick(n int) *TickProgress {
	if n <= 0 {
		return nil
	}
	for i := range p.Ticks {
		if p.Ticks[i].N == n {
			return &p.Ticks[i]
		}
	}
	p.Ticks = append(p.Ticks, TickProgress{N: n})
	return &p.Ticks[len(p.Ticks)-1]
}

func (p *Progress) step(e Event, s Step) {
	if t := p.tick(e.Tick); t != nil {
		t.Steps = append(t.Steps, s)
		return
	}
	p.Baseline = append(p.Baseline, s)
}

func outcomeMark(outcome string) string {
	switch outcome {
	case "ok":
		return "passed"
	case "timeout":
		return "timed_out"
	}
	return "failed"
}

func guardStep(e Event) Step {
	switch e.Text(KeyLevel) {
	case "halt", "block":
		return Step{"patch policy", "failed", e.Text(KeyRule) + " " + e.Text(KeyPath)}
	case "flag":
		return Step{"patch policy", "passed", count(int(e.Int(KeyFindings)), "remark")}
	}
	return Step{"patch policy", "passed", ""}
}
