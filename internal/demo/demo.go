// Package demo owns the repository, the issue and the scripted agents that `proctor demo` plays with. It must
// never hold a part of the product: everything else in a demo is the real thing.
package demo

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/templates"
)

//go:embed all:shop
var shop embed.FS

// The issue.
const (
	Title = "Totals are a cent short"
	Body  = "`printf 'pen,1,0.29\\n' | bin/total` prints **0.28**. It should print 0.29.\n\n" +
		"- [ ] Every total is rounded half up to the cent, after the discount\n" +
		"- [ ] The examples in `tests/run.sh` still pass\n" +
		"<!-- this comment is not visible on the forge, so the agent does not read it -->\n"
)

// Agents that the demo can play.
const (
	Script     = "script"
	ClaudeCode = "claude-code"
	Codex      = "codex"
	Gemini     = "gemini"
	OpenCode   = "opencode"
	Copilot    = "copilot"
	Anthropic  = "anthropic"
	OpenAI     = "openai"
)

// Agents lists them.
func Agents() []string {
	return []string{Script, ClaudeCode, Codex, Gemini, OpenCode, Copilot, Anthropic, OpenAI}
}

// scriptLine is the configuration's line that another agent replaces.
const scriptLine = "agent: {name: script, args: [.github/demo-agent.yml], timeout: 2m}"

// agentLine is the configuration's line for an agent that asks a model.
var agentLine = map[string]string{
	ClaudeCode: "agent: {name: claude-code, model: claude-sonnet-4-5, timeout: 2m}",
	Codex:      "agent: {name: codex, model: gpt-5.6, timeout: 2m}",
	Gemini:     "agent: {name: gemini, model: gemini-2.5-pro, timeout: 2m}",
	OpenCode:   "agent: {name: opencode, model: gpt-5.6, timeout: 4m}",
	Copilot:    "agent: {name: copilot, model: gpt-5.6, timeout: 2m}",
	Anthropic:  "agent: {name: anthropic, model: claude-sonnet-4-5, timeout: 2m}",
	OpenAI:     "agent: {name: openai, model: gpt-5.3-codex, timeout: 2m}",
}

// Write lays the repository out in dir, with the workflow that `proctor init` writes. sandboxMode is the value of the key
// sandbox.mode; empty leaves the key out. The scenario says what differs from the first story.
func Write(dir, agentName, sandboxMode string, scenario Scenario) error {
	files := map[string][]byte{".github/workflows/proctor.yml": templates.GitHubWorkflow}
	err := fs.WalkDir(shop, "shop", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := shop.ReadFile(path)
		files[strings.TrimPrefix(path, "shop/")] = b
		return err
	})
	if err != nil {
		return fmt.Errorf("read the embedded repository: %w", err)
	}
	if err := scenario.apply(files); err != nil {
		return err
	}
	if line, ok := agentLine[agentName]; ok {
		config := files[".github/proctor.yml"]
		if !bytes.Contains(config, []byte(scriptLine)) {
			return fmt.Errorf("the demo's configuration lacks the line %q", scriptLine)
		}
		files[".github/proctor.yml"] = bytes.Replace(config, []byte(scriptLine), []byte(line), 1)
		delete(files, ".github/demo-agent.yml")
	} else if agentName != Script {
		return fmt.Errorf("the demo cannot play agent %q: it can play %s", agentName, strings.Join(Agents(), ", "))
	}
	if sandboxMode != "" {
		files[".github/proctor.yml"] = fmt.Appendf(files[".github/proctor.yml"], "sandbox: {mode: %s}\n", sandboxMode)
	}
	for path, b := range files {
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(b, []byte("#!")) {
			mode = 0o755
		}
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, b, mode); err != nil {
			return err
		}
	}
	return nil
}

// The two attempts: the first looks right and passes every visible test, the second is right.
const (
	planted = "int(sum * (100 - d))"
	naive   = "int(sum * (100 - d) + 0.5)"
)

// hands are the tools of an agent, as calls.
type hands struct {
	read  func(path string) agenttest.Tool
	edit  func(path, from, to string) agenttest.Tool
	write func(path, content string) agenttest.Tool
	shell func(line string) agenttest.Tool
}

// handsOf says how an agent calls its tools.
func handsOf(agentName string) hands {
	if agentName == ClaudeCode || agentName == Script {
		return hands{agenttest.Read, agenttest.Edit, agenttest.Write, agenttest.Bash}
	}
	switch agentName {
	case Codex:
		return shellHands(agenttest.Exec)
	case OpenCode, Copilot:
		// Which tools these have for files depends on the model that they are told; a shell they always have.
		return shellHands(func(line string) agenttest.Tool {
			return agenttest.Tool{Name: "bash", Input: map[string]any{"command": line, "description": "Run it"}}
		})
	case Gemini:
		return geminiHands()
	}
	call := func(name string, input map[string]any) agenttest.Tool {
		return agenttest.Tool{Name: name, Input: input}
	}
	return hands{
		read: func(path string) agenttest.Tool { return call("read", map[string]any{"path": path}) },
		edit: func(path, from, to string) agenttest.Tool {
			return call("edit", map[string]any{"path": path, "old": from, "new": to})
		},
		write: func(path, content string) agenttest.Tool {
			return call("write", map[string]any{"path": path, "content": content})
		},
		shell: func(line string) agenttest.Tool { return call("shell", map[string]any{"command": line}) },
	}
}

// shellHands are one tool, a shell.
func shellHands(run func(line string) agenttest.Tool) hands {
	return hands{
		read: func(path string) agenttest.Tool { return run("cat " + path) },
		edit: func(path, from, to string) agenttest.Tool {
			return run("awk -v from='" + from + "' -v to='" + to + "' '{ i = index($0, from); if (i) $0 = substr($0, 1, i - 1) to substr($0, i + length(from)); print }' " + path + " > .new && cat .new > " + path + " && rm .new")
		},
		write: func(path, content string) agenttest.Tool {
			return run("cat > " + path + " <<'END-OF-FILE'\n" + content + "END-OF-FILE")
		},
		shell: run,
	}
}

// geminiHands are the Gemini CLI's tools.
func geminiHands() hands {
	call := func(name string, input map[string]any) agenttest.Tool {
		return agenttest.Tool{Name: name, Input: input}
	}
	return hands{
		read: func(path string) agenttest.Tool { return call("read_file", map[string]any{"file_path": path}) },
		edit: func(path, from, to string) agenttest.Tool {
			return call("replace", map[string]any{"file_path": path, "old_string": from, "new_string": to, "instruction": "Change it."})
		},
		write: func(path, content string) agenttest.Tool {
			return call("write_file", map[string]any{"file_path": path, "content": content})
		},
		shell: func(line string) agenttest.Tool {
			return call("run_shell_command", map[string]any{"command": line, "description": "Run it"})
		},
	}
}

// Model is what an agent hears in the demo: the same two attempts, as a model would make them.
func Model(agentName string) agenttest.Script {
	h := handsOf(agentName)
	return agenttest.Attempts(
		agenttest.Turns(
			agenttest.Turn{Text: "I will look at the script first.", Tools: []agenttest.Tool{h.read("bin/total")}},
			agenttest.Turn{Tools: []agenttest.Tool{h.edit("bin/total", planted, naive)}},
			agenttest.Turn{Tools: []agenttest.Tool{h.shell("sh tests/run.sh")}},
			agenttest.Turn{Text: "Totals are rounded now and all tests pass."},
		),
		agenttest.Turns(
			agenttest.Turn{Text: "The held-out tests fail, so adding a half is not enough: 0.35 has no exact binary form.", Tools: []agenttest.Tool{h.read("bin/total")}},
			agenttest.Turn{Tools: []agenttest.Tool{h.write("bin/total", Fixed())}},
			agenttest.Turn{Tools: []agenttest.Tool{h.shell("sh tests/run.sh")}},
			agenttest.Turn{Text: "Totals are counted in whole cents now."},
		),
	)
}

// Fixed is the second attempt's file, the same that the scripted agent writes.
func Fixed() string {
	return `#!/bin/sh
# total [-d PERCENT] < ITEMS
#
# ITEMS are lines of name,quantity,unit price (at most two decimals). Prints the order's total
# after the discount, rounded half up to the cent.
discount=0
if [ "${1-}" = -d ]; then
	discount=$2
fi
awk -F, -v d="$discount" '
	# Whole cents: 0.35 has no exact binary form, 35 has.
	function cents(price,  part) {
		split(price, part, ".")
		return part[1] * 100 + substr(part[2] "00", 1, 2)
	}
	{ sum += $2 * cents($3) }
	END {
		total = int((sum * (100 - d) + 50) / 100)
		printf "%d.%02d\n", int(total / 100), total % 100
	}
'
`
}
