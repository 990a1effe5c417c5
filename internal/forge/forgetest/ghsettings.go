package forgetest

import (
	"context"
	"net/http"
	"path"
	"slices"
)

// branchRule is a ruleset's, on the branches that its pattern covers.
type branchRule struct{ kind, pattern string }

func (g *GitHub) settingRoutes() []route {
	return []route{
		{"GET /repos/{owner}/{repo}/actions/workflows/{file}", "actions", "read", getWorkflow},
		{"GET /repos/{owner}/{repo}/actions/permissions", "administration", "read", getActionsPermissions},
		{"GET /repos/{owner}/{repo}/actions/permissions/workflow", "administration", "read", getWorkflowPermissions},
		{"GET /repos/{owner}/{repo}/rules/branches/{branch}", "metadata", "read", getBranchRules},
		{"GET /repos/{owner}/{repo}/actions/secrets", "secrets", "read", listSecrets},
		{"GET /repos/{owner}/{repo}/actions/organization-secrets", "secrets", "read", listOrgSecrets},
		{"DELETE /repos/{owner}/{repo}/git/refs/{ref...}", "contents", "write", deleteRef},
	}
}

// mayAdminister: a person's token shows settings to administrators only.
func (c *call) mayAdminister() error {
	if c.token.Job || c.token.Installation || atLeast(c.g.roleOf(c.g.user(c.token.Login)), "admin") {
		return nil
	}
	return refuse(http.StatusForbidden, "Must have admin rights to Repository.")
}

func getWorkflow(c *call) (int, any, error) {
	file := path.Base(c.r.PathValue("file"))
	head, err := c.g.repo.branch(c.g.opt.DefaultBranch)
	if err != nil {
		return 0, nil, notFound()
	}
	if _, err := c.g.repo.file(context.Background(), head, workflowDir+"/"+file); err != nil {
		return 0, nil, notFound()
	}
	state := "active"
	if c.g.disabled[file] {
		state = "disabled_manually"
	}
	return http.StatusOK, obj{"id": 9000, "node_id": nodeID("W_", 9000), "name": file, "path": workflowDir + "/" + file, "state": state,
		"created_at": stampOf(c.g.since), "updated_at": stampOf(c.g.since), "url": c.g.repoURL() + "/actions/workflows/9000",
		"html_url": c.g.webURL() + "/actions/workflows/" + file, "badge_url": c.g.webURL() + "/actions/workflows/" + file + "/badge.svg"}, nil
}

func getActionsPermissions(c *call) (int, any, error) {
	if err := c.mayAdminister(); err != nil {
		return 0, nil, err
	}
	o := obj{"enabled": !c.g.actionsOff}
	if !c.g.actionsOff {
		o["allowed_actions"] = or(c.g.allowedActions, "all")
	}
	return http.StatusOK, o, nil
}

func getWorkflowPermissions(c *call) (int, any, error) {
	if err := c.mayAdminister(); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, obj{"default_workflow_permissions": "read", "can_approve_pull_request_reviews": c.g.actionsPRs}, nil
}

// getBranchRules answers for names that no branch has, too.
func getBranchRules(c *call) (int, any, error) {
	out := []obj{}
	for _, r := range c.g.rules {
		if ok, _ := path.Match(r.pattern, c.r.PathValue("branch")); ok {
			out = append(out, obj{"type": r.kind, "ruleset_source_type": "Repository", "ruleset_source": c.g.fullName(), "ruleset_id": 21})
		}
	}
	return http.StatusOK, out, nil
}

func listSecrets(c *call) (int, any, error) {
	if err := c.mayAdminister(); err != nil {
		return 0, nil, err
	}
	out := []obj{}
	for _, n := range c.g.secretNames {
		out = append(out, obj{"name": n, "created_at": stampOf(c.g.since), "updated_at": stampOf(c.g.since)})
	}
	return http.StatusOK, obj{"total_count": len(out), "secrets": out}, nil
}

func listOrgSecrets(c *call) (int, any, error) {
	if err := c.mayAdminister(); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, obj{"total_count": 0, "secrets": []obj{}}, nil
}

// deleteRef closes the pull requests from a branch that goes, as GitHub does.
func deleteRef(c *call) (int, any, error) {
	if err := c.mayWrite("write"); err != nil {
		return 0, nil, err
	}
	ref := "refs/" + c.r.PathValue("ref")
	if _, err := c.g.repo.ref(ref); err != nil {
		return 0, nil, refuse(http.StatusUnprocessableEntity, "Reference does not exist")
	}
	if slices.Contains(c.g.protected, ref) {
		return 0, nil, refuse(http.StatusUnprocessableEntity, "Cannot delete this protected branch")
	}
	if _, err := git(context.Background(), c.g.repo.dir, "update-ref", "-d", ref); err != nil {
		return 0, nil, err
	}
	for _, is := range c.g.issues {
		if is.pull != nil && is.state == "open" && !is.pull.fork && "refs/heads/"+is.pull.head == ref {
			is.state, is.closed = "closed", c.g.now()
		}
	}
	return http.StatusNoContent, nil, nil
}
