package github

import (
	"context"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

var _ forge.Checker = (*Client)(nil)

// SetCheck makes a check run that has ended. After a lost answer it looks for one of the same run first.
func (c *Client) SetCheck(ctx context.Context, check forge.Check) error {
	k := call{what: c.in("write the check on " + check.Commit), needs: permChecks, missing: "check that the commit was pushed"}
	opt := github.CreateCheckRunOptions{
		Name: forge.CheckName, HeadSHA: check.Commit, ExternalID: &check.Run, Status: github.String("completed"), Conclusion: github.String(string(check.Conclusion)),
		StartedAt: stamp(check.Started), CompletedAt: stamp(check.Ended), Output: &github.CheckRunOutput{Title: &check.Title, Summary: &check.Summary},
	}
	if check.URL != "" {
		opt.DetailsURL = &check.URL
	}
	return c.do(ctx, k, func(ctx context.Context, attempt int) (*github.Response, error) {
		if attempt > 0 {
			if made, resp, err := c.checkOf(ctx, check); made || err != nil {
				return resp, err
			}
		}
		_, resp, err := c.api.Checks.CreateCheckRun(ctx, c.owner, c.repo, opt)
		return resp, err
	})
}

// checkOf looks among the newest check runs of that name on the commit.
func (c *Client) checkOf(ctx context.Context, check forge.Check) (bool, *github.Response, error) {
	list, resp, err := c.api.Checks.ListCheckRunsForRef(ctx, c.owner, c.repo, check.Commit, &github.ListCheckRunsOptions{
		CheckName: github.String(forge.CheckName), Filter: github.String("all"), ListOptions: github.ListOptions{Page: 1, PerPage: perPage}})
	if err != nil {
		return false, resp, err
	}
	for _, r := range list.CheckRuns {
		if r.GetExternalID() == check.Run {
			return true, resp, nil
		}
	}
	return false, resp, nil
}

func stamp(t time.Time) *github.Timestamp {
	if t.IsZero() {
		return nil
	}
	return &github.Timestamp{Time: t.UTC().Truncate(time.Second)}
}
