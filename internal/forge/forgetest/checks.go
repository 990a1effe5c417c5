package forgetest

import (
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"
)

// Check is a check run, or a commit status on GitLab.
type Check struct {
	Commit, Branch         string // the branch on GitLab only
	Name, State            string // GitHub's conclusion, GitLab's state
	Title, Summary, Target string
	By                     string
	id                     int64
	external               string
	started, ended         time.Time
}

// Checks so far on a commit, oldest first.
func (s *site) Checks(commit string) []Check {
	s.state.Lock()
	defer s.state.Unlock()
	var out []Check
	for _, c := range s.checks {
		if c.Commit == commit {
			out = append(out, *c)
		}
	}
	return out
}

func (g *GitHub) checkRoutes() []route {
	return []route{
		{"POST /repos/{owner}/{repo}/check-runs", "checks", "write", createCheck},
		{"GET /repos/{owner}/{repo}/commits/{commit}/check-runs", "checks", "read", listChecks},
	}
}

// Limits of a check run's texts.
const (
	maxCheckTitle   = 255
	maxCheckSummary = 65535
)

// createCheck: a person's token may not, whatever the person may.
func createCheck(c *call) (int, any, error) {
	if !c.token.Job && !c.token.Installation {
		return 0, nil, refuse(http.StatusForbidden, "You must authenticate via a GitHub App.")
	}
	var in struct {
		Name        string `json:"name"`
		HeadSHA     string `json:"head_sha"`
		ExternalID  string `json:"external_id"`
		DetailsURL  string `json:"details_url"`
		Status      string `json:"status"`
		Conclusion  string `json:"conclusion"`
		StartedAt   string `json:"started_at"`
		CompletedAt string `json:"completed_at"`
		Output      struct{ Title, Summary string }
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	conclusions := []string{"action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out"}
	switch {
	case in.Status != "completed" || !slices.Contains(conclusions, in.Conclusion):
		return 0, nil, invalid("CheckRun", "conclusion", "custom", "the test forge takes checks that have ended")
	case !c.g.repo.has(in.HeadSHA):
		return 0, nil, refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+in.HeadSHA)
	case in.Output.Title == "" || in.Output.Summary == "":
		return 0, nil, invalid("CheckRun", "output", "missing_field", "")
	case utf8.RuneCountInString(in.Output.Title) > maxCheckTitle || utf8.RuneCountInString(in.Output.Summary) > maxCheckSummary:
		return 0, nil, invalid("CheckRun", "summary", "custom", fmt.Sprintf("summary exceeds a maximum bytesize of %d", maxCheckSummary))
	}
	started, _ := time.Parse(stamp, in.StartedAt)
	ended, _ := time.Parse(stamp, in.CompletedAt)
	k := &Check{Commit: in.HeadSHA, Name: in.Name, State: in.Conclusion, Title: in.Output.Title, Summary: in.Output.Summary, Target: in.DetailsURL,
		By: c.token.Login, id: c.g.id(), external: in.ExternalID, started: started, ended: ended}
	c.g.checks = append(c.g.checks, k)
	return http.StatusCreated, c.g.checkJSON(k), nil
}

func listChecks(c *call) (int, any, error) {
	out := []obj{}
	for _, k := range slices.Backward(c.g.checks) {
		if k.Commit == c.r.PathValue("commit") && k.Name == or(c.r.URL.Query().Get("check_name"), k.Name) {
			out = append(out, c.g.checkJSON(k))
		}
	}
	return http.StatusOK, obj{"total_count": len(out), "check_runs": page(c, out)}, nil
}

func (g *GitHub) checkJSON(k *Check) obj {
	u := fmt.Sprintf("%s/check-runs/%d", g.repoURL(), k.id)
	return obj{
		"id": k.id, "node_id": nodeID("CR_", k.id), "head_sha": k.Commit, "external_id": k.external, "url": u, "html_url": fmt.Sprintf("%s/runs/%d", g.webURL(), k.id),
		"details_url": k.Target, "status": "completed", "conclusion": k.State, "started_at": stampOrNil(k.started), "completed_at": stampOrNil(k.ended), "name": k.Name,
		"output":      obj{"title": k.Title, "summary": k.Summary, "text": nil, "annotations_count": 0, "annotations_url": u + "/annotations"},
		"check_suite": obj{"id": k.id}, "app": nil, "pull_requests": []obj{},
	}
}

// Limits of a commit status's texts.
const maxStatusText = 255

// glSetStatus keeps one status of a name for each commit and branch, and refuses the state that it has.
func glSetStatus(c *glCall) (int, any, error) {
	var in struct {
		State       string
		Ref         string
		Name        string
		Description string
		TargetURL   string `json:"target_url"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	commit := c.r.PathValue("sha")
	switch {
	case !slices.Contains([]string{"pending", "running", "success", "failed", "canceled", "skipped"}, in.State):
		return 0, nil, glRefuse(http.StatusBadRequest, obj{"state": []string{"does not have a valid value"}})
	case !c.g.repo.has(commit):
		return 0, nil, glRefuse(http.StatusNotFound, "404 Commit Not Found")
	case utf8.RuneCountInString(in.Description) > maxStatusText:
		return 0, nil, glRefuse(http.StatusBadRequest, obj{"description": []string{"is too long (maximum is 255 characters)"}})
	case utf8.RuneCountInString(in.TargetURL) > maxStatusText:
		return 0, nil, glRefuse(http.StatusBadRequest, obj{"target_url": []string{"is too long (maximum is 255 characters)"}})
	}
	i := slices.IndexFunc(c.g.checks, func(k *Check) bool { return k.Commit == commit && k.Branch == in.Ref && k.Name == in.Name })
	if i < 0 {
		i = len(c.g.checks)
		c.g.checks = append(c.g.checks, &Check{Commit: commit, Branch: in.Ref, Name: in.Name, id: c.g.id()})
	}
	k := c.g.checks[i]
	if k.State == in.State {
		event := map[string]string{"success": "succeed", "failed": "drop", "canceled": "cancel", "pending": "enqueue", "running": "run", "skipped": "skip"}[in.State]
		return 0, nil, glRefuse(http.StatusBadRequest, fmt.Sprintf("Cannot transition status via :%s from :%s (Reason(s): Status cannot transition via %q)", event, k.State, event))
	}
	k.State, k.Title, k.Target, k.By = in.State, in.Description, in.TargetURL, c.token.Login
	return http.StatusCreated, obj{
		"id": k.id, "sha": commit, "ref": in.Ref, "status": k.State, "name": k.Name, "target_url": k.Target, "description": k.Title, "created_at": stampOf(c.g.now()),
		"started_at": nil, "finished_at": stampOf(c.g.now()), "allow_failure": false, "coverage": nil, "pipeline_id": k.id, "author": c.g.userJSON(c.g.user(c.token.Login)),
	}, nil
}
