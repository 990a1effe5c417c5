//go:build e2e

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/money"
)

// realCLI is one of the vendors' programs as the contract meets it.
type realCLI struct {
	name    string
	version string
	program func(testing.TB) string
	api     meter.API
	model   string
	args    []string
	run     func(line string) agenttest.Tool             // runs a line of shell
	edit    func(path, from, to string) []agenttest.Tool // one or more turns, one tool each
	forgets bool                                         // after torn streams it asks for the answer in one piece
	patient bool                                         // it waits out throttles itself for as long as it is let
	trusts  bool                                         // it takes the words of an answer that broke off for a whole one, after one more try
	spills  bool                                         // it loses what a pipe does not take at once: of a long line on a busy machine, the end
}

func realCLIs() []realCLI {
	return []realCLI{
		{
			name: "claude-code", version: ClaudeCodeVersion, program: realClaude, api: meter.Anthropic, model: e2eModel, run: agenttest.Bash, forgets: true,
			edit: func(path, from, to string) []agenttest.Tool {
				return []agenttest.Tool{agenttest.Read(path), agenttest.Edit(path, from, to)}
			},
		},
		{
			name: "codex", version: CodexVersion, program: realCodex, api: meter.OpenAI, model: "gpt-5.6", run: agenttest.Exec,
			edit: func(path, from, to string) []agenttest.Tool {
				return []agenttest.Tool{agenttest.Exec("sed -i 's/" + from + "/" + to + "/' " + path)}
			},
		},
		{
			name: "gemini", version: GeminiVersion, program: realGemini, api: meter.Gemini, model: "gemini-2.5-pro", trusts: true,
			run: func(line string) agenttest.Tool {
				return agenttest.Tool{Name: "run_shell_command", Input: map[string]any{"command": line, "description": "Run it"}}
			},
			edit: func(path, from, to string) []agenttest.Tool {
				return []agenttest.Tool{{Name: "replace", Input: map[string]any{"file_path": path, "old_string": from, "new_string": to, "instruction": "Change it."}}}
			},
		},
		{
			name: "opencode", version: OpenCodeVersion, program: realOpenCode, api: meter.OpenAI, model: "gpt-5.6", patient: true, spills: true,
			run: func(line string) agenttest.Tool {
				return agenttest.Tool{Name: "bash", Input: map[string]any{"command": line, "description": "Run it"}}
			},
			args: []string{"--context=2000000"}, // a line of 2 MiB would make it sum up what was said
			edit: func(path, from, to string) []agenttest.Tool {
				return []agenttest.Tool{{Name: "bash", Input: map[string]any{"command": "sed -i 's/" + from + "/" + to + "/' " + path, "description": "Edit"}}}
			},
		},
		{
			name: "copilot", version: CopilotVersion, program: realCopilot, api: meter.OpenAI, model: "gpt-5.6",
			run: func(line string) agenttest.Tool {
				return agenttest.Tool{Name: "bash", Input: map[string]any{"command": line, "description": "Run it", "mode": "sync", "initial_wait": 300}}
			},
			args: []string{"--context=2000000"}, // as above
			edit: func(path, from, to string) []agenttest.Tool {
				return []agenttest.Tool{{Name: "bash", Input: map[string]any{"command": "sed -i 's/" + from + "/" + to + "/' " + path, "description": "Edit", "mode": "sync"}}}
			},
		},
	}
}

func realOpenCode(t testing.TB) string {
	t.Helper()
	return installed(t, "PROCTOR_E2E_OPENCODE", "opencode-linux-x64/bin/opencode")
}

func realCopilot(t testing.TB) string {
	t.Helper()
	return installed(t, "PROCTOR_E2E_COPILOT", "@github/copilot-linux-x64/copilot")
}

func realGemini(t testing.TB) string {
	t.Helper()
	return installed(t, "PROCTOR_E2E_GEMINI", ".bin/gemini")
}

func realCodex(t testing.TB) string {
	t.Helper()
	return installed(t, "PROCTOR_E2E_CODEX", "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")
}

// installed is a program that the lock file brings, or the one that a variable names.
func installed(t testing.TB, variable, path string) string {
	t.Helper()
	p := os.Getenv(variable)
	if p == "" {
		p = filepath.Join("../../e2e/agents/node_modules", path)
	}
	p, err := filepath.Abs(p)
	if err == nil {
		err = executable(p)
	}
	if err != nil {
		t.Fatalf("a real CLI is needed (%v): run `make e2e-deps`, or name it by %s", err, variable)
	}
	return p
}

// each runs one part of the contract over every CLI, all at once: they mostly wait.
func each(t *testing.T, part func(*testing.T, realCLI)) {
	t.Helper()
	for _, c := range realCLIs() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			part(t, c)
		})
	}
}

func oneEach(tools []agenttest.Tool) (turns []agenttest.Turn) {
	for _, tool := range tools {
		turns = append(turns, agenttest.Turn{Tools: []agenttest.Tool{tool}})
	}
	return turns
}

// The CLI edits a file and runs a command, confined and metered, and reads a line of 2 MiB on the way.
func TestE2EContractEditsAndRuns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c realCLI) {
		turns := oneEach(c.edit("pkg/sum.go", "return a }", "return a + b }"))
		turns = append(turns,
			agenttest.Turn{Tools: []agenttest.Tool{c.run("echo ran > ran.txt; env > env.txt; cat /proc/1/environ > one.txt; echo x > ../outside.txt; true")}},
			agenttest.Turn{Text: "A long word follows.", Big: 2 << 20, Tools: []agenttest.Tool{c.run("true")}, Usage: &agenttest.Usage{Input: 9000, Output: 30_000, CacheRead: 100}},
			agenttest.Turn{Text: "All is done."},
		)
		e := newE2EOf(t, c, agenttest.Turns(turns...), 20*money.Dollar)
		o, events := e.run(t)
		for try := 1; c.spills && o.Kind == Incomplete && slices.Contains(o.Warnings, "bad_line") && try < 3; try++ {
			// A line that was cut is read as one, and never as an end. Whether the whole of it can be read shows the next try.
			e = newE2EOf(t, c, agenttest.Turns(turns...), 20*money.Dollar)
			o, events = e.run(t)
		}
		if o.Kind != OK || o.Final != "All is done." || len(o.Denied) != 0 {
			t.Fatalf("%+v\n%+v", o, events)
		}
		if got := e.read(t, "pkg/sum.go"); !strings.Contains(got, "return a + b }") || e.read(t, "ran.txt") != "ran\n" {
			t.Errorf("the edit or the command's effect is not there: %s %s", got, e.read(t, "ran.txt"))
		}
		// INV-33, INV-38: what its commands see holds no key, and they reach nothing outside.
		if env := e.read(t, "env.txt"); strings.Contains(env, "the-real-key") || !strings.Contains(env, "HOME="+e.task.Home) {
			t.Errorf("the environment of its commands holds the key, or is not its own: %s", env)
		}
		if e.read(t, "one.txt") != "" || !strings.HasPrefix(e.read(t, "../outside.txt"), "(") {
			t.Error("a command read /proc/1/environ or wrote outside")
		}
		calls := e.meter.Calls()
		if len(calls) != len(turns) || len(e.model.Calls()) != len(turns) || e.meter.Spent() == 0 {
			t.Errorf("%d calls are booked and %d were made for %d turns, spent %s", len(calls), len(e.model.Calls()), len(turns), e.meter.Spent())
		}
		for i, call := range calls {
			if call.Priced != meter.PricedUsage || call.Model != c.model || e.model.Calls()[i].Key() != "the-real-key" {
				t.Errorf("call %d: %+v", i, call)
			}
		}
		tools := 0
		for _, ev := range events {
			if ev.Kind == "tool" {
				tools++
			}
		}
		if tools < len(turns)-1 {
			t.Errorf("%d tools are told: %+v", tools, events)
		}
		if left, _ := filepath.Glob(filepath.Join(e.task.Home, "."+strings.TrimSuffix(c.name, "-code")+"-*")); len(left) != 0 {
			t.Errorf("left in HOME: %v", left)
		}
	})
}

// INV-7: each failure of the provider and each limit has its own outcome.
func TestE2EContractFailuresAndLimits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c realCLI) {
		var turn atomic.Int64
		again := func(agenttest.Request) agenttest.Turn {
			// 0.4 dollars with Claude's price, 0.16 with Codex's. Gemini ends by itself when a command comes again and again.
			line := fmt.Sprintf("echo again %d", turn.Add(1))
			return agenttest.Turn{Tools: []agenttest.Tool{c.run(line)}, Usage: &agenttest.Usage{Input: 5_000, Output: 15_000}}
		}
		fault := func(f agenttest.Fault) agenttest.Script {
			return func(agenttest.Request) agenttest.Turn { return agenttest.Turn{Text: "x", Fault: f} }
		}
		for _, f := range []struct {
			name    string
			script  agenttest.Script
			model   string
			ceiling money.USD
			want    Kind
			advice  Retry
			most    int // calls
		}{
			{"401", fault(agenttest.Fault{Status: 401}), "", 5 * money.Dollar, Auth, RetryNo, 3},
			{"429", fault(agenttest.Fault{Status: 429, RetryAfter: "1"}), "", 5 * money.Dollar, LimitRate, RetrySoon, 9},
			{"529", fault(agenttest.Fault{Status: 529}), "", 5 * money.Dollar, LimitRate, RetrySoon, 9},
			{"503", fault(agenttest.Fault{Status: 503}), "", 5 * money.Dollar, LimitRate, RetrySoon, 9},
			{"400", fault(agenttest.Fault{Status: 400}), "", 5 * money.Dollar, AgentError, RetryNo, 8},
			{"the provider's bill", fault(agenttest.Fault{Status: 402}), "", 5 * money.Dollar, LimitUsage, RetryNo, 9},
			{"the budget", again, "", money.Dollar * 3 / 2, LimitBudget, RetryNo, 20},
			{"a model without a price", again, "model-of-tomorrow", 5 * money.Dollar, AgentError, RetryNo, 0},
		} {
			t.Run("INV-7 "+f.name, func(t *testing.T) {
				if !c.patient || f.name == "503" || f.name == "529" { // the patient one's start takes a core for long, and these two wait
					t.Parallel()
				}
				limit := 3 * time.Minute
				if c.patient && f.want == LimitRate {
					limit = 90 * time.Second
				}
				var e *e2e
				var o Outcome
				for asked := false; !asked; limit *= 2 {
					e = newE2EOf(t, c, f.script, f.ceiling)
					if e.task.Timeout = limit; f.model != "" {
						e.task.Model = f.model
					}
					o, _ = e.run(t)
					// A limit that came before the first call shows nothing: a longer one is tried.
					asked = o.Kind != Timeout || len(e.model.Calls()) > 0 || limit > 5*time.Minute
				}
				if c.patient && f.want == LimitRate && f.name != "429" && o.Kind == Timeout {
					f.want, f.advice = Timeout, RetryNo // nobody told it how long to wait: the limit may come before its last try
				}
				if o.Kind != f.want || o.Advice() != f.advice || o.Detail == "" {
					t.Errorf("%s, advice %s: %+v", o.Kind, o.Advice(), o)
				}
				if n := len(e.model.Calls()); n > f.most || f.most > 0 && n == 0 {
					t.Errorf("%d calls, want at most %d", n, f.most)
				}
				if f.name == "the budget" && (!e.meter.Exhausted() || e.meter.Spent() > f.ceiling || e.meter.Spent() < f.ceiling/4) {
					t.Errorf("INV-35 spent %s of %s", e.meter.Spent(), f.ceiling)
				}
			})
		}
	})
}

func TestE2EContractAStreamThatIsCutIsToldAndCharged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c realCLI) {
		e := newE2EOf(t, c, func(agenttest.Request) agenttest.Turn {
			return agenttest.Turn{Text: strings.Repeat("words ", 50), Fault: agenttest.Fault{CutAfter: 5}}
		}, 20*money.Dollar)
		o, _ := e.run(t)
		calls := e.meter.Calls()
		if len(calls) < 2 {
			t.Fatalf("a torn answer was taken for a whole one: %+v", o)
		}
		for i, call := range calls {
			want := meter.PricedReserved
			if !e.model.Calls()[i].Stream {
				want = meter.PricedUsage
			}
			if call.Priced != want || call.CostUSD == 0 {
				t.Errorf("INV-35 call %d: %+v", i, call)
			}
		}
		if whole := calls[len(calls)-1].Priced == meter.PricedUsage; (whole || c.trusts) != (o.Kind == OK) || whole && !c.forgets {
			t.Errorf("%s (%s) after %+v", o.Kind, o.Detail, calls)
		}
	})
}

// INV-7: the time limit ends the CLI and all that its commands left running. How long a CLI takes to its first command is
// the machine's affair: a limit that came before it shows nothing, and a longer one is tried.
func TestE2EContractTheTimeLimitEndsEveryDescendant(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c realCLI) {
		for limit := 20 * time.Second; ; limit *= 2 {
			e := newE2EOf(t, c, func(r agenttest.Request) agenttest.Turn {
				line := "sleep 3600" // again and again: a CLI may have a time limit of its own for a command
				if r.Turn == 0 {
					line = "setsid sh -c 'while :; do date +%N > beat.txt; sleep 0.05; done' >/dev/null 2>&1 & sleep 3600"
				}
				return agenttest.Turn{Tools: []agenttest.Tool{c.run(line)}}
			}, 5*money.Dollar)
			e.task.Timeout = limit
			if o, _ := e.run(t); o.Kind != Timeout {
				t.Errorf("%+v", o)
			}
			if procs := alive("", e.task.Dir); len(procs) > 0 {
				t.Errorf("still alive: %v", procs)
			}
			if !strings.HasPrefix(e.read(t, "beat.txt"), "(") {
				return
			}
			if limit > 2*time.Minute {
				t.Fatal("control: the background process never ran")
			}
		}
	})
}

// The prompt is inert: what a CLI would expand or take for a command of its own is text.
func TestE2EContractThePromptIsText(t *testing.T) {
	const secret = "CANARY-in-a-file-nobody-asked-for"
	t.Parallel()
	each(t, func(t *testing.T, c realCLI) {
		for _, prompt := range []string{"/compact", "--help", "see @canary.txt and @/etc/hostname", "/init\n\xff\x00 bad"} {
			e := newE2EOf(t, c, agenttest.Turns(agenttest.Turn{Text: "Understood."}), 5*money.Dollar)
			e.file(t, "canary.txt", secret)
			e.task.Prompt = prompt
			o, _ := e.run(t)
			if o.Kind != OK || o.Final != "Understood." || len(e.model.Calls()) != 1 {
				t.Fatalf("%q was taken for more than text: %+v", prompt, o)
			}
			if strings.Contains(string(e.model.Calls()[0].Body), secret) {
				t.Errorf("%q: the file's content reached the model", prompt)
			}
		}
	})
}

func TestE2EContractTheVersionIsTold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c realCLI) {
		e := newE2EOf(t, c, nil, 0)
		a, err := New(c.name, Options{Runner: e.box, Program: c.program(t)})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if v, err := a.(Versioner).Version(t.Context(), e.task); err != nil || v != c.version {
			t.Errorf("the lock file brings %q, the adapter names %s: %v", v, c.version, err)
		}
		if len(e.model.Requests()) != 0 {
			t.Error("asking for the version called the model")
		}
	})
}
