package gitlab

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/wire"
)

// VariableName is the pipeline variable that carries a dispatch input: "issue" → "PROCTOR_ISSUE",
// "proctor_id" → "PROCTOR_ID".
func VariableName(input string) string {
	name := strings.ToUpper(strings.ReplaceAll(input, "-", "_"))
	if !strings.HasPrefix(name, "PROCTOR_") {
		name = "PROCTOR_" + name
	}
	return name
}

// maxInputBytes keeps a pipeline's variables to ids and hashes, as on GitHub.
const maxInputBytes = 65535

// groupVariable is what the template puts behind the number in the name of the resource group; unset in a run's pipeline.
const groupVariable = "PROCTOR_GROUP"

// Dispatch starts a pipeline on ref with the inputs as variables. file is not used: a project has one
// .gitlab-ci.yml. It is sent again only when the forge surely did not take it.
func (c *Client) Dispatch(ctx context.Context, _, ref string, inputs map[string]string) error {
	k := call{what: c.in("start a pipeline on " + ref), safety: wire.Once, base: ref, missing: "check the branch and that the trigger token is this project's"}
	vars := make(map[string]string, len(inputs)+1)
	if asked, err := url.ParseQuery(inputs["request"]); err == nil && asked.Get("command") != "" {
		// A comment's pipeline has a resource group of its own: "stop" must not wait for the run that it stops, nor "verify" for any.
		vars[groupVariable] = "-" + inputs["proctor_id"]
	}
	size := 0
	for name, value := range inputs {
		vars[VariableName(name)] = value
		size += len(name) + len(value)
	}
	if size > maxInputBytes {
		return &forge.Error{Op: k.what, Kind: forge.ErrTooLarge, Said: fmt.Sprintf("%d bytes of inputs, %d are allowed", size, maxInputBytes),
			Next: "pass ids and hashes only; the run reads the text itself"}
	}
	return c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		if c.trigger != "" {
			_, resp, err := c.api.PipelineTriggers.RunPipelineTrigger(c.project,
				&gitlab.RunPipelineTriggerOptions{Ref: &ref, Token: &c.trigger, Variables: vars}, opt)
			return resp, err
		}
		var list []*gitlab.PipelineVariableOptions
		for _, name := range slices.Sorted(maps.Keys(vars)) {
			list = append(list, &gitlab.PipelineVariableOptions{Key: gitlab.Ptr(name), Value: gitlab.Ptr(vars[name])})
		}
		_, resp, err := c.api.Pipelines.CreatePipeline(c.project, &gitlab.CreatePipelineOptions{Ref: &ref, Variables: &list}, opt)
		return resp, err
	})
}

// maxCandidates bounds a look for a pipeline: GitLab does not list variables, so that each candidate costs a call.
const maxCandidates = 30

// FindRun looks for a pipeline on branch since that Dispatch can have made and whose PROCTOR_ID variable is correlation: a push can bring
// variables too. It begins with the oldest, among which the one that was asked for at that time is, however many have been started since, and
// gives up after maxCandidates.
func (c *Client) FindRun(ctx context.Context, _, branch, correlation string, since time.Time) (forge.Run, error) {
	k := call{what: c.in("look for pipeline " + correlation)}
	o := &gitlab.ListProjectPipelinesOptions{
		Ref: &branch, UpdatedAfter: &since, OrderBy: gitlab.Ptr("id"), Sort: gitlab.Ptr("asc"), ListOptions: gitlab.ListOptions{Page: 1, PerPage: perPage},
	}
	looks := 0
	for range maxListPages {
		var page []*gitlab.PipelineInfo
		next := 0
		err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
			page, resp, err = c.api.Pipelines.ListProjectPipelines(c.project, o, opt)
			if err == nil {
				next = resp.NextPage
			}
			return resp, err
		})
		if err != nil {
			return forge.Run{}, err
		}
		for _, p := range page {
			if !dispatched(p, branch, since) {
				continue
			}
			if looks++; looks > maxCandidates {
				return forge.Run{}, noPipeline(k, fmt.Sprintf("none of the first %d pipelines since carries this id", maxCandidates))
			}
			switch ours, err := c.carries(ctx, k, p.ID, correlation); {
			case err != nil:
				return forge.Run{}, err
			case ours:
				return run(p, correlation), nil
			}
		}
		if o.Page = next; next == 0 {
			break
		}
	}
	return forge.Run{}, noPipeline(k, "no pipeline carries this id")
}

// DispatchedRun implements forge.RunReader.
func (c *Client) DispatchedRun(ctx context.Context, id int64, branch, correlation string, since time.Time) (forge.Run, error) {
	k := call{what: c.in(fmt.Sprintf("read pipeline %d", id)), missing: "the pipeline was deleted"}
	var p *gitlab.Pipeline
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		p, resp, err = c.api.Pipelines.GetPipeline(c.project, int(id), opt)
		return resp, err
	})
	if err != nil {
		return forge.Run{}, err
	}
	info := &gitlab.PipelineInfo{ID: p.ID, Status: p.Status, Source: p.Source, Ref: p.Ref, SHA: p.SHA, WebURL: p.WebURL, CreatedAt: p.CreatedAt}
	if p.Tag || !dispatched(info, branch, since) {
		return forge.Run{}, noPipeline(k, "it was not dispatched on this branch")
	}
	switch ours, err := c.carries(ctx, k, p.ID, correlation); {
	case err != nil:
		return forge.Run{}, err
	case !ours:
		return forge.Run{}, noPipeline(k, "it does not carry this id")
	}
	return run(info, correlation), nil
}

func noPipeline(k call, said string) error {
	return &forge.Error{Op: k.what, Kind: forge.ErrNotFound, Said: said}
}

// dispatched: Dispatch can have made it.
func dispatched(p *gitlab.PipelineInfo, branch string, since time.Time) bool {
	return !at(p.CreatedAt).Before(since) && p.Ref == branch && (p.Source == "api" || p.Source == "trigger")
}

func (c *Client) carries(ctx context.Context, k call, pipeline int, correlation string) (bool, error) {
	var vars []*gitlab.PipelineVariable
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		vars, resp, err = c.api.Pipelines.GetPipelineVariables(c.project, pipeline, opt)
		return resp, err
	})
	return slices.ContainsFunc(vars, func(v *gitlab.PipelineVariable) bool { return v.Key == "PROCTOR_ID" && v.Value == correlation }), err
}

// run tells a pipeline's state in the words of forge.Run.
func run(p *gitlab.PipelineInfo, title string) forge.Run {
	out := forge.Run{ID: int64(p.ID), Title: title, Ref: p.Ref, SHA: p.SHA, URL: p.WebURL, CreatedAt: at(p.CreatedAt), Status: "completed"}
	switch p.Status {
	case "success":
		out.Conclusion = "success"
	case "failed":
		out.Conclusion = "failure"
	case "canceled", "skipped":
		out.Conclusion = "cancelled"
	case "running":
		out.Status = "running"
	default: // created, waiting_for_resource, preparing, pending, manual, scheduled
		out.Status = "queued"
	}
	return out
}
