package agent

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// CopilotVersion is the release that this adapter was tried with.
const CopilotVersion = "1.0.102"

// copilot drives GitHub's Copilot CLI without a person, with a model provider of the user's own: GitHub's own service
// tells no token counts, so that no budget could hold.
type copilot struct{ cli }

func newCopilot(o Options) (Agent, error) {
	return &copilot{newCLI(o, "copilot", "copilot",
		"it with `npm install --ignore-scripts --prefix DIR @github/copilot-linux-x64@"+CopilotVersion+"` and add DIR/node_modules/@github/copilot-linux-x64 to PATH")}, nil
}

// copilotArgs are the arguments of every call. The directory is not trusted, which keeps its hooks, servers, skills and
// agents out. Tools that start agents, lead into the CLI's own affairs or ask a person are off.
func copilotArgs() []string {
	return []string{
		"--output-format", "json", "--allow-all", "--no-custom-instructions", "--disable-builtin-mcps", "--no-ask-user", "--no-auto-update",
		"--no-bash-env", "--no-remote", "--no-remote-export", "--no-color", "--log-level", "none",
		"--excluded-tools=task,skill,sql,session_store_sql,read_agent,list_agents,write_agent,fetch_copilot_cli_documentation,web_fetch",
	}
}

// copilotUnpacked is where the program's package may have been unpacked beforehand; otherwise each call does it.
func copilotUnpacked(program string) string {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	return filepath.Join(filepath.Dir(program), "pkg", "linux-"+arch, CopilotVersion)
}

func (c *copilot) env(t Task, program, state string, w wants) []string {
	env := []string{
		"COPILOT_HOME=" + filepath.Join(state, "home"), "COPILOT_CACHE_HOME=" + filepath.Join(state, "cache"), "XDG_CONFIG_HOME=" + filepath.Join(state, "config"),
		"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false", "USE_TGREP=false", "NO_COLOR=1",
	}
	dist := copilotUnpacked(program)
	if _, err := os.Stat(filepath.Join(dist, "index.js")); err == nil {
		env = append(env, "COPILOT_CLI_DIST_DIR="+dist)
	}
	if t.Gateway.BaseURL != "" {
		api := "responses"
		if w.chat {
			api = "completions"
		}
		env = append(env,
			"COPILOT_PROVIDER_TYPE=openai", "COPILOT_PROVIDER_WIRE_API="+api, "COPILOT_PROVIDER_TRANSPORT=http",
			"COPILOT_PROVIDER_BASE_URL="+t.Gateway.BaseURL+"/v1", "COPILOT_PROVIDER_API_KEY="+t.Gateway.Nonce, "COPILOT_MODEL="+t.Model,
			"COPILOT_PROVIDER_MAX_PROMPT_TOKENS="+strconv.FormatInt(w.context, 10), "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS="+strconv.FormatInt(w.output, 10))
	}
	return c.o.env(t, env...)
}

// Run starts the CLI once, with a directory for its state that is new for each call. The prompt goes on stdin.
func (c *copilot) Run(ctx context.Context, t Task, on func(Event)) (Outcome, error) {
	w, err := wantsOf(c.name, t)
	if err != nil {
		return *refuse(err, "correct the keys below agent in the configuration"), nil
	}
	if refused := emptyPrompt(t); refused != nil {
		return *refused, nil
	}
	program, err := c.o.find("copilot")
	if err != nil {
		return *refuse(c.Check(ctx), next(RefusedStart, c.Name())), nil
	}
	state, err := c.stateDir(t)
	if err != nil {
		return Outcome{}, err
	}
	r := newCopilotReader(on)
	s := newStream(r, on)
	return job{
		name: c.Name(), runner: c.o.Runner, grace: c.o.ResultGrace, secret: t.Gateway.Nonce, out: s,
		cmd: sandbox.Command{
			Argv: append([]string{program}, copilotArgs()...), Env: c.env(t, program, state, w), Dir: t.Dir,
			Stdin: strings.NewReader(defuse(t.Prompt)), Timeout: t.Timeout, Grace: t.Grace, Policy: c.o.policy(t, programDirs(program)...),
		},
		read: func(end ending) Outcome { return copilotOutcome(judge(s, end), r, end) },
		done: func() { _ = os.RemoveAll(state) }, // best effort: HOME is thrown away with the run
	}.run(ctx)
}

// Version asks the installed CLI for its version; it costs nothing.
func (c *copilot) Version(ctx context.Context, t Task) (string, error) {
	return c.versionWith(ctx, t,
		func(program string) (argv, dirs []string) {
			return []string{program, "--binary-version"}, programDirs(program)
		},
		func(program, state string) []string { return c.env(onlyDirs(t), program, state, wants{}) })
}
