package gitlab

import (
	"context"
	"errors"
	"strings"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
)

// Repository is the project as it is now.
func (c *Client) Repository(ctx context.Context) (forge.Repository, error) {
	var p *gitlab.Project
	err := c.do(ctx, call{what: "read project " + c.project}, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		p, resp, err = c.api.Projects.GetProject(c.project, nil, opt)
		return resp, err
	})
	if err != nil {
		return forge.Repository{}, err
	}
	owner, name := c.project, p.Path
	if i := strings.LastIndexByte(p.PathWithNamespace, '/'); i > 0 {
		owner, name = p.PathWithNamespace[:i], p.PathWithNamespace[i+1:]
	}
	return forge.Repository{
		Owner: owner, Name: name, ID: int64(p.ID), DefaultBranch: p.DefaultBranch, Archived: p.Archived,
		Private: p.Visibility != gitlab.PublicVisibility, WebURL: p.WebURL, CloneURL: p.HTTPURLToRepo,
	}, nil
}

// Role of an account, inherited and shared memberships included. One that is not active (blocked,
// awaiting approval) has none.
func (c *Client) Role(ctx context.Context, login string) (forge.Role, error) {
	k := call{what: c.in("read the role of " + login)}
	members, err := every(ctx, c, k, func(page gitlab.ListOptions, opt gitlab.RequestOptionFunc) ([]*gitlab.ProjectMember, *gitlab.Response, error) {
		return c.api.ProjectMembers.ListAllProjectMembers(c.project, &gitlab.ListProjectMembersOptions{ListOptions: page, Query: &login}, opt)
	})
	if err != nil {
		return forge.RoleNone, err
	}
	best := gitlab.NoPermissions
	for _, m := range members { // the query also finds names that contain it
		if strings.EqualFold(m.Username, login) && (m.State == "" || m.State == "active") {
			best = max(best, m.AccessLevel)
		}
	}
	return role(best), nil
}

// role maps GitLab's levels; one between two counts as the lower (Planner, 15, is a guest with issues).
func role(level gitlab.AccessLevelValue) forge.Role {
	switch {
	case level >= gitlab.OwnerPermissions:
		return forge.RoleAdmin
	case level >= gitlab.MaintainerPermissions:
		return forge.RoleMaintain
	case level >= gitlab.DeveloperPermissions:
		return forge.RoleWrite
	case level >= gitlab.ReporterPermissions:
		return forge.RoleTriage
	case level >= gitlab.GuestPermissions:
		return forge.RoleRead
	}
	return forge.RoleNone
}

// Branch is the commit a branch points at.
func (c *Client) Branch(ctx context.Context, name string) (string, error) {
	var b *gitlab.Branch
	k := call{what: c.in("read branch " + name), missing: "check the branch name"}
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		b, resp, err = c.api.Branches.GetBranch(c.project, name, opt)
		return resp, err
	})
	if err != nil {
		return "", err
	}
	return b.Commit.ID, nil
}

// Self is the token's account; a job token is asked for its job's, and one that was lent has none that lasts.
func (c *Client) Self(ctx context.Context) (forge.User, error) {
	var u *gitlab.User
	k := call{what: "read the token's account"}
	if c.lent {
		return forge.User{}, &forge.Error{Op: k.what, Kind: forge.ErrNotFound, Said: "a run's token has an account of its own"}
	}
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		if !c.job {
			u, resp, err = c.api.Users.CurrentUser(opt)
			return resp, err
		}
		j, resp, err := c.api.Jobs.GetJobTokensJob(nil, opt)
		if err == nil {
			u = j.User
		}
		return resp, err
	})
	if errors.Is(err, forge.ErrForbidden) || err == nil && u == nil {
		return forge.User{}, &forge.Error{Op: k.what, Kind: forge.ErrNotFound, Said: "this kind of token has no account of its own"}
	}
	if err != nil {
		return forge.User{}, err
	}
	return forge.User{Login: u.Username, ID: int64(u.ID), Bot: u.Bot}, nil
}
