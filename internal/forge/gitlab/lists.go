package gitlab

import (
	"context"
	"strings"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
)

// maxListPages bounds a look at all open merge requests.
const maxListPages = 10

// OpenPulls implements forge.PullCounter. A fork's branch of such a name does not count.
func (c *Client) OpenPulls(ctx context.Context, prefix string) ([]string, error) {
	k := call{what: c.in("count the open merge requests")}
	o := &gitlab.ListProjectMergeRequestsOptions{State: gitlab.Ptr("opened"), ListOptions: gitlab.ListOptions{Page: 1, PerPage: perPage}}
	var out []string
	for range maxListPages {
		var page []*gitlab.MergeRequest
		next := 0
		err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
			page, resp, err = c.api.MergeRequests.ListProjectMergeRequests(c.project, o, opt)
			if err == nil {
				next = resp.NextPage
			}
			return resp, err
		})
		if err != nil {
			return nil, err
		}
		for _, m := range page {
			if strings.HasPrefix(m.SourceBranch, prefix) && m.SourceProjectID == m.TargetProjectID {
				out = append(out, m.SourceBranch)
			}
		}
		if o.Page = next; next == 0 {
			break
		}
	}
	return out, nil
}

// Labelled implements forge.LabelLister.
func (c *Client) Labelled(ctx context.Context, label string) ([]forge.Issue, error) {
	k := call{what: c.in("list the issues labelled " + label)}
	labels := gitlab.LabelOptions{label}
	o := &gitlab.ListProjectIssuesOptions{State: gitlab.Ptr("opened"), Labels: &labels, OrderBy: gitlab.Ptr("created_at"), Sort: gitlab.Ptr("asc"), ListOptions: gitlab.ListOptions{PerPage: perPage}}
	var page []*gitlab.Issue
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		page, resp, err = c.api.Issues.ListProjectIssues(c.project, o, opt)
		return resp, err
	})
	if err != nil {
		return nil, err
	}
	var out []forge.Issue
	for _, is := range page {
		out = append(out, issue(is))
	}
	return out, nil
}
