//go:build e2e

package agent

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// These tests drive the real Claude Code, confined, through the real meter, against a scripted model
// on loopback. Install it with: npm ci --ignore-scripts --prefix e2e/agents
// and run them with:            go test -tags e2e -run E2E ./internal/agent

func realClaude(t testing.TB) string {
	t.Helper()
	path := os.Getenv("PROCTOR_E2E_CLAUDE")
	if path == "" {
		path = "../../e2e/agents/node_modules/@anthropic-ai/claude-code-linux-x64/claude"
	}
	path, err := filepath.Abs(path)
	if err == nil {
		err = executable(path)
	}
	if err != nil {
		t.Fatalf("the real Claude Code is needed (%v): run `npm ci --ignore-scripts --prefix e2e/agents`, or name it by PROCTOR_E2E_CLAUDE", err)
	}
	return path
}

const e2eModel = "claude-opus-4-8"

// e2e is one real run.
type e2e struct {
	lab
	cli   realCLI
	meter *meter.Meter
	model *agenttest.Model
}

func newE2E(t testing.TB, script agenttest.Script, ceiling money.USD) *e2e {
	t.Helper()
	return newE2EOf(t, realCLIs()[0], script, ceiling)
}

// newE2EOf is newE2E for any of the real CLIs.
func newE2EOf(t testing.TB, c realCLI, script agenttest.Script, ceiling money.USD) *e2e {
	t.Helper()
	e := &e2e{lab: newLab(t, sandbox.Strict), cli: c}
	e.meter, e.model = fundAPI(t, &e.lab, c.api, script, ceiling)
	e.task.Model, e.task.Args, e.task.Timeout = c.model, c.args, 3*time.Minute
	e.file(t, "pkg/sum.go", "package pkg\n\nfunc Add(a, b int) int { return a }\n")
	return e
}

func (e *e2e) run(t testing.TB) (Outcome, []Event) {
	t.Helper()
	out, events := e.lab.run(t, e.cli.name, Options{Program: e.cli.program(t)})
	if err := e.meter.Quiet(context.Background()); err != nil {
		t.Fatal(err)
	}
	return out, events
}

func TestE2EClaudeCodeEditsWritesAndRunsConfined(t *testing.T) {
	t.Parallel()
	e := newE2E(t, agenttest.Turns(
		agenttest.Turn{Text: "I look.", Tools: []agenttest.Tool{agenttest.Read("pkg/sum.go")}},
		agenttest.Turn{Tools: []agenttest.Tool{agenttest.Edit("pkg/sum.go", "return a }", "return a + b }"), agenttest.Write("NOTES.md", "one\n")}},
		agenttest.Turn{Tools: []agenttest.Tool{agenttest.Bash("echo ran > bash.txt; env > env.txt; cat /proc/1/environ > one.txt; echo x > ../outside.txt; true")}},
		agenttest.Turn{Text: "A long word follows.", Big: 2 << 20, Tools: []agenttest.Tool{agenttest.Bash("true")}, Usage: &agenttest.Usage{Input: 9000, Output: 30_000}},
		agenttest.Turn{Text: "All is done."},
	), 20*money.Dollar)
	o, events := e.run(t)
	if o.Kind != OK || o.Final != "All is done." || o.Usage.Turns < 4 || len(o.Denied) != 0 {
		t.Fatalf("%+v\n%+v", o, events)
	}
	if got := e.read(t, "pkg/sum.go"); !strings.Contains(got, "return a + b }") {
		t.Errorf("the edit is not there: %s", got)
	}
	if e.read(t, "NOTES.md") != "one\n" || e.read(t, "bash.txt") != "ran\n" {
		t.Error("the file or the command's effect is not there")
	}
	// INV-33: what its own commands see holds no key, and they reach nothing outside.
	if env := e.read(t, "env.txt"); strings.Contains(env, "the-real-key") || !strings.Contains(env, e.task.Gateway.Nonce) {
		t.Error("the environment of its commands holds the key, or the control (the nonce) is missing")
	}
	if e.read(t, "one.txt") != "" || !strings.HasPrefix(e.read(t, "../outside.txt"), "(") {
		t.Error("a command read /proc/1/environ or wrote outside")
	}
	for _, r := range e.model.Calls() {
		if r.Key() != "the-real-key" || strings.Contains(string(r.Body)+fmt.Sprint(r.Header), e.task.Gateway.Nonce) && r.Turn < 3 {
			t.Errorf("turn %d showed the provider %q", r.Turn, r.Key())
		}
	}
	calls := e.meter.Calls()
	if len(calls) != 5 || e.meter.Spent() == 0 {
		t.Errorf("%d calls for %s", len(calls), e.meter.Spent())
	}
	for _, c := range calls {
		if c.Priced != meter.PricedUsage || c.Model != e2eModel {
			t.Errorf("%+v", c)
		}
	}
	var tools []string
	for _, ev := range events {
		if ev.Kind == "tool" {
			tools = append(tools, ev.Tool)
		}
	}
	if got := strings.Join(tools, " "); got != "Read Edit Write Bash Bash" {
		t.Errorf("tools %s", got)
	}
}

// A later process of the same run is another attempt: the demo's conversation.
func TestE2EASecondProcessIsASecondAttempt(t *testing.T) {
	t.Parallel()
	fix := func(from, to string) agenttest.Script {
		return agenttest.Turns(
			agenttest.Turn{Tools: []agenttest.Tool{agenttest.Read("pkg/sum.go")}},
			agenttest.Turn{Tools: []agenttest.Tool{agenttest.Edit("pkg/sum.go", from, to)}},
			agenttest.Turn{Text: "Fixed."},
		)
	}
	e := newE2E(t, agenttest.Attempts(fix("return a }", "return 3 }"), fix("return 3 }", "return a + b }")), 5*money.Dollar)
	for tick, want := range []string{"return 3 }", "return a + b }"} {
		e.task.Tick = tick + 1
		e.meter.SetTick(tick+1, "agent")
		if o, _ := e.run(t); o.Kind != OK || !strings.Contains(e.read(t, "pkg/sum.go"), want) {
			t.Fatalf("tick %d: %+v: %s", tick+1, o, e.read(t, "pkg/sum.go"))
		}
	}
	if calls := e.meter.Calls(); calls[0].Tick != 1 || calls[len(calls)-1].Tick != 2 {
		t.Errorf("%+v", calls)
	}
}

// INV-7: each failure of the provider and each limit has its own outcome with the real CLI.
func TestE2EFailuresAndLimitsHaveTheirOutcomes(t *testing.T) {
	t.Parallel()
	loop := func(agenttest.Request) agenttest.Turn {
		return agenttest.Turn{Tools: []agenttest.Tool{agenttest.Bash("echo again")}}
	}
	fault := func(f agenttest.Fault) agenttest.Script {
		return func(agenttest.Request) agenttest.Turn { return agenttest.Turn{Text: "x", Fault: f} }
	}
	for _, c := range []struct {
		name    string
		script  agenttest.Script
		args    []string
		model   string
		ceiling money.USD
		want    Kind
		advice  Retry
		calls   int // at most
	}{
		{"max turns", loop, []string{"--max-turns", "2"}, "", 5 * money.Dollar, LimitTurns, RetryNo, 2},
		{"401", fault(agenttest.Fault{Status: 401}), nil, "", 5 * money.Dollar, Auth, RetryNo, 3},
		{"429", fault(agenttest.Fault{Status: 429, RetryAfter: "1"}), nil, "", 5 * money.Dollar, LimitRate, RetrySoon, 3},
		{"529", fault(agenttest.Fault{Status: 529}), nil, "", 5 * money.Dollar, LimitRate, RetrySoon, 3},
		{"400", fault(agenttest.Fault{Status: 400}), nil, "", 5 * money.Dollar, AgentError, RetryNo, 8},
		{"a redirect", fault(agenttest.Fault{Redirect: "https://attacker.example.com/"}), nil, "", 5 * money.Dollar, LimitRate, RetrySoon, 3},
		{"the budget", loop, nil, "", 2 * money.Dollar, LimitBudget, RetryNo, 20},
		{"the provider's bill", fault(agenttest.Fault{Status: 402}), nil, "", 5 * money.Dollar, LimitUsage, RetryNo, 1},
		{"a model without a price", loop, nil, "claude-of-tomorrow", 5 * money.Dollar, AgentError, RetryNo, 0},
	} {
		t.Run("INV-7 "+c.name, func(t *testing.T) {
			t.Parallel()
			e := newE2E(t, c.script, c.ceiling)
			if c.name == "the budget" {
				e = newE2E(t, func(r agenttest.Request) agenttest.Turn {
					turn := loop(r)
					turn.Usage = &agenttest.Usage{Input: 5_000, Output: 15_000} // 0.4 dollars a call
					return turn
				}, c.ceiling)
			}
			e.task.Args = c.args
			if c.model != "" {
				e.task.Model = c.model
			}
			o, _ := e.run(t)
			if o.Kind != c.want || o.Advice() != c.advice || o.Detail == "" {
				t.Errorf("%s, advice %s: %+v", o.Kind, o.Advice(), o)
			}
			if n := len(e.model.Calls()); n > c.calls {
				t.Errorf("%d calls, want at most %d", n, c.calls)
			}
			if c.name == "the budget" && (!e.meter.Exhausted() || e.meter.Spent() > c.ceiling || e.meter.Spent() < c.ceiling/4) {
				t.Errorf("INV-35 spent %s of %s", e.meter.Spent(), c.ceiling)
			}
		})
	}
}

// Planted settings, servers and memory run nothing and tell the model nothing. The control starts the
// same CLI in the same place without our arguments, and they do.
func TestE2EPlantedConfigurationIsWithoutEffect(t *testing.T) {
	t.Parallel()
	plant := func(t *testing.T, e *e2e) {
		hook := `{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"echo hook > PLANTED-%s"}]}]}}`
		e.file(t, ".claude/settings.json", fmt.Sprintf(hook, "project"))
		e.file(t, ".claude/settings.local.json", fmt.Sprintf(hook, "local"))
		e.file(t, ".mcp.json", `{"mcpServers":{"x":{"command":"sh","args":["-c","echo mcp > PLANTED-mcp; sleep 5"]}}}`)
		e.file(t, "CLAUDE.md", "PLANTED-memory")
		for _, home := range []string{".claude", ".claude-0000000000000000"} {
			dir := filepath.Join(e.task.Home, home)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "settings.json"), fmt.Appendf(nil, hook, "user"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	effects := func(t *testing.T, e *e2e) string {
		var found []string
		left, err := filepath.Glob(filepath.Join(e.task.Dir, "PLANTED-*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range left {
			found = append(found, filepath.Base(p))
		}
		for _, r := range e.model.Calls() {
			if strings.Contains(string(r.Body), "PLANTED-memory") {
				found = append(found, "PLANTED-memory")
				break
			}
		}
		return strings.Join(found, " ")
	}
	script := agenttest.Turns(agenttest.Turn{Text: "I look.", Tools: []agenttest.Tool{agenttest.Bash("sleep 1")}}, agenttest.Turn{Text: "Done."})

	e := newE2E(t, script, 5*money.Dollar)
	plant(t, e)
	if o, _ := e.run(t); o.Kind != OK || effects(t, e) != "" {
		t.Errorf("INV-6 %s took effect: %+v", effects(t, e), o)
	}

	control := newE2E(t, script, 5*money.Dollar)
	plant(t, control)
	program := realClaude(t)
	opt := Options{}
	res, err := control.box.Run(t.Context(), sandbox.Command{
		Argv: []string{program, "-p", "--output-format", "stream-json", "--verbose", "--model", e2eModel, "--permission-mode", "bypassPermissions"},
		Env:  opt.env(control.task, claudeEnv(control.task, filepath.Join(control.task.Home, ".claude"))...),
		Dir:  control.task.Dir, Stdin: strings.NewReader("Fix it."), Timeout: time.Minute,
		Policy: opt.policy(control.task, programDirs(program)...),
	})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("control: %+v, %v", res, err)
	}
	for _, want := range []string{"PLANTED-project", "PLANTED-local", "PLANTED-user", "PLANTED-memory"} {
		if !strings.Contains(effects(t, control), want) {
			t.Errorf("control: %s took no effect either (%s), so the test shows nothing about it", want, effects(t, control))
		}
	}
	t.Logf("control: %s", effects(t, control))
}

// The prompt is inert. The control hands the same text over as it is.
func TestE2EThePromptExpandsNothing(t *testing.T) {
	t.Parallel()
	const secret = "CANARY-in-a-file-nobody-asked-for"
	prompt := "Work on this:\n\n```\nsee @%[1]s/canary.txt and @canary.txt\n(@canary.txt) \"@canary.txt\" `@canary.txt` @\"canary.txt\"\n```\n"
	seen := func(e *e2e) bool {
		for _, r := range e.model.Calls() {
			if strings.Contains(string(r.Body), secret) {
				return true
			}
		}
		return false
	}
	for _, raw := range []bool{false, true} {
		e := newE2E(t, agenttest.Turns(agenttest.Turn{Text: "Done."}), 5*money.Dollar)
		e.file(t, "canary.txt", secret)
		e.task.Prompt = fmt.Sprintf(prompt, e.task.Dir)
		if raw {
			program, opt := realClaude(t), Options{}
			message, err := claudeMessage(e.task.Prompt)
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.box.Run(context.Background(), sandbox.Command{
				Argv: append([]string{program, "--model", e2eModel}, claudeArgs()...), Env: opt.env(e.task, claudeEnv(e.task, filepath.Join(e.task.Home, "c"))...),
				Dir: e.task.Dir, Stdin: bytes.NewReader(message), Timeout: time.Minute, Policy: opt.policy(e.task, programDirs(program)...),
			})
			if err != nil {
				t.Fatal(err)
			}
		} else if o, _ := e.run(t); o.Kind != OK {
			t.Fatalf("%+v", o)
		}
		if seen(e) != raw {
			t.Errorf("as it is %v: the file's content reached the model: %v", raw, seen(e))
		}
	}
	for _, command := range []string{"/compact", "/help now", "  /clear\n"} {
		e := newE2E(t, agenttest.Turns(agenttest.Turn{Text: "Understood."}), 5*money.Dollar)
		e.task.Prompt = command
		if o, _ := e.run(t); o.Kind != OK || o.Final != "Understood." || len(e.model.Calls()) != 1 {
			t.Errorf("%q was taken for a command: %+v", command, o)
		}
	}
}
