package app

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/doctor"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

const configFileName = ".github/proctor.yml"

// set is a file of configuration with keys changed.
func set(keys map[string]string) map[string]string {
	return map[string]string{configFileName: configuration(keys)}
}

// ill is one thing that is wrong with a repository.
type ill struct {
	broken func(p *practice)
	check  string                             // that names it
	fix    string                             // a part of what is printed
	mend   func(p *practice) func(fix string) // does what is printed
}

// edit commits files as the fix asks; what to write there is the repository's own.
func edit(files map[string]string) func(*practice) func(string) {
	return func(p *practice) func(string) { return func(string) { p.commit(files) } }
}

// replaced is a change of one file by texts.
func replaced(path string, texts ...string) func(*practice) {
	return func(p *practice) {
		was := p.read(path)
		now := strings.NewReplacer(texts...).Replace(was)
		if now == was {
			p.t.Fatalf("%s does not hold %q", path, texts[0])
		}
		p.commit(map[string]string{path: now})
	}
}

func (p *practice) asHub(t forgetest.Token) { p.env[tokenOfHub] = p.hub.NewToken(t) }
func (p *practice) asLab(t forgetest.GitLabToken) {
	p.env[tokenOfLab] = p.lab.NewToken(t)
}

// admin gives the doctor a token that sees the settings, in a repository whose settings are right.
func (p *practice) admin() {
	p.hub.Set(forgetest.SecretNames("ANTHROPIC_API_KEY"))
	p.asHub(forgetest.Token{Login: p.hub.Owner()})
}

// wantsKey makes the agent one that needs a model's key, which the doctor's environment has.
func (p *practice) wantsKey(model string) {
	p.env["ANTHROPIC_API_KEY"] = p.key
	p.commit(set(map[string]string{"agent": "{name: anthropic, model: " + model + "}"}))
}

// hubIlls are those of a repository on GitHub.
func hubIlls() map[string]ill {
	gates := func(change ...string) map[string]string {
		return map[string]string{"gates": strings.NewReplacer(change...).Replace(bothGates)}
	}
	configured := func(keys map[string]string) func(*practice) { return func(p *practice) { p.commit(set(keys)) } }
	setting := func(s forgetest.Setting) func(*practice) { return func(p *practice) { p.admin(); p.hub.Set(s) } }
	click := func(page string, s forgetest.Setting) func(*practice) func(string) {
		return func(p *practice) func(string) { return p.clicks(page, func() { p.hub.Set(s) }) }
	}
	puts := func(key string) func(*practice) func(string) {
		return func(p *practice) func(string) { return p.puts(workflowFile, key) }
	}
	does := func(begins string) func(*practice) func(string) {
		return func(p *practice) func(string) { return p.does(begins) }
	}
	writes := func(key string) func(*practice) func(string) {
		return func(p *practice) func(string) { return p.writes(key) }
	}
	return map[string]ill{
		// The configuration.
		"a key that is misspelt": {configured(map[string]string{"stopps": "{max_ticks: 3}"}), "config", `"stops"`, func(p *practice) func(string) {
			return func(fix string) { replaced(configFileName, "stopps: {max_ticks: 3}\n", "")(p) }
		}},
		"two configurations":                    {func(p *practice) { p.commit(map[string]string{"proctor.yml": "version: 1\n"}) }, "config", "keep one of them", does("git rm")},
		"a configuration that is not committed": {func(p *practice) { p.write(set(map[string]string{"fix": "{max_rounds: 1}"})) }, "config.uncommitted", configFileName, does("git add")},
		"a configuration that is not pushed": {func(p *practice) {
			p.write(set(map[string]string{"fix": "{max_rounds: 1}"}))
			p.shell("git commit -qam 'Set up proctor'")
		}, "config.pushed", "have it merged", does("git push")},
		"a gate that passes whatever happens":   {configured(gates("sh tests/run.sh", `"true"`)), "config", "", edit(set(nil))},
		"no gate":                               {configured(map[string]string{"gates": "{timeout: 20s}"}), "config", "gates.iteration", edit(set(nil))},
		"the held-out gate is the visible one":  {configured(gates("sh sealed/check.sh", "sh tests/run.sh")), "config", "a command of its own", edit(set(nil))},
		"a sealed pattern that matches nothing": {configured(gates("sealed/**", "seeled/**")), "acceptance.sealed", "correct the pattern", edit(set(nil))},
		"a sealed file that lies elsewhere too": {func(p *practice) {
			p.commit(map[string]string{"old/check.sh": p.read("sealed/check.sh"), "old/it's a copy.sh": p.read("sealed/check.sh")})
		}, "acceptance.readable", "gates.acceptance.sealed", does("git rm")},
		"a rubric that is not there": {configured(map[string]string{"review": "{command: sh tests/run.sh, criteria: [docs/rubric.md]}"}), "review.criteria", "commit the file", edit(map[string]string{"docs/rubric.md": "Be strict.\n"})},
		"a scope that no file has":   {configured(map[string]string{"policy": "{allow: [source/**]}"}), "policy.allow", "correct policy.allow", edit(set(map[string]string{"policy": "{allow: [app/**]}"}))},
		"no confinement":             {configured(map[string]string{"sandbox": "{mode: off}"}), "confinement", "", writes("sandbox.mode")},
		// Gates, agent and money.
		"a gate whose program is missing": {configured(gates("sh tests/run.sh", "no-such-program-of-ours")), "gates", "", edit(set(nil))},
		"a gate that says now this, now that": {func(p *practice) {
			p.commit(merged(set(gates("stability: 1", "stability: 2")), map[string]string{"tests/run.sh": "test -e ignored/x && exit 0\nmkdir -p ignored && touch ignored/x\nexit 1\n"}))
		}, "gates", "", edit(map[string]string{"tests/run.sh": "grep -q right app/answer.txt\n"})},
		"a held-out gate that has to fail and does not": {func(p *practice) {
			p.commit(merged(set(gates("attempts: 2", "attempts: 2, must_fail_on_base: always")), map[string]string{"app/answer.txt": allRight}))
		}, "gates", "", writes("gates.acceptance.must_fail_on_base")},
		"an agent that is not installed": {configured(map[string]string{"agent": "{name: command, args: [our-own-agent]}"}), "agent", "install it", func(p *practice) func(string) {
			return func(string) {
				bin := filepath.Join(p.dir, "programs")
				if err := os.MkdirAll(bin, 0o755); err != nil {
					p.t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(bin, "our-own-agent"), []byte("#!/bin/sh\n"), 0o755); err != nil {
					p.t.Fatal(err)
				}
				p.env["PATH"] = bin + ":" + os.Getenv("PATH")
			}
		}},
		"no key for the model": {func(p *practice) { p.wantsKey("claude-haiku-4-5"); delete(p.env, "ANTHROPIC_API_KEY") }, "model.key", "export ANTHROPIC_API_KEY", func(p *practice) func(string) {
			return func(string) { p.env["ANTHROPIC_API_KEY"] = p.key }
		}},
		"a model without a price": {func(p *practice) { p.wantsKey("my-model") }, "budget.price", "proctor prices", writes("budget.price")},
		// The workflow.
		"no workflow": {func(p *practice) { p.commit(map[string]string{workflowFile: ""}) }, "workflow", "", does("proctor init")},
		"a workflow that is no YAML": {replaced(workflowFile, "permissions: {}", "permissions: {"), "workflow", "repair it", func(p *practice) func(string) {
			return func(string) { replaced(workflowFile, "permissions: {", "permissions: {}")(p) }
		}},
		"a workflow that keeps the token":  {replaced(workflowFile, "persist-credentials: false", "persist-credentials: true"), "workflow.credentials", "", puts("persist-credentials")},
		"a job that is stopped first":      {replaced(workflowFile, "timeout-minutes: 75", "timeout-minutes: 6"), "workflow.timeout", "", puts("timeout-minutes")},
		"a job that may not push":          {replaced(workflowFile, "contents: write", "contents: read"), "workflow.permissions", "", puts("contents")},
		"a label that ends the run before": {replaced(workflowFile, "cancel-in-progress: false", "cancel-in-progress: true"), "workflow.concurrency", "", puts("cancel-in-progress")},
		"E03 every event but the label's":  {replaced(workflowFile, "types: [labeled]", "types: [opened]"), "workflow.trigger", "", puts("types")},
		"another label": {replaced(workflowFile, "github.event.label.name == 'proctor'", "github.event.label.name == 'robot'"), "workflow.label", "trigger.label: robot", func(p *practice) func(string) {
			return func(fix string) { p.writes("trigger.label")(fix) }
		}},
		"E46 an issue's text in a shell": {replaced(workflowFile, "      - id: proctor\n", "      - run: echo ${{ github.event.issue.title }}\n      - id: proctor\n"), "workflow.injection", "by env:", func(p *practice) func(string) {
			return func(string) {
				replaced(workflowFile, "- run: echo ${{ github.event.issue.title }}\n", "- run: echo \"$TITLE\"\n        env: {TITLE: \"${{ github.event.issue.title }}\"}\n")(p)
			}
		}},
		// The forge.
		"a token that was revoked": {func(p *practice) { p.hub.Revoke(p.env[tokenOfHub]) }, "forge.token", "make a new token", func(p *practice) func(string) {
			return func(string) { p.asHub(forgetest.Token{Login: asker}) }
		}},
		"a token of somebody who only reads": {func(p *practice) { p.hub.AddUser("rita", "read"); p.asHub(forgetest.Token{Login: "rita"}) }, "forge.push", "", func(p *practice) func(string) {
			return p.clicks("/settings/access", func() { p.hub.AddUser("rita", "write") })
		}},
		"E35 a job that only reads issues and pull requests": {func(p *practice) { p.asHub(jobToken("read")) }, "forge.comment", "issues: write", func(p *practice) func(string) {
			return func(string) { p.asHub(jobToken("write")) }
		}},
		"E50 Actions may open no pull request": {func(p *practice) { p.hub.Set(forgetest.ActionsMayOpenPullRequests(false)); p.asHub(jobToken("write")) }, "forge.draft", "tick", click("/settings/actions", forgetest.ActionsMayOpenPullRequests(true))},
		"the check box, before an owner":       {setting(forgetest.ActionsMayOpenPullRequests(false)), "settings.actions-pull-requests", "tick", click("/settings/actions", forgetest.ActionsMayOpenPullRequests(true))},
		"an archived repository":               {func(p *practice) { p.hub.Set(forgetest.Archived(true)) }, "forge.repository", "archive", click("settings", forgetest.Archived(false))},
		"Issues are off":                       {func(p *practice) { p.hub.Set(forgetest.IssuesDisabled(true)) }, "settings.issues", "turn Issues on", click("/settings", forgetest.IssuesDisabled(false))},
		"a workflow that somebody disabled":    {setting(forgetest.WorkflowDisabled(workflowFile)), "settings.workflow", "Enable workflow", click("/actions/workflows/proctor.yml", forgetest.WorkflowEnabled(workflowFile))},
		"Actions are off":                      {setting(forgetest.ActionsAllowed("")), "settings.actions", "allow actions", click("/settings/actions", forgetest.ActionsAllowed("all"))},
		"a ruleset for new branches":           {func(p *practice) { p.hub.Set(forgetest.Ruleset("creation", "proctor/*")) }, "settings.branch-rules", "exempt", click("/rules", forgetest.Ruleset("", ""))},
		"no secret":                            {func(p *practice) { p.admin(); p.wantsKey("claude-haiku-4-5"); p.hub.Set(forgetest.SecretNames()) }, "settings.secret", "ANTHROPIC_API_KEY", click("/settings/secrets/actions", forgetest.SecretNames("ANTHROPIC_API_KEY"))},
	}
}

// labIlls are those of a project on GitLab.
func labIlls() map[string]ill {
	const pipeline, job = ".gitlab-ci.yml", ".gitlab/ci/proctor.yml"
	puts := func(key string) func(*practice) func(string) {
		return func(p *practice) func(string) { return p.puts(pipeline, key) }
	}
	does := func(begins string) func(*practice) func(string) {
		return func(p *practice) func(string) { return p.does(begins) }
	}
	set := func(change func(*forgetest.GitLabSettings)) func(*practice) {
		return func(p *practice) { p.setLab(change) }
	}
	click := func(page string) func(*practice) func(string) {
		return func(p *practice) func(string) {
			return p.clicks(page, func() { p.setLab(func(*forgetest.GitLabSettings) {}) })
		}
	}
	token := func(p *practice) func(string) {
		return p.clicks("/-/settings/access_tokens", func() { p.asLab(forgetest.GitLabToken{Login: labBot}) })
	}
	return map[string]ill{
		"no pipeline": {func(p *practice) { p.commit(map[string]string{pipeline: "", job: ""}) }, "pipeline", "", does("proctor init")},
		"a job that is not included": {func(p *practice) { p.commit(map[string]string{pipeline: "test: {script: [make]}\n"}) }, "pipeline", "", func(p *practice) func(string) {
			return func(fix string) {
				p.commit(map[string]string{pipeline: p.quoted(fix, "include:") + "\ntest: {script: [make]}\n"})
			}
		}},
		"an include of a file that is not there": {func(p *practice) { p.commit(map[string]string{job: ""}) }, "pipeline", "", does("proctor init")},
		"no checkout": {func(p *practice) {
			p.commit(map[string]string{pipeline: p.read(pipeline) + "variables:\n  GIT_STRATEGY: none\n"})
		}, "pipeline.checkout", "", puts("GIT_STRATEGY")},
		"a job that is stopped first": {func(p *practice) {
			p.commit(map[string]string{pipeline: p.read(pipeline) + "    inputs:\n      timeout: 6m\n"})
		}, "pipeline.timeout", "", puts("timeout")},
		"E60 the job's own token":   {func(p *practice) { p.asLab(forgetest.GitLabToken{Login: "olga", Job: true}) }, "forge.token", "project access token", token},
		"a token that has expired":  {func(p *practice) { p.lab.Revoke(p.env[tokenOfLab]) }, "forge.token", "project access token", token},
		"a token that only reads":   {func(p *practice) { p.asLab(forgetest.GitLabToken{Login: labBot, Scopes: []string{"read_api"}}) }, "forge.push", "write_repository", token},
		"a token of a reporter":     {func(p *practice) { p.lab.AddUser("rita", "reporter"); p.asLab(forgetest.GitLabToken{Login: "rita"}) }, "forge.draft", "role Developer", token},
		"Issues are off":            {set(func(s *forgetest.GitLabSettings) { s.IssuesOff = true }), "settings.issues", "turn Issues on", click("/edit")},
		"merge requests are off":    {set(func(s *forgetest.GitLabSettings) { s.MergesOff = true }), "forge.draft", "turn merge requests on", click("/edit")},
		"CI is off":                 {set(func(s *forgetest.GitLabSettings) { s.CIOff = true }), "forge.start", "turn CI/CD on", click("/edit")},
		"nobody may give variables": {set(func(s *forgetest.GitLabSettings) { s.VariablesRole = "no_one_allowed" }), "settings.pipeline-variables", "Developer", click("/-/settings/ci_cd")},
		"a protected pattern covers the draft": {set(func(s *forgetest.GitLabSettings) {
			s.Protected = map[string]string{base: "maintainer", "proctor/*": ""}
		}), "settings.protected-branches", "unprotect proctor/*", click("/-/settings/repository")},
		"a push rule wants signatures":  {set(func(s *forgetest.GitLabSettings) { s.PushRules = map[string]any{"reject_unsigned_commits": true} }), "settings.push-rules", "Reject unsigned", click("/-/settings/repository")},
		"a push rule wants other names": {set(func(s *forgetest.GitLabSettings) { s.PushRules = map[string]any{"branch_name_regex": "^feature/"} }), "settings.push-rules", "proctor/*", click("/-/settings/repository")},
		"a token that logs show":        {set(func(s *forgetest.GitLabSettings) { s.Variables[0].Masked = false }), "settings.variables", "Masked", click("/-/settings/ci_cd")},
		"a token that no job gets":      {set(func(s *forgetest.GitLabSettings) { s.Protected = map[string]string{} }), "settings.variables", "protect main", click("/-/settings/repository")},
	}
}

// One thing is wrong at a time: doctor names it with exit 1, what it printed is done, and it finds nothing any more.
func TestDoctorNamesWhatIsWrongAndWhatMendsIt(t *testing.T) {
	hub, lab := hubIlls(), labIlls()
	if len(hub) < 25 || len(lab) < 15 {
		t.Errorf("%d ills on GitHub and %d on GitLab", len(hub), len(lab))
	}
	for _, name := range rows(slices.Sorted(maps.Keys(hub))) {
		t.Run(name, func(t *testing.T) { hub[name].heal(openPractice(t, setting{})) })
	}
	for _, name := range rows(slices.Sorted(maps.Keys(lab))) {
		t.Run("GitLab: "+name, func(t *testing.T) { lab[name].heal(openLabPractice(t, nil)) })
	}
}

func (i ill) heal(p *practice) {
	i.broken(p)
	rep, code := p.sees()
	f, named := found(rep, i.check, doctor.Failed)
	if !named || code != 1 || rep.Right || f.Fix == "" || !strings.Contains(f.Fix, i.fix) {
		p.t.Fatalf("exit %d, want %s with %q:\n%s", code, i.check, i.fix, rep.Text())
	}
	p.t.Logf("%s → %s", f.Text, f.Fix)
	i.mend(p)(f.Fix)
	if rep, code := p.sees(); code != 0 || !rep.Right {
		p.t.Errorf("mended, and exit %d:\n%s", code, rep.Text())
	}
	if n := len(p.site.Pulls()); n != 0 {
		p.t.Errorf("%d pull requests were opened", n)
	}
	if is, _ := p.site.Issue(p.issue); len(is.Comments) != 0 || len(is.Labels) != 0 {
		p.t.Errorf("the issue was touched: %+v", is)
	}
}

// jobToken may push; rights are those on issues and pull requests.
func jobToken(rights string) forgetest.Token {
	return forgetest.Token{Login: bot, Job: true, Permissions: map[string]string{"contents": "write", "issues": rights, "pull_requests": rights, "metadata": "read"}}
}
