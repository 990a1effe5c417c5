//go:build e2e

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// plant lays settings, servers, plugins and memory of the CLI in the repository and in HOME. Each leaves PLANTED-… where
// it takes effect.
func (e *e2e) plant(t *testing.T) {
	t.Helper()
	files := map[string]string{}
	switch e.cli.name {
	case "codex":
		server := "[mcp_servers.x]\ncommand = \"sh\"\nargs = [\"-c\", \"echo x > %s/PLANTED-mcp; sleep 5\"]\n"
		files[".codex/config.toml"] = strings.ReplaceAll(server, "%s", e.task.Dir)
		files["../home/.codex/config.toml"] = strings.ReplaceAll(server, "%s/PLANTED-mcp", e.task.Dir+"/PLANTED-user")
	case "gemini":
		// A hook's own answer has to be JSON.
		hook := `{"hooks":[{"type":"command","command":"echo x > %s/PLANTED-%s; echo {}"}]}`
		hooks := func(who string) string {
			return `"hooks":{"SessionStart":[` + fmt.Sprintf(hook, e.task.Dir, who+"-start") + `],"BeforeTool":[` + fmt.Sprintf(hook, e.task.Dir, who+"-tool") + `]}`
		}
		files[".gemini/settings.json"] = `{` + hooks("hook") + `,"mcpServers":{"x":{"command":"sh","args":["-c","echo x > ` + e.task.Dir + `/PLANTED-mcp; sleep 5"]}},` +
			`"tools":{"discoveryCommand":"sh ` + e.task.Dir + `/discover.sh","callCommand":"false"},"context":{"fileName":["OTHER.md","AGENTS.md"]}}`
		files["discover.sh"] = "echo x > " + e.task.Dir + "/PLANTED-discovery; echo '[]'\n"
		files["OTHER.md"] = "PLANTED-other"
		files[".gemini/system.md"] = "PLANTED-system"
		files[".gemini/.env"] = "GEMINI_SYSTEM_MD=true\nPLANTED_ENV=x\n"
		files["../home/.gemini/settings.json"] = `{"security":{"auth":{"selectedType":"gemini-api-key"}},` + hooks("user") + `}`
	case "copilot":
		server := `{"mcpServers":{"x":{"type":"local","command":"sh","args":["-c","echo x > %s; sleep 5"],"tools":["*"]}}}`
		files[".mcp.json"] = fmt.Sprintf(server, e.task.Dir+"/PLANTED-mcp")
		hook := `{"version":1,"hooks":{"sessionStart":[{"type":"command","bash":"echo x > %s"}]}}`
		files[".github/hooks/planted.json"] = fmt.Sprintf(hook, e.task.Dir+"/PLANTED-hook-start")
		files[".github/copilot-instructions.md"] = "PLANTED-other"
		files["../home/.copilot/mcp-config.json"] = strings.Replace(fmt.Sprintf(server, e.task.Dir+"/PLANTED-user"), `"x"`, `"y"`, 1)
	case "opencode":
		config := `{"mcp":{"x":{"type":"local","command":["sh","-c","echo x > %s; sleep 5"]}}}`
		files["opencode.json"] = strings.ReplaceAll(config, "%s", e.task.Dir+"/PLANTED-mcp")
	}
	files["AGENTS.md"] = "PLANTED-memory"
	files[".env"] = "PLANTED_ENV=x\n"
	for name, content := range files {
		e.file(t, name, content)
	}
	for _, d := range []string{e.task.Dir, e.task.Home} {
		if err := filepath.WalkDir(d, func(p string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Chmod(p, 0o777)
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// planted are the effects.
func (e *e2e) planted(t *testing.T) (found []string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(e.task.Dir, "PLANTED-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range left {
		found = append(found, filepath.Base(p))
	}
	for _, text := range []string{"PLANTED-memory", "PLANTED-other", "PLANTED-system"} {
		if slices.ContainsFunc(e.model.Calls(), func(r agenttest.Request) bool { return strings.Contains(string(r.Body), text) }) {
			found = append(found, text)
		}
	}
	if strings.Contains(e.read(t, "env.txt"), "PLANTED_ENV") {
		found = append(found, "PLANTED_ENV")
	}
	return found
}

// What a repository or an earlier tick planted for Codex, Gemini, Copilot or OpenCode is without effect. The control starts the same CLI in
// the same place without what the adapter adds against it.
func TestE2EContractPlantedSettingsAreWithoutEffect(t *testing.T) {
	t.Parallel()
	script := func(c realCLI) agenttest.Script {
		return agenttest.Turns(agenttest.Turn{Text: "I look.", Tools: []agenttest.Tool{c.run("sleep 1; env > env.txt")}}, agenttest.Turn{Text: "Done."})
	}
	for _, c := range realCLIs() {
		if c.name == "claude-code" {
			continue // it has a test of its own
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newE2EOf(t, c, script(c), 20*money.Dollar)
			e.plant(t)
			if o, _ := e.run(t); o.Kind != OK || len(e.planted(t)) != 0 {
				t.Errorf("INV-6 %q took effect: %+v", e.planted(t), o)
			}

			control := newE2EOf(t, c, script(c), 20*money.Dollar)
			control.plant(t)
			program, opt := c.program(t), Options{}
			cmd := sandbox.Command{Dir: control.task.Dir, Stdin: strings.NewReader("Fix it."), Timeout: 2 * time.Minute}
			want := []string{"PLANTED-memory", "PLANTED-user"}
			switch c.name {
			case "gemini":
				env := (&geminiCLI{newCLI(opt, "gemini", "gemini", "")}).env(control.task, control.task.Home)
				for i, kv := range env {
					env[i] = strings.Replace(kv, "TRUST_WORKSPACE=false", "TRUST_WORKSPACE=true", 1)
				}
				cmd.Argv = []string{program, "--output-format", "stream-json", "--approval-mode", "yolo", "--model", c.model, "--prompt=Fix it."}
				cmd.Env, cmd.Policy = env, opt.policy(control.task, geminiDirs(program)...)
				want = []string{
					"PLANTED-discovery", "PLANTED-hook-start", "PLANTED-hook-tool", "PLANTED-mcp", "PLANTED-user-start", "PLANTED-user-tool",
					"PLANTED-memory", "PLANTED-other", "PLANTED-system", "PLANTED_ENV",
				}
			case "copilot":
				env := (&copilot{newCLI(opt, "copilot", "copilot", "")}).env(control.task, program, filepath.Join(control.task.Home, "state"), wants{context: 200_000, output: 32_000})
				cmd.Env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "COPILOT_HOME=") })
				args := slices.DeleteFunc(copilotArgs(), func(a string) bool { return a == "--no-custom-instructions" })
				cmd.Argv, cmd.Policy = append([]string{program, "--trust-folder"}, args...), opt.policy(control.task, programDirs(program)...)
				want = []string{"PLANTED-hook-start", "PLANTED-mcp", "PLANTED-user", "PLANTED-memory", "PLANTED-other"}
			case "codex":
				var args []string
				for _, a := range codexArgs(control.task.Gateway) {
					if a != "--ignore-user-config" && a != "project_doc_max_bytes=0" {
						args = append(args, a)
					} else if a == "project_doc_max_bytes=0" {
						args = append(args, "project_doc_max_bytes=1000")
					}
				}
				cmd.Argv = append([]string{program}, append(args, "--model", c.model, "-")...)
				cmd.Env = (&codex{newCLI(opt, "codex", "codex", "")}).env(control.task, filepath.Join(control.task.Home, ".codex"))
				cmd.Policy = opt.policy(control.task, codexDirs(program)...)
			default:
				config, err := openCodeConfig(control.task, wants{context: 200_000, output: 32_000})
				if err != nil {
					t.Fatal(err)
				}
				config = strings.Replace(config, `"mcp":{},`, "", 1)
				env := (&openCode{newCLI(opt, "opencode", "opencode", "")}).env(control.task, filepath.Join(control.task.Home, "state"), config)
				env = slices.DeleteFunc(env, func(kv string) bool {
					return strings.Contains(kv, "DISABLE_PROJECT_CONFIG") || strings.HasPrefix(kv, "OPENCODE_PURE") || strings.HasPrefix(kv, "XDG_CONFIG_HOME")
				})
				cmd.Argv, cmd.Env = []string{program, "run", "--format", "json", "--auto", "--title", "run"}, env
				cmd.Policy = opt.policy(control.task, programDirs(program)...)
				want = []string{"PLANTED-memory", "PLANTED-mcp"}
			}
			out, errs := &tail{max: 2000}, &tail{max: 2000}
			cmd.Stdout, cmd.Stderr = out, errs
			if res, err := control.box.Run(t.Context(), cmd); err != nil || res.ExitCode != 0 {
				t.Errorf("control: %+v, %v: %s %s", res, err, out.text(""), errs.text(""))
			}
			for _, w := range want {
				if !slices.Contains(control.planted(t), w) {
					t.Errorf("control: %s took no effect either (%q), so the test shows nothing about it", w, control.planted(t))
				}
			}
			t.Logf("control: %q", control.planted(t))
		})
	}
}
