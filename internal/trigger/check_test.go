package trigger

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const (
	failedSHA = "8f3a1c0d8f3a1c0d8f3a1c0d8f3a1c0d8f3a1c0d"
	runFailed = `{"action":%q,"workflow_run":{"id":77,"display_title":%q,"event":%q,"path":".github/workflows/ci.yml","head_branch":%s,"head_sha":%q,"status":"completed",
"conclusion":%q,"head_repository":%s},"repository":{"id":5,"name":"shop","default_branch":"trunk","owner":{"login":"octo"}},"sender":{"login":"ann","id":7,"type":"User"}}`
	suiteFailed = `{"action":%q,"check_suite":{"id":78,"head_branch":%s,"head_sha":%q,"conclusion":%q,"app":{"slug":%q}},
"repository":{"id":5,"name":"shop","owner":{"login":"octo"}},"sender":{"login":"ann","id":7,"type":"User"}}`
	pipelineFailed = `{"object_kind":"pipeline","user":{"id":7,"username":"ann"},"project":{"id":5,"path_with_namespace":"group/sub/shop","default_branch":"trunk"},
"object_attributes":{"id":31,"ref":%q,"sha":%q,"tag":%t,"source":%q,"status":%q,"variables":[]},"merge_request":%s}`
)

// INV-40: CI asks for a round only where it failed, for a commit of a branch of this very repository, and by what a push or a pull request
// started. What it says names no person.
func TestCIAsksOnlyWhereItFailedOnABranchOfTheRepository(t *testing.T) {
	t.Parallel()
	const own, branch = `{"id":5}`, `"proctor/issue-3"`
	run := func(action, event, branch, conclusion, head string) string {
		return fmt.Sprintf(runFailed, action, "CI", event, branch, failedSHA, conclusion, head)
	}
	suite := func(branch, conclusion, app string) string {
		return fmt.Sprintf(suiteFailed, "completed", branch, failedSHA, conclusion, app)
	}
	pipeline := func(ref string, tag bool, source, status, merge string) string {
		return fmt.Sprintf(pipelineFailed, ref, failedSHA, tag, source, status, merge)
	}
	merge := func(from int) string {
		return fmt.Sprintf(`{"iid":9,"source_branch":"proctor/issue-3","source_project_id":%d,"target_project_id":5}`, from)
	}
	for name, c := range map[string]struct {
		event, body string
		asks        int64 // id of what failed; 0: it is ignored
	}{
		"a push failed":                {"workflow_run", run("completed", "push", branch, "failure", own), 77},
		"a pull request timed out":     {"workflow_run", run("completed", "pull_request", branch, "timed_out", own), 77},
		"it passed":                    {"workflow_run", run("completed", "push", branch, "success", own), 0},
		"it was cancelled":             {"workflow_run", run("completed", "push", branch, "cancelled", own), 0},
		"it goes on":                   {"workflow_run", run("in_progress", "push", branch, "failure", own), 0},
		"by hand":                      {"workflow_run", run("completed", "workflow_dispatch", branch, "failure", own), 0},
		"of a review":                  {"workflow_run", run("completed", "pull_request_review", branch, "failure", own), 0},
		"with secrets for a fork":      {"workflow_run", run("completed", "pull_request_target", branch, "failure", own), 0},
		"of a fork":                    {"workflow_run", run("completed", "pull_request", branch, "failure", `{"id":6}`), 0},
		"of a fork that is gone":       {"workflow_run", run("completed", "pull_request", branch, "failure", `null`), 0},
		"without a branch":             {"workflow_run", run("completed", "push", `null`, "failure", own), 0},
		"a suite of Actions":           {"check_suite", suite(branch, "failure", "github-actions"), 78},
		"a suite of another App":       {"check_suite", suite(branch, "failure", "elsewhere-ci"), 0},
		"a suite of a fork":            {"check_suite", suite("null", "failure", "github-actions"), 0},
		"a suite that passed":          {"check_suite", suite(branch, "success", "github-actions"), 0},
		"a pipeline of a push":         {"Pipeline Hook", pipeline("proctor/issue-3", false, "push", "failed", "null"), 31},
		"one of a merge request":       {"Pipeline Hook", pipeline("proctor/issue-3", false, "merge_request_event", "failed", merge(5)), 31},
		"one by its ref":               {"Pipeline Hook", pipeline("refs/merge-requests/9/head", false, "merge_request_event", "failed", merge(5)), 31},
		"one of a fork's":              {"Pipeline Hook", pipeline("proctor/issue-3", false, "merge_request_event", "failed", merge(6)), 0},
		"one of nobody's":              {"Pipeline Hook", pipeline("proctor/issue-3", false, "merge_request_event", "failed", "null"), 0},
		"a pipeline that passed":       {"Pipeline Hook", pipeline("proctor/issue-3", false, "push", "success", "null"), 0},
		"a pipeline that was canceled": {"Pipeline Hook", pipeline("proctor/issue-3", false, "push", "canceled", "null"), 0},
		"a pipeline of a schedule":     {"Pipeline Hook", pipeline("proctor/issue-3", false, "schedule", "failed", "null"), 0},
		"a pipeline by the API":        {"Pipeline Hook", pipeline("proctor/issue-3", false, "api", "failed", "null"), 0},
		"a tag":                        {"Pipeline Hook", pipeline("proctor/issue-3", true, "push", "failed", "null"), 0},
	} {
		got, err := parseAny(c.event, []byte(c.body), Options{})
		var ignored *Ignored
		if c.asks == 0 {
			if !errors.As(err, &ignored) || ignored.Reason != ReasonOtherRun {
				t.Errorf("%s: read as %+v, %v", name, got, err)
			}
			continue
		}
		if err != nil || got.Kind != KindCheck || got.Check == nil || *got.Check != (CheckRef{ID: c.asks, SHA: failedSHA}) || got.Change.Head != "proctor/issue-3" || got.Change.HeadSHA != failedSHA ||
			got.Actor != (Actor{}) || got.Command != nil || got.Issue.Number != 0 {
			t.Errorf("%s: read as %+v, %v", name, got, err)
			continue
		}
		got.Issue.Number, got.ID = 3, NewID("x")
		in, err := got.Inputs()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseDispatch(in)
		if err != nil || back.Check == nil || *back.Check != *got.Check || *back.Change != (ChangeRef{Head: "proctor/issue-3", HeadSHA: failedSHA}) || back.Issue.Number != 3 || back.Actor != (Actor{}) {
			t.Errorf("%s: dispatched as %+v, %v", name, back, err)
		}
	}
	for name, body := range map[string]string{
		"an abbreviated commit": fmt.Sprintf(runFailed, "completed", "CI", "push", branch, "8f3a1c0d", "failure", own),
		"no commit":             fmt.Sprintf(runFailed, "completed", "CI", "push", branch, "", "failure", own),
	} {
		if _, err := ParseGitHub("workflow_run", []byte(body), Options{}); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// INV-45: a run of ours, which ends a claim, is no CI whatever its end.
	ours := fmt.Sprintf(runFailed, "completed", "Proctor "+NewID("x"), "workflow_dispatch", `"trunk"`, failedSHA, "failure", own)
	if got, err := ParseGitHub("workflow_run", []byte(ours), Options{}); err != nil || got.Kind != KindRun || got.Check != nil {
		t.Errorf("a run of ours: %+v, %v", got, err)
	}
}

// INV-40: what failed is no way to bring somebody's word along, nor a branch that no forge would have.
func TestADispatchedCheckStandsAlone(t *testing.T) {
	t.Parallel()
	in := func(more map[string]string) map[string]string {
		out := map[string]string{InputIssue: "3", InputCheck: "77@" + failedSHA, InputBranch: "proctor/issue-3"}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	if got, err := ParseDispatch(in(map[string]string{InputActor: "7:ann"})); err != nil || got.Check == nil || got.Actor != (Actor{}) {
		t.Fatalf("control: %+v, %v", got, err)
	}
	for name, more := range map[string]map[string]string{
		"a command":    {InputCommand: "retry", InputComment: "4"},
		"a review":     {InputChange: "12", InputReview: "5"},
		"a label":      {InputEvent: "5@2026-01-02T15:04:05Z"},
		"an approval":  {InputSnapshot: strings.Repeat("a", 64)},
		"no branch":    {InputBranch: ""},
		"two lines":    {InputBranch: "proctor/issue-3\nx"},
		"a long name":  {InputBranch: strings.Repeat("b", 300)},
		"no commit":    {InputCheck: "77"},
		"a short one":  {InputCheck: "77@8f3a"},
		"no id":        {InputCheck: "@" + failedSHA},
		"a wrong id":   {InputCheck: "-1@" + failedSHA},
		"another case": {InputCheck: "77@" + strings.ToUpper(failedSHA)},
	} {
		if got, err := ParseDispatch(in(more)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
