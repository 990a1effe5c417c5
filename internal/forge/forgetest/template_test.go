package forgetest

import (
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
