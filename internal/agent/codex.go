package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// CodexVersion is the release that this adapter was tried with.
const CodexVersion = "0.171.0"

// codexKey is the variable that the CLI is told to read its key from.
const codexKey = "PROCTOR_MODEL_KEY"

// codex drives OpenAI's Codex CLI without a person.
type codex struct{ cli }

func newCodex(o Options) (Agent, error) {
	return &codex{newCLI(o, "codex", "codex",
		"it with `npm install --ignore-scripts --prefix DIR @openai/codex-linux-x64@npm:@openai/codex@"+CodexVersion+"-linux-x64` and add DIR/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin to PATH")}, nil
}

// codexArgs are the arguments of every call: what would be a configuration file, so that none that an earlier
// tick left is read. The CLI's own sandbox is off, because it cannot start inside ours, which is the boundary
// here; so are its own search of the web, hooks, sub-agents and reports home.
func codexArgs(g Gateway) []string {
	args := []string{
		"exec", "--json", "--color", "never", "--skip-git-repo-check", "--ephemeral", "--ignore-user-config", "--ignore-rules",
		"--sandbox", "danger-full-access",
	}
	settings := []string{
		`approval_policy="never"`, `check_for_update_on_startup=false`, `analytics.enabled=false`, `feedback.enabled=false`,
		`history.persistence="none"`, `web_search="disabled"`, `project_doc_max_bytes=0`, `agents.enabled=false`,
		`features.hooks=false`, `features.goals=false`, `features.apps=false`, `features.enable_request_compression=false`,
		`skills.include_instructions=false`, `skills.bundled.enabled=false`,
		`shell_environment_policy.inherit="all"`, `shell_environment_policy.exclude=["` + codexKey + `"]`,
	}
	if g.BaseURL != "" {
		settings = append(settings, `model_provider="proctor"`,
			// Waiting for long is the loop's affair, and so the CLI tries again but a little.
			`model_providers.proctor={name="proctor",base_url=`+strconv.Quote(g.BaseURL+"/v1")+`,env_key="`+codexKey+`",wire_api="responses",request_max_retries=2,stream_max_retries=2}`)
	}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	return args
}

// Run starts the CLI once.
func (c *codex) Run(ctx context.Context, t Task, on func(Event)) (Outcome, error) {
	return speak(ctx, c, t, on)
}

// Start starts the CLI for a call that may come: it reads its prompt to the end of stdin first.
func (c *codex) Start(ctx context.Context, t Task) (*Waiting, error) {
	return startAhead(ctx, c, t)
}

func (*codex) words(t Task) ([]byte, *Outcome, error) {
	return []byte(clean(t.Prompt)), emptyPrompt(t), nil
}

// process is the CLI, with a directory for its state that is new for each call.
func (c *codex) process(ctx context.Context, t Task, on func(Event)) (job, *Outcome, error) {
	extra, err := checkCodexArgs(t.Args)
	if err != nil {
		return job{}, refuse(err, "correct agent.args in the configuration"), nil
	}
	program, err := c.o.find("codex")
	if err != nil {
		return job{}, refuse(c.Check(ctx), next(RefusedStart, c.Name())), nil
	}
	state, err := c.stateDir(t)
	if err != nil {
		return job{}, nil, err
	}
	args := append(codexArgs(t.Gateway), extra...)
	if t.Model != "" {
		args = append(args, "--model", t.Model)
	}
	s := newStream(newCodexReader(on), on)
	return job{
		name: c.Name(), runner: c.o.Runner, grace: c.o.ResultGrace, secret: t.Gateway.Nonce, out: s,
		cmd: sandbox.Command{
			Argv: codexCommand(program, append(args, "-")), Env: c.env(t, state), Dir: t.Dir,
			Timeout: t.Timeout, Grace: t.Grace, Policy: c.o.policy(t, codexDirs(program)...),
		},
		read: func(end ending) Outcome { return judge(s, end) },
		done: func() { _ = os.RemoveAll(state) }, // best effort: HOME is thrown away with the run
	}, nil, nil
}

// codexCommand makes the directory for the CLI's state, which has to exist and to be its own user's.
func codexCommand(program string, args []string) []string {
	return append([]string{"/bin/sh", "-c", `mkdir "$CODEX_HOME" && exec "$0" "$@"`, program}, args...)
}

func (c *codex) env(t Task, state string) []string {
	env := []string{"CODEX_HOME=" + state}
	if t.Gateway.BaseURL != "" {
		env = append(env, codexKey+"="+t.Gateway.Nonce)
	}
	return c.o.env(t, env...)
}

// codexDirs are what the program needs to read. Its package keeps further programs beside bin.
func codexDirs(program string) []string {
	dirs := programDirs(program)
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(filepath.Dir(d), "codex-package.json")); err == nil && filepath.Base(d) == "bin" {
			dirs = append(dirs, filepath.Dir(d))
			break
		}
	}
	return dirs
}

// codexSettings are what a user may set by -c or --config: how the model thinks, not where it is or what it may.
var codexSettings = []string{
	"model_reasoning_effort", "model_reasoning_summary", "model_verbosity", "model_context_window", "model_auto_compact_token_limit",
	"tool_output_token_limit",
}

// checkCodexArgs lets settings of the model through and nothing else: most of the CLI's options say how it is
// read, what it may reach, or bring configuration in from elsewhere.
func checkCodexArgs(args []string) ([]string, error) {
	var out []string
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		if name != "-c" && name != "--config" {
			return nil, fmt.Errorf("agent.args[%d]: %s is not for the configuration to give; -c KEY=VALUE is, with %s", i, printable(args[i], 40), strings.Join(codexSettings, ", "))
		}
		if !joined || name == "-c" {
			if i++; i == len(args) {
				return nil, fmt.Errorf("agent.args[%d]: %s wants a setting behind it, such as model_reasoning_effort=high", i-1, name)
			}
			value = args[i]
		}
		key, v, ok := strings.Cut(value, "=")
		if !ok || !slices.Contains(codexSettings, key) || strings.ContainsAny(v, "\n{[") {
			return nil, fmt.Errorf("agent.args[%d]: the setting %s cannot be changed; these can: %s", i, printable(value, 40), strings.Join(codexSettings, ", "))
		}
		out = append(out, "-c", value)
	}
	return out, nil
}

// Version asks the installed CLI for its version; it costs nothing.
func (c *codex) Version(ctx context.Context, t Task) (string, error) {
	return c.versionWith(ctx, t,
		func(program string) (argv, dirs []string) {
			return codexCommand(program, []string{"--version"}), codexDirs(program)
		},
		func(_, state string) []string { return c.env(onlyDirs(t), state) })
}
