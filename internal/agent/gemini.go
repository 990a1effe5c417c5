package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// GeminiVersion is the release that this adapter was tried with.
const GeminiVersion = "0.61.0"

// geminiCLI drives Google's Gemini CLI without a person. It needs Node in PATH.
type geminiCLI struct{ cli }

func newGemini(o Options) (Agent, error) {
	return &geminiCLI{newCLI(o, "gemini", "gemini",
		"Node 20 or later, then `npm install --ignore-scripts --omit=optional --prefix DIR @google/gemini-cli@"+GeminiVersion+"`, and add DIR/node_modules/.bin to PATH")}, nil
}

// Check looks for the executable, and for Node, which runs it.
func (g *geminiCLI) Check(context.Context) error {
	o := g.o
	o.Program = ""
	_, err := g.o.find("gemini")
	if err == nil {
		_, err = o.find("node")
	}
	return g.lacking(err)
}

// geminiArgMax is the longest prompt that goes as an argument, of which Linux allows 128 KiB. The CLI waits for half a
// second only for stdin to have something, which a busy machine may not keep; a longer prompt has to go there.
const geminiArgMax = 100_000

// geminiSettings are the user's settings of every call, and all that the CLI has: in a directory that it does not trust it
// takes none of the repository's settings, hooks, servers, policies, skills, commands, memory and variables. Agents that the
// repository defines are not bound to that trust, and a .env could still name a key: both have their own switch. The
// tools that are left out would have the provider fetch pages, or lead into modes that a person ends.
const geminiSettings = `{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},` +
	`"general":{"enableAutoUpdate":false,"disableAutoUpdate":true,"maxAttempts":2},"privacy":{"usageStatisticsEnabled":false},` +
	`"telemetry":{"enabled":false},"hooksConfig":{"enabled":false},"mcp":{"allowed":[]},"skills":{"enabled":false},` +
	`"advanced":{"ignoreLocalEnv":true},"experimental":{"enableAgents":false},` +
	`"tools":{"exclude":["google_web_search","web_fetch","enter_plan_mode","invoke_agent"]}}`

// geminiPolicy lets the CLI use its tools. Where a directory is not trusted it would ask a person about each; what they may do
// is our confinement's affair. A shell rule with a pattern is one that the CLI's own guesses about commands do not overrule:
// it would ask about every git and every redirection.
const geminiPolicy = `[[rule]]
toolName = "run_shell_command"
argsPattern = "."
decision = "allow"
priority = 900
allowRedirection = true

[[rule]]
toolName = ["read_file", "read_many_files", "write_file", "replace", "glob", "grep_search", "search_file_content", "list_directory", "write_todos"]
decision = "allow"
priority = 900
`

// geminiCommand lays settings and policy out in a directory that has to be new, and starts the CLI.
func geminiCommand(program string, args []string) []string {
	return append([]string{
		"/bin/sh", "-c", `d="$GEMINI_CLI_HOME/.gemini" && mkdir "$GEMINI_CLI_HOME" "$d" "$d/policies" && printf %s "$0" > "$d/settings.json" && ` +
			`printf %s "$1" > "$d/policies/proctor.toml" && shift && exec "$@"`,
		geminiSettings, geminiPolicy, program,
	}, args...)
}

func (g *geminiCLI) env(t Task, state string) []string {
	env := []string{
		"GEMINI_CLI_HOME=" + state, "GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_TELEMETRY_ENABLED=false",
		"GEMINI_CLI_TRUST_WORKSPACE=false",
		// The runner's own settings, which would win over ours.
		"GEMINI_CLI_SYSTEM_SETTINGS_PATH=" + filepath.Join(state, "none"), "GEMINI_CLI_SYSTEM_DEFAULTS_PATH=" + filepath.Join(state, "none"),
	}
	if t.Gateway.BaseURL != "" {
		env = append(env, "GOOGLE_GEMINI_BASE_URL="+t.Gateway.BaseURL, "GEMINI_API_KEY="+t.Gateway.Nonce)
	}
	// A terminal that it thinks little of is warned about, in front of what matters.
	base := slices.DeleteFunc(g.o.env(t, env...), func(kv string) bool { return strings.HasPrefix(kv, "TERM=") })
	return append(base, "TERM=xterm-256color", "COLORTERM=truecolor", "NO_COLOR=1")
}

// Run starts the CLI once, with a directory for its settings and state that is new for each call.
func (g *geminiCLI) Run(ctx context.Context, t Task, on func(Event)) (Outcome, error) {
	if len(t.Args) > 0 {
		return *refuse(errors.New("agent.args[0]: the agent gemini takes no arguments: all that it has are proctor's"), "correct agent.args in the configuration"), nil
	}
	if refused := emptyPrompt(t); refused != nil {
		return *refused, nil
	}
	if err := g.Check(ctx); err != nil {
		return *refuse(err, next(RefusedStart, g.Name())), nil
	}
	program, err := g.o.find("gemini")
	if err != nil {
		return Outcome{}, err // Check has found it a moment ago
	}
	state, err := g.stateDir(t)
	if err != nil {
		return Outcome{}, err
	}
	defer os.RemoveAll(state) // best effort: HOME is thrown away with the run
	args := []string{"--output-format", "stream-json", "--approval-mode", "default", "--extensions", "none"}
	if t.Model != "" {
		args = append(args, "--model", t.Model)
	}
	prompt, stdin := defuse(t.Prompt), io.Reader(strings.NewReader(""))
	if len(prompt) <= geminiArgMax {
		args = append(args, "--prompt="+prompt)
	} else {
		stdin = strings.NewReader(prompt)
	}
	s := newStream(newGeminiReader(on), on)
	return job{
		name: g.Name(), runner: g.o.Runner, grace: g.o.ResultGrace, secret: t.Gateway.Nonce, out: s,
		cmd: sandbox.Command{
			Argv: geminiCommand(program, args), Env: g.env(t, state), Dir: t.Dir,
			Stdin: stdin, Timeout: t.Timeout, Grace: t.Grace,
			Policy: g.o.policy(t, geminiDirs(program)...),
		},
		read: func(end ending) Outcome { return geminiOutcome(judge(s, end), end) },
	}.run(ctx)
}

// geminiDirs are what the program needs to read: its package is more than the directory of its entry.
func geminiDirs(program string) []string {
	dirs := programDirs(program)
	return append(dirs, filepath.Dir(dirs[len(dirs)-1]))
}

// Version asks the installed CLI for its version; it costs nothing.
func (g *geminiCLI) Version(ctx context.Context, t Task) (string, error) {
	if err := g.Check(ctx); err != nil {
		return "", err
	}
	return g.versionWith(ctx, t,
		func(program string) (argv, dirs []string) {
			return geminiCommand(program, []string{"--version"}), geminiDirs(program)
		},
		func(_, state string) []string { return g.env(onlyDirs(t), state) })
}
