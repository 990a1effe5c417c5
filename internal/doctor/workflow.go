package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/pattern"
)

// workflow is what of a GitHub workflow a run depends on.
type workflow struct {
	On          any
	Permissions any
	Concurrency any
	Env         map[string]any
	Jobs        map[string]job
}

type job struct {
	Uses           string
	If             string
	Permissions    any
	Concurrency    any
	Environment    any
	TimeoutMinutes any `yaml:"timeout-minutes"`
	Steps          []step
}

type step struct {
	Uses string
	Run  string
	With map[string]any
}

// How a step names this product.
const (
	containerAction = "proctor-ci/proctor"
	hostAction      = "proctor-ci/proctor/host"
)

// installed are the agents whose program the host action installs; vendors those that have one.
func installed() []string { return []string{"claude-code", "codex"} }
func vendors() []string   { return append(installed(), "copilot", "gemini", "opencode") }

func (s step) action() string {
	name, _, _ := strings.Cut(s.Uses, "@")
	return name
}

func (s step) ours() bool { return s.action() == containerAction || s.action() == hostAction }

// room is what the job keeps beyond the run's own clock, to save and tell.
const room = 15 * time.Minute

// Workflow looks at the workflow that starts runs. data nil: the file is not there.
func Workflow(path string, data []byte, c config.Config) []Finding {
	if data == nil {
		return []Finding{failed("workflow", "`proctor init --ci github && git add .github && git commit -m \"Set up proctor\" && git push`", "the base commit has no %s, so no label starts a run", path)}
	}
	var w workflow
	if err := yaml.Unmarshal(data, &w); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return []Finding{failed("workflow", "repair it, or move it away and run `proctor init --ci github`", "%s cannot be read: %s", path, first)}
	}
	var found []Finding
	found = append(found, w.triggers(path, c)...)
	ran := false
	for name, j := range w.Jobs {
		if i := slices.IndexFunc(j.Steps, step.ours); i >= 0 {
			ran = true
			found = append(found, w.job(path, name, j, j.Steps[i], c)...)
		}
	}
	found = append(found, w.stages(path)...)
	if i := w.called(); !ran && i != "" {
		return append(found, Finding{Check: "workflow.step", Status: Unproved, Text: path + " calls " + i + ", which is not read here", Fix: "run doctor as a step of that workflow"})
	}
	if !ran {
		found = append(found, failed("workflow.step", "add the step `- uses: proctor-ci/proctor/host@v0`", "no job of %s runs the action", path))
	}
	return whole("workflow", path+" has its triggers, permissions and time", found)
}

// called is the reusable workflow that a job stands for, "" for none.
func (w workflow) called() string {
	for _, j := range w.Jobs {
		if j.Uses != "" {
			return j.Uses
		}
	}
	return ""
}

func (w workflow) triggers(path string, c config.Config) []Finding {
	var found []Finding
	on := keys(w.On)
	if slices.Contains(on, "pull_request_target") {
		found = append(found, failed("workflow.trigger", "take pull_request_target out of on:", "%s runs with secrets on pull requests of strangers", path))
	}
	if !slices.Contains(on, "issues") && !slices.Contains(on, "workflow_dispatch") {
		found = append(found, failed("workflow.trigger", "add to on: `issues: {types: [labeled]}`, or workflow_dispatch for the webhook", "nothing starts %s at a label", path))
	} else if issues, ok := at(w.On, "issues"); ok && !slices.Contains(texts(field(issues, "types")), "labeled") {
		found = append(found, failed("workflow.trigger", "write `types: [labeled]` below issues: of on:", "%s does not listen to labels, or to everything else as well", path))
	}
	for name, j := range w.Jobs {
		if !slices.ContainsFunc(j.Steps, step.ours) {
			continue
		}
		for _, m := range labelTest.FindAllStringSubmatch(j.If, -1) {
			if m[1] != c.Trigger.Label {
				found = append(found, failed("workflow.label", fmt.Sprintf("write '%s' in the if: of job %s, or `trigger.label: %s` in the configuration", c.Trigger.Label, name, m[1]), "job %s waits for the label %q and trigger.label is %q", name, m[1], c.Trigger.Label))
			}
		}
	}
	return found
}

var (
	labelTest = pattern.Of(`github\.event\.label\.name\s*==\s*'([^']*)'`)
	eventText = pattern.Of(`\$\{\{[^}]*\b(github\.event\.(issue|comment|pull_request|review)\.(title|body|head\.ref)|github\.head_ref|inputs\.goal)\b[^}]*\}\}`)
)

func (w workflow) job(path, name string, j job, s step, c config.Config) []Finding {
	var found []Finding
	if stageOf(s) == "" {
		found = append(found, w.permissions(name, j, "contents", "issues", "pull-requests")...)
	}
	for _, st := range j.Steps {
		if strings.HasPrefix(st.Uses, "actions/checkout@") && fmt.Sprint(st.With["persist-credentials"]) != "false" {
			found = append(found, failed("workflow.credentials", "write `persist-credentials: false` under with: of the checkout step", "job %s leaves the job's token in .git/config, where the checkout's other steps can read it", name))
		}
		if m := eventText.FindString(st.Run); m != "" {
			found = append(found, failed("workflow.injection", "pass the text by env: and use it as a quoted shell variable", "job %s puts %s into a shell script: whoever writes an issue runs commands", name, m))
		}
	}
	if !slices.ContainsFunc(j.Steps, func(st step) bool { return strings.HasPrefix(st.Uses, "actions/checkout@") }) {
		found = append(found, failed("workflow.checkout", "add actions/checkout with persist-credentials: false before the action", "job %s has no checkout", name))
	}
	if st := stageOf(s); st == "" || st == agentStage {
		found = append(found, clock(name, j, c)...)
	}
	group := j.Concurrency
	if group == nil {
		group = w.Concurrency
	}
	switch {
	case group == nil:
		found = append(found, failed("workflow.concurrency", "add `concurrency: {group: \"proctor-${{ inputs.issue || github.event.issue.number || github.run_id }}\", cancel-in-progress: false}`", "two runs of one issue are not kept apart by %s", path))
	case fmt.Sprint(field(group, "cancel-in-progress")) == "true":
		found = append(found, failed("workflow.concurrency", "write `cancel-in-progress: false`", "a second label ends the run in flight, which was paid for"))
	}
	if stageOf(s) != "" {
		found = append(found, w.stage(name, j, s, c)...)
		if stageOf(s) != agentStage {
			return found
		}
		return append(found, commandLines(name, s, c)...)
	}
	found = append(found, commandLines(name, s, c)...)
	return append(found, secrets(name, s, c)...)
}

// commandLines: a container action's image cannot be chosen by the workflow, and the published one holds no vendor's program.
func commandLines(name string, s step, c config.Config) []Finding {
	if s.action() != containerAction || !slices.Contains(vendors(), c.Agent.Name) {
		return nil
	}
	fix := "write `uses: " + hostAction + "@v0`"
	if slices.Contains(installed(), c.Agent.Name) {
		fix += ", which installs it, and `path: ${{ steps.ID.outputs.report }}` where the report is uploaded"
	} else {
		fix += " behind a step that installs it"
	}
	return []Finding{failed("workflow.agent", fix+"; or choose the agent anthropic or openai, which need none", "job %s runs the container action, whose image does not hold the CLI of the agent %s", name, c.Agent.Name)}
}

// permissions of the job are the ones it names, else the workflow's; needs are those that it has to write.
func (w workflow) permissions(name string, j job, needs ...string) []Finding {
	perms, from := j.Permissions, "job "+name
	if perms == nil {
		perms, from = w.Permissions, "the workflow"
	}
	if s, ok := perms.(string); ok {
		if s == "write-all" {
			return []Finding{failed("workflow.permissions", "write `permissions: {"+strings.Join(needs, ": write, ")+": write}` in job "+name, "%s gives every permission there is", from)}
		}
		perms = map[string]any{}
	}
	var missing []string
	for _, p := range needs {
		if fmt.Sprint(field(perms, p)) != "write" {
			missing = append(missing, "`"+p+": write`")
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []Finding{failed("workflow.permissions", "add to permissions of job "+name+": "+strings.Join(missing, ", "), "%s does not give %s", from, strings.Join(missing, ", "))}
}

// clock: the run's own has to go off first. GitHub's default is six hours.
func clock(name string, j job, c config.Config) []Finding {
	limit := 6 * time.Hour
	if j.TimeoutMinutes != nil {
		n, err := strconv.ParseFloat(fmt.Sprint(j.TimeoutMinutes), 64)
		if err != nil {
			return nil // an expression
		}
		limit = time.Duration(n * float64(time.Minute))
	}
	if want := c.Stops.MaxDuration + room; limit < want {
		return []Finding{failed("workflow.timeout", fmt.Sprintf("write `timeout-minutes: %d` in job %s, or lower stops.max_duration", int(want.Minutes()), name), "job %s is stopped after %s and the run stops itself after %s: with less than %s between them it cannot save and tell", name, limit, c.Stops.MaxDuration, room)}
	}
	return nil
}

// secrets: which key the step hands over.
func secrets(job string, s step, c config.Config) []Finding {
	has := func(inputs ...string) bool {
		return slices.ContainsFunc(inputs, func(i string) bool { v, ok := s.With[i]; return ok && fmt.Sprint(v) != "" })
	}
	var found []Finding
	for _, i := range []string{"github-token", "anthropic-api-key", "claude-code-oauth-token", "openai-api-key", "gemini-api-key"} {
		if v, ok := s.With[i].(string); ok && v != "" && !strings.Contains(v, "${{") {
			found = append(found, failed("workflow.secret", "make it a secret, change the key, and write ${{ secrets.NAME }}", "the step's %s stands in the file in clear", i))
		}
	}
	if inputs := keyInputs(c.Agent.Name); inputs != nil && !has(inputs...) {
		name := strings.ToUpper(strings.ReplaceAll(inputs[0], "-", "_"))
		found = append(found, failed("workflow.secret", "add `"+inputs[0]+": ${{ secrets."+name+" }}` to the step", "job %s gives the agent %s no key", job, c.Agent.Name))
	}
	return found
}

// keys of `on:`, which may be a word, a list or a mapping.
func keys(on any) []string {
	if m, ok := on.(map[string]any); ok {
		var out []string
		for k := range m {
			out = append(out, k)
		}
		return out
	}
	return texts(on)
}

func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			out = append(out, fmt.Sprint(e))
		}
		return out
	}
	return nil
}

func at(v any, key string) (any, bool) {
	m, _ := v.(map[string]any)
	got, ok := m[key]
	return got, ok
}

func field(v any, key string) any { got, _ := at(v, key); return got }

// keyInputs are the inputs by which an agent gets its key. Any one of them is enough.
func keyInputs(agent string) []string {
	switch agent {
	case "gemini":
		return []string{"gemini-api-key"}
	case "openai", "codex", "opencode", "copilot":
		return []string{"openai-api-key"}
	case "claude-code", "anthropic":
		return []string{"anthropic-api-key", "claude-code-oauth-token"}
	}
	return nil
}

var secretName = pattern.Of(`\$\{\{\s*secrets\.([A-Za-z0-9_]+)\s*\}\}`)

// HandsOver is what the workflow's step gives to runs: whether the forge's token is the job's own, and the names of the secrets that hold
// the agent's key, any one of which is enough. A workflow that cannot be read hands nothing over.
func HandsOver(data []byte, c config.Config) (jobToken bool, names []string) {
	var w workflow
	if yaml.Unmarshal(data, &w) != nil {
		return false, nil
	}
	for _, j := range w.Jobs {
		i := slices.IndexFunc(j.Steps, step.ours)
		if i < 0 {
			continue
		}
		with := j.Steps[i].With
		token := fmt.Sprint(with["github-token"])
		jobToken = jobToken || strings.Contains(token, "github.token") || strings.Contains(token, "secrets.GITHUB_TOKEN")
		for _, input := range keyInputs(c.Agent.Name) {
			if m := secretName.FindStringSubmatch(fmt.Sprint(with[input])); m != nil {
				names = append(names, strings.ToUpper(m[1]))
			}
		}
	}
	return jobToken, names
}
