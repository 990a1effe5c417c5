package github

import (
	"context"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

var _ forge.PullReader = (*Client)(nil)

// PullRequest reads one pull request, open or not.
func (c *Client) PullRequest(ctx context.Context, number int) (forge.PullRequest, error) {
	k := call{what: c.in("read pull request " + hash(number)), needs: permPullsRead, missing: "check the pull request number"}
	var p *github.PullRequest
	err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
		p, resp, err = c.api.PullRequests.Get(ctx, c.owner, c.repo, number)
		return resp, err
	})
	if err != nil {
		return forge.PullRequest{}, err
	}
	return pull(p), nil
}
