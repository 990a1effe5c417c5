package forgetest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Pipeline is one pipeline, its one job included.
type Pipeline struct {
	ID        int64
	Ref, SHA  string
	Source    string // "trigger", "api", "push"
	Variables map[string]string
	Actor     string
	Status    string // "created", "running", "success", "failed", "canceled"
	Created   time.Time
	Log       []byte
	taken     bool
}

func (g *GitLab) pipelineJSON(p *Pipeline) obj {
	return obj{"id": p.ID, "iid": p.ID, "project_id": 4200, "sha": p.SHA, "ref": p.Ref, "status": p.Status, "source": p.Source,
		"created_at": stampOf(p.Created), "updated_at": stampOf(p.Created), "web_url": fmt.Sprintf("%s/-/pipelines/%d", g.webURL(), p.ID)}
}

func (g *GitLab) newPipeline(ref, source, actor string, vars map[string]string) (*Pipeline, error) {
	sha, err := g.repo.branch(ref)
	if err != nil {
		return nil, glRefuse(http.StatusBadRequest, obj{"base": []string{"Reference not found"}})
	}
	if _, err := g.repo.file(context.Background(), sha, ".gitlab-ci.yml"); err != nil {
		return nil, glRefuse(http.StatusBadRequest, obj{"base": []string{"Missing CI config file"}})
	}
	p := &Pipeline{ID: g.id(), Ref: ref, SHA: sha, Source: source, Variables: vars, Actor: actor, Status: "created", Created: g.now()}
	g.pipelines = append(g.pipelines, p)
	return p, nil
}

func glCreatePipeline(c *glCall) (int, any, error) {
	var in struct {
		Ref       string
		Variables []struct{ Key, Value string }
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	least := map[string]string{"": "developer", "no_one_allowed": "nobody"}
	role := or(least[c.g.set.VariablesRole], c.g.set.VariablesRole)
	switch {
	case c.g.set.CIOff:
		return 0, nil, glRefuse(http.StatusForbidden, "403 Forbidden - Pipelines are disabled!")
	case len(in.Variables) > 0 && (role == "nobody" || accessLevel(c.g.user(c.token.Login).role) < accessLevel(role)):
		return 0, nil, glRefuse(http.StatusBadRequest, obj{"base": []string{"Insufficient permissions to set pipeline variables"}})
	}
	vars := map[string]string{}
	for _, v := range in.Variables {
		vars[v.Key] = v.Value
	}
	p, err := c.g.newPipeline(in.Ref, "api", c.token.Login, vars)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, c.g.pipelineJSON(p), nil
}

// glTrigger is authorised by the trigger token alone.
func glTrigger(c *glCall) (int, any, error) {
	var in struct {
		Ref, Token string
		Variables  map[string]string
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if c.g.trigger == "" || in.Token != c.g.trigger {
		return 0, nil, glRefuse(http.StatusNotFound, "404 Not Found")
	}
	p, err := c.g.newPipeline(in.Ref, "trigger", "", in.Variables)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, c.g.pipelineJSON(p), nil
}

func glPipelines(c *glCall) (int, any, error) {
	sha := c.r.URL.Query().Get("sha")
	after, _ := time.Parse(stamp, c.r.URL.Query().Get("updated_after"))
	out := []obj{}
	for _, p := range slices.Backward(c.g.pipelines) {
		if !p.Created.Before(after) && (sha == "" || p.SHA == sha) {
			out = append(out, c.g.pipelineJSON(p))
		}
	}
	if c.r.URL.Query().Get("sort") == "asc" {
		slices.Reverse(out)
	}
	return http.StatusOK, glPage(c, out), nil
}

func glPipeline(c *glCall) (int, any, error) {
	for _, p := range c.g.pipelines {
		if p.ID == int64(c.number("id")) {
			return http.StatusOK, c.g.pipelineJSON(p), nil
		}
	}
	return 0, nil, glRefuse(http.StatusNotFound, "404 Not found")
}

func glVariables(c *glCall) (int, any, error) {
	for _, p := range c.g.pipelines {
		if p.ID != int64(c.number("id")) {
			continue
		}
		out := []obj{}
		for k, v := range p.Variables {
			out = append(out, obj{"key": k, "value": v, "variable_type": "env_var", "raw": false})
		}
		return http.StatusOK, out, nil
	}
	return 0, nil, glRefuse(http.StatusNotFound, "404 Not found")
}

// StartDisguised is a pipeline on branch that nobody dispatched, with the variable of one that was: `git push -o ci.variable=PROCTOR_ID=…`.
func (g *GitLab) StartDisguised(branch, id string) error {
	g.state.Lock()
	defer g.state.Unlock()
	p, err := g.newPipeline(branch, "push", "", map[string]string{"PROCTOR_ID": id})
	if err == nil {
		p.taken = true
	}
	return err
}

// Pipelines so far, as copies.
func (g *GitLab) Pipelines() []Pipeline {
	g.state.Lock()
	defer g.state.Unlock()
	out := make([]Pipeline, len(g.pipelines))
	for i, p := range g.pipelines {
		out[i] = *p
	}
	return out
}
