package gitlab

import (
	"context"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
)

var _ forge.PullReader = (*Client)(nil)

// PullRequest reads one merge request by its iid, open or not.
func (c *Client) PullRequest(ctx context.Context, number int) (forge.PullRequest, error) {
	k := call{what: c.in("read merge request !" + hash(number)[1:]), missing: "check the merge request number (the iid in its URL)"}
	var m *gitlab.MergeRequest
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		m, resp, err = c.api.MergeRequests.GetMergeRequest(c.project, number, nil, opt)
		return resp, err
	})
	if err != nil {
		return forge.PullRequest{}, err
	}
	return merge(m), nil
}
