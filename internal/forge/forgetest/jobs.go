package forgetest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// ciJob is one job of a run or pipeline that was not executed here: people's own CI.
type ciJob struct {
	id     int64
	run    int64
	name   string
	passed bool
	log    []byte
}

// plainText is an answer that is no JSON.
type plainText []byte

func (s *site) jobsOf(run int64) []*ciJob {
	var out []*ciJob
	for _, j := range s.ciJobs {
		if j.run == run {
			out = append(out, j)
		}
	}
	return out
}

func (s *site) jobNamed(id string) *ciJob {
	n, _ := strconv.ParseInt(id, 10, 64)
	for _, j := range s.ciJobs {
		if j.id == n {
			return j
		}
	}
	return nil
}

// addJobs adds a job that passed beside the one that failed.
func (s *site) addJobs(run int64, name, log string) {
	s.ciJobs = append(s.ciJobs, &ciJob{id: s.id(), run: run, name: "lint", passed: true, log: []byte("fine\n")}, &ciJob{id: s.id(), run: run, name: name, log: []byte(log)})
}

// CI is how people's own CI ended for the commit that a branch points at: one run or pipeline.
type CI struct {
	Branch   string
	Job, Log string // a job that failed and what it printed; none: all passed
	// Pull is the number of the pull/merge request that started it; 0: a push did.
	Pull int
	// Fork: an outsider pushed the commit, as it is, to a branch of that name in a fork and opened Pull from there.
	Fork bool
	// As is another branch of this repository that points at the commit, which started it; "": Branch did.
	As string
}

// EndCI adds a run that has ended, and tells the hook and the workflows that follow it.
func (g *GitHub) EndCI(ci CI) error {
	g.state.Lock()
	defer g.state.Unlock()
	sha, err := g.repo.branch(ci.Branch)
	if err != nil {
		return err
	}
	r := &Run{ID: g.id(), Number: 1, Attempt: 1, File: workflowDir + "/ci.yml", Name: "CI", Title: "CI", Event: "push", Ref: "refs/heads/" + or(ci.As, ci.Branch), SHA: sha,
		Actor: g.opt.Owner, Status: "completed", Conclusion: "success", Created: g.now(), Fork: ci.Fork, taken: true}
	if ci.Pull != 0 {
		r.Event = "pull_request"
	}
	if ci.Job != "" {
		r.Conclusion = "failure"
		g.addJobs(r.ID, ci.Job, ci.Log)
	}
	g.runs = append(g.runs, r)
	g.emitRun("completed", r)
	return nil
}

// emitRun is the workflow_run event, which a fork's run of a pull request sends in the repository that it asks, too.
func (g *GitHub) emitRun(action string, r *Run) {
	p := g.withInstallation(obj{"action": action, "workflow_run": g.runJSON(r), "repository": g.hookRepoJSON(), "sender": g.hookUserJSON(g.user(r.Actor)),
		"workflow": obj{"id": int64(9000), "name": r.Name, "path": r.File, "state": "active"}})
	g.deliver("workflow_run", action, p)
	g.startWorkflows("workflow_run", action, r.Actor, p)
}

// listAllRuns lists those of forks' pull requests among the repository's own, as GitHub does.
func listAllRuns(c *call) (int, any, error) {
	q := c.r.URL.Query()
	sha, branch := q.Get("head_sha"), q.Get("branch")
	all := []obj{}
	for _, r := range slices.Backward(c.g.runs) {
		if (sha == "" || r.SHA == sha) && (branch == "" || r.Ref == "refs/heads/"+branch) {
			all = append(all, c.g.runJSON(r))
		}
	}
	return http.StatusOK, obj{"total_count": len(all), "workflow_runs": page(c, all)}, nil
}

func listJobs(c *call) (int, any, error) {
	all := []obj{}
	for _, r := range c.g.runs {
		if r.ID != int64(c.number()) {
			continue
		}
		for _, j := range c.g.jobsOf(r.ID) {
			all = append(all, c.g.jobJSON(r, j))
		}
	}
	return http.StatusOK, obj{"total_count": len(all), "jobs": page(c, all)}, nil
}

func (g *GitHub) jobJSON(r *Run, j *ciJob) obj {
	conclusion := "failure"
	if j.passed {
		conclusion = "success"
	}
	u := fmt.Sprintf("%s/actions/jobs/%d", g.repoURL(), j.id)
	return obj{
		"id": j.id, "run_id": r.ID, "run_url": fmt.Sprintf("%s/actions/runs/%d", g.repoURL(), r.ID), "node_id": nodeID("CR_", j.id), "head_sha": r.SHA, "url": u,
		"html_url": fmt.Sprintf("%s/job/%d", g.runURL(r), j.id), "status": "completed", "conclusion": conclusion, "created_at": stampOf(r.Created),
		"started_at": stampOf(r.Created), "completed_at": stampOf(r.Created), "name": j.name, "steps": []obj{}, "check_run_url": fmt.Sprintf("%s/check-runs/%d", g.repoURL(), j.id),
		"labels": []string{"ubuntu-latest"}, "runner_id": 1, "runner_name": "forgetest", "runner_group_id": 1, "runner_group_name": "Default",
		"workflow_name": r.Name, "head_branch": r.Ref, "run_attempt": 1,
	}
}

// jobLogs points at where the log lies, for a minute, as GitHub does: another service, which wants no token.
func jobLogs(c *call) (int, any, error) {
	j := c.g.jobNamed(c.r.PathValue("id"))
	if j == nil {
		return 0, nil, notFound()
	}
	c.w.Header().Set("Location", fmt.Sprintf("%s/_logs/%d", c.g.url, j.id))
	return http.StatusFound, plainText(nil), nil
}

func (g *GitHub) serveLog(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		w.WriteHeader(http.StatusBadRequest) // as the blob store answers a token that is not its own
		return
	}
	g.state.Lock()
	j := g.jobNamed(r.PathValue("id"))
	g.state.Unlock()
	if j == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Write(j.log)
}

// EndCI adds a pipeline that has ended, and tells the hook. A fork's is in this project where a member started it from the merge request.
func (g *GitLab) EndCI(ci CI) error {
	g.state.Lock()
	defer g.state.Unlock()
	sha, err := g.repo.branch(ci.Branch)
	if err != nil {
		return err
	}
	p := &Pipeline{ID: g.id(), Ref: or(ci.As, ci.Branch), SHA: sha, Source: "push", Status: "success", Created: g.now(), taken: true}
	if ci.Pull != 0 {
		p.Source, p.Ref = "merge_request_event", fmt.Sprintf("refs/merge-requests/%d/head", ci.Pull)
	}
	if ci.Job != "" {
		p.Status = "failed"
		g.addJobs(p.ID, ci.Job, ci.Log)
	}
	g.pipelines = append(g.pipelines, p)
	g.emitPipeline(p, ci)
	return nil
}

// emitPipeline is the Pipeline Hook, whose ref is the branch also where a merge request started the pipeline.
// https://docs.gitlab.com/user/project/integrations/webhook_events/#pipeline-events
func (g *GitLab) emitPipeline(p *Pipeline, ci CI) {
	if g.hook == nil {
		return
	}
	branch := or(ci.As, ci.Branch)
	var merge any
	if ci.Pull != 0 {
		source := 4200
		if ci.Fork {
			source = 4300
		}
		merge = obj{"id": ci.Pull, "iid": ci.Pull, "title": "A merge request", "source_branch": branch, "source_project_id": source, "target_branch": g.opt.DefaultBranch,
			"target_project_id": 4200, "state": "opened", "url": fmt.Sprintf("%s/-/merge_requests/%d", g.webURL(), ci.Pull)}
	}
	g.deliver("Pipeline Hook", p.Status, obj{
		"object_kind": "pipeline", "user": g.hookUser(g.user(p.Actor)), "project": g.hookProject(), "merge_request": merge, "builds": []obj{},
		"commit": obj{"id": p.SHA, "message": "", "timestamp": stampOf(p.Created)},
		"object_attributes": obj{"id": p.ID, "iid": p.ID, "name": nil, "ref": branch, "tag": false, "sha": p.SHA, "before_sha": p.SHA, "source": p.Source, "status": p.Status,
			"detailed_status": p.Status, "stages": []string{"test"}, "created_at": stampOf(p.Created), "finished_at": stampOf(p.Created), "duration": 1, "variables": []obj{},
			"url": fmt.Sprintf("%s/-/pipelines/%d", g.webURL(), p.ID)},
	})
}

func glJobs(c *glCall) (int, any, error) {
	out := []obj{}
	scope := c.r.URL.Query()["scope[]"]
	for _, j := range c.g.jobsOf(int64(c.number("id"))) {
		status := "failed"
		if j.passed {
			status = "success"
		}
		if len(scope) == 0 || scope[0] == status {
			out = append(out, obj{"id": j.id, "name": j.name, "stage": "test", "status": status, "allow_failure": false})
		}
	}
	return http.StatusOK, glPage(c, out), nil
}

func glTrace(c *glCall) (int, any, error) {
	j := c.g.jobNamed(c.r.PathValue("id"))
	if j == nil {
		return 0, nil, glRefuse(http.StatusNotFound, "404 Not found")
	}
	return http.StatusOK, plainText(j.log), nil
}
