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
	opt := &github.PullRequestListOptions{State: "open", ListOptions: github.ListOptions{Page: 1, PerPage: perPage}}
	var out []string
	for range maxListPages {
		var page []*github.PullRequest
		next := 0
		err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
			page, resp, err = c.api.PullRequests.List(ctx, c.owner, c.repo, opt)
			if err == nil {
				next = resp.NextPage
			}
			return resp, err
		})
		if err != nil {
			return nil, err
		}
		for _, p := range page {
			if ref := p.GetHead().GetRef(); strings.HasPrefix(ref, prefix) && p.GetHead().GetRepo().GetID() == p.GetBase().GetRepo().GetID() {
				out = append(out, ref)
			}
		}
		if opt.Page = next; next == 0 {
			break
		}
	}
	return out, nil
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
