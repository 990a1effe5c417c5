package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// script plays a plan instead of asking a model: the test double, and the demo's agent. Its steps run
// in a process of their own, confined like any other agent.
type script struct {
	o    Options
	plan *Plan
}

func newScript(o Options) (Agent, error) {
	if len(bytes.TrimSpace(o.Plan)) == 0 {
		return nil, errors.New("agent script: no plan: give one as a file in the repository (.github/proctor-script.yml) or with --plan")
	}
	plan, err := ParsePlan(o.Plan)
	if err != nil {
		return nil, fmt.Errorf("agent script: %w", err)
	}
	return &script{o: o, plan: plan}, nil
}

func (*script) Name() string { return "script" }

// Check finds nothing missing: the agent is this program.
func (*script) Check(context.Context) error { return nil }

// scriptSelf starts the running binary again, also when its file was replaced since.
const scriptSelf = "/proc/self/exe"

// order is what the child process reads on stdin.
type order struct {
	Steps   []Step  `json:"steps"`
	Model   string  `json:"model"`
	Gateway Gateway `json:"gateway"`
}

// Run plays the steps of one tick.
func (s *script) Run(ctx context.Context, t Task, on func(Event)) (Outcome, error) {
	in, err := json.Marshal(order{Steps: s.plan.Tick(t.Tick), Model: t.Model, Gateway: t.Gateway})
	if err != nil {
		return Outcome{}, fmt.Errorf("run agent script: %w", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return Outcome{}, fmt.Errorf("run agent script: find this program: %w", err)
	}
	out := newStream(newScriptReader(on), on)
	return job{
		name: s.Name(), runner: s.o.Runner, grace: s.o.ResultGrace, secret: t.Gateway.Nonce, out: out,
		cmd: sandbox.Command{
			Argv: []string{scriptSelf, scriptArg}, Env: s.o.env(t), Dir: t.Dir,
			Stdin: bytes.NewReader(in), Timeout: t.Timeout, Grace: t.Grace, Policy: s.o.policy(t, exe),
		},
		read: func(end ending) Outcome { return judge(out, end) },
	}.run(ctx)
}

// scriptReader reads what the child prints.
type scriptReader struct {
	r  reading
	on func(Event)
}

func newScriptReader(on func(Event)) *scriptReader { return &scriptReader{on: on} }

func (s *scriptReader) reading() *reading { return &s.r }

// said is one line of the child's stream.
type said struct {
	Type   string `json:"type"` // "start", "message", "tool", "result"
	Tool   string `json:"tool,omitempty"`
	Text   string `json:"text,omitempty"`
	Kind   Kind   `json:"kind,omitempty"` // of a result
	Input  int64  `json:"input_tokens,omitempty"`
	Output int64  `json:"output_tokens,omitempty"`
	Turns  int    `json:"turns,omitempty"`
}

func (s *scriptReader) event(o object) bool {
	r := &s.r
	e := Event{Kind: o.str("type"), Tool: printable(o.str("tool"), 80), Text: printable(o.str("text"), eventMax)}
	switch e.Kind {
	case "start", "tool":
	case "message":
		r.last = o.str("text")
	case "result":
		r.terminal = true
		r.kind, r.failed, r.detail = Kind(o.str("kind")), false, o.str("text")
		r.usage.InputTokens, _ = o.count("input_tokens")
		r.usage.OutputTokens, _ = o.count("output_tokens")
		turns, _ := o.count("turns")
		r.usage.Turns = int(turns)
		switch r.kind {
		case OK:
		case LimitBudget, LimitUsage, LimitRate, Auth:
			r.failed = true
		default:
			r.kind, r.failed = AgentError, true
		}
	default:
		return false
	}
	if s.on != nil {
		s.on(e)
	}
	return true
}
