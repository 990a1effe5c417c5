package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// OpenCodeVersion is the release that this adapter was tried with.
const OpenCodeVersion = "1.18.33"

// openCode drives OpenCode's CLI without a person.
type openCode struct{ cli }

func newOpenCode(o Options) (Agent, error) {
	return &openCode{newCLI(o, "opencode", "opencode",
		"it with `npm install --ignore-scripts --prefix DIR opencode-linux-x64@"+OpenCodeVersion+"` and add DIR/node_modules/opencode-linux-x64/bin to PATH")}, nil
}

// openCodeArgs are the arguments of every call. A title would be asked of the model.
func openCodeArgs() []string {
	return []string{"run", "--format", "json", "--pure", "--auto", "--title", "run"}
}

// openCodeProvider is the name under which the CLI knows the meter.
const openCodeProvider = "proctor"

// openCodeConfig is all the configuration that the CLI has: none of the repository, of HOME or of a provider is read.
// Tools that leave the machine, ask a person or start an agent of another model are off.
func openCodeConfig(t Task, w wants) (string, error) {
	type object = map[string]any
	npm := "@ai-sdk/openai"
	if w.chat {
		npm = "@ai-sdk/openai-compatible"
	}
	model := openCodeProvider + "/" + t.Model
	b, err := json.Marshal(object{
		"model": model, "small_model": model, "enabled_providers": []string{openCodeProvider},
		"autoupdate": false, "share": "disabled", "snapshot": false, "lsp": false, "formatter": false, "plugin": []string{}, "mcp": object{},
		"permission": object{"*": "allow", "webfetch": "deny", "websearch": "deny", "codesearch": "deny", "question": "deny", "task": "deny", "skill": "deny"},
		"provider": object{openCodeProvider: object{
			"npm": npm, "name": openCodeProvider, "options": object{"baseURL": t.Gateway.BaseURL + "/v1", "apiKey": t.Gateway.Nonce},
			"models": object{t.Model: object{"name": t.Model, "limit": object{"context": w.context, "output": w.output}}},
		}},
	})
	return string(b), err
}

func (c *openCode) env(t Task, state, config string) []string {
	env := []string{"OPENCODE_CONFIG_CONTENT=" + config}
	for _, name := range []string{"CONFIG", "DATA", "CACHE", "STATE"} {
		env = append(env, "XDG_"+name+"_HOME="+filepath.Join(state, strings.ToLower(name)))
	}
	for _, name := range []string{
		"DISABLE_PROJECT_CONFIG", "DISABLE_CLAUDE_CODE", "DISABLE_EXTERNAL_SKILLS", "DISABLE_DEFAULT_PLUGINS", "PURE",
		"DISABLE_AUTOUPDATE", "DISABLE_MODELS_FETCH", "DISABLE_LSP_DOWNLOAD", "DISABLE_SHARE", "EXPERIMENTAL_DISABLE_FILEWATCHER",
	} {
		env = append(env, "OPENCODE_"+name+"=1")
	}
	return c.o.env(t, env...)
}

// Run starts the CLI once, with a directory for its state that is new for each call. The prompt goes on stdin.
func (c *openCode) Run(ctx context.Context, t Task, on func(Event)) (Outcome, error) {
	w, err := wantsOf(c.name, t)
	if err != nil {
		return *refuse(err, "correct the keys below agent in the configuration"), nil
	}
	if refused := emptyPrompt(t); refused != nil {
		return *refused, nil
	}
	program, err := c.o.find("opencode")
	if err != nil {
		return *refuse(c.Check(ctx), next(RefusedStart, c.Name())), nil
	}
	state, err := c.stateDir(t)
	if err != nil {
		return Outcome{}, err
	}
	config, err := openCodeConfig(t, w)
	if err != nil {
		return Outcome{}, fmt.Errorf("run agent opencode: %w", err)
	}
	s := newStream(newOpenCodeReader(on), on)
	return job{
		name: c.Name(), runner: c.o.Runner, grace: c.o.ResultGrace, secret: t.Gateway.Nonce, out: s,
		cmd: sandbox.Command{
			Argv: append([]string{program}, openCodeArgs()...), Env: c.env(t, state, config), Dir: t.Dir,
			Stdin: strings.NewReader(defuse(t.Prompt)), Timeout: t.Timeout, Grace: t.Grace, Policy: c.o.policy(t, programDirs(program)...),
		},
		read: func(end ending) Outcome { return openCodeOutcome(judge(s, end), end) },
		done: func() { _ = os.RemoveAll(state) }, // best effort: HOME is thrown away with the run
	}.run(ctx)
}

// Version asks the installed CLI for its version; it costs nothing.
func (c *openCode) Version(ctx context.Context, t Task) (string, error) {
	return c.versionWith(ctx, t,
		func(program string) (argv, dirs []string) {
			return []string{program, "--version"}, programDirs(program)
		},
		func(_, state string) []string { return c.env(onlyDirs(t), state, "{}") })
}
