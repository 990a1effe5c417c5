package forgetest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// expandMap gives the expanded values of `with:` or `env:`.
func expandMap(m map[string]any, sc scope) (map[string]string, error) {
	out := make(map[string]string, len(m))
	for k, v := range m {
		s, err := expand(yamlText(v), sc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		out[k] = s
	}
	return out, nil
}

// yamlText is a scalar as a runner passes it on.
func yamlText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case uint64, int64, int:
		return fmt.Sprint(v)
	}
	return text(v)
}

// contextsOf a run: github, inputs, vars, runner.
func (g *GitHub) contextsOf(r *Run, vars map[string]string) (map[string]any, error) {
	g.state.Lock()
	defer g.state.Unlock()
	sc := g.contexts(r, vars)
	return sc.contexts, nil
}

// contexts with the state lock held.
func (g *GitHub) contexts(r *Run, vars map[string]string) scope {
	var event map[string]any
	json.Unmarshal(r.Payload, &event) // our own marshalling
	inputs, vs := map[string]any{}, map[string]any{}
	for k, v := range r.Inputs {
		inputs[k] = v
	}
	for k, v := range vars {
		vs[k] = v
	}
	return scope{status: "success", contexts: map[string]any{
		"github": map[string]any{
			"event_name": r.Event, "event": event, "repository": g.fullName(), "repository_owner": g.opt.Owner, "repository_id": fmt.Sprint(repositoryID),
			"actor": r.Actor, "actor_id": fmt.Sprint(g.user(r.Actor).id), "triggering_actor": r.Actor, "ref": r.Ref, "sha": r.SHA,
			"ref_name": strings.TrimPrefix(strings.TrimPrefix(r.Ref, "refs/heads/"), "refs/tags/"), "ref_type": "branch",
			"run_id": fmt.Sprint(r.ID), "run_number": fmt.Sprint(r.Number), "run_attempt": fmt.Sprint(r.Attempt), "workflow": r.Name,
			"workflow_ref": g.fullName() + "/" + r.File + "@" + r.Ref, "server_url": g.url, "api_url": g.APIURL(), "graphql_url": g.graphqlURL(),
		},
		"inputs": inputs, "vars": vs, "env": map[string]any{}, "secrets": map[string]any{}, "steps": map[string]any{}, "needs": map[string]any{},
		"runner": map[string]any{"os": "Linux", "arch": "X64", "name": "forgetest"}, "job": map[string]any{"status": "success"},
	}}
}

func (g *GitHub) graphqlURL() string {
	if g.opt.Enterprise {
		return g.url + "/api/graphql"
	}
	return g.url + "/graphql"
}
