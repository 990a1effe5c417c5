package doctor

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/templates"
)

func failures(found []Finding) (out []string) {
	for _, f := range found {
		if f.Status == Failed {
			out = append(out, f.Check)
		}
	}
	return out
}

// Each case takes one right thing out of a file that init writes. The control is that file itself, and the printed fix
// names what was taken out.
func TestEachFaultOfAWorkflowIsNamedWithWhatMendsIt(t *testing.T) {
	t.Parallel()
	right := string(templates.GitHubWorkflow)
	if found := Workflow("w.yml", []byte(right), config.Default()); len(failures(found)) != 0 {
		t.Fatalf("the control: %+v", found)
	}
	const step = "      - id: proctor\n"
	for name, c := range map[string]struct{ good, bad, check, fix string }{
		"credentials stay":         {"          persist-credentials: false\n", "          fetch-depth: 1\n", "workflow.credentials", "persist-credentials: false"},
		"job too short":            {"timeout-minutes: 75", "timeout-minutes: 45", "workflow.timeout", "timeout-minutes: 60"},
		"no contents":              {"      contents: write # the run's branch\n", "", "workflow.permissions", "contents: write"},
		"no issues":                {"      issues: write # labels and the status comment\n", "", "workflow.permissions", "issues: write"},
		"no pull requests":         {"      pull-requests: write # the draft\n", "", "workflow.permissions", "pull-requests: write"},
		"only reads":               {"contents: write", "contents: read", "workflow.permissions", "contents: write"},
		"another label":            {"github.event.label.name == 'proctor'", "github.event.label.name == 'robot'", "workflow.label", "write 'proctor'"},
		"runs cancel each other":   {"cancel-in-progress: false", "cancel-in-progress: true", "workflow.concurrency", "cancel-in-progress: false"},
		"runs are not kept apart":  {right[strings.Index(right, "concurrency:\n"):strings.Index(right, "jobs:\n")], "", "workflow.concurrency", "github.event.issue.number"},
		"not the label's event":    {"types: [labeled]", "types: [opened]", "workflow.trigger", "labeled"},
		"strangers' changes":       {"on:\n", "on:\n  pull_request_target:\n", "workflow.trigger", "pull_request_target"},
		"issue text in a shell":    {step, "      - run: echo ${{ github.event.issue.title }}\n" + step, "workflow.injection", "by env:"},
		"goal in a shell":          {step, "      - run: echo \"${{ inputs.goal }}\"\n" + step, "workflow.injection", "by env:"},
		"no key for the agent":     {"          anthropic-api-key: ${{ secrets.ANTHROPIC_API_KEY }}\n          claude-code-oauth-token: ${{ secrets.CLAUDE_CODE_OAUTH_TOKEN }}\n", "", "workflow.secret", "secrets.ANTHROPIC_API_KEY"},
		"a key in clear":           {"${{ secrets.ANTHROPIC_API_KEY }}", "sk-ant-123", "workflow.secret", "secrets."},
		"the action is not there":  {"proctor-ci/proctor/host@v0", "acme/proctor@v0", "workflow.step", "proctor-ci/proctor/host@v0"},
		"an image without the CLI": {"proctor-ci/proctor/host@v0", "proctor-ci/proctor@v0", "workflow.agent", "proctor-ci/proctor/host@v0`, which installs it"},
		"no checkout":              {"actions/checkout@", "acme/checkout@", "workflow.checkout", "actions/checkout"},
		"no YAML":                  {"permissions: {}", "permissions: {", "workflow", "init"},
	} {
		if !strings.Contains(right, c.good) {
			t.Errorf("%s: the template no longer holds %q", name, c.good)
			continue
		}
		found := Workflow("w.yml", []byte(strings.Replace(right, c.good, c.bad, 1)), config.Default())
		i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == c.check && f.Status == Failed })
		if i < 0 || !strings.Contains(found[i].Fix, c.fix) {
			t.Errorf("%s: want %s with %q, got %+v", name, c.check, c.fix, found)
		}
	}
	if got := Workflow("w.yml", nil, config.Default()); failures(got)[0] != "workflow" || !strings.Contains(got[0].Fix, "proctor init") {
		t.Errorf("no file: %+v", got)
	}
	writeAll := strings.Replace(right, "permissions: {}", "permissions: write-all", 1)
	if got := Workflow("w.yml", []byte(writeAll), config.Default()); len(failures(got)) != 0 {
		t.Errorf("the job's own permissions count more: %+v", got)
	}
	caller, err := os.ReadFile("../../templates/github/caller.yml")
	if err != nil {
		t.Fatal(err)
	}
	if got := Workflow("w.yml", caller, config.Default()); len(got) != 1 || got[0].Status != Unproved || !strings.Contains(got[0].Text, "reusable.yml") {
		t.Errorf("a caller: %+v", got)
	}
	longer := config.Default()
	longer.Stops.MaxDuration = 2 * time.Hour
	if got := Workflow("w.yml", []byte(right), longer); !strings.Contains(got[0].Fix, "timeout-minutes: 135") {
		t.Errorf("a longer run: %+v", got)
	}
}

func TestAnAgentWhoseCLIThePublishedImageDoesNotHoldIsNamed(t *testing.T) {
	t.Parallel()
	onHost := string(templates.GitHubWorkflow)
	inContainer := strings.Replace(onHost, "proctor-ci/proctor/host@v0", "proctor-ci/proctor@v0", 1)
	ofOne := strings.Replace(onHost, "proctor-ci/proctor/host@v0", "acme/actions/proctor@v1", 1)
	for agent, fix := range map[string]string{
		"claude-code": "which installs it", "codex": "which installs it", "gemini": "behind a step that installs it", "opencode": "behind a step that installs it",
		"copilot": "behind a step that installs it", "anthropic": "", "openai": "", "script": "", "command": "",
	} {
		c := config.Default()
		c.Agent.Name = agent
		found := Workflow("w.yml", []byte(inContainer), c)
		i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == "workflow.agent" })
		if (i >= 0) != (fix != "") || i >= 0 && (!strings.Contains(found[i].Fix, fix) || !strings.Contains(found[i].Text, agent)) {
			t.Errorf("%s in the container: %+v", agent, found)
		}
		const include = "include:\n  - local: .gitlab/ci/proctor.yml\n"
		if got := failures(Pipeline([]byte(include), templates.GitLab, c)); slices.Contains(got, "pipeline.agent") != (fix != "") {
			t.Errorf("%s in the job's own image: %q", agent, got)
		}
		if got := failures(Pipeline([]byte(include+"    inputs: {image: registry.example.com/proctor:agents}\n"), templates.GitLab, c)); len(got) != 0 {
			t.Errorf("%s in another image: %q", agent, got)
		}
		for _, control := range []string{onHost, ofOne} {
			if found := failures(Workflow("w.yml", []byte(control), c)); slices.Contains(found, "workflow.agent") {
				t.Errorf("%s where it can be: %q", agent, found)
			}
		}
	}
}

func TestEachFaultOfAPipelineIsNamedWithWhatMendsIt(t *testing.T) {
	t.Parallel()
	const right = "include:\n  - local: .gitlab/ci/proctor.yml\n"
	job := string(templates.GitLab)
	ours := config.Default()
	ours.Agent.Name = "anthropic"
	written := "proctor:\n  timeout: 1h 15m\n  resource_group: proctor-$PROCTOR_ISSUE\n  script: [proctor-action]\n  artifacts: {reports: {dotenv: proctor.env}}\n"
	for name, c := range map[string]struct{ pipeline, template, check, fix string }{
		"control":                 {pipeline: right, template: job},
		"control: longer":         {pipeline: right + "    inputs: {timeout: 2h}\n", template: job},
		"control: written out":    {pipeline: written},
		"no include":              {"test: {script: [make]}\n", job, "pipeline", "include:"},
		"the job is not there":    {right, "", "pipeline", "proctor init --ci gitlab"},
		"no checkout":             {right + "variables:\n  GIT_STRATEGY: none\n", job, "pipeline.checkout", "GIT_STRATEGY: clone"},
		"job too short":           {right + "    inputs: {timeout: 30m}\n", job, "pipeline.timeout", "60m"},
		"the template too short":  {right, strings.Replace(job, "default: 75m", "default: 50 minutes", 1), "pipeline.timeout", "60m"},
		"runs are not kept apart": {strings.Replace(written, "  resource_group: proctor-$PROCTOR_ISSUE\n", "", 1), "", "pipeline.concurrency", "resource_group: proctor-$PROCTOR_ISSUE"},
	} {
		var template []byte
		if c.template != "" {
			template = []byte(c.template)
		}
		found := Pipeline([]byte(c.pipeline), template, ours)
		i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == c.check && f.Status == Failed })
		if c.check == "" && len(failures(found)) != 0 || c.check != "" && (i < 0 || !strings.Contains(found[i].Fix, c.fix)) {
			t.Errorf("%s: %+v", name, found)
		}
	}
	if got := Pipeline(nil, nil, config.Default()); len(failures(got)) != 1 {
		t.Errorf("no file: %+v", got)
	}
}

func TestEachTrapOfAConfigurationIsNamedWithWhatMendsIt(t *testing.T) {
	t.Parallel()
	base := config.Default()
	base.Gates.Iteration = config.Shell("make test")
	base.Gates.Acceptance.Run = config.Shell("make held")
	base.Gates.Acceptance.Sealed = []string{"held/**"}
	tree := Tree{"held/a.sh": "1", "src/x.go": "2", "docs/rubric.md": "3", "held/empty": emptyBlob, "src/empty": emptyBlob}
	for name, c := range map[string]struct {
		change     func(*config.Config, Tree)
		check, fix string
		status     Status
	}{
		"control":            {func(*config.Config, Tree) {}, "config.traps", "", OK},
		"nothing held out":   {func(c *config.Config, _ Tree) { c.Gates.Acceptance = config.Acceptance{} }, "acceptance.none", "gates.acceptance", Noted},
		"no sealed file":     {func(c *config.Config, _ Tree) { c.Gates.Acceptance.Sealed = []string{"hold/**"} }, "acceptance.sealed", "correct the pattern", Failed},
		"a copy":             {func(_ *config.Config, t Tree) { t["old/a.sh"] = "1" }, "acceptance.readable", "gates.acceptance.sealed", Failed},
		"no rubric":          {func(c *config.Config, _ Tree) { c.Review.Criteria = []string{"docs/other.md"} }, "review.criteria", "commit the file", Failed},
		"control: a rubric":  {func(c *config.Config, _ Tree) { c.Review.Criteria = []string{"docs/rubric.md"} }, "config.traps", "", OK},
		"nothing allowed":    {func(c *config.Config, _ Tree) { c.Policy.Allow = []string{"lib/**"} }, "policy.allow", "policy.allow", Failed},
		"no price is needed": {func(c *config.Config, _ Tree) { c.Budget.Unpriced = "allow" }, "budget.unpriced", "refuse", Noted},
		"a program":          {func(c *config.Config, _ Tree) { c.Agent.Name = "command" }, "budget.command", "base URL", Noted},
	} {
		cfg, files := base, Tree{}
		for k, v := range tree {
			files[k] = v
		}
		c.change(&cfg, files)
		found := Traps(cfg, files)
		if len(found) != 1 || found[0].Check != c.check || found[0].Status != c.status || !strings.Contains(found[0].Fix, c.fix) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestASummaryBeginsWithWhatFailedAndHoldsNoMarkOfAnybody(t *testing.T) {
	t.Parallel()
	var r Report
	r.Add(ok("a", "fine"), noted("b", "do it", "so so"), failed("c", "`git push` | then", "@maya ![x](http://evil) <img> | bad"))
	text := r.Markdown()
	if !strings.HasPrefix(text, "### Proctor doctor: 1 to mend\n") || !(strings.Index(text, "| failed |") < strings.Index(text, "| noted |") && strings.Index(text, "| noted |") < strings.Index(text, "| ok |")) {
		t.Errorf("the order:\n%s", text)
	}
	for line := range strings.Lines(text[strings.Index(text, "|---"):]) {
		if strings.Count(line, "|") != 5 {
			t.Errorf("%d cells: %s", strings.Count(line, "|"), line)
		}
	}
	if strings.Contains(text, "![x]") || strings.Contains(text, "<img") {
		t.Errorf("it renders what a forge said:\n%s", text)
	}
}

func TestWhatAWorkflowHandsOverIsRead(t *testing.T) {
	t.Parallel()
	c := config.Default()
	job, names := HandsOver(templates.GitHubWorkflow, c)
	if !job || !slices.Equal(names, []string{"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}) {
		t.Errorf("%v %q", job, names)
	}
	own := strings.Replace(strings.Replace(string(templates.GitHubWorkflow), "github-token: ${{ github.token }}", "github-token: ${{ steps.app.outputs.token }}", 1), "secrets.OPENAI_API_KEY", "secrets.our_key", 1)
	c.Agent.Name = "codex"
	if job, names := HandsOver([]byte(own), c); job || !slices.Equal(names, []string{"OUR_KEY"}) {
		t.Errorf("an App's token: %v %q", job, names)
	}
	c.Agent.Name = "script"
	if _, names := HandsOver(templates.GitHubWorkflow, c); names != nil {
		t.Errorf("an agent without a key wants %q", names)
	}
	if job, names := HandsOver([]byte("jobs: {"), c); job || names != nil {
		t.Errorf("no YAML: %v %q", job, names)
	}
}

func TestAReportIsRightUntilSomethingFailed(t *testing.T) {
	t.Parallel()
	var r Report
	r.Add(ok("a", "fine"), noted("b", "do it", "so so"), Finding{Check: "c", Status: Unproved, Text: "unseen"})
	if !r.Right || !strings.Contains(r.Text(), "Nothing is wrong") || !strings.Contains(r.Text(), "→ do it") {
		t.Errorf("%v\n%s", r.Right, r.Text())
	}
	r.Add(failed("d", "click\nhere", "bad %d", 1))
	if r.Right || !strings.Contains(r.Text(), "→ click here\n") || !strings.Contains(r.Text(), "1 to mend") {
		t.Errorf("%v\n%s", r.Right, r.Text())
	}
}
