package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/templates"
)

// repository is the first commit: the visible gate wants the word "right", the sealed one the whole line.
func repository(s setting) map[string]string {
	files := map[string]string{
		"README.md":              "# Answers\n",
		"app/answer.txt":         "wrong\n",
		"app/lib.sh":             ":\n",
		"tests/run.sh":           "#!/bin/sh\n. ./app/lib.sh\ngrep -q right app/answer.txt || { echo 'the answer is not right'; exit 1; }\n",
		"sealed/check.sh":        "# " + s.mark + "\n. ./app/lib.sh\ngrep -qx 'right for sure' app/answer.txt\n",
		".gitignore":             "ignored/\n",
		".github/proctor.yml":    configuration(s.config),
		".github/plan.yml":       planText(s.plan, s.then),
		workflowFile:             string(templates.GitHubWorkflow),
		"docs/unrelated page.md": "Nothing.\n",
	}
	if s.workflow != nil {
		files[workflowFile] = s.workflow(files[workflowFile])
	}
	for path, content := range s.files {
		if files[path] = content; content == "" {
			delete(files, path)
		}
	}
	return files
}

const workflowFile = ".github/workflows/proctor.yml"

func configuration(change map[string]string) string {
	keys := map[string]string{
		"version": "1",
		"agent":   "{name: script, args: [.github/plan.yml], timeout: 30s}",
		"gates":   bothGates,
		"review":  "{enabled: false}",
		"stops":   "{max_ticks: 4, max_cost_usd: 1, max_duration: 5m}",
	}
	for k, v := range change {
		if keys[k] = v; v == "" {
			delete(keys, k)
		}
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&b, "%s: %s\n", k, keys[k])
	}
	return b.String()
}

// bothGates are a visible and a held-out one; visibleGates has no held-out one.
const (
	bothGates    = "{iteration: sh tests/run.sh, acceptance: {run: sh sealed/check.sh, sealed: [sealed/**], attempts: 2}, timeout: 20s, stability: 1}"
	visibleGates = "{iteration: sh tests/run.sh, timeout: 20s, stability: 1}"
)

// tick is what the scripted agent does in one tick.
type tick []agent.Step

func planText(ticks []tick, then string) string {
	if len(ticks) == 0 {
		ticks = []tick{{say("I do nothing.")}}
	}
	plan := map[string]any{"ticks": ticks}
	if then != "" {
		plan["then"] = then
	}
	b, err := json.Marshal(plan)
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

func write(path, content string) agent.Step {
	return agent.Step{Write: &agent.WriteStep{Path: path, Content: content}}
}
func sh(line string) agent.Step       { return agent.Step{Run: &line} }
func say(text string) agent.Step      { return agent.Step{Say: &text} }
func crash(sig string) agent.Step     { return agent.Step{Crash: &sig} }
func hang(how string) agent.Step      { return agent.Step{Hang: &how} }
func remove(path string) agent.Step   { return agent.Step{Delete: &path} }
func reply(content string) agent.Step { return write("app/answer.txt", content) }

// spend costs input and five times output micro-dollars: claude-haiku-4-5 is $1 and $5 per million tokens.
func spend(input, output int64) agent.Step {
	return agent.Step{Spend: &agent.SpendStep{Input: input, Output: output}}
}
