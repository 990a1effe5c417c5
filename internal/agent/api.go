package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/proctor-ci/proctor/internal/agent/toolloop"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// apiAgent works over a bare model API with a tool loop of our own. The loop runs in a child of this program,
// confined like any CLI: what the model asks for is done by the agent's user, and the child knows no key.
type apiAgent struct {
	o            Options
	name         string
	api          toolloop.API
	defaultModel string // empty: the configuration has to name one
}

func newAnthropic(o Options) (Agent, error) {
	return &apiAgent{o: o, name: "anthropic", api: toolloop.Anthropic, defaultModel: "claude-sonnet-4-5"}, nil
}

func newOpenAI(o Options) (Agent, error) {
	return &apiAgent{o: o, name: "openai", api: toolloop.Responses}, nil
}

func (a *apiAgent) Name() string { return a.name }

// Check finds nothing missing: the agent is this program.
func (*apiAgent) Check(context.Context) error { return nil }

// ToolLoopChild plays the tool loop when args say so, and reports whether it did and with which exit code to end. Every
// main (and TestMain) whose process runs an API agent calls it first, like ScriptChild.
func ToolLoopChild(args []string, stdin io.Reader, stdout io.Writer) (code int, ok bool) {
	if len(args) != 2 || args[1] != toolloop.Arg {
		return 0, false
	}
	// The commands that it runs have its user: they need not see its memory, nor write to its stdout.
	if err := sandbox.HardenSelf(); err != nil {
		fmt.Fprintln(os.Stderr, "the tool loop could not be shielded from the commands it runs:", err)
	}
	return toolloop.Main(stdin, stdout), true
}

// Run plays the loop once.
func (a *apiAgent) Run(ctx context.Context, t Task, on func(Event)) (Outcome, error) {
	return speak(ctx, a, t, on)
}

// Start starts the loop for a call that may come: it reads its order to the end of stdin first.
func (a *apiAgent) Start(ctx context.Context, t Task) (*Waiting, error) {
	return startAhead(ctx, a, t)
}

func (a *apiAgent) words(t Task) ([]byte, *Outcome, error) {
	order, err := a.order(t)
	if err != nil {
		return nil, refuse(err, "correct the keys below agent in the configuration"), nil
	}
	in, err := json.Marshal(order)
	if err != nil {
		err = fmt.Errorf("run agent %s: %w", a.name, err)
	}
	return in, nil, err
}

func (a *apiAgent) process(_ context.Context, t Task, on func(Event)) (job, *Outcome, error) {
	exe, err := os.Executable()
	if err != nil {
		return job{}, nil, fmt.Errorf("run agent %s: find this program: %w", a.name, err)
	}
	out := newStream(newLoopReader(on), on)
	return job{
		name: a.name, runner: a.o.Runner, grace: a.o.ResultGrace, secret: t.Gateway.Nonce, out: out,
		cmd: sandbox.Command{
			Argv: []string{scriptSelf, toolloop.Arg}, Env: a.o.env(t), Dir: t.Dir, Timeout: t.Timeout, Grace: t.Grace, Policy: a.o.policy(t, exe),
		},
		read: func(end ending) Outcome { return judge(out, end) },
	}, nil, nil
}

// order is what the child is told.
func (a *apiAgent) order(t Task) (toolloop.Order, error) {
	o := toolloop.Order{API: a.api, BaseURL: t.Gateway.BaseURL, Nonce: t.Gateway.Nonce, Model: t.Model, Prompt: strings.ToValidUTF8(t.Prompt, "\uFFFD")}
	if o.Model == "" {
		o.Model = a.defaultModel
	}
	switch {
	case strings.TrimSpace(t.Prompt) == "":
		return o, errors.New("the prompt is empty")
	case t.Gateway.BaseURL == "":
		return o, errors.New("this run has no model gateway: give the job a model key")
	case o.Model == "":
		return o, fmt.Errorf("agent %s has no model of its own: set agent.model", a.name)
	}
	for i, arg := range t.Args {
		if err := a.set(&o, arg); err != nil {
			return o, fmt.Errorf("agent.args[%d]: %w", i, err)
		}
	}
	return o, nil
}

// set takes one argument of the form --name=value.
func (a *apiAgent) set(o *toolloop.Order, arg string) error {
	name, value, _ := strings.Cut(arg, "=")
	number := func(least, most int64) (int64, error) {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("%s is %q: want a whole number from %d to %d", name, printable(value, 40), least, most)
		}
		return n, nil
	}
	var err error
	switch name {
	case "--max-turns":
		var n int64
		n, err = number(1, 10_000)
		o.MaxTurns = int(n)
	case "--max-output":
		o.MaxOutput, err = number(256, 1_000_000)
	case "--context":
		o.Context, err = number(4_000, 10_000_000)
	case "--api":
		if a.name != "openai" || value != string(toolloop.Responses) && value != string(toolloop.Chat) {
			return fmt.Errorf("%s: want --api=responses or --api=chat, with the agent openai", printable(arg, 80))
		}
		o.API = toolloop.API(value)
	case "--effort":
		if a.name != "openai" || value == "" || strings.Trim(value, "abcdefghijklmnopqrstuvwxyz") != "" {
			return fmt.Errorf("%s: want a word such as --effort=low, with the agent openai", printable(arg, 80))
		}
		o.Effort = value
	default:
		return fmt.Errorf("%s is not known: want --max-turns=N, --max-output=TOKENS, --context=TOKENS, --api=responses|chat or --effort=WORD", printable(arg, 80))
	}
	return err
}
