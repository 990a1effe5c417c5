package trigger

// glPipeline is what a Pipeline Hook tells of the pipeline. Its variables are those that it was started with.
// https://docs.gitlab.com/user/project/integrations/webhook_events/#pipeline-events
type glPipeline struct {
	Pipeline struct {
		ID        int64  `json:"id"`
		Ref       string `json:"ref"`
		SHA       string `json:"sha"`
		Tag       bool   `json:"tag"`
		Source    string `json:"source"`
		Status    string `json:"status"`
		Variables []struct {
			Key   string `json:"key"`
			Value string `json:"value"`
		} `json:"variables"`
	} `json:"object_attributes"`
	MergeRequest struct {
		SourceBranch    string `json:"source_branch"`
		SourceProjectID int64  `json:"source_project_id"`
		TargetProjectID int64  `json:"target_project_id"`
	} `json:"merge_request"`
}

// gitlabPipeline is githubRun: a push and a merge request can bring the variable of a run of ours along, so that only a trigger's pipelines
// and the API's count.
func gitlabPipeline(t Trigger, body []byte) (Trigger, error) {
	var e glPipeline
	if err := decode(body, &e); err != nil {
		return Trigger{}, err
	}
	p := e.Pipeline
	var id string
	for _, v := range p.Variables {
		if found, ok := FindID(v.Value); v.Key == "PROCTOR_ID" && ok && found == v.Value {
			id = found
		}
	}
	if id == "" || p.Tag || p.Source != "trigger" && p.Source != "api" {
		return gitlabFailed(t, e)
	}
	t.Kind, t.ID, t.Action = KindRun, id, p.Status
	t.Run = &RunRef{ID: p.ID, Branch: p.Ref}
	t.Run.Status, t.Run.Conclusion = pipelineState(p.Status)
	return t, nil
}

// pipelineState is a pipeline's status in GitHub's words.
func pipelineState(s string) (status, conclusion string) {
	switch s {
	case "success":
		return "completed", "success"
	case "failed":
		return "completed", "failure"
	case "canceled":
		return "completed", "cancelled"
	case "skipped":
		return "completed", "skipped"
	case "running", "canceling":
		return "in_progress", ""
	}
	return "queued", "" // created, waiting_for_resource, preparing, pending, manual, scheduled
}
