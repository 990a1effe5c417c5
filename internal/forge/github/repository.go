package github

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

// Repository as it is now. A renamed one answers under its new name.
func (c *Client) Repository(ctx context.Context) (forge.Repository, error) {
	var r *github.Repository
	err := c.do(ctx, call{what: "read repository " + c.owner + "/" + c.repo, needs: permMetadata},
		func(ctx context.Context, _ int) (resp *github.Response, err error) {
			r, resp, err = c.api.Repositories.Get(ctx, c.owner, c.repo)
			return resp, err
		})
	if err != nil {
		return forge.Repository{}, err
	}
	return forge.Repository{
		Owner: r.GetOwner().GetLogin(), Name: r.GetName(), ID: r.GetID(), DefaultBranch: r.GetDefaultBranch(),
		Private: r.GetPrivate(), Archived: r.GetArchived(), WebURL: r.GetHTMLURL(), CloneURL: r.GetCloneURL(),
	}, nil
}

// Role of login, from the permission API: the payload's author_association is not a permission.
func (c *Client) Role(ctx context.Context, login string) (forge.Role, error) {
	var p *github.RepositoryPermissionLevel
	err := c.do(ctx, call{what: c.in("read the role of " + login), needs: permMetadata},
		func(ctx context.Context, _ int) (resp *github.Response, err error) {
			p, resp, err = c.api.Repositories.GetPermissionLevel(ctx, c.owner, c.repo, segment(login))
			return resp, err
		})
	if errors.Is(err, forge.ErrNotFound) {
		// An account that does not exist and a repository the token cannot see answer alike.
		if _, err := c.Repository(ctx); err != nil {
			return forge.RoleNone, err
		}
		return forge.RoleNone, nil
	}
	if err != nil {
		return forge.RoleNone, err
	}
	return role(p.GetRoleName(), p.GetPermission()), nil
}

// role prefers the exact name; an organisation's custom role falls back to the base permission it
// builds on, and an unknown word is no role.
func role(name, permission string) forge.Role {
	for _, word := range []string{name, permission} {
		switch r := forge.Role(word); r {
		case forge.RoleNone, forge.RoleRead, forge.RoleTriage, forge.RoleWrite, forge.RoleMaintain, forge.RoleAdmin:
			return r
		}
	}
	return forge.RoleNone
}

// Branch is the commit of refs/heads/name. The branches API follows a rename of the branch; the ref API does not, and the
// caller asked for this name.
func (c *Client) Branch(ctx context.Context, name string) (string, error) {
	var ref *github.Reference
	err := c.do(ctx, call{what: c.in("read branch " + name), needs: permContentsRead, missing: "check the branch name"},
		func(ctx context.Context, _ int) (resp *github.Response, err error) {
			ref, resp, err = c.api.Git.GetRef(ctx, c.owner, c.repo, "heads/"+name)
			return resp, err
		})
	var fe *forge.Error
	if errors.As(err, &fe) && fe.Status == http.StatusConflict { // "Git Repository is empty."
		fe.Kind = forge.ErrNotFound
	}
	if err != nil {
		return "", err
	}
	return ref.GetObject().GetSHA(), nil
}

// Self is the account of a user's token; an installation's or a job's token is asked by GraphQL, since /user refuses those.
func (c *Client) Self(ctx context.Context) (forge.User, error) {
	var u *github.User
	err := c.do(ctx, call{what: "read the token's account"},
		func(ctx context.Context, _ int) (resp *github.Response, err error) {
			u, resp, err = c.api.Users.Get(ctx, "")
			return resp, err
		})
	if errors.Is(err, forge.ErrForbidden) || errors.Is(err, forge.ErrNotFound) {
		return c.viewer(ctx)
	}
	if err != nil {
		return forge.User{}, err
	}
	return user(u), nil
}

func (c *Client) viewer(ctx context.Context) (forge.User, error) {
	var out struct {
		Data struct {
			Viewer struct {
				Login      string `json:"login"`
				DatabaseID int64  `json:"databaseId"`
			} `json:"viewer"`
		} `json:"data"`
	}
	k := call{what: "read the token's account"}
	err := c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
		req, err := c.api.NewRequest(http.MethodPost, c.graphql, map[string]string{"query": "{viewer{login databaseId}}"})
		if err != nil {
			return nil, err
		}
		return c.api.Do(ctx, req, &out)
	})
	v := out.Data.Viewer
	if errors.Is(err, forge.ErrForbidden) || (err == nil && v.Login == "") {
		return forge.User{}, &forge.Error{Op: k.what, Kind: forge.ErrNotFound, Said: "this kind of token has no account of its own"}
	}
	if err != nil {
		return forge.User{}, err
	}
	return forge.User{Login: v.Login, ID: v.DatabaseID, Bot: isBot(v.Login, "")}, nil
}

func user(u *github.User) forge.User {
	return forge.User{Login: u.GetLogin(), ID: u.GetID(), Bot: isBot(u.GetLogin(), u.GetType())}
}

func isBot(login, kind string) bool {
	const suffix = "[bot]"
	return kind == "Bot" || len(login) > len(suffix) && login[len(login)-len(suffix):] == suffix
}
