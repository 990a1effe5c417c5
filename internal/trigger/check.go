package trigger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// CheckRef is people's own CI that failed for a commit of a branch. What it printed stays with the forge, where the run reads it.
type CheckRef struct {
	ID  int64  // of the workflow run, the check suite or the pipeline: for the record
	SHA string // the commit it failed for, lower-case hex
}

// key is the check as a dispatch carries it.
func (c CheckRef) key() string { return strconv.FormatInt(c.ID, 10) + "@" + c.SHA }

// shaForm is a commit's id, SHA-1 or SHA-256.
var shaForm = pattern.Of(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// maxBranch is more than a branch of ours ever has.
const maxBranch = 200

// failed is a trigger for CI that failed on a branch of this repository. Nobody asked for it: who pushed, or started the CI, has no part
// in what follows.
func failed(t Trigger, id int64, branch, sha string) (Trigger, error) {
	switch {
	case branch == "" || len(branch) > maxBranch:
		return Trigger{}, ignored(ReasonOtherRun, "run %d of branch %s", id, name(branch))
	case id <= 0 || !shaForm.MatchString(sha):
		return Trigger{}, malformed("%s that failed without an id and a commit", t.Event)
	}
	t.Kind, t.Actor, t.Check = KindCheck, Actor{}, &CheckRef{ID: id, SHA: sha}
	t.Change = &ChangeRef{Head: branch, HeadSHA: sha}
	return t, nil
}

// githubFailed takes runs that a push of a branch, or its pull request, started: of those a round reads the logs. GitHub tells the
// repository of the runs of forks' pull requests too, with whatever branch name their authors chose.
// https://docs.github.com/webhooks/webhook-events-and-payloads#workflow_run
func githubFailed(t Trigger, e ghEvent) (Trigger, error) {
	r := e.WorkflowRun
	switch {
	case t.Action != "completed" || r.Conclusion != "failure" && r.Conclusion != "timed_out",
		r.Event != "push" && r.Event != "pull_request",
		r.HeadRepository.ID == 0 || r.HeadRepository.ID != t.Repo.ID:
		return Trigger{}, ignored(ReasonOtherRun, "run %d", r.ID)
	}
	t.Run = &RunRef{ID: r.ID, Path: r.Path, Branch: r.HeadBranch, Status: "completed", Conclusion: r.Conclusion}
	return failed(t, r.ID, r.HeadBranch, r.HeadSHA)
}

// githubSuite takes a suite of GitHub Actions, which is one workflow's run: what other Apps report has no log that a round could read. A
// suite of a fork's commit names no branch. https://docs.github.com/rest/checks/suites
func githubSuite(t Trigger, e ghEvent) (Trigger, error) {
	s := e.CheckSuite
	if t.Action != "completed" || s.Conclusion != "failure" && s.Conclusion != "timed_out" || s.App.Slug != "github-actions" {
		return Trigger{}, ignored(ReasonOtherRun, "suite %d", s.ID)
	}
	return failed(t, s.ID, s.HeadBranch, s.HeadSHA)
}

// gitlabFailed takes pipelines that a push or a merge request of this project started. A member can start a fork's merge request's pipeline
// in this project; its branch is the fork's.
func gitlabFailed(t Trigger, e glPipeline) (Trigger, error) {
	p, m := e.Pipeline, e.MergeRequest
	own := p.Source == "push" || p.Source == "merge_request_event" && m.SourceProjectID != 0 && m.SourceProjectID == m.TargetProjectID
	if p.Status != "failed" || p.Tag || !own {
		return Trigger{}, ignored(ReasonOtherRun, "pipeline %d", p.ID)
	}
	t.Action = p.Status
	branch := p.Ref
	if p.Source == "merge_request_event" {
		branch = m.SourceBranch
	}
	return failed(t, p.ID, branch, p.SHA)
}

// parseCheck reads a dispatched check and its branch. It stands for itself: nothing else asks beside it.
func parseCheck(v, branch string, alone bool) (*CheckRef, *ChangeRef, error) {
	id, sha, _ := strings.Cut(v, "@")
	n, err := strconv.ParseInt(id, 10, 64)
	switch {
	case err != nil || n <= 0 || !shaForm.MatchString(sha):
		return nil, nil, badInput(InputCheck, v, "ID@COMMIT, the id of the CI run that failed and the commit in full")
	case branch == "" || len(branch) > maxBranch || slices.ContainsFunc([]byte(branch), func(c byte) bool { return c <= ' ' || c == 0x7f }):
		return nil, nil, badInput(InputBranch, branch, "the branch that the CI run of "+strconv.Quote(InputCheck)+" failed on")
	case !alone:
		return nil, nil, fmt.Errorf("input %q is beside a command, a review or a label event: give one of them", InputCheck)
	}
	return &CheckRef{ID: n, SHA: sha}, &ChangeRef{Head: branch, HeadSHA: sha}, nil
}
