package forgetest

import (
	"context"
	"maps"
	"net/http"
	"slices"
)

func onOff(off bool) string {
	if off {
		return "disabled"
	}
	return "enabled"
}

func (c *glCall) mayMaintain() error {
	if accessLevel(c.g.user(c.token.Login).role) < accessLevel("maintainer") {
		return glRefuse(http.StatusForbidden, "403 Forbidden")
	}
	return nil
}

func glProtected(c *glCall) (int, any, error) {
	if err := c.mayMaintain(); err != nil {
		return 0, nil, err
	}
	all := c.g.set.Protected
	if all == nil {
		all = map[string]string{c.g.opt.DefaultBranch: "maintainer"}
	}
	out := []obj{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, obj{"id": len(out) + 1, "name": name, "allow_force_push": false,
			"push_access_levels": []obj{{"id": 1, "access_level": accessLevel(all[name]), "user_id": nil, "group_id": nil}}})
	}
	return http.StatusOK, glPage(c, out), nil
}

func glPushRule(c *glCall) (int, any, error) {
	if err := c.mayMaintain(); err != nil {
		return 0, nil, err
	}
	if c.g.set.PushRules == nil {
		return 0, nil, glRefuse(http.StatusNotFound, "404 Not Found")
	}
	return http.StatusOK, c.g.set.PushRules, nil
}

func glProjectVariables(c *glCall) (int, any, error) {
	if err := c.mayMaintain(); err != nil {
		return 0, nil, err
	}
	out := []obj{}
	for _, v := range c.g.set.Variables {
		out = append(out, obj{"key": v.Key, "value": "hidden", "variable_type": "env_var", "masked": v.Masked, "protected": v.Protected, "environment_scope": or(v.Environment, "*")})
	}
	return http.StatusOK, glPage(c, out), nil
}

func glDeleteBranch(c *glCall) (int, any, error) {
	name := c.r.PathValue("branch")
	if _, err := c.g.repo.branch(name); err != nil {
		return 0, nil, glRefuse(http.StatusNotFound, "404 Branch Not Found")
	}
	if slices.Contains(c.g.protected, "refs/heads/"+name) {
		return 0, nil, glRefuse(http.StatusForbidden, "403 Forbidden - Protected branch")
	}
	if _, err := git(context.Background(), c.g.repo.dir, "update-ref", "-d", "refs/heads/"+name); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, nil
}
