package github

import (
	"context"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

// maxListPages bounds a look at all open pull requests.
const maxListPages = 10

// OpenPulls implements forge.PullCounter. A fork's branch of such a name does not count.
func (c *Client) OpenPulls(ctx context.Context, prefix string) ([]string, error) {
	k := call{what: c.in("count the open pull requests"), needs: permPullsRead}
	var out []string
	err := pages(ctx, c, k, maxListPages, func(ctx context.Context, at github.ListOptions) ([]*github.PullRequest, *github.Response, error) {
		return c.api.PullRequests.List(ctx, c.owner, c.repo, &github.PullRequestListOptions{State: "open", ListOptions: at})
	}, func(page []*github.PullRequest) bool {
		for _, p := range page {
			if ref := p.GetHead().GetRef(); strings.HasPrefix(ref, prefix) && p.GetHead().GetRepo().GetID() == p.GetBase().GetRepo().GetID() {
				out = append(out, ref)
			}
		}
		return false
	})
	return out, err
}

// Labelled implements forge.LabelLister.
func (c *Client) Labelled(ctx context.Context, label string) ([]forge.Issue, error) {
	k := call{what: c.in("list the issues labelled " + label), needs: permIssuesRead}
	opt := &github.IssueListByRepoOptions{State: "open", Labels: []string{label}, Sort: "created", Direction: "asc", ListOptions: github.ListOptions{PerPage: perPage}}
	var page []*github.Issue
	err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
		page, resp, err = c.api.Issues.ListByRepo(ctx, c.owner, c.repo, opt)
		return resp, err
	})
	if err != nil {
		return nil, err
	}
	var out []forge.Issue
	for _, is := range page {
		if !is.IsPullRequest() {
			out = append(out, issue(is))
		}
	}
	return out, nil
}
