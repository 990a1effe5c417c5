package gitlab

import (
	"context"
	"errors"
	"fmt"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/wire"
)

var _ forge.JobReader = (*Client)(nil)

// FailedJobs implements forge.JobReader by the newest pipeline that a push or a merge request started for the commit. A fork's
// merge request of the same commit can have its pipeline in this project; its ref bears that request's number.
// https://docs.gitlab.com/ci/pipelines/merge_request_pipelines/#run-pipelines-in-the-parent-project
func (c *Client) FailedJobs(ctx context.Context, of forge.Tip) ([]forge.FailedJob, error) {
	k := call{what: c.in("look how CI went for " + of.Commit)}
	all, err := every(ctx, c, k, func(page gitlab.ListOptions, opt gitlab.RequestOptionFunc) ([]*gitlab.PipelineInfo, *gitlab.Response, error) {
		return c.api.Pipelines.ListProjectPipelines(c.project, &gitlab.ListProjectPipelinesOptions{SHA: &of.Commit, ListOptions: page}, opt)
	})
	if err != nil {
		return nil, err
	}
	started := map[string]string{"push": of.Branch, "merge_request_event": fmt.Sprintf("refs/merge-requests/%d/head", of.Pull)}
	for _, p := range all { // newest first
		if ref := started[p.Source]; ref == "" || p.Ref != ref {
			continue
		}
		if p.Status != "failed" {
			return nil, nil
		}
		return c.failedOf(ctx, p.ID)
	}
	return nil, nil
}

func (c *Client) failedOf(ctx context.Context, pipeline int) ([]forge.FailedJob, error) {
	k := call{what: c.in(fmt.Sprintf("list the jobs of pipeline %d", pipeline))}
	var jobs []*gitlab.Job
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		jobs, resp, err = c.api.Jobs.ListPipelineJobs(c.project, pipeline, &gitlab.ListJobsOptions{Scope: &[]gitlab.BuildStateValue{gitlab.Failed}, ListOptions: gitlab.ListOptions{PerPage: perPage}}, opt)
		return resp, err
	})
	if err != nil {
		return nil, err
	}
	var out []forge.FailedJob
	for _, j := range jobs {
		if len(out) == forge.MaxFailedJobs || j.AllowFailure {
			continue
		}
		log, err := c.trace(ctx, j.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, forge.FailedJob{Name: j.Stage + " / " + j.Name, Log: log})
	}
	return out, nil
}

func (c *Client) trace(ctx context.Context, job int) ([]byte, error) {
	k := call{what: c.in(fmt.Sprintf("read the log of job %d", job))}
	var log []byte
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		r, resp, err := c.api.Jobs.GetTraceFile(c.project, job, opt)
		if err != nil {
			return resp, err
		}
		log, err = wire.Tail(r, forge.MaxJobLog)
		return resp, err
	})
	if errors.Is(err, forge.ErrNotFound) {
		return nil, nil // it was erased
	}
	return log, err
}
