package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/wire"
)

var _ forge.JobReader = (*Client)(nil)

// FailedJobs implements forge.JobReader. Runs that a person or a review started are left out: ours are among them.
func (c *Client) FailedJobs(ctx context.Context, of forge.Tip) ([]forge.FailedJob, error) {
	runs, err := c.runsOf(ctx, of)
	if err != nil {
		return nil, err
	}
	var out []forge.FailedJob
	seen := map[string]bool{} // a workflow's newest run counts; they are listed newest first
	for _, r := range runs {
		key := r.GetName() + " " + r.GetEvent()
		if !slices.Contains([]string{"push", "pull_request"}, r.GetEvent()) || seen[key] {
			continue
		}
		seen[key] = true
		if r.GetConclusion() == "failure" || r.GetConclusion() == "timed_out" {
			if out, err = c.failedOf(ctx, r, out); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// runsOf are the runs that this repository's own branch started, newest first. GitHub lists a fork's pull request among the runs of
// the repository it asks, with the same commit and, if its author likes, the same branch name; all pages that GitHub gives of
// one question are read, a thousand runs, so that a few of such cannot push ours out of sight.
func (c *Client) runsOf(ctx context.Context, of forge.Tip) ([]*github.WorkflowRun, error) {
	k := call{what: c.in("look how CI went for " + of.Commit), needs: permActionsRead}
	var out []*github.WorkflowRun
	err := pages(ctx, c, k, maxListPages, func(ctx context.Context, at github.ListOptions) ([]*github.WorkflowRun, *github.Response, error) {
		runs, resp, err := c.api.Actions.ListRepositoryWorkflowRuns(ctx, c.owner, c.repo, &github.ListWorkflowRunsOptions{
			HeadSHA: of.Commit, Branch: of.Branch, ListOptions: at,
		})
		return listed(runs), resp, err
	}, func(runs []*github.WorkflowRun) bool {
		for _, r := range runs {
			if head := r.GetHeadRepository().GetID(); head != 0 && head == r.GetRepository().GetID() && r.GetHeadBranch() == of.Branch {
				out = append(out, r)
			}
		}
		return false
	})
	return out, err
}

// failedOf adds the failed jobs of one run.
func (c *Client) failedOf(ctx context.Context, r *github.WorkflowRun, out []forge.FailedJob) ([]forge.FailedJob, error) {
	k := call{what: c.in(fmt.Sprintf("list the jobs of run %d", r.GetID())), needs: permActionsRead}
	var jobs *github.Jobs
	err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
		jobs, resp, err = c.api.Actions.ListWorkflowJobs(ctx, c.owner, c.repo, r.GetID(), &github.ListWorkflowJobsOptions{ListOptions: github.ListOptions{PerPage: perPage}})
		return resp, err
	})
	if err != nil {
		return nil, err
	}
	for _, j := range jobs.Jobs {
		if len(out) == forge.MaxFailedJobs || j.GetConclusion() != "failure" && j.GetConclusion() != "timed_out" {
			continue
		}
		log, err := c.jobLog(ctx, j.GetID())
		if err != nil {
			return nil, err
		}
		out = append(out, forge.FailedJob{Name: r.GetName() + " / " + j.GetName(), Log: log})
	}
	return out, nil
}

// jobLog follows the API to where the log lies, another host as a rule, which is asked without the token.
func (c *Client) jobLog(ctx context.Context, id int64) ([]byte, error) {
	k := call{what: c.in(fmt.Sprintf("read the log of job %d", id)), needs: permActionsRead}
	var log []byte
	err := c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
		at, resp, err := c.api.Actions.GetWorkflowJobLogs(ctx, c.owner, c.repo, id, 0)
		if err != nil {
			return resp, err
		}
		log, err = c.fetchLog(ctx, at.String())
		return resp, err
	})
	if errors.Is(err, forge.ErrNotFound) {
		return nil, nil // it is too old, or the job never got a runner
	}
	return log, err
}

func (c *Client) fetchLog(ctx context.Context, at string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.plain.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the log's host answered %s", resp.Status)
	}
	return wire.Tail(resp.Body, forge.MaxJobLog)
}
