package gitlab

import (
	"context"
	"fmt"
	"maps"
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

// Dispatch starts a pipeline on ref with the inputs as variables. file is not used: a project has one
// .gitlab-ci.yml. It is sent again only when the forge surely did not take it.
func (c *Client) Dispatch(ctx context.Context, _, ref string, inputs map[string]string) error {
	k := call{what: c.in("start a pipeline on " + ref), safety: wire.Once, base: ref, missing: "check the branch and that the trigger token is this project's"}
	vars := make(map[string]string, len(inputs))
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

// FindRun looks for a pipeline on branch since that Dispatch can have made and whose PROCTOR_ID variable is correlation: a push can bring
// variables too. GitLab does not list
// variables, so each candidate costs one call; the time bounds them.
func (c *Client) FindRun(ctx context.Context, _, branch, correlation string, since time.Time) (forge.Run, error) {
	k := call{what: c.in("look for pipeline " + correlation)}
	pipelines, err := every(ctx, c, k, func(page gitlab.ListOptions, opt gitlab.RequestOptionFunc) ([]*gitlab.PipelineInfo, *gitlab.Response, error) {
		return c.api.Pipelines.ListProjectPipelines(c.project, &gitlab.ListProjectPipelinesOptions{ListOptions: page, Ref: &branch, UpdatedAfter: &since}, opt)
	})
	if err != nil {
		return forge.Run{}, err
	}
	for _, p := range pipelines {
		if at(p.CreatedAt).Before(since) || p.Ref != branch || p.Source != "api" && p.Source != "trigger" {
			continue
		}
		var vars []*gitlab.PipelineVariable
		err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
			vars, resp, err = c.api.Pipelines.GetPipelineVariables(c.project, p.ID, opt)
			return resp, err
		})
		if err != nil {
			return forge.Run{}, err
		}
		if slices.ContainsFunc(vars, func(v *gitlab.PipelineVariable) bool { return v.Key == "PROCTOR_ID" && v.Value == correlation }) {
			return run(p, correlation), nil
		}
	}
	return forge.Run{}, &forge.Error{Op: k.what, Kind: forge.ErrNotFound, Said: "no pipeline carries this id"}
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
