package gitlab

import (
	"context"
	"errors"
	"strings"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
)

// FindPullRequest is the open merge request from head, a branch of this project.
func (c *Client) FindPullRequest(ctx context.Context, head string) (forge.PullRequest, error) {
	k := call{what: c.in("look for the merge request of branch " + head)}
	var found *gitlab.MergeRequest
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		found, resp, err = c.openMerge(head, "", opt)
		return resp, err
	})
	if err != nil {
		return forge.PullRequest{}, err
	}
	if found == nil {
		return forge.PullRequest{}, &forge.Error{Op: k.what, Kind: forge.ErrNotFound, Said: "there is no open merge request from this branch"}
	}
	return merge(found), nil
}

func (c *Client) openMerge(head, base string, opt gitlab.RequestOptionFunc) (*gitlab.MergeRequest, *gitlab.Response, error) {
	o := &gitlab.ListProjectMergeRequestsOptions{State: gitlab.Ptr("opened"), SourceBranch: &head,
		ListOptions: gitlab.ListOptions{Page: 1, PerPage: perPage}}
	if base != "" {
		o.TargetBranch = &base
	}
	var resp *gitlab.Response
	for o.Page != 0 {
		page, r, err := c.api.MergeRequests.ListProjectMergeRequests(c.project, o, opt)
		if err != nil {
			return nil, r, err
		}
		for _, m := range page {
			if m.SourceBranch == head && m.SourceProjectID == m.TargetProjectID {
				return m, r, nil
			}
		}
		resp, o.Page = r, r.NextPage
	}
	return nil, resp, nil
}

// CreatePullRequest opens a draft, which on GitLab is a title that begins with "Draft: ". When one is
// open from the head to the base already it is returned as it is.
func (c *Client) CreatePullRequest(ctx context.Context, n forge.NewPullRequest) (forge.PullRequest, error) {
	k := call{what: c.in("create merge request from " + n.Head), head: n.Head, base: n.Base}
	title := draftPrefix + n.Title
	if err := errors.Join(fits(k, "description", n.Body, maxDescription), fits(k, "title", title, maxTitle)); err != nil {
		return forge.PullRequest{}, err
	}
	if c.job {
		return forge.PullRequest{}, &forge.Error{Op: k.what, Kind: forge.ErrPullRequestsForbidden,
			Said: "CI_JOB_TOKEN cannot open merge requests", Next: c.fill(projectToken+"; "+byHand, k)}
	}
	var m *gitlab.MergeRequest
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		if m, resp, err = c.openMerge(n.Head, n.Base, opt); m != nil || err != nil {
			return resp, err
		}
		m, resp, err = c.api.MergeRequests.CreateMergeRequest(c.project, &gitlab.CreateMergeRequestOptions{
			Title: &title, Description: &n.Body, SourceBranch: &n.Head, TargetBranch: &n.Base,
		}, opt)
		return resp, err
	})
	if errors.Is(err, forge.ErrConflict) {
		return c.FindPullRequest(ctx, n.Head)
	}
	if err != nil {
		return forge.PullRequest{}, err
	}
	return merge(m), nil
}

// UpdatePullRequest changes title and description. A new title keeps the draft state, which is part of it.
func (c *Client) UpdatePullRequest(ctx context.Context, number int, e forge.PullRequestEdit) (forge.PullRequest, error) {
	k := call{what: c.in("update merge request !" + hash(number)[1:]), missing: "check the merge request number (the iid in its URL)"}
	if e.Body != nil {
		if err := fits(k, "description", *e.Body, maxDescription); err != nil {
			return forge.PullRequest{}, err
		}
	}
	var m *gitlab.MergeRequest
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		o := &gitlab.UpdateMergeRequestOptions{Description: e.Body}
		if e.Title != nil {
			now, resp, err := c.api.MergeRequests.GetMergeRequest(c.project, number, nil, opt)
			if err != nil {
				return resp, err
			}
			title := *e.Title
			if now.Draft {
				title = draftPrefix + title
			}
			if err := fits(k, "title", title, maxTitle); err != nil {
				return resp, err
			}
			o.Title = &title
		}
		var resp *gitlab.Response
		var err error
		m, resp, err = c.api.MergeRequests.UpdateMergeRequest(c.project, number, o, opt)
		return resp, err
	})
	if err != nil {
		return forge.PullRequest{}, err
	}
	return merge(m), nil
}

// AddLabelsToPullRequest labels a merge request.
func (c *Client) AddLabelsToPullRequest(ctx context.Context, number int, names []string) error {
	if len(names) == 0 {
		return nil
	}
	k := call{what: c.in("label merge request !" + hash(number)[1:]), missing: "check the merge request number"}
	return c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		_, resp, err := c.api.MergeRequests.UpdateMergeRequest(c.project, number, &gitlab.UpdateMergeRequestOptions{AddLabels: labels(names)}, opt)
		return resp, err
	})
}

// RequestReviewers of a merge request. GitLab replaces the list, so the ones there are kept.
func (c *Client) RequestReviewers(ctx context.Context, number int, logins []string) error {
	k := call{what: c.in("ask " + strings.Join(logins, ", ") + " to review !" + hash(number)[1:]), missing: "check the merge request number"}
	ids, err := c.ids(ctx, k, logins)
	if err != nil {
		return err
	}
	return c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		now, resp, err := c.api.MergeRequests.GetMergeRequest(c.project, number, nil, opt)
		if err != nil {
			return resp, err
		}
		all := append([]int(nil), ids...)
		for _, r := range now.Reviewers {
			all = append(all, r.ID)
		}
		_, resp, err = c.api.MergeRequests.UpdateMergeRequest(c.project, number, &gitlab.UpdateMergeRequestOptions{ReviewerIDs: &all}, opt)
		return resp, err
	})
}

// ids of members by login.
func (c *Client) ids(ctx context.Context, k call, logins []string) ([]int, error) {
	var out []int
	for _, login := range logins {
		members, err := every(ctx, c, k, func(page gitlab.ListOptions, opt gitlab.RequestOptionFunc) ([]*gitlab.ProjectMember, *gitlab.Response, error) {
			return c.api.ProjectMembers.ListAllProjectMembers(c.project, &gitlab.ListProjectMembersOptions{ListOptions: page, Query: &login}, opt)
		})
		if err != nil {
			return nil, err
		}
		id := 0
		for _, m := range members {
			if strings.EqualFold(m.Username, login) {
				id = m.ID
			}
		}
		if id == 0 {
			return nil, &forge.Error{Op: k.what, Kind: forge.ErrInvalid, Said: forge.Said(login + " is not a member of the project"),
				Next: c.fill("check the name, or add them at {web}/-/project_members", k)}
		}
		out = append(out, id)
	}
	return out, nil
}

func merge(m *gitlab.MergeRequest) forge.PullRequest {
	out := forge.PullRequest{
		Number: m.IID, URL: m.WebURL, State: state(m.State), Draft: m.Draft, Head: m.SourceBranch, Base: m.TargetBranch,
		HeadSHA: m.SHA, HeadRepoID: int64(m.SourceProjectID), Title: m.Title, Body: m.Description,
	}
	if m.Draft {
		out.Title = strings.TrimPrefix(m.Title, draftPrefix)
	}
	if m.Author != nil {
		out.Author = account(m.Author.ID, m.Author.Username)
	}
	return out
}
