package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// npm lays out what the lock file names, as the real one does; the image's tests install with that.
const npm = `#!/bin/sh
[ "$1 $2" = "ci --ignore-scripts" ] || { echo "npm $*: not expected" >&2; exit 1; }
[ ! -e .npmrc ] || exit 1
[ -z "$FAILS" ] || { echo "npm error 404" >&2; exit 1; }
echo "$@" >>"$RUNNER_TEMP/asked"
case $(cat package-lock.json) in
*claude-code-linux-x64*) bin=node_modules/@anthropic-ai/claude-code-linux-x64 program=claude;;
*codex-linux-x64*) bin=node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin program=codex;;
esac
mkdir -p "$bin"; [ -n "$EMPTY" ] || { echo '#!/bin/sh' >"$bin/$program"; chmod 755 "$bin/$program"; }
`

func TestTheHostActionInstallsTheConfiguredAgentsCLI(t *testing.T) {
	t.Parallel()
	const (
		claude = "claude-code/node_modules/@anthropic-ai/claude-code-linux-x64"
		codex  = "codex/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin"
	)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host, err := filepath.Abs("../../host")
	if err != nil {
		t.Fatal(err)
	}
	gated := func(agent string) string { return "version: 1\n" + agent + "\ngates: {iteration: make test}\n" }
	cases := map[string]struct {
		config  string
		env     map[string]string
		has     string // a program that PATH has already
		without string
		in      []string // PATH afterwards
		says    string   // of a step that fails; of others, what they tell
		fails   bool
		warns   bool   // what is missing is the run's to tell
		plants  string // a program in a directory of the checkout that PATH has
	}{
		"the default agent":                    {config: gated(""), in: []string{claude}},
		"a configured agent":                   {config: gated("agent: {name: codex}"), in: []string{codex}},
		"an agent of ours":                     {config: gated("agent: {name: anthropic}")},
		"what a comment may choose":            {config: gated("agent: {name: anthropic, choices: [anthropic, codex, claude-code]}"), in: []string{codex, claude}},
		"the input's agent":                    {config: gated("agent: {name: anthropic, choices: [claude-code]}"), env: map[string]string{"PROCTOR_AGENT": "claude-code"}, in: []string{claude}},
		"an agent that is not pinned here":     {config: gated("agent: {name: opencode}")},
		"a CLI of the job's own":               {config: gated(""), has: "claude", says: "claude-code is in PATH already"},
		"none":                                 {config: gated(""), env: map[string]string{"PROCTOR_AGENT_CLI": "none"}},
		"by name":                              {config: gated("agent: {name: anthropic}"), env: map[string]string{"PROCTOR_AGENT_CLI": "claude-code codex"}, in: []string{claude, codex}},
		"a name that is not known":             {config: gated(""), env: map[string]string{"PROCTOR_AGENT_CLI": "/*\n::stop-commands::y"}, fails: true, says: `agent-cli holds "??"`},
		"a configuration that nobody can read": {config: "agent: {name: $(touch ran)"},
		"a configuration that runs a shell":    {config: gated("agent: {name: \"claude-code; touch ran\"}")},
		"no npm":                               {config: gated(""), without: "npm", warns: true, says: "the runner has no npm"},
		"npm fails":                            {config: gated(""), env: map[string]string{"FAILS": "1"}, warns: true, says: "npm could not install claude-code"},
		"npm leaves a package out":             {config: gated(""), env: map[string]string{"EMPTY": "1"}, warns: true, says: "without its program"},
		"an architecture without a CLI":        {config: gated(""), env: map[string]string{"RUNNER_ARCH": "ARM"}, warns: true, says: "no claude-code for the architecture ARM"},
		"no npm for what was asked by name":    {config: gated(""), env: map[string]string{"PROCTOR_AGENT_CLI": "claude-code"}, without: "npm", fails: true, says: "the runner has no npm"},
		"npm fails at what was asked by name":  {config: gated(""), env: map[string]string{"PROCTOR_AGENT_CLI": "codex", "FAILS": "1"}, fails: true, says: "npm could not install codex"},
		"a CLI in the checkout":                {config: gated(""), plants: "claude", in: []string{claude}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			bin, checkout, temp := filepath.Join(dir, "bin"), filepath.Join(dir, "checkout"), filepath.Join(dir, "temp")
			put := func(path, text string) {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			put(filepath.Join(checkout, ".github", "proctor.yml"), c.config)
			put(filepath.Join(checkout, ".npmrc"), "registry=https://registry.example.com/\n")
			if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", checkout).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			if err := os.MkdirAll(bin, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, tool := range []string{"bash", "sh", "sed", "tr", "cp", "rm", "mkdir", "cat", "chmod", "git", "dirname"} {
				at, err := exec.LookPath(tool)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(at, filepath.Join(bin, tool)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(self, filepath.Join(bin, "proctor")); err != nil {
				t.Fatal(err)
			}
			if c.without != "npm" {
				put(filepath.Join(bin, "npm"), npm)
			}
			if c.has != "" {
				put(filepath.Join(bin, c.has), "#!/bin/sh\n")
			}
			search := bin
			if c.plants != "" {
				put(filepath.Join(checkout, "bin", c.plants), "#!/bin/sh\n")
				search += ":" + filepath.Join(checkout, "bin")
			}
			cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(host, "agents"))
			cmd.Dir = checkout
			for k, v := range merged(part(partCLI), map[string]string{"PATH": search, "HOME": dir, "RUNNER_TEMP": temp, "RUNNER_ARCH": "X64", "GITHUB_ACTION_PATH": host, "GITHUB_PATH": filepath.Join(dir, "path"), "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": checkout}, c.env) {
				cmd.Env = append(cmd.Env, k+"="+v)
			}
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(out), c.says) || (c.fails || c.warns) != strings.Contains(string(out), "Next: ") || c.warns != strings.Contains(string(out), "::warning ") || strings.Contains(string(out), "\n::stop") {
				t.Fatalf("%v, want failure %v that says %q:\n%s", err, c.fails, c.says, out)
			}
			var want []string
			for _, p := range c.in {
				want = append(want, filepath.Join(temp, "proctor-agents", p)+"\n")
			}
			if got, _ := os.ReadFile(filepath.Join(dir, "path")); string(got) != strings.Join(want, "") {
				t.Errorf("PATH got %q, want %q:\n%s", got, want, out)
			}
			asked, _ := os.ReadFile(filepath.Join(temp, "asked"))
			if strings.Count(string(asked), "--cpu=x64") != len(c.in) && c.env["EMPTY"] == "" {
				t.Errorf("npm was asked %q", asked)
			}
			if _, err := os.Stat(filepath.Join(checkout, "ran")); err == nil {
				t.Error("text of the configuration was run")
			}
		})
	}
}
