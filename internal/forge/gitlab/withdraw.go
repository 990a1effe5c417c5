package gitlab

import (
	"context"
	"errors"
	"net/http"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
)

var _ forge.Withdrawer = (*Client)(nil)

// ClosePullRequest implements forge.Withdrawer. GitLab refuses to close what is closed, so that the state is looked at.
func (c *Client) ClosePullRequest(ctx context.Context, number int) error {
	k := call{what: c.in("close merge request !" + hash(number)[1:]), missing: "check the merge request number"}
	return c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		now, resp, err := c.api.MergeRequests.GetMergeRequest(c.project, number, nil, opt)
		if err != nil || now.State != "opened" {
			return resp, err
		}
		_, resp, err = c.api.MergeRequests.UpdateMergeRequest(c.project, number, &gitlab.UpdateMergeRequestOptions{StateEvent: gitlab.Ptr("close")}, opt)
		return resp, err
	})
}

// DeleteBranch implements forge.Withdrawer. The API deletes whatever is there, so that the branch is looked at first.
func (c *Client) DeleteBranch(ctx context.Context, name, commit string) error {
	k := call{what: c.in("delete branch " + name), head: name}
	now, err := c.Branch(ctx, name)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return nil
	case err != nil:
		return err
	case now != commit:
		return &forge.Error{Op: k.what, Kind: forge.ErrConflict, Said: "it points at " + now + " now", Next: "look at " + c.web() + "/-/tree/" + name + ", and delete the branch by hand if nobody needs it"}
	}
	return c.do(ctx, k, func(attempt int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		resp, err := c.api.Branches.DeleteBranch(c.project, name, opt)
		if attempt > 0 && resp != nil && resp.StatusCode == http.StatusNotFound { // the answer to the first was lost
			return resp, nil
		}
		return resp, err
	})
}
