package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/templates"
)

// Each case takes one right thing out of the workflow of a split run; the control is that file.
func TestEachFaultOfASplitRunsWorkflowIsNamedWithWhatMendsIt(t *testing.T) {
	t.Parallel()
	right := string(templates.GitHubStaged)
	found := Workflow("w.yml", []byte(right), config.Default())
	if len(failures(found)) != 0 || slices.ContainsFunc(found, func(f Finding) bool { return f.Status == Noted }) {
		t.Fatalf("the control: %+v", found)
	}
	verify := right[strings.Index(right, "  verify:\n"):strings.Index(right, "  publish:\n")]
	for name, c := range map[string]struct{ good, bad, check, fix string }{
		"the agent's job may push":      {"      contents: read\n      issues: read\n", "      contents: write\n      issues: read\n", "workflow.permissions", "{contents: read, issues: read, pull-requests: read}"},
		"the agent's job may label":     {"      issues: read\n      pull-requests: read\n    outputs", "      issues: write\n      pull-requests: read\n    outputs", "workflow.permissions", "in job agent"},
		"the agent's job may all":       {"    permissions: # nothing here may ever be \"write\": the agent runs on this machine\n      contents: read\n      issues: read\n      pull-requests: read\n", "    permissions: write-all\n", "workflow.permissions", "in job agent"},
		"the agent's job sees no issue": {"      issues: read\n      pull-requests: read\n    outputs", "      pull-requests: read\n    outputs", "workflow.permissions", "issues: read"},
		"the verify job may push":       {verify, strings.Replace(verify, "contents: read", "contents: write", 1), "workflow.permissions", "`permissions: {contents: read}` in job verify"},
		"the verify job has a key":      {"          stage: verify\n", "          stage: verify\n          openai-api-key: ${{ secrets.OPENAI_API_KEY }}\n", "workflow.secret", "out of job verify"},
		"the agent borrows a token":     {"          stage: agent\n", "          stage: agent\n          token-url: https://h/token\n", "workflow.stage", "take token-url out"},
		"the publish job may not push":  {"      contents: write # the run's branch\n", "      contents: read\n", "workflow.permissions", "contents: write"},
		"the publish job opens none":    {"      pull-requests: write # the draft\n", "      pull-requests: read\n", "workflow.permissions", "pull-requests: write"},
		"no cost is written down":       {"      contents: write # what the run has cost", "      contents: read # what the run has cost", "workflow.permissions", "of job tell: `contents: write`"},
		"a finding from a file":         {"          verified: ${{ needs.verify.outputs.verified }}\n          issue", "          verified: ${{ steps.x.outputs.verified }}\n          issue", "workflow.stage", "needs.verify.outputs.verified"},
		"nobody approves":               {"    environment: proctor-publish\n", "", "workflow.environment", "Settings → Environments"},
		"no verify job":                 {"          stage: verify\n", "          stage: publish\n", "workflow.stage", "--staged"},
		"no job that tells":             {right[strings.Index(right, "  tell:\n"):], "", "workflow.stage", "--staged"},
		"an unknown stage":              {"          stage: verify\n", "          stage: check\n", "workflow.stage", "agent, verify, publish, tell"},
		"the agent's job is too short":  {"timeout-minutes: 75", "timeout-minutes: 45", "workflow.timeout", "timeout-minutes: 60"},
		"no key for the agent":          {"          anthropic-api-key: ${{ secrets.ANTHROPIC_API_KEY }}\n          claude-code-oauth-token: ${{ secrets.CLAUDE_CODE_OAUTH_TOKEN }}\n", "", "workflow.secret", "secrets.ANTHROPIC_API_KEY"},
		"credentials stay":              {"          persist-credentials: false\n", "          fetch-depth: 1\n", "workflow.credentials", "persist-credentials: false"},
	} {
		if !strings.Contains(right, c.good) {
			t.Errorf("%s: the template no longer holds %q", name, c.good)
			continue
		}
		found := Workflow("w.yml", []byte(strings.Replace(right, c.good, c.bad, 1)), config.Default())
		if i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == c.check && f.Status != OK && strings.Contains(f.Fix, c.fix) }); i < 0 {
			t.Errorf("%s: want %s with %q, got %+v", name, c.check, c.fix, found)
		}
	}
}
