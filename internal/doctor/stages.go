package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/config"
)

// Stages of a run that is split into jobs, as the input stage names them.
const (
	agentStage   = "agent"
	verifyStage  = "verify"
	publishStage = "publish"
	tellStage    = "tell"
)

// stageOf is the part of a run that a step does, "" for all of them.
func stageOf(s step) string {
	if st := fmt.Sprint(s.With["stage"]); s.With["stage"] != nil && st != "all" {
		return st
	}
	return ""
}

// stages looks at the jobs of a split run together: a chain that lacks one neither publishes nor tells.
func (w workflow) stages(path string) []Finding {
	var have []string
	for _, j := range w.Jobs {
		for _, s := range j.Steps {
			if s.ours() && stageOf(s) != "" {
				have = append(have, stageOf(s))
			}
		}
	}
	if len(have) == 0 {
		return nil
	}
	var found []Finding
	for _, st := range []string{agentStage, verifyStage, publishStage, tellStage} {
		if !slices.Contains(have, st) {
			found = append(found, failed("workflow.stage", "add the job as the workflow of `proctor init --ci github --staged` has it", "%s splits a run into jobs and has none with the stage %s", path, st))
		}
	}
	return found
}

// stage holds one job of a split run to what it is for: no right to write beside foreign code, no foreign code beside a right to write.
func (w workflow) stage(name string, j job, s step, c config.Config) []Finding {
	var found []Finding
	st := stageOf(s)
	switch st {
	case agentStage, verifyStage:
		found = append(found, w.reads(name, j, st)...)
		if v, ok := s.With["token-url"]; ok && fmt.Sprint(v) != "" {
			found = append(found, failed("workflow.stage", "take token-url out of job "+name, "job %s borrows a token that can push, beside code of the agent's", name))
		}
	case publishStage:
		found = append(found, w.permissions(name, j, "contents", "issues", "pull-requests")...)
		if j.Environment == nil {
			found = append(found, Finding{Check: "workflow.environment", Status: Noted, Text: "job " + name + " publishes without anybody's approval", Fix: "write `environment: proctor-publish` and name its reviewers in Settings → Environments"})
		}
		if out := fmt.Sprint(s.With["verified"]); !strings.Contains(out, "needs.") || !strings.Contains(out, ".outputs.") {
			found = append(found, failed("workflow.stage", "write `verified: ${{ needs.verify.outputs.verified }}`", "job %s takes the verify job's finding from elsewhere than that job's output, which the agent's job could write too", name))
		}
	case tellStage: // what the run has cost would be written down nowhere
		found = append(found, w.permissions(name, j, "contents", "issues")...)
	default:
		return []Finding{failed("workflow.stage", "give one of agent, verify, publish, tell", "job %s has the stage %q, which there is not", name, st)}
	}
	if st == agentStage {
		return append(found, secrets(name, s, c)...)
	}
	for _, key := range []string{"anthropic-api-key", "claude-code-oauth-token", "openai-api-key", "gemini-api-key"} {
		if _, ok := s.With[key]; ok {
			found = append(found, failed("workflow.secret", "take "+key+" out of job "+name, "job %s asks no model and is given a key", name))
		}
	}
	return found
}

// reads wants a job that runs foreign code to be able to write nothing.
func (w workflow) reads(name string, j job, st string) []Finding {
	perms, from := j.Permissions, "job "+name
	if perms == nil {
		perms, from = w.Permissions, "the workflow"
	}
	want := []string{"contents"}
	if st == agentStage {
		want = []string{"contents", "issues", "pull-requests"}
	}
	m, _ := perms.(map[string]any)
	var wrong []string
	for p, level := range m {
		if fmt.Sprint(level) == "write" {
			wrong = append(wrong, p+": write")
		}
	}
	slices.Sort(wrong)
	if perms == "write-all" {
		wrong = []string{"write-all"}
	}
	if len(wrong) > 0 {
		return []Finding{failed("workflow.permissions", "write `permissions: {"+strings.Join(want, ": read, ")+": read}` in job "+name, "%s gives %s to the machine on which code of the agent's runs, which splitting a run is to prevent", from, strings.Join(wrong, ", "))}
	}
	var missing []string
	for _, p := range want {
		if fmt.Sprint(m[p]) != "read" && perms != "read-all" {
			missing = append(missing, p+": read")
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []Finding{failed("workflow.permissions", "add to permissions of job "+name+": "+strings.Join(missing, ", "), "%s does not give %s", from, strings.Join(missing, ", "))}
}
