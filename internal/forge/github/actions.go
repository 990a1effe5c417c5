package github

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/wire"
)

// Dispatch starts the workflow once. It is sent again only when the forge surely did not take it: a
// rate limit, or no connection. After ErrUnavailable ask FindRun before trying again.
func (c *Client) Dispatch(ctx context.Context, file, ref string, inputs map[string]string) error {
	file = path.Base(file)
	k := call{what: c.in("start workflow " + file + " on " + ref), needs: permActions, safety: wire.Once, workflow: file, base: ref}
	if err := inputsFit(k, inputs); err != nil {
		return err
	}
	event := github.CreateWorkflowDispatchEventRequest{Ref: ref, Inputs: make(map[string]any, len(inputs))}
	for name, value := range inputs {
		event.Inputs[name] = value
	}
	return c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
		return c.api.Actions.CreateWorkflowDispatchEventByFileName(ctx, c.owner, c.repo, segment(file), event)
	})
}

func inputsFit(k call, inputs map[string]string) error {
	size := 0
	for name, value := range inputs {
		size += len(name) + len(value)
	}
	if len(inputs) <= maxInputs && size <= maxInputBytes {
		return nil
	}
	return &forge.Error{Op: k.what, Kind: forge.ErrTooLarge,
		Said: fmt.Sprintf("%d inputs of %d bytes; %d inputs and %d bytes are allowed", len(inputs), size, maxInputs, maxInputBytes),
		Next: "pass ids and hashes only; the run reads the text itself"}
}

// FindRun looks among the branch's dispatched runs created since for one whose title carries the correlation id
// as a word. "The newest run" is not an answer: two dispatches within a second come back in any order.
func (c *Client) FindRun(ctx context.Context, file, branch, correlation string, since time.Time) (forge.Run, error) {
	file = path.Base(file)
	k := call{what: c.in("look for run " + correlation + " of workflow " + file), needs: permActionsRead, workflow: file}
	var found *github.WorkflowRun
	err := pages(ctx, c, k, 0, func(ctx context.Context, at github.ListOptions) ([]*github.WorkflowRun, *github.Response, error) {
		runs, resp, err := c.api.Actions.ListWorkflowRunsByFileName(ctx, c.owner, c.repo, segment(file), &github.ListWorkflowRunsOptions{
			Event: "workflow_dispatch", Created: ">=" + since.UTC().Format(time.RFC3339), ListOptions: at,
		})
		return listed(runs), resp, err
	}, func(runs []*github.WorkflowRun) bool {
		i := slices.IndexFunc(runs, func(r *github.WorkflowRun) bool {
			return r.GetHeadBranch() == branch && hasWord(r.GetDisplayTitle(), correlation)
		})
		if i >= 0 {
			found = runs[i]
		}
		return i >= 0
	})
	switch {
	case err != nil:
		return forge.Run{}, err
	case found == nil:
		return forge.Run{}, &forge.Error{Op: k.what, Kind: forge.ErrNotFound, Said: "no run carries this id"}
	}
	return run(found), nil
}

func listed(runs *github.WorkflowRuns) []*github.WorkflowRun {
	if runs == nil {
		return nil
	}
	return runs.WorkflowRuns
}

func hasWord(title, word string) bool {
	for _, w := range strings.Fields(title) {
		if w == word {
			return true
		}
	}
	return false
}

func run(r *github.WorkflowRun) forge.Run {
	status := r.GetStatus()
	switch status {
	case "completed":
	case "in_progress":
		status = "running"
	default: // queued, requested, waiting, pending
		status = "queued"
	}
	return forge.Run{
		ID: r.GetID(), Title: r.GetDisplayTitle(), Status: status, Conclusion: r.GetConclusion(),
		Ref: r.GetHeadBranch(), SHA: r.GetHeadSHA(), URL: r.GetHTMLURL(), CreatedAt: r.GetCreatedAt().Time,
	}
}
