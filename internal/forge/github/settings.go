package github

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

var _ forge.SettingsReader = (*Client)(nil)

// Settings implements forge.SettingsReader.
// https://docs.github.com/rest/actions/permissions https://docs.github.com/rest/repos/rules#get-rules-for-a-branch
func (c *Client) Settings(ctx context.Context, n forge.Needs) ([]forge.Setting, error) {
	var r *github.Repository
	err := c.ask(ctx, "read the repository's settings", permMetadata, func(ctx context.Context) (resp *github.Response, err error) {
		r, resp, err = c.api.Repositories.Get(ctx, c.owner, c.repo)
		return resp, err
	})
	if err != nil {
		return nil, err
	}
	issues := c.setting("issues", forge.Right, "Issues are on", "")
	if !r.GetHasIssues() {
		issues = c.setting("issues", forge.Wrong, "the feature Issues is off, so there is nothing to label", "turn Issues on at {web}/settings → Features")
	}
	out := []forge.Setting{issues, c.workflowState(ctx, n.Workflow), c.actionsOn(ctx), c.mayOpenPulls(ctx, n.JobToken), c.branchRules(ctx, n.Branch)}
	if len(n.Secrets) > 0 {
		out = append(out, c.secretThere(ctx, n.Secrets))
	}
	return out, nil
}

func (c *Client) setting(name string, s forge.Sight, said, next string) forge.Setting {
	return forge.Setting{Name: name, Sight: s, Said: said, Next: c.fill(next, call{})}
}

// unseen keeps why: a token that may not look, or a forge that did not answer.
func (c *Client) unseen(name string, err error, next string) forge.Setting {
	said := "unknown: this token may not see it"
	if !errors.Is(err, forge.ErrForbidden) && !errors.Is(err, forge.ErrNotFound) {
		said = "unknown: it could not be read: " + err.Error()
	}
	return c.setting(name, forge.Unseen, said, next)
}

func (c *Client) ask(ctx context.Context, what string, needs permission, f func(context.Context) (*github.Response, error)) error {
	return c.do(ctx, call{what: c.in(what), needs: needs}, func(ctx context.Context, _ int) (*github.Response, error) { return f(ctx) })
}

// workflowState: whether the default branch has the workflow, and whether somebody, or GitHub itself, disabled it.
func (c *Client) workflowState(ctx context.Context, file string) forge.Setting {
	const name = "workflow"
	file = path.Base(file)
	page := c.web() + "/actions/workflows/" + file
	var w *github.Workflow
	err := c.ask(ctx, "read workflow "+file, permActionsRead, func(ctx context.Context) (resp *github.Response, err error) {
		w, resp, err = c.api.Actions.GetWorkflowByFileName(ctx, c.owner, c.repo, segment(file))
		return resp, err
	})
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return c.setting(name, forge.Wrong, "GitHub knows no workflow "+file+", so that no label starts a run", "push the workflow to the default branch: `git push`")
	case err != nil:
		return c.unseen(name, err, "see "+page+": it must not say \"disabled\"")
	case w.GetState() != "active":
		return c.setting(name, forge.Wrong, "the workflow is "+strings.ReplaceAll(w.GetState(), "_", " "), "press \"Enable workflow\" at "+page)
	}
	return c.setting(name, forge.Right, "the workflow is active", "")
}

func (c *Client) actionsOn(ctx context.Context) forge.Setting {
	const name, where = "actions", "{web}/settings/actions → Actions permissions"
	var p *github.ActionsPermissionsRepository
	err := c.ask(ctx, "read the Actions permissions", permAdminRead, func(ctx context.Context) (resp *github.Response, err error) {
		p, resp, err = c.api.Repositories.GetActionsPermissions(ctx, c.owner, c.repo)
		return resp, err
	})
	switch {
	case err != nil:
		return c.unseen(name, err, "see "+where+": Actions have to be allowed, proctor-ci/proctor among them")
	case !p.GetEnabled():
		return c.setting(name, forge.Wrong, "Actions are off in this repository", "allow actions at "+where)
	case p.GetAllowedActions() == "local_only":
		return c.setting(name, forge.Wrong, "only actions of "+c.owner+" are allowed, and proctor-ci/proctor is none", "allow proctor-ci/* at "+where)
	case p.GetAllowedActions() == "selected":
		return c.setting(name, forge.Doubtful, "only selected actions are allowed", "see that proctor-ci/*, actions/checkout and actions/upload-artifact are among them at "+where)
	}
	return c.setting(name, forge.Right, "Actions are allowed", "")
}

// mayOpenPulls is the check box that is off when a repository is made. It counts for the job's own token alone.
func (c *Client) mayOpenPulls(ctx context.Context, jobToken bool) forge.Setting {
	const name = "actions-pull-requests"
	const click = "tick \"Allow GitHub Actions to create and approve pull requests\" at {web}/settings/actions"
	if !jobToken {
		return c.setting(name, forge.Right, "runs have a token of their own, which the check box of Actions does not bind", "")
	}
	var p *github.DefaultWorkflowPermissionRepository
	err := c.ask(ctx, "read the workflow permissions", permAdminRead, func(ctx context.Context) (resp *github.Response, err error) {
		p, resp, err = c.api.Repositories.GetDefaultWorkflowPermissions(ctx, c.owner, c.repo)
		return resp, err
	})
	switch {
	case err != nil:
		return c.unseen(name, err, "look there and "+click)
	case !p.GetCanApprovePullRequestReviews():
		return c.setting(name, forge.Wrong, "the job's own token may open no pull request", click)
	}
	return c.setting(name, forge.Right, "the job's own token may open pull requests", "")
}

// hinders are rules that refuse a run's branch; patterns may.
var (
	hinders  = map[string]string{"creation": "be created", "update": "be updated"}
	patterns = []string{"branch_name_pattern", "commit_message_pattern", "commit_author_email_pattern", "committer_email_pattern", "required_signatures"}
)

// branchRules are of rulesets. Classic protection of a name that does not exist cannot be asked for: a push shows it.
func (c *Client) branchRules(ctx context.Context, branch string) forge.Setting {
	const name = "branch-rules"
	var rules []*github.RepositoryRule
	err := c.ask(ctx, "read the rules of "+branch, permMetadata, func(ctx context.Context) (resp *github.Response, err error) {
		rules, resp, err = c.api.Repositories.GetRulesForBranch(ctx, c.owner, c.repo, segment(branch))
		return resp, err
	})
	if err != nil {
		return c.unseen(name, err, "see {web}/rules and {web}/settings/branches: no rule may cover "+branch)
	}
	for _, r := range rules {
		if verb, ok := hinders[r.Type]; ok {
			return c.setting(name, forge.Wrong, "a ruleset lets no branch like "+branch+" "+verb, "exempt the token's account, or the branches, at {web}/rules")
		}
	}
	for _, r := range rules {
		if slices.Contains(patterns, r.Type) {
			return c.setting(name, forge.Doubtful, "a ruleset asks "+r.Type+" of "+branch, "see at {web}/rules that commits by Proctor meet it, or exempt the token's account")
		}
	}
	return c.setting(name, forge.Right, "no ruleset hinders "+branch, "")
}

func (c *Client) secretThere(ctx context.Context, any []string) forge.Setting {
	const name = "secret"
	click := "add the secret " + any[0] + " at {web}/settings/secrets/actions"
	have := map[string]bool{}
	for _, list := range []func(context.Context, string, string, *github.ListOptions) (*github.Secrets, *github.Response, error){c.api.Actions.ListRepoSecrets, c.api.Actions.ListRepoOrgSecrets} {
		var s *github.Secrets
		err := c.ask(ctx, "list the names of secrets", permSecretsRead, func(ctx context.Context) (resp *github.Response, err error) {
			s, resp, err = list(ctx, c.owner, c.repo, &github.ListOptions{PerPage: perPage})
			return resp, err
		})
		if err != nil {
			return c.unseen(name, err, "see {web}/settings/secrets/actions: "+strings.Join(any, " or ")+" has to be there")
		}
		for _, v := range s.Secrets {
			have[strings.ToUpper(v.Name)] = true
		}
	}
	for _, v := range any {
		if have[v] {
			return c.setting(name, forge.Right, "there is a secret "+v, "")
		}
	}
	return c.setting(name, forge.Wrong, "there is no secret "+strings.Join(any, " or "), click)
}

// Startable asks to start the workflow on a branch that is not there: nothing can come of it, and how GitHub refuses tells whether
// the token may. Nil: it may.
func (c *Client) Startable(ctx context.Context, file, branch string) error {
	err := c.Dispatch(ctx, file, branch, nil)
	var e *forge.Error
	if errors.As(err, &e) && e.Status == http.StatusUnprocessableEntity && errors.Is(err, forge.ErrNotFound) {
		return nil
	}
	return err
}
