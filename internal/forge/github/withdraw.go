package github

import (
	"context"
	"errors"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

var _ forge.Withdrawer = (*Client)(nil)

// ClosePullRequest implements forge.Withdrawer.
func (c *Client) ClosePullRequest(ctx context.Context, number int) error {
	k := call{what: c.in("close pull request " + hash(number)), needs: permPulls, missing: "check the pull request number"}
	return c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
		_, resp, err := c.api.PullRequests.Edit(ctx, c.owner, c.repo, number, &github.PullRequest{State: github.String("closed")})
		return resp, err
	})
}

// DeleteBranch implements forge.Withdrawer. The API deletes whatever is there, so that the branch is looked at first.
func (c *Client) DeleteBranch(ctx context.Context, name, commit string) error {
	k := call{what: c.in("delete branch " + name), needs: permContents, head: name}
	now, err := c.Branch(ctx, name)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return nil
	case err != nil:
		return err
	case now != commit:
		return &forge.Error{Op: k.what, Kind: forge.ErrConflict, Said: "it points at " + now + " now", Next: "look at " + c.web() + "/tree/" + name + ", and delete the branch by hand if nobody needs it"}
	}
	return c.do(ctx, k, func(ctx context.Context, attempt int) (*github.Response, error) {
		resp, err := c.api.Git.DeleteRef(ctx, c.owner, c.repo, "refs/heads/"+name)
		if attempt > 0 && resp != nil && gone(resp.StatusCode) { // the answer to the first was lost
			return resp, nil
		}
		return resp, err
	})
}

// gone is what GitHub answers to the deletion of a ref that is not there: 422 "Reference does not exist", or 404.
func gone(status int) bool { return status == 422 || status == 404 }
