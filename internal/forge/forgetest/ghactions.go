package forgetest

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// Run is one workflow run.
type Run struct {
	ID, Number  int64
	Attempt     int
	File        string // ".github/workflows/proctor.yml"
	Name, Title string
	Event       string // "workflow_dispatch", "issues"
	Payload     []byte // the event file's content
	Ref, SHA    string // "refs/heads/main"
	Actor       string
	Inputs      map[string]string
	Status      string // "queued", "in_progress", "completed"
	Conclusion  string // "success", "failure", "cancelled", "skipped" once completed
	Created     time.Time
	Log         []byte // masked
	Fork        bool   // its head is in a fork
	workflow    *workflow
	taken       bool
}

func (g *GitHub) actionRoutes() []route {
	return []route{
		{"POST /repos/{owner}/{repo}/actions/workflows/{file}/dispatches", "actions", "write", dispatch},
		{"GET /repos/{owner}/{repo}/actions/workflows/{file}/runs", "actions", "read", listRuns},
		{"GET /repos/{owner}/{repo}/actions/runs", "actions", "read", listAllRuns},
		{"GET /repos/{owner}/{repo}/actions/runs/{number}", "actions", "read", getRun},
		{"GET /repos/{owner}/{repo}/actions/runs/{number}/jobs", "actions", "read", listJobs},
		{"GET /repos/{owner}/{repo}/actions/jobs/{id}/logs", "actions", "read", jobLogs},
	}
}

const workflowDir = ".github/workflows"

// dispatch checks as GitHub does: the file on the default branch, then on the ref, its trigger and its inputs.
func dispatch(c *call) (int, any, error) {
	var in struct {
		Ref    string         `json:"ref"`
		Inputs map[string]any `json:"inputs"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if err := c.mayWrite("write"); err != nil {
		return 0, nil, err
	}
	g, file := c.g, workflowDir+"/"+path.Base(c.r.PathValue("file"))
	ctx := context.Background()
	if head, err := g.repo.branch(g.opt.DefaultBranch); err != nil {
		return 0, nil, notFound()
	} else if _, err := g.repo.file(ctx, head, file); err != nil {
		return 0, nil, notFound()
	}
	if g.disabled[path.Base(file)] {
		return 0, nil, refuse(http.StatusUnprocessableEntity, "Cannot trigger a 'workflow_dispatch' on a disabled workflow")
	}
	ref, sha := g.fullRef(in.Ref)
	if sha == "" {
		return 0, nil, refuse(http.StatusUnprocessableEntity, "No ref found for: "+in.Ref)
	}
	w, err := g.workflowAt(ctx, sha, file)
	if err != nil {
		return 0, nil, refuse(http.StatusUnprocessableEntity, "Failed to parse workflow: "+err.Error())
	}
	inputs, err := w.dispatchInputs(in.Inputs)
	if err != nil {
		return 0, nil, err
	}
	if _, err := g.queue(w, file, "workflow_dispatch", ref, sha, c.token.Login, inputs, g.dispatchPayload(ref, file, c.token.Login, inputs)); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, nil
}

func (g *GitHub) fullRef(ref string) (full, sha string) {
	for _, f := range []string{ref, "refs/heads/" + ref, "refs/tags/" + ref} {
		if !strings.HasPrefix(f, "refs/") {
			continue
		}
		if id, err := g.repo.ref(f); err == nil {
			return f, id
		}
	}
	return "", ""
}

func (g *GitHub) workflowAt(ctx context.Context, sha, file string) (*workflow, error) {
	data, err := g.repo.file(ctx, sha, file)
	if err != nil {
		return nil, err
	}
	return parseWorkflow(data)
}

// queue makes a run and wakes a waiting runner.
func (g *GitHub) queue(w *workflow, file, event, ref, sha, actor string, inputs map[string]string, payload obj) (*Run, error) {
	data, err := marshalPayload(payload)
	if err != nil {
		return nil, err
	}
	g.runNumber[file]++
	r := &Run{
		ID: g.id(), Number: int64(g.runNumber[file]), Attempt: 1, File: file, Name: or(w.Name, file), Event: event, Payload: data,
		Ref: ref, SHA: sha, Actor: actor, Inputs: inputs, Status: "queued", Created: g.now(), workflow: w,
	}
	r.Title = r.Name
	if w.RunName != "" {
		title, err := expand(w.RunName, g.contexts(r, nil))
		if err != nil {
			return nil, fmt.Errorf("run-name: %w", err)
		}
		r.Title = title
	}
	g.runs = append(g.runs, r)
	select {
	case g.queued <- struct{}{}:
	default:
	}
	return r, nil
}

// startWorkflows queues every workflow of the default branch that listens to this event.
func (g *GitHub) startWorkflows(event, action, actor string, payload obj) {
	if sha, err := g.repo.branch(g.opt.DefaultBranch); err == nil {
		g.startWorkflowsOn("refs/heads/"+g.opt.DefaultBranch, sha, event, action, actor, payload)
	}
}

// startWorkflowsOn queues every workflow of a commit that listens to this event.
func (g *GitHub) startWorkflowsOn(ref, sha, event, action, actor string, payload obj) {
	if !g.opt.WorkflowTriggers {
		return
	}
	ctx := context.Background()
	files, _ := g.repo.list(ctx, sha, workflowDir) // none: nothing starts
	for _, f := range files {
		if ext := path.Ext(f); ext != ".yml" && ext != ".yaml" || g.disabled[path.Base(f)] {
			continue
		}
		// A file that does not parse starts nothing; GitHub shows a failed run, which nobody here looks at.
		if w, err := g.workflowAt(ctx, sha, f); err == nil && w.listens(event, action) && w.follows(payload) {
			g.queue(w, f, event, ref, sha, actor, nil, payload)
		}
	}
}

// Runs so far, oldest first, as copies.
func (g *GitHub) Runs() []Run {
	g.state.Lock()
	defer g.state.Unlock()
	out := make([]Run, len(g.runs))
	for i, r := range g.runs {
		out[i] = *r
	}
	return out
}

// StartDisguised is a run of proctor.yml on branch that nobody dispatched, by the title id: that of whoever opened the pull request.
func (g *GitHub) StartDisguised(branch, id string) error {
	g.state.Lock()
	defer g.state.Unlock()
	sha, err := g.repo.branch(branch)
	if err != nil {
		return err
	}
	g.runs = append(g.runs, &Run{ID: g.id(), Number: 1, Attempt: 1, File: workflowDir + "/proctor.yml", Name: "proctor", Title: "fix typo " + id, Event: "pull_request",
		Ref: "refs/heads/" + branch, SHA: sha, Actor: g.opt.Owner, Status: "queued", Created: g.now(), taken: true})
	return nil
}

// NextRun waits for a queued run that no runner has taken, and takes it.
func (g *GitHub) NextRun(ctx context.Context) (Run, error) {
	for {
		if r, ok := g.takeRun(); ok {
			return r, nil
		}
		select {
		case <-ctx.Done():
			return Run{}, fmt.Errorf("wait for a workflow run: %w", ctx.Err())
		case <-g.queued:
		}
	}
}

func (g *GitHub) takeRun() (Run, bool) {
	g.state.Lock()
	defer g.state.Unlock()
	i := slices.IndexFunc(g.runs, func(r *Run) bool { return !r.taken })
	if i < 0 {
		return Run{}, false
	}
	g.runs[i].taken = true
	if slices.ContainsFunc(g.runs, func(r *Run) bool { return !r.taken }) {
		select {
		case g.queued <- struct{}{}: // another waiting runner gets the next
		default:
		}
	}
	return *g.runs[i], true
}

// setRun changes a run's state.
func (g *GitHub) setRun(id int64, change func(*Run)) {
	g.state.Lock()
	defer g.state.Unlock()
	for _, r := range g.runs {
		if r.ID == id {
			change(r)
		}
	}
}

func listRuns(c *call) (int, any, error) {
	q := c.r.URL.Query()
	file := workflowDir + "/" + path.Base(c.r.PathValue("file"))
	if head, err := c.g.repo.branch(c.g.opt.DefaultBranch); err != nil {
		return 0, nil, notFound()
	} else if _, err := c.g.repo.file(context.Background(), head, file); err != nil {
		return 0, nil, notFound()
	}
	from := time.Time{}
	if after, ok := strings.CutPrefix(q.Get("created"), ">="); ok {
		from, _ = time.Parse(stamp, after)
	}
	all := []obj{}
	for _, r := range slices.Backward(c.g.runs) {
		if r.File == file && (q.Get("event") == "" || q.Get("event") == r.Event) && !r.Created.Before(from) {
			all = append(all, c.g.runJSON(r))
		}
	}
	return http.StatusOK, obj{"total_count": len(all), "workflow_runs": page(c, all)}, nil
}

func getRun(c *call) (int, any, error) {
	for _, r := range c.g.runs {
		if r.ID == int64(c.number()) {
			return http.StatusOK, c.g.runJSON(r), nil
		}
	}
	return 0, nil, notFound()
}

func (g *GitHub) runJSON(r *Run) obj {
	u := fmt.Sprintf("%s/actions/runs/%d", g.repoURL(), r.ID)
	var conclusion any
	if r.Conclusion != "" {
		conclusion = r.Conclusion
	}
	return obj{
		"id": r.ID, "name": r.Name, "node_id": nodeID("WFR_", r.ID), "check_suite_id": r.ID + 1, "check_suite_node_id": nodeID("CS_", r.ID+1),
		"head_branch": strings.TrimPrefix(r.Ref, "refs/heads/"), "head_sha": r.SHA, "path": r.File, "run_number": r.Number, "run_attempt": r.Attempt,
		"event": r.Event, "display_title": r.Title, "status": r.Status, "conclusion": conclusion, "workflow_id": int64(9000), "url": u,
		"html_url": g.runURL(r), "pull_requests": []obj{}, "created_at": stampOf(r.Created), "updated_at": stampOf(r.Created),
		"run_started_at": stampOf(r.Created), "actor": g.userJSON(g.user(r.Actor)), "triggering_actor": g.userJSON(g.user(r.Actor)),
		"jobs_url": u + "/jobs", "logs_url": u + "/logs", "check_suite_url": g.repoURL() + "/check-suites/1", "artifacts_url": u + "/artifacts",
		"cancel_url": u + "/cancel", "rerun_url": u + "/rerun", "previous_attempt_url": nil, "workflow_url": g.repoURL() + "/actions/workflows/9000",
		"repository": g.repoJSON(), "head_repository": g.headRepoJSON(r.Fork),
		"head_commit": obj{"id": r.SHA, "tree_id": r.SHA, "message": "", "timestamp": stampOf(r.Created),
			"author": obj{"name": "Forge", "email": "forge@example.com"}, "committer": obj{"name": "Forge", "email": "forge@example.com"}},
	}
}

func (g *GitHub) runURL(r *Run) string { return fmt.Sprintf("%s/actions/runs/%d", g.webURL(), r.ID) }
