package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// ClaudeCodeVersion is the release that this adapter was tried with.
const ClaudeCodeVersion = "2.1.332"

// claudeCode drives Claude Code's real CLI without a person.
type claudeCode struct{ cli }

func newClaudeCode(o Options) (Agent, error) {
	return &claudeCode{newCLI(o, "claude-code", "claude",
		"it with `npm install --ignore-scripts --prefix DIR @anthropic-ai/claude-code-linux-x64@"+ClaudeCodeVersion+"` and add DIR/node_modules/@anthropic-ai/claude-code-linux-x64 to PATH")}, nil
}

// claudeArgs are the arguments of every call. Settings, servers, skills and commands that a repository
// or an earlier tick could have planted are not loaded, and questions to a person cannot arise: our
// confinement is the boundary, not the CLI's permission rules.
func claudeArgs() []string {
	return []string{
		"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
		"--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence",
		"--tools", "Read,Edit,Write,Bash,Glob,Grep", "--permission-mode", "bypassPermissions",
	}
}

// claudeEnv is the CLI's part of the environment.
func claudeEnv(t Task, configDir string) []string {
	env := []string{
		"CLAUDE_CONFIG_DIR=" + configDir,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CLAUDE_CODE_MAX_RETRIES=2", // it doubles its delays; waiting for long is the loop's affair
		"CLAUDE_CODE_MAX_OUTPUT_TOKENS=32000",
		"DISABLE_AUTOUPDATER=1",
		"DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1",
	}
	if t.Gateway.BaseURL != "" {
		env = append(env, "ANTHROPIC_BASE_URL="+t.Gateway.BaseURL, "ANTHROPIC_API_KEY="+t.Gateway.Nonce)
	}
	if os.Geteuid() == 0 {
		// As root the CLI refuses to go without its own questions unless it is told of a sandbox. Where
		// the runner changes the user the variable is without effect.
		env = append(env, "IS_SANDBOX=1")
	}
	return env
}

// Run starts the CLI once.
func (c *claudeCode) Run(ctx context.Context, t Task, on func(Event)) (Outcome, error) {
	return speak(ctx, c, t, on)
}

// Start starts the CLI for a call that may come. It is ready within a second and makes no request before its prompt.
func (c *claudeCode) Start(ctx context.Context, t Task) (*Waiting, error) {
	return startAhead(ctx, c, t)
}

// words are one message of its input format. A prompt as plain text would do for a CLI that is started for it, but one
// that waits proceeds without it.
func (*claudeCode) words(t Task) ([]byte, *Outcome, error) {
	if refused := emptyPrompt(t); refused != nil {
		return nil, refused, nil
	}
	b, err := claudeMessage(defuse(t.Prompt))
	return b, nil, err
}

func claudeMessage(text string) ([]byte, error) {
	b, err := json.Marshal(map[string]any{"type": "user", "message": map[string]string{"role": "user", "content": text}})
	return append(b, '\n'), err
}

// process is the CLI. Its configuration directory is new for each call and has a name that nothing could know before,
// so that what an earlier tick left in HOME configures nothing.
func (c *claudeCode) process(ctx context.Context, t Task, on func(Event)) (job, *Outcome, error) {
	if err := checkClaudeArgs(t.Args); err != nil {
		return job{}, refuse(err, "correct agent.args in the configuration"), nil
	}
	program, err := c.o.find("claude")
	if err != nil {
		return job{}, refuse(c.Check(ctx), next(RefusedStart, c.Name())), nil
	}
	configDir, err := c.stateDir(t)
	if err != nil {
		return job{}, nil, err
	}
	argv := append([]string{program}, claudeArgs()...)
	if t.Model != "" {
		argv = append(argv, "--model", t.Model)
	}
	s := newStream(newClaudeReader(on), on)
	return job{
		name: c.Name(), runner: c.o.Runner, grace: c.o.ResultGrace, secret: t.Gateway.Nonce, out: s,
		cmd: sandbox.Command{
			Argv: append(argv, t.Args...), Env: c.o.env(t, claudeEnv(t, configDir)...), Dir: t.Dir,
			Timeout: t.Timeout, Grace: t.Grace, Policy: c.o.policy(t, programDirs(program)...),
		},
		read: func(end ending) Outcome { return judge(s, end) },
		done: func() { _ = os.RemoveAll(configDir) }, // best effort: HOME is thrown away with the run
	}, nil, nil
}

// claudeOwn are the options that belong to the adapter: they say how the CLI is read, or bring
// configuration in from elsewhere.
var claudeOwn = []string{
	"-p", "--print", "--output-format", "--input-format", "--verbose", "--include-partial-messages", "--replay-user-messages",
	"--setting-sources", "--settings", "--mcp-config", "--strict-mcp-config", "--plugin-dir", "--plugin-url", "--agents", "--agent",
	"--tools", "--permission-mode", "--permission-prompts", "--permission-prompt-tool", "--dangerously-skip-permissions",
	"--allow-dangerously-skip-permissions", "--model", "--session-id", "--resume", "-r", "--continue", "-c", "--from-pr",
	"--teleport", "--cloud", "--environment", "--remote-control", "--worktree", "--bg", "--background", "--add-dir", "--file",
	"--debug-file", "--chrome", "--ide",
}

// checkClaudeArgs refuses arguments that would undo the adapter's own, and words that are neither an
// option nor the one value behind it: the CLI would take them for the prompt.
func checkClaudeArgs(args []string) error {
	word := true
	for i, a := range args {
		name, _, _ := strings.Cut(a, "=")
		option := strings.HasPrefix(a, "-")
		switch {
		case slices.Contains(claudeOwn, name):
			return fmt.Errorf("agent.args[%d]: %s is set by proctor and cannot be changed; options such as --max-turns and --effort can", i, name)
		case option && (!strings.HasPrefix(a, "--") || a == "--"):
			return fmt.Errorf("agent.args[%d]: %s: write options out, as in --max-turns", i, printable(a, 40))
		case !option && word:
			return fmt.Errorf("agent.args[%d]: %s belongs to no option: the prompt is proctor's; give further values as --option=value", i, printable(a, 40))
		}
		word = !option
	}
	return nil
}

// Version asks the installed CLI for its version; it costs nothing.
func (c *claudeCode) Version(ctx context.Context, t Task) (string, error) {
	program, err := c.o.find("claude")
	if err != nil {
		return "", c.Check(ctx)
	}
	return c.askVersion(ctx, t, []string{program, "--version"}, c.o.env(t, claudeEnv(Task{}, filepath.Join(t.Home, ".claude"))...), programDirs(program))
}
