package gitlab

import (
	"context"
	"errors"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
)

var _ forge.SettingsReader = (*Client)(nil)

const (
	features  = "{web}/edit → Visibility, project features, permissions"
	variables = "{web}/-/settings/ci_cd → Variables"
)

// Settings implements forge.SettingsReader.
// https://docs.gitlab.com/api/projects/ https://docs.gitlab.com/api/protected_branches/ https://docs.gitlab.com/api/project_level_variables/
func (c *Client) Settings(ctx context.Context, n forge.Needs) ([]forge.Setting, error) {
	var p *gitlab.Project
	err := c.do(ctx, call{what: c.in("read the project's settings")}, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		p, resp, err = c.api.Projects.GetProject(c.project, nil, opt)
		return resp, err
	})
	if err != nil {
		return nil, err
	}
	protected, protectedErr := every(ctx, c, call{what: c.in("list the protected branches")}, func(page gitlab.ListOptions, opt gitlab.RequestOptionFunc) ([]*gitlab.ProtectedBranch, *gitlab.Response, error) {
		return c.api.ProtectedBranches.ListProtectedBranches(c.project, &gitlab.ListProtectedBranchesOptions{ListOptions: page}, opt)
	})
	return []forge.Setting{
		c.feature("issues", "Issues", p.IssuesAccessLevel), c.feature("merge-requests", "Merge requests", p.MergeRequestsAccessLevel), c.feature("ci", "CI/CD", p.BuildsAccessLevel),
		c.pipelineFile(p), c.pipelineVariables(p),
		c.protectedBranch(n.Branch, protected, protectedErr), c.pushRules(ctx, n.Branch), c.secretVariables(ctx, n.Variables, p.DefaultBranch, protected, protectedErr),
	}, nil
}

func (c *Client) setting(name string, s forge.Sight, said, next string) forge.Setting {
	return forge.Setting{Name: name, Sight: s, Said: said, Next: c.fill(next, call{})}
}

// unseen keeps why: a token that may not look, or a forge that did not answer.
func (c *Client) unseen(name string, err error, next string) forge.Setting {
	said := "unknown: this token may not see it"
	if err != nil && !errors.Is(err, forge.ErrForbidden) && !errors.Is(err, forge.ErrUnauthorized) && !errors.Is(err, forge.ErrNotFound) {
		said = "unknown: it could not be read: " + err.Error()
	}
	return c.setting(name, forge.Unseen, said, next)
}

func (c *Client) feature(name, title string, level gitlab.AccessControlValue) forge.Setting {
	switch level {
	case gitlab.DisabledAccessControl:
		return c.setting(name, forge.Wrong, title+" are off in this project", "turn "+title+" on at "+features)
	case "":
		return c.unseen(name, nil, "see that "+title+" are on at "+features)
	}
	return c.setting(name, forge.Right, title+" are on", "")
}

func (c *Client) pipelineFile(p *gitlab.Project) forge.Setting {
	if at := p.CIConfigPath; at != "" && at != ".gitlab-ci.yml" {
		return c.setting("pipeline-file", forge.Doubtful, "the project's pipelines come from "+forge.Said(at)+", not from .gitlab-ci.yml", "include .gitlab/ci/proctor.yml there, or empty the field at {web}/-/settings/ci_cd → General pipelines → CI/CD configuration file")
	}
	return c.setting("pipeline-file", forge.Right, "pipelines come from .gitlab-ci.yml", "")
}

// pipelineVariables: the issue's number is one.
func (c *Client) pipelineVariables(p *gitlab.Project) forge.Setting {
	const name, click = "pipeline-variables", "set \"Minimum role to use pipeline variables\" to Developer at " + variables
	switch role := string(p.CIPipelineVariablesMinimumOverrideRole); role {
	case "":
		return c.unseen(name, nil, "see there and "+click)
	case "no_one_allowed":
		return c.setting(name, forge.Wrong, "nobody may give a pipeline variables, and PROCTOR_ISSUE is one", click)
	case "developer":
		return c.setting(name, forge.Right, "Developers may give a pipeline variables", "")
	default:
		return c.setting(name, forge.Doubtful, "only a "+forge.Said(role)+" may give a pipeline variables, and PROCTOR_ISSUE is one", click+", or start runs with a token of that role")
	}
}

// covers is GitLab's wildcard: a star stands for any text, slashes too. https://docs.gitlab.com/user/project/repository/branches/protected/
func covers(pattern, branch string) bool {
	parts := strings.Split(pattern, "*")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(branch)
}

func (c *Client) protectedBranch(branch string, list []*gitlab.ProtectedBranch, err error) forge.Setting {
	const name, where = "protected-branches", "{web}/-/settings/repository → Protected branches"
	if err != nil {
		return c.unseen(name, err, "see that no pattern covers "+branch+" at "+where)
	}
	for _, b := range list {
		developers := slices.ContainsFunc(b.PushAccessLevels, func(l *gitlab.BranchAccessDescription) bool {
			return l.UserID == 0 && l.GroupID == 0 && l.AccessLevel > gitlab.NoPermissions && l.AccessLevel <= gitlab.DeveloperPermissions
		})
		if covers(b.Name, branch) && !developers {
			return c.setting(name, forge.Wrong, "the protected pattern "+forge.Said(b.Name)+" covers "+branch+", where Developers may not push", "unprotect "+forge.Said(b.Name)+", or allow Developers to push, at "+where)
		}
	}
	return c.setting(name, forge.Right, "no protected pattern keeps Developers from "+branch, "")
}

// pushRules are of a paid plan: elsewhere GitLab answers 404.
func (c *Client) pushRules(ctx context.Context, branch string) forge.Setting {
	const name, where = "push-rules", "{web}/-/settings/repository → Push rules"
	var r *gitlab.ProjectPushRules
	err := c.do(ctx, call{what: c.in("read the push rules")}, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		r, resp, err = c.api.Projects.GetProjectPushRules(c.project, opt)
		if resp != nil && resp.StatusCode == http.StatusNotFound {
			return resp, nil
		}
		return resp, err
	})
	switch {
	case err != nil:
		return c.unseen(name, err, "see "+where+": no rule may ask for signatures, verified committers, or names and messages that Proctor's are not")
	case r == nil:
		return c.setting(name, forge.Right, "there are no push rules", "")
	case r.RejectUnsignedCommits:
		return c.setting(name, forge.Wrong, "a push rule rejects unsigned commits, and Proctor's on GitLab are none", "turn \"Reject unsigned commits\" off at "+where)
	case r.CommitCommitterCheck || r.MemberCheck:
		return c.setting(name, forge.Wrong, "a push rule takes commits of verified accounts only, and Proctor commits as itself", "turn the check of committers and authors off at "+where)
	case r.BranchNameRegex != "":
		if re, err := regexp.Compile(r.BranchNameRegex); err != nil || !re.MatchString(branch) {
			return c.setting(name, forge.Wrong, "a push rule wants branch names like "+forge.Said(r.BranchNameRegex)+", and a run's is "+branch, "let it take "+path.Dir(branch)+"/* at "+where+", or change publish.branch")
		}
	}
	if r.CommitMessageRegex != "" || r.CommitMessageNegativeRegex != "" || r.AuthorEmailRegex != "" || r.FileNameRegex != "" || r.RejectNonDCOCommits {
		return c.setting(name, forge.Doubtful, "push rules look at messages, addresses or file names", "see at "+where+" that commits by Proctor meet them")
	}
	return c.setting(name, forge.Right, "no push rule hinders "+branch, "")
}

// secretVariables: masked, so that no log shows them, and given to a job of the default branch. A group's are not listed here.
func (c *Client) secretVariables(ctx context.Context, names []string, branch string, protected []*gitlab.ProtectedBranch, protectedErr error) forge.Setting {
	const name = "variables"
	list, err := every(ctx, c, call{what: c.in("list the variables")}, func(page gitlab.ListOptions, opt gitlab.RequestOptionFunc) ([]*gitlab.ProjectVariable, *gitlab.Response, error) {
		opts := gitlab.ListProjectVariablesOptions(page)
		return c.api.ProjectVariables.ListVariables(c.project, &opts, opt)
	})
	if err != nil {
		return c.unseen(name, err, "see "+variables+": "+strings.Join(names, " and ")+" have to be there, masked")
	}
	onProtected := slices.ContainsFunc(protected, func(b *gitlab.ProtectedBranch) bool { return covers(b.Name, branch) })
	var missing []string
	for _, want := range names {
		i := slices.IndexFunc(list, func(v *gitlab.ProjectVariable) bool { return v.Key == want })
		switch {
		case i < 0:
			missing = append(missing, want)
		case !list[i].Masked:
			return c.setting(name, forge.Wrong, want+" is not masked: a job's log can show it", "edit "+want+" and choose \"Masked\" at "+variables)
		case list[i].Protected && protectedErr == nil && !onProtected:
			return c.setting(name, forge.Wrong, want+" is protected and the branch "+branch+" is not, so that no job gets it", "protect "+branch+" at {web}/-/settings/repository → Protected branches")
		case list[i].EnvironmentScope != "" && list[i].EnvironmentScope != "*":
			return c.setting(name, forge.Wrong, want+" is given to the environment "+forge.Said(list[i].EnvironmentScope)+" alone, and the job has none", "edit "+want+" and choose the environment \"All\" at "+variables)
		}
	}
	if len(missing) > 0 {
		return c.setting(name, forge.Doubtful, "the project has no variable "+strings.Join(missing, " and no ")+"; a group of its may", "add what is nowhere at "+variables+", masked and protected")
	}
	return c.setting(name, forge.Right, strings.Join(names, " and ")+" are there, masked", "")
}

// Startable asks to start a pipeline on a branch that is not there: nothing can come of it, and how GitLab refuses tells whether the
// token may. Nil: it may.
func (c *Client) Startable(ctx context.Context, _, branch string) error {
	api := *c
	api.trigger = ""
	err := api.Dispatch(ctx, "", branch, map[string]string{"issue": "0"})
	var e *forge.Error
	if errors.As(err, &e) && e.Status == http.StatusBadRequest && strings.Contains(strings.ToLower(e.Said), "reference not found") {
		return nil
	}
	return err
}
