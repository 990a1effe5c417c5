package telemetry

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
)

// spans turns the events of a run into a tree: run, its ticks, in each the agent with its model calls, the review, the
// proof, and gates where they ran.
type spans struct {
	ids ids

	mu      sync.Mutex
	run     *span
	tick    *span
	agent   *span
	proof   *span
	gates   map[string]*span // open ones, by name and place
	reviews []*span          // the reviewer's calls that no verdict has claimed yet
	done    []*span
	dead    bool // no id could be drawn: nothing more is told
}

func newSpans(random io.Reader) (*spans, error) {
	d, err := newIDs(random)
	return &spans{ids: d, gates: map[string]*span{}}, err
}

// open begins a span. Where no id can be drawn, it is one that nobody will see.
func (s *spans) open(parent *span, name string, at time.Time) *span {
	id, err := s.ids.draw(8)
	if err != nil {
		s.dead = true
		return &span{}
	}
	out := &span{id: id, name: name, kind: kindInternal, start: at}
	if parent != nil {
		out.parent = parent.id
	}
	return out
}

// finish ends one span.
func (s *spans) finish(p *span, at time.Time) {
	if p == nil {
		return
	}
	if p.end = at; p.end.Before(p.start) {
		p.end = p.start
	}
	s.done = append(s.done, p)
}

func (s *spans) apply(e evidence.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		s.run = s.open(nil, "proctor run", e.Time)
	}
	switch e.Kind {
	case evidence.RunStarted:
		for _, k := range []string{evidence.KeyRun, evidence.KeyRepo, evidence.KeyAgent, evidence.KeyBase} {
			s.run.set("proctor."+k, e.Text(k))
		}
		s.run.set("proctor.issue", e.Int(evidence.KeyIssue))
	case evidence.TickStarted:
		s.endTick(e.Time)
		s.tick = s.open(s.run, fmt.Sprintf("tick %d", e.Tick), e.Time)
		s.tick.set("proctor.tick", int64(e.Tick))
	case evidence.AgentStarted:
		s.endAgent(e.Time)
		s.agent = s.open(s.inTick(), "invoke_agent "+e.Text(evidence.KeyAgent), e.Time)
		s.agent.set("gen_ai.operation.name", "invoke_agent")
		s.agent.set("gen_ai.agent.name", e.Text(evidence.KeyAgent))
		s.agent.set("gen_ai.request.model", e.Text(evidence.KeyModel))
	case evidence.AgentEnded:
		s.agentEnded(e)
	case evidence.ModelCall:
		s.call(e)
	case evidence.ReviewEvent:
		s.review(e)
	case evidence.ProofStarted:
		s.finish(s.proof, e.Time)
		s.proof = s.open(s.inTick(), "proof", e.Time)
		s.proof.set("proctor.commit", e.Text(evidence.KeyCommit))
	case evidence.ProofEnded:
		if s.proof != nil {
			s.judge(s.proof, e.Text(evidence.KeyStatus))
			s.finish(s.proof, e.Time)
			s.proof = nil
		}
	case evidence.GateStarted:
		s.gateStarted(e)
	case evidence.GateEnded:
		s.gateEnded(e)
	case evidence.TickEnded:
		if s.tick != nil {
			s.tick.set("proctor.verdict", e.Text(evidence.KeyVerdict))
			s.tick.set("proctor.cost_usd", dollars(e))
		}
		s.endTick(e.Time)
	case evidence.Ended:
		s.run.set("proctor.terminal", e.Text(evidence.KeyTerminal))
		s.run.set("proctor.exit_code", e.Int(evidence.KeyExitCode))
		if e.Int(evidence.KeyExitCode) != 0 {
			s.run.failed = e.Text(evidence.KeyTerminal)
		}
	}
}

func (s *spans) agentEnded(e evidence.Event) {
	if s.agent == nil {
		return
	}
	outcome := e.Text(evidence.KeyOutcome)
	s.agent.set("proctor.outcome", outcome)
	s.agent.set("proctor.turns", e.Int(evidence.KeyTurns))
	if outcome != "ok" {
		s.agent.failed = outcome
		s.agent.set("error.type", outcome)
	}
	s.endAgent(e.Time)
}

// call is told when it is booked, and says how long it took.
func (s *spans) call(e evidence.Event) {
	model, purpose := e.Text(evidence.KeyModel), e.Text(evidence.KeyPurpose)
	parent := s.inTick()
	if purpose == "agent" && s.agent != nil {
		parent = s.agent
	}
	c := s.open(parent, "chat "+model, e.Time.Add(-time.Duration(e.Int(evidence.KeyMillis))*time.Millisecond))
	c.kind = kindClient
	c.set("gen_ai.operation.name", "chat")
	c.set("gen_ai.provider.name", provider(model))
	c.set("gen_ai.request.model", model)
	read, write := e.Int(evidence.KeyCacheRead), e.Int(evidence.KeyCacheWrite)
	c.set("gen_ai.usage.input_tokens", e.Int(evidence.KeyInput)+read+write) // by convention the cached ones count in
	c.set("gen_ai.usage.cache_read.input_tokens", read)
	c.set("gen_ai.usage.cache_creation.input_tokens", write)
	c.set("gen_ai.usage.output_tokens", e.Int(evidence.KeyOutput))
	c.set("proctor.purpose", purpose)
	c.set("proctor.cost_usd", dollars(e))
	status := e.Int(evidence.KeyStatus)
	c.set("http.response.status_code", status)
	if status != 200 {
		c.failed = strconv.FormatInt(status, 10)
		c.set("error.type", c.failed)
	}
	if purpose == "review" {
		c.end = e.Time
		s.reviews = append(s.reviews, c)
		return
	}
	s.finish(c, e.Time)
}

// provider names whose API it is. A model of another vendor is asked over OpenAI's.
func provider(model string) string {
	switch {
	case strings.HasPrefix(model, "claude"):
		return "anthropic"
	case strings.HasPrefix(model, "gemini"):
		return "gcp.gemini"
	}
	return "openai"
}

// review begins with its first call; one that was answered from memory takes no time.
func (s *spans) review(e evidence.Event) {
	start := e.Time
	for _, c := range s.reviews {
		if c.start.Before(start) {
			start = c.start
		}
	}
	r := s.open(s.inTick(), "review", start)
	r.set("proctor.approved", e.Bool(evidence.KeyApproved))
	r.set("proctor.cached", e.Bool(evidence.KeyCached))
	r.set("proctor.findings", e.Int(evidence.KeyFindings))
	for _, c := range s.reviews {
		c.parent = r.id
	}
	s.endReviews()
	s.finish(r, e.Time)
}

func (s *spans) gateStarted(e evidence.Event) {
	parent := s.run
	switch {
	case e.Text(evidence.KeyWhere) == "proof" && s.proof != nil:
		parent = s.proof
	case e.Tick > 0:
		parent = s.inTick()
	}
	g := s.open(parent, "gate "+e.Text(evidence.KeyGate), e.Time)
	for _, k := range []string{evidence.KeyClass, evidence.KeyGate, evidence.KeyWhere} {
		g.set("proctor."+k, e.Text(k))
	}
	s.gates[gateKey(e)] = g
}

func (s *spans) gateEnded(e evidence.Event) {
	g := s.gates[gateKey(e)]
	if g == nil {
		return
	}
	delete(s.gates, gateKey(e))
	s.judge(g, e.Text(evidence.KeyStatus))
	s.finish(g, e.Time)
}

func gateKey(e evidence.Event) string {
	return e.Text(evidence.KeyWhere) + "\n" + e.Text(evidence.KeyGate)
}

// judge notes a status that gates have.
func (s *spans) judge(p *span, status string) {
	p.set("proctor.status", status)
	if status != "passed" {
		p.failed = status
	}
}

func dollars(e evidence.Event) any {
	f, err := strconv.ParseFloat(e.USD(evidence.KeyCost).Decimal(), 64)
	if err != nil {
		return nil
	}
	return f
}

func (s *spans) inTick() *span {
	if s.tick != nil {
		return s.tick
	}
	return s.run
}

func (s *spans) endReviews() {
	for _, c := range s.reviews {
		s.finish(c, c.end)
	}
	s.reviews = nil
}

func (s *spans) endAgent(at time.Time) {
	s.finish(s.agent, at)
	s.agent = nil
}

func (s *spans) endTick(at time.Time) {
	for k, g := range s.gates {
		s.finish(g, at)
		delete(s.gates, k)
	}
	s.finish(s.proof, at)
	s.proof = nil
	s.endAgent(at)
	s.endReviews()
	s.finish(s.tick, at)
	s.tick = nil
}

// close ends everything, the run last.
func (s *spans) close(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endTick(at)
	s.finish(s.run, at)
	s.run = nil
}

// ended takes away what has ended since the last time.
func (s *spans) ended() []*span {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.done
	s.done = nil
	if s.dead {
		return nil
	}
	return out
}
