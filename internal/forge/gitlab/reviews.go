package gitlab

import (
	"context"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
)

var _ forge.ReviewReader = (*Client)(nil)

// decisions are GitLab's states of a reviewer in the words of forge.Review; the others are of somebody who has not decided.
var decisions = map[string]string{"requested_changes": forge.ChangesRequested, "approved": "approved", "reviewed": "commented", "unapproved": "dismissed"}

// Reviews implements forge.ReviewReader. GitLab takes 200 reviewers, and gives them on one page.
// https://docs.gitlab.com/api/merge_requests/#retrieve-merge-request-reviewers
func (c *Client) Reviews(ctx context.Context, number int) (forge.Newest[forge.Review], error) {
	k := call{what: c.in("read the reviewers of !" + hash(number)[1:]), missing: "check the merge request number (the iid in its URL)"}
	var all []*gitlab.MergeRequestReviewer
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		all, resp, err = c.api.MergeRequests.GetMergeRequestReviewers(c.project, number, opt)
		return resp, err
	})
	if err != nil {
		return forge.Newest[forge.Review]{}, err
	}
	var out forge.Newest[forge.Review]
	for _, r := range all {
		if r.User == nil {
			continue
		}
		state, decided := decisions[r.State]
		if !decided {
			state = "pending"
		}
		out.All = append(out.All, forge.Review{ID: int64(r.User.ID), State: state, Author: account(r.User.ID, r.User.Username)})
	}
	return out, nil
}

// Review implements forge.ReviewReader: id is the reviewer's.
func (c *Client) Review(ctx context.Context, number int, id int64) (forge.Review, error) {
	all, err := c.Reviews(ctx, number)
	if err != nil {
		return forge.Review{}, err
	}
	for _, r := range all.All {
		if r.ID == id {
			return r, nil
		}
	}
	return forge.Review{}, &forge.Error{Op: c.in("read a review of !" + hash(number)[1:]), Kind: forge.ErrNotFound,
		Said: "the account is no reviewer of the merge request", Next: "ask for the review again"}
}
