package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// Runner starts untrusted process trees; *sandbox.Box is one.
type Runner interface {
	// Run waits until the tree is gone. An error means that nothing was started, or that what was
	// started could not be ended; whatever a tree does is a Result.
	Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error)
}

// Options of an adapter. Runner is required, the rest has defaults.
type Options struct {
	Runner Runner
	// Sandbox is what every call of this agent may reach beside the task's own directories and
	// gateway: mode, egress ports, limits, toolchains.
	Sandbox sandbox.Policy
	// Path is a list of directories that are searched for programs before the system's own.
	Path []string
	// Program is the agent's executable; empty: looked up by its usual name in Path and the system's
	// places. For the command agent it is ignored.
	Program string
	// Command is the argument list of the command agent.
	Command []string
	// Plan is the plan of the script agent, YAML or JSON.
	Plan []byte
	// Env is added to the environment of the agent's process, "NAME=value". It must hold no secret.
	Env []string
	// ResultGrace is how long a process may stay silent after it has told its result before it is
	// ended; 0 means 10 s. Some CLIs hang on open handles then.
	ResultGrace time.Duration
	Rand        io.Reader // nil: crypto/rand; for names that an earlier tick cannot guess
	Log         *slog.Logger
}

type builder func(Options) (Agent, error)

func builders() map[string]builder {
	return map[string]builder{
		"anthropic":   newAnthropic,
		"claude-code": newClaudeCode,
		"codex":       newCodex,
		"command":     newCommand,
		"copilot":     newCopilot,
		"gemini":      newGemini,
		"openai":      newOpenAI,
		"opencode":    newOpenCode,
		"script":      newScript,
	}
}

// Names lists the agents that New knows, in order.
func Names() []string {
	var names []string
	for name := range builders() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// New returns an agent by name. Its errors are the user's: an unknown name, a plan that cannot be
// read, a missing command.
func New(name string, o Options) (Agent, error) {
	build, ok := builders()[name]
	if !ok {
		return nil, fmt.Errorf("agent %q is not known: agent.name can be %s", printable(name, 40), strings.Join(Names(), ", "))
	}
	if o.Runner == nil {
		return nil, fmt.Errorf("agent %s: no runner to start it with", name)
	}
	if o.ResultGrace <= 0 {
		o.ResultGrace = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return build(o)
}

// env is the environment of an agent's process, built from nothing.
func (o Options) env(t Task, more ...string) []string {
	env := sandbox.WithPath(sandbox.BaseEnv(t.Home, t.Tmp), o.Path...)
	return slices.Concat(env, o.Env, more)
}

// policy is what the process of one call may reach.
func (o Options) policy(t Task, readOnly ...string) sandbox.Policy {
	p := o.Sandbox
	p.ReadWrite = slices.Concat(p.ReadWrite, []string{t.Dir, t.Home, t.Tmp})
	p.ReadOnly = slices.Concat(p.ReadOnly, readOnly)
	if t.Gateway.Port != 0 {
		p.ConnectPorts = append(slices.Clone(p.ConnectPorts), t.Gateway.Port)
	}
	return p
}
