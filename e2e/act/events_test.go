//go:build e2e

package act

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// witness is a job beside a template's own whose steps are named by what the run is told apart by: act plans names, and evaluates them as it does the rest.
func witness(w template) string {
	var b strings.Builder
	b.WriteString("\n  witness:\n    runs-on: ubuntu-latest\n    steps:\n")
	for _, name := range []string{"group " + w.Concurrency.Group, "title " + w.RunName} {
		quoted, _ := json.Marshal(name) // a string
		fmt.Fprintf(&b, "      - {name: %s, uses: actions/checkout@witness}\n", quoted)
	}
	return b.String()
}

// idle are the actions that workflows name, with their inputs and outputs and without their steps.
func idle(t *testing.T, workflows string) map[string]string {
	t.Helper()
	dir := ours(t)
	for _, path := range []string{"action.yml", "host/action.yml"} {
		raw, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		head, _, found := strings.Cut(string(raw), "\nruns:\n")
		if !found {
			t.Fatalf("%s has no runs", path)
		}
		write(t, filepath.Join(dir, path), head+"\n"+nothing)
	}
	write(t, filepath.Join(dir, "idle", "action.yml"), "name: idle\n"+nothing)
	to := map[string]string{}
	for ref, name := range named(workflows) {
		if to[ref] = filepath.Join(dir, "idle"); name == "proctor-ci/proctor" {
			to[ref] = dir
		}
	}
	return to
}

const nothing = "runs: {using: composite, steps: [{if: 'false', shell: bash, run: 'false'}]}\n"

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// caller adds the organisation's repository, which holds the reusable workflow.
func caller(t *testing.T, repositories map[string]string, reusable string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".github", "workflows", "reusable.yml"), reusable)
	repositories["my-org/proctor-workflows@v1"] = dir
}

// planned is a template as act plans it for one event.
func planned(t *testing.T, text string, r row) outcome {
	t.Helper()
	reusable, _ := readTemplate(t, "reusable.yml")
	repositories := idle(t, text+"\n"+reusable)
	caller(t, repositories, reusable)
	return session{workflow: text, event: r.event, payload: r.payload, plan: true, repositories: repositories, secrets: map[string]string{"GITHUB_TOKEN": "e2e-token"},
		env: map[string]string{"GITHUB_REPOSITORY": "octo/shop", "GITHUB_REF": "refs/heads/main", "SHA_REF": sha, "GITHUB_RUN_ID": run}, flags: []string{"--strict"}}.run(t)
}

// told are the names of the witness's steps.
func (o outcome) told() (group, title string) {
	for _, l := range o.lines {
		if l.JobID == "witness" && l.Stage == "Main" {
			if name, ok := strings.CutPrefix(l.Step, "group "); ok {
				group = name
			}
			if name, ok := strings.CutPrefix(l.Step, "title "); ok {
				title = name
			}
		}
	}
	return group, title
}

func TestEventsStartTheTemplatesJobsAsTheTableSays(t *testing.T) {
	// INV-40 and INV-12, by an interpreter that is not ours.
	for _, name := range templateNames(t) {
		text, w := readTemplate(t, name)
		for _, r := range rows[name] {
			t.Run(name+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				o := planned(t, text+witness(w), r)
				jobs := o.jobs()
				group, title := o.told()
				if o.err != nil || jobs["witness"] != "success" {
					t.Fatalf("act cannot plan it: %v, %v\n%s", o.err, jobs, o.said())
				}
				delete(jobs, "witness")
				if d := cmp.Diff(r.jobs, slices.Sorted(maps.Keys(jobs))); d != "" {
					t.Errorf("jobs (-want +act):\n%s%s", d, o.said())
				}
				if group != r.group || title != r.title {
					t.Errorf("group %q, title %q, want %q and %q", group, title, r.group, r.title)
				}
			})
		}
	}
}

func TestABrokenTemplateIsNotPlanned(t *testing.T) {
	text, w := readTemplate(t, "proctor.yml")
	for name, c := range map[string]struct{ from, to, says string }{
		"a key that is none":      {"    runs-on: ubuntu-latest\n", "    runs-on: ubuntu-latest\n    stepz: []\n", "stepz"},
		"a function that is none": {"contains(github.event.comment.body, '/proctor')", "holds(github.event.comment.body, '/proctor')", "holds"},
		"no YAML":                 {"    steps:\n", "    steps: [\n", "yaml"},
		"an action that is none":  {"uses: proctor-ci/proctor/host@v0", "uses: proctor-ci/proctor/hosts@v0", "hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := strings.Replace(text, c.from, c.to, 1)
			if broken == text {
				t.Fatalf("the template does not say %q", c.from)
			}
			o := planned(t, broken, row{event: "issue_comment", payload: `{"action": "created", "comment": {"id": 70, "body": "/proctor stop"}, "issue": {"number": 7}}`})
			if o.err == nil || !strings.Contains(o.text, c.says) {
				t.Errorf("%v, and act says nothing of %q:\n%s", o.err, c.says, o.said())
			}
		})
	}
	t.Run("a job without its condition", func(t *testing.T) {
		t.Parallel()
		from, to, ok := strings.Cut(text, "    if: >-\n")
		_, to, found := strings.Cut(to, "    runs-on:")
		if !ok || !found {
			t.Fatal("the template's job has no condition")
		}
		o := planned(t, from+"    runs-on:"+to+witness(w), row{event: "issues", payload: `{"action": "labeled", "label": {"name": "docs"}, "issue": {"number": 7}}`})
		if o.err != nil || o.jobs()["proctor"] != "success" {
			t.Errorf("control: another label starts nothing: %v\n%s", o.jobs(), o.said())
		}
	})
	t.Run("an event that nobody listens to", func(t *testing.T) {
		t.Parallel()
		if o := planned(t, text, row{event: "push", payload: `{}`}); o.err == nil {
			t.Errorf("a push is planned:\n%s", o.said())
		}
	})
}
