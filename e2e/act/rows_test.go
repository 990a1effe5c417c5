package act

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"
)

// row is an event, and what a template makes of it by act's interpreter.
type row struct {
	name, event, payload string
	jobs                 []string // that start
	group, title         string   // of the run
}

const (
	run     = "42"
	sha     = "0123456789012345678901234567890123456789"
	started = "Proctor" // the title of a run that no webhook started
)

// rows has a line for each template; what each makes of each event that it listens to. A template without a line fails the test.
var rows = map[string][]row{
	"proctor.yml": doors,
	"caller.yml":  doors,
	"doctor.yml": {
		{"by hand", "workflow_dispatch", `{"inputs": {"live": "true"}}`, []string{"doctor"}, "proctor-doctor", ""},
		{"every week", "schedule", `{}`, []string{"doctor"}, "proctor-doctor", ""},
		{"a push to the default branch", "push", `{"ref": "refs/heads/main", "repository": {"default_branch": "main"}}`, []string{"doctor"}, "proctor-doctor", ""},
		{"a push to another branch", "push", `{"ref": "refs/heads/main", "repository": {"default_branch": "trunk"}}`, nil, "proctor-doctor", ""},
	},
	// What the agent's job hands over here is nothing, so that nothing is verified and published. The job that tells of it does not start under act, which takes
	// the text of a skipped job's outputs for their value.
	"staged.yml": {
		{"the label", "issues", `{"action": "labeled", "label": {"name": "proctor"}, "issue": {"number": 7}}`, []string{"agent"}, "proctor-7", started},
		{"another label", "issues", `{"action": "labeled", "label": {"name": "docs"}, "issue": {"number": 7, "labels": [{"name": "proctor"}]}}`, nil, "proctor-" + run, started},
		{"by hand, an issue", "workflow_dispatch", `{"inputs": {"issue": "7"}}`, []string{"agent"}, "proctor-7", started},
		{"by hand, a goal", "workflow_dispatch", `{"inputs": {"goal": "say command=stop"}}`, []string{"agent"}, "proctor-" + run, started},
		{"the webhook, for the label", "workflow_dispatch", `{"inputs": {"issue": "7", "request": "event=5&sha=aa", "proctor_id": "a1"}}`, []string{"agent"}, "proctor-7", "Proctor a1"},
		{"the webhook, for a command", "workflow_dispatch", `{"inputs": {"issue": "7", "request": "command=stop", "proctor_id": "a2"}}`, []string{"agent"}, "proctor-a2", "Proctor a2"},
	},
	// It has no event of its own: a called job sees its caller's, and takes none but those of doors.
	"reusable.yml": {{"nobody calls it", "workflow_call", `{}`, nil, "", ""}},
}

var doors = []row{
	{"the label", "issues", `{"action": "labeled", "label": {"name": "proctor"}, "issue": {"number": 7}}`, working, "proctor-7", started},
	{"the label in capitals", "issues", `{"action": "labeled", "label": {"name": "Proctor"}, "issue": {"number": 7}}`, working, "proctor-7", started},
	{"another label", "issues", `{"action": "labeled", "label": {"name": "docs"}, "issue": {"number": 7, "labels": [{"name": "proctor"}]}}`, nil, "proctor-" + run, started},
	{"a command", "issue_comment", `{"action": "created", "comment": {"id": 70, "body": "/proctor stop"}, "issue": {"number": 7}}`, working, "proctor-70", started},
	{"a command below a line", "issue_comment", `{"action": "created", "comment": {"id": 71, "body": "Thanks!\n\n/PROCTOR run"}, "issue": {"number": 7}}`, working, "proctor-71", started},
	{"a comment", "issue_comment", `{"action": "created", "comment": {"id": 72, "body": "Thanks, proctor!"}, "issue": {"number": 7, "labels": [{"name": "proctor"}]}}`, nil, "proctor-72", started},
	{"changes requested", "pull_request_review", review("changes_requested", "proctor/issue-7", `{"full_name": "octo/shop"}`), working, "proctor-" + run, started},
	{"approved", "pull_request_review", review("approved", "proctor/issue-7", `{"full_name": "octo/shop"}`), nil, "proctor-" + run, started},
	{"a person's branch", "pull_request_review", review("changes_requested", "feature", `{"full_name": "octo/shop"}`), nil, "proctor-" + run, started},
	{"a fork's branch of that name", "pull_request_review", review("changes_requested", "proctor/issue-7", `{"full_name": "mallory/shop"}`), nil, "proctor-" + run, started},
	{"a fork that is gone", "pull_request_review", review("changes_requested", "proctor/issue-7", `null`), nil, "proctor-" + run, started},
	{"by hand, an issue", "workflow_dispatch", `{"inputs": {"issue": "7"}}`, working, "proctor-7", started},
	{"by hand, a goal", "workflow_dispatch", `{"inputs": {"goal": "say command=stop"}}`, working, "proctor-" + run, started},
	{"the webhook, for the label", "workflow_dispatch", `{"inputs": {"issue": "7", "request": "event=5&sha=aa", "proctor_id": "a1"}}`, working, "proctor-7", "Proctor a1"},
	{"the webhook, for a command", "workflow_dispatch", `{"inputs": {"issue": "7", "request": "command=stop", "proctor_id": "a2"}}`, working, "proctor-a2", "Proctor a2"},
	{"the webhook, for CI that failed", "workflow_dispatch", `{"inputs": {"issue": "7", "request": "branch=proctor%2Fissue-7&check=5%40aa", "proctor_id": "a3"}}`, working, "proctor-a3", "Proctor a3"},
}

// working is the job that works, the only one of these templates.
var working = []string{"proctor"}

func review(state, branch, head string) string {
	return fmt.Sprintf(`{"action": "submitted", "review": {"id": 8, "state": %q}, "pull_request": {"number": 9, "head": {"ref": %q, "repo": %s}}, "repository": {"default_branch": "main"}}`, state, branch, head)
}

type template struct {
	On          map[string]any
	RunName     string `yaml:"run-name"`
	Concurrency struct{ Group string }
	Jobs        map[string]any
}

func readTemplate(t *testing.T, name string) (string, template) {
	t.Helper()
	raw, err := os.ReadFile(absolute(t, "templates/github/"+name))
	if err != nil {
		t.Fatal(err)
	}
	var w template
	if err := yaml.Unmarshal(raw, &w); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(raw), w
}

// templateNames are those of this repository's GitHub workflows.
func templateNames(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(absolute(t, "templates/github/*.yml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d templates, %v", len(files), err)
	}
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	return files
}

// absolute is a path of this repository.
func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join("..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

func TestEveryTemplateHasRowsForItsEvents(t *testing.T) {
	t.Parallel()
	lacks := func(w template, rows []row) (events []string) {
		starts := map[string]bool{}
		for _, r := range rows {
			starts[r.event] = starts[r.event] || len(r.jobs) > 0
		}
		for event := range w.On {
			if started, listed := starts[event]; !listed || !started && event != "workflow_call" {
				events = append(events, event)
			}
		}
		return events
	}
	for _, name := range templateNames(t) {
		_, w := readTemplate(t, name)
		if events := lacks(w, rows[name]); len(events) > 0 || len(w.On) == 0 {
			t.Errorf("templates/github/%s listens to %v, and no row shows what these start. Next: add rows in e2e/act/rows_test.go, and run make act", name, events)
		}
	}
	_, w := readTemplate(t, "proctor.yml")
	if got := lacks(w, doors[:3]); len(got) != len(w.On)-1 {
		t.Errorf("control: of the labels' rows alone %v are missed", got)
	}
}
