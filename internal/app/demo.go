package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-ci/proctor/internal/demo"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

type demoOptions struct {
	agent, action, out, path, sandbox string
	json                              bool
	scenario                          demo.Scenario
}

func demoCommand(env Env, code *int) *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo [SCENARIO]",
		Short: "Run the main job on this machine: label, webhook, action, proof, draft pull request",
		Long: `Demo starts a GitHub on loopback, labels an issue there, and lets the product do the rest: the webhook's handler verifies the
signed delivery and dispatches the workflow, the action's binary runs as a job of its own, and a draft pull request is opened.
The agent is scripted, and nothing leaves this machine. Each scenario ends in its own report; the exit code is 0 when it ended as
it should:

` + scenarioList(),
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.scenario, err = chosenScenario(args, o.agent); err != nil {
				*code = exitUsage
				return err
			}
			*code, err = runDemo(cmd.Context(), env, o)
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&o.agent, "agent", demo.Script, "script; or against a model server on loopback claude-code, codex, gemini, opencode or copilot, the real CLIs, or anthropic or openai, our own tool loop")
	f.StringVar(&o.action, "action", "", "the action's binary (default: proctor-action or action beside this program)")
	f.StringVar(&o.out, "out", "", "directory for the report and the forge's repository (default: a new one below the temporary directory)")
	f.StringVar(&o.path, "agent-path", "", "directory of the agent's CLI, in front of PATH")
	f.StringVar(&o.sandbox, "sandbox", "", "auto, strict or off: the repository's sandbox.mode (default: what runs have by default)")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON object and nothing else")
	return c
}

func scenarioList() string {
	var b strings.Builder
	for _, s := range demo.Scenarios() {
		fmt.Fprintf(&b, "  %-16s %s Ends %s.\n", s.Name, s.Story, s.Ends)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// chosenScenario is the one that is named, or the first.
func chosenScenario(args []string, agentName string) (demo.Scenario, error) {
	name := demo.HeldOut
	if len(args) > 0 {
		name = args[0]
	}
	s, ok := demo.FindScenario(name)
	if !ok {
		var names []string
		for _, s := range demo.Scenarios() {
			names = append(names, s.Name)
		}
		return s, fmt.Errorf("there is no scenario %q: the demo can play %s", name, oneOf(names))
	}
	if name != demo.HeldOut && agentName != demo.Script {
		return s, fmt.Errorf("the scenario %s is played by the scripted agent only. Next: leave --agent out", name)
	}
	return s, nil
}

func runDemo(ctx context.Context, env Env, o demoOptions) (int, error) {
	s := &stage{env: env, opts: o}
	if err := s.check(); err != nil {
		return exitUsage, err
	}
	quiet := env.Stdout
	if o.json {
		quiet = io.Discard
	}
	s.view = newAccount(quiet, env.Terminal && !o.json, env.Now)
	s.view.say("%s", s.view.paint(bold, "Proctor's main job on loopback: nothing leaves this machine, and what the agent does is scripted.")+"\n")
	s.view.step(-1, "story", o.scenario.Story)
	defer s.close()
	if err := s.open(ctx); err != nil {
		return exitInfrastructure, err
	}
	stop := spinning(s.view)
	rec, err := s.play(ctx)
	stop()
	if err != nil {
		return exitInfrastructure, err
	}
	if rec.Terminal != o.scenario.Ends {
		return max(rec.ExitCode, exitInfrastructure), errors.Join(s.tell(rec), fmt.Errorf("the scenario %s ended %s and should have ended %s", o.scenario.Name, rec.Terminal, o.scenario.Ends))
	}
	return 0, s.tell(rec)
}

// check looks for what the demo needs before anything is started.
func (s *stage) check() error {
	if !slices.Contains(demo.Agents(), s.opts.agent) {
		return fmt.Errorf("--agent %q: the demo can play %s", s.opts.agent, strings.Join(demo.Agents(), ", "))
	}
	if modes := []string{"", string(sandbox.Auto), string(sandbox.Strict), string(sandbox.Off)}; !slices.Contains(modes, s.opts.sandbox) {
		return fmt.Errorf("--sandbox %q: it is one of %s", s.opts.sandbox, strings.Join(modes[1:], ", "))
	}
	if s.opts.action == "" {
		s.opts.action = actionBeside(s.env.Exe)
	}
	if _, err := os.Stat(s.opts.action); err != nil {
		return fmt.Errorf("the demo starts the action's own binary and there is none at %s. Next: make build, or give --action FILE", s.opts.action)
	}
	if s.opts.path != "" && !filepath.IsAbs(s.opts.path) { // the job works in another directory
		s.opts.path = filepath.Join(s.env.Dir, s.opts.path)
	}
	if cli, ok := demoCLIs[s.opts.agent]; ok && s.opts.path == "" {
		if s.opts.path = cli.dir(s.env); s.opts.path == "" {
			return fmt.Errorf("the CLI of %s is not here. Next: make e2e-deps, or give --agent-path DIR", s.opts.agent)
		}
	}
	return nil
}

// ActionLink is the name under which the program is the action: a link to it in the image and on a runner.
const ActionLink = "proctor-action"

// actionBeside is the action's own binary, or the link to this one.
func actionBeside(exe string) string {
	link := filepath.Join(filepath.Dir(exe), ActionLink)
	if _, err := os.Stat(link); err == nil {
		return link
	}
	return filepath.Join(filepath.Dir(exe), "action")
}

// demoCLI is where a real CLI lies: below the packages that this repository's lock file installs, or in PATH.
type demoCLI struct{ installed, program string }

var demoCLIs = map[string]demoCLI{
	demo.ClaudeCode: {"@anthropic-ai/claude-code-linux-x64", "claude"},
	demo.Gemini:     {".bin", "gemini"},
	demo.OpenCode:   {"opencode-linux-x64/bin", "opencode"},
	demo.Copilot:    {"@github/copilot-linux-x64", "copilot"},
	demo.Codex:      {"@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin", "codex"},
}

func (c demoCLI) dir(env Env) string {
	installed := filepath.Join("e2e/agents/node_modules", c.installed)
	dirs := append([]string{filepath.Join(env.Dir, installed), filepath.Join(filepath.Dir(env.Exe), "..", installed)}, filepath.SplitList(env.Getenv("PATH"))...)
	for _, d := range dirs {
		if info, err := os.Stat(filepath.Join(d, c.program)); err == nil && !info.IsDir() {
			return d
		}
	}
	return ""
}

// result is what --json prints.
type result struct {
	Terminal    string   `json:"terminal"`
	ExitCode    int      `json:"exit_code"`
	PullRequest int      `json:"pull_request,omitempty"`
	URL         string   `json:"url,omitempty"`
	Draft       bool     `json:"draft"`
	Branch      string   `json:"branch,omitempty"`
	Commit      string   `json:"commit,omitempty"`
	ProvedBy    []string `json:"proved_by"`
	Ticks       int      `json:"ticks"`
	Calls       int      `json:"model_calls"`
	CostUSD     string   `json:"cost_usd"`
	Report      string   `json:"report"`
	Record      string   `json:"record"`
	Repository  string   `json:"repository"`
}

func (s *stage) result(rec evidence.Record) result {
	r := result{
		Terminal: rec.Terminal, ExitCode: rec.ExitCode, Ticks: rec.Totals.Ticks, Calls: rec.Totals.Calls, CostUSD: rec.Totals.CostUSD.Decimal(),
		Report: filepath.Join(s.out, "report", evidence.ReportFile), Record: filepath.Join(s.out, "report", evidence.RecordFile), Repository: s.hub.GitDir(), ProvedBy: []string{},
	}
	if p := rec.Published; p != nil {
		r.PullRequest, r.URL, r.Draft, r.Branch, r.Commit = p.Number, p.URL, p.Draft, p.Branch, p.Commit
	}
	if len(rec.Ticks) > 0 {
		for _, g := range rec.Ticks[len(rec.Ticks)-1].Proof {
			if g.Status == "passed" {
				r.ProvedBy = append(r.ProvedBy, g.Name)
			}
		}
	}
	return r
}

// tell prints what came of it: the draft, what proved it, what it cost, where the report lies.
func (s *stage) tell(rec evidence.Record) error {
	r := s.result(rec)
	if s.opts.json {
		enc := json.NewEncoder(s.env.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	body := ""
	for _, p := range s.hub.Pulls() {
		if p.Number == r.PullRequest {
			body = p.Body
			if err := os.WriteFile(filepath.Join(s.out, "pull-request.md"), []byte(body), 0o644); err != nil {
				return fmt.Errorf("keep the pull request's text: %w", err)
			}
		}
	}
	v := s.view
	v.say("")
	if r.PullRequest == 0 {
		v.say("%s  %s", v.paint(red, rec.Terminal), rec.Reason)
		v.say("next         %s", rec.Next)
	} else {
		v.say("%s, on a forge that has ended with the demo: its text and commits are kept", v.paint(green, fmt.Sprintf("Draft pull request #%d", r.PullRequest)))
		v.say("proved by    %s, in a pristine checkout of %s", oneOf(r.ProvedBy), short(rec.Head.ID))
		if g := rec.Signing; g != nil {
			v.say("pushed as    %s, %s", short(r.Commit), g.Said())
		}
	}
	v.say("cost         %s in %s over %s (metered for real, paid to a stand-in)", rec.Totals.CostUSD, plural(int64(r.Calls), "model call"), plural(int64(r.Ticks), "tick"))
	v.say("report       %s", r.Report)
	v.say("record       %s", r.Record)
	if body != "" {
		v.say("its text     %s", filepath.Join(s.out, "pull-request.md"))
		v.say("its commits  git -C %s log %s", r.Repository, r.Branch)
	}
	return nil
}
