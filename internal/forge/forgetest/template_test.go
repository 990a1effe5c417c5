package forgetest

import (
	"os"
	"regexp"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/proctor-ci/proctor/templates"
)

// One run waits in a concurrency group and no more: the next one that joins cancels it. Joining comes before the job's condition.
func TestTheTemplatesRunsAreCancelledByNoOtherLabelAndNoComment(t *testing.T) {
	t.Parallel()
	var workflow struct {
		Concurrency struct {
			Group  string `yaml:"group"`
			Cancel bool   `yaml:"cancel-in-progress"`
		} `yaml:"concurrency"`
	}
	if err := yaml.Unmarshal(templates.GitHubWorkflow, &workflow); err != nil {
		t.Fatal(err)
	}
	if workflow.Concurrency.Cancel {
		t.Error("a new run cancels the one that goes on")
	}
	group := func(run int, event, inputs map[string]any) string {
		t.Helper()
		g, err := expand(workflow.Concurrency.Group, scope{status: "success", contexts: map[string]any{
			"github": map[string]any{"run_id": float64(run), "event": event}, "inputs": inputs,
		}})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	labelled := func(run int, label string) string {
		return group(run, map[string]any{"label": map[string]any{"name": label}, "issue": map[string]any{"number": float64(7)}}, nil)
	}
	const ours = "proctor-7"
	for _, c := range []struct {
		name, got, want string
	}{
		{"the label", labelled(1, "proctor"), ours},
		{"the label again", labelled(2, "Proctor"), ours},
		{"by hand", group(3, nil, map[string]any{"issue": "7"}), ours},
		{"by the webhook for its label", group(4, nil, map[string]any{"issue": "7", "request": "event=5", "proctor_id": "a1"}), ours},
		{"by the webhook for a command", group(5, nil, map[string]any{"issue": "7", "request": "command=stop", "proctor_id": "a2"}), "proctor-a2"},
		{"by the webhook for CI that failed", group(11, nil, map[string]any{"issue": "7", "request": "branch=proctor%2Fissue-7&check=5%40aa", "proctor_id": "a3"}), "proctor-a3"},
		{"another label", labelled(6, "docs"), "proctor-6"},
		{"and another", labelled(8, "bug"), "proctor-8"},
		{"a comment", group(9, map[string]any{"comment": map[string]any{"id": float64(70)}, "issue": map[string]any{"number": float64(7)}}, nil), "proctor-70"},
		{"a goal", group(10, nil, map[string]any{"goal": "x"}), "proctor-10"},
	} {
		if c.got != c.want {
			t.Errorf("%s: group %s, want %s", c.name, c.got, c.want)
		}
	}
}

// The jobs of a split run are one chain: another label starts none, and the last one speaks wherever the one that publishes did not.
func TestTheStagedTemplatesLastJobSpeaksWhereNobodyPublished(t *testing.T) {
	t.Parallel()
	w, err := parseWorkflow(templates.GitHubStaged)
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]job{}
	for _, j := range w.jobs {
		jobs[j.id] = j
		perms, err := w.jobPermissions(j)
		if err != nil {
			t.Fatal(err)
		}
		for scope, level := range perms {
			if level == "write" && (j.id == "agent" || j.id == "verify") {
				t.Errorf("job %s has %s: write", j.id, scope)
			}
		}
	}
	label := func(name string) map[string]any {
		return map[string]any{"event_name": "issues", "event": map[string]any{"label": map[string]any{"name": name}}}
	}
	need := func(result string, outputs map[string]any) map[string]any {
		return map[string]any{"result": result, "outputs": outputs}
	}
	proved, terminal := map[string]any{"commit": "c0ffee"}, map[string]any{"terminal": "done"}
	for _, c := range []struct {
		name, job string
		github    map[string]any
		needs     map[string]any
		status    string
		dry, want bool
	}{
		{name: "our label", job: "agent", github: label("proctor"), want: true},
		{name: "another label", job: "agent", github: label("docs")},
		{name: "a proved commit", job: "verify", needs: map[string]any{"agent": need("success", proved)}, want: true},
		{name: "nothing to do", job: "verify", needs: map[string]any{"agent": need("success", nil)}},
		{name: "both succeeded", job: "publish", needs: map[string]any{"agent": need("success", proved), "verify": need("success", nil)}, want: true},
		{name: "the proof failed", job: "publish", needs: map[string]any{"agent": need("success", proved), "verify": need("failure", nil)}, status: "failure"},
		{name: "published", job: "tell", needs: map[string]any{"agent": need("success", proved), "verify": need("success", nil), "publish": need("success", terminal)}},
		{name: "the publish job told why not", job: "tell", needs: map[string]any{"agent": need("success", proved), "verify": need("success", nil), "publish": need("failure", terminal)}, status: "failure"},
		{name: "nobody approved", job: "tell", needs: map[string]any{"agent": need("success", proved), "verify": need("success", nil), "publish": need("failure", nil)}, status: "failure", want: true},
		{name: "the agent failed", job: "tell", needs: map[string]any{"agent": need("failure", nil), "verify": need("skipped", nil), "publish": need("skipped", nil)}, status: "failure", want: true},
		{name: "it was cancelled", job: "tell", needs: map[string]any{"agent": need("cancelled", nil), "verify": need("skipped", nil), "publish": need("skipped", nil)}, status: "cancelled", want: true},
		{name: "no run at all", job: "tell", needs: map[string]any{"agent": need("skipped", nil), "verify": need("skipped", nil), "publish": need("skipped", nil)}, status: "failure"},
		{name: "a rehearsal", job: "tell", needs: map[string]any{"agent": need("success", nil), "verify": need("skipped", nil), "publish": need("skipped", nil)}, status: "failure", dry: true},
	} {
		if c.github == nil {
			c.github = label("proctor")
		}
		sc := scope{status: or(c.status, "success"), contexts: map[string]any{"github": c.github, "needs": c.needs, "inputs": map[string]any{"dry_run": c.dry}}}
		if got, err := condition(jobs[c.job].If, sc); err != nil || got != c.want {
			t.Errorf("%s: %s runs: %v, %v", c.name, c.job, got, err)
		}
	}
}

// What docs/comment-commands.md adds to the template's condition lets CI that failed on a run's branch in, and nothing of a fork's; without
// it the template's own condition takes no such event.
func TestTheDocsConditionTakesCIThatFailedHereAlone(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/comment-commands.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```text\n(\\|\\| .*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatal("the page has no condition")
	}
	w, err := parseWorkflow(templates.GitHubWorkflow)
	if err != nil {
		t.Fatal(err)
	}
	const repo = "octo/shop"
	run := func(conclusion, branch, head string) map[string]any {
		return map[string]any{"conclusion": conclusion, "head_branch": branch, "head_repository": map[string]any{"full_name": head}}
	}
	takes := func(cond, event string, run map[string]any) bool {
		t.Helper()
		ok, err := condition(cond, scope{status: "success", contexts: map[string]any{
			"github": map[string]any{"event_name": event, "repository": repo, "event": map[string]any{"workflow_run": run}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	own := w.jobs[0].If
	for _, c := range []struct {
		name, event string
		run         map[string]any
		want        bool
	}{
		{"it failed", "workflow_run", run("failure", "proctor/issue-3", repo), true},
		{"it timed out", "workflow_run", run("timed_out", "proctor/issue-3", repo), true},
		{"it passed", "workflow_run", run("success", "proctor/issue-3", repo), false},
		{"a person's branch", "workflow_run", run("failure", "main", repo), false},
		{"a fork", "workflow_run", run("failure", "proctor/issue-3", "mallory/shop"), false},
		{"a fork that is gone", "workflow_run", map[string]any{"conclusion": "failure", "head_branch": "proctor/issue-3", "head_repository": nil}, false},
		{"another event", "push", run("failure", "proctor/issue-3", repo), false},
	} {
		if got := takes(own+" "+string(m[1]), c.event, c.run); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if takes(own, c.event, c.run) {
			t.Errorf("%s: the template's own condition takes it", c.name)
		}
	}
}
