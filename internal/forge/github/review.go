package github

import (
	"context"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

var _ forge.ReviewReader = (*Client)(nil)

// Reviews implements forge.ReviewReader.
func (c *Client) Reviews(ctx context.Context, number int) (forge.Newest[forge.Review], error) {
	k := call{what: c.in("read the reviews of " + hash(number)), needs: permPullsRead, missing: "check the pull request number"}
	var out forge.Newest[forge.Review]
	err := pages(ctx, c, k, 0, func(ctx context.Context, at github.ListOptions) ([]*github.PullRequestReview, *github.Response, error) {
		page, resp, err := c.api.PullRequests.ListReviews(ctx, c.owner, c.repo, number, &at)
		if err != nil || at.Page > 1 {
			return page, resp, err
		}
		if skip := resp.LastPage - forge.MaxReviews/perPage; skip > 0 { // the newest stand on the last pages
			page, resp.NextPage, out.Cut = nil, skip+1, true
		}
		return page, resp, nil
	}, func(page []*github.PullRequestReview) bool {
		for _, r := range page {
			out.All = append(out.All, review(r))
		}
		return false
	})
	if err != nil {
		return forge.Newest[forge.Review]{}, err
	}
	return out, nil
}

// Review implements forge.ReviewReader.
func (c *Client) Review(ctx context.Context, number int, id int64) (forge.Review, error) {
	k := call{what: c.in("read a review of " + hash(number)), needs: permPullsRead, missing: "the review is gone"}
	var r *github.PullRequestReview
	err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
		r, resp, err = c.api.PullRequests.GetReview(ctx, c.owner, c.repo, number, id)
		return resp, err
	})
	if err != nil {
		return forge.Review{}, err
	}
	return review(r), nil
}

func review(r *github.PullRequestReview) forge.Review {
	return forge.Review{ID: r.GetID(), State: strings.ToLower(r.GetState()), Body: r.GetBody(), Author: user(r.User), At: r.GetSubmittedAt().Time}
}
