package app

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/proctor-ci/proctor"
	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/templates"
)

// component is templates/proctor.yml: its header and its one job, with the inputs' defaults put in.
type component struct {
	inputs map[string]struct {
		Description string
		Default     any
	}
	job struct {
		Rules         []struct{ If string }
		ResourceGroup string `yaml:"resource_group"`
		Timeout       string
		Variables     map[string]string
		Script        []string
		Artifacts     struct {
			When    string
			Paths   []string
			Reports struct{ Dotenv string }
		}
	}
}

var inputMark = regexp.MustCompile(`\$\[\[ inputs\.([a-z-]+) \]\]`)

func readComponent(t *testing.T) component {
	t.Helper()
	head, body, ok := strings.Cut(string(templates.GitLab), "\n---\n")
	if !ok {
		t.Fatal("the template has no header")
	}
	var c component
	var named struct {
		Spec struct {
			Inputs map[string]struct {
				Description string
				Default     any
			}
		}
	}
	if err := yaml.Unmarshal([]byte(head), &named); err != nil {
		t.Fatal(err)
	}
	c.inputs = named.Spec.Inputs
	used := map[string]bool{}
	body = inputMark.ReplaceAllStringFunc(body, func(m string) string {
		name := inputMark.FindStringSubmatch(m)[1]
		used[name] = true
		in, ok := c.inputs[name]
		if !ok || in.Description == "" {
			t.Errorf("the input %s is not declared, or not described", name)
		}
		text, _ := in.Default.(string)
		if text == "" {
			return `""`
		}
		return text
	})
	for name := range c.inputs {
		if !used[name] {
			t.Errorf("the input %s is used nowhere", name)
		}
	}
	var jobs map[string]any
	if err := yaml.Unmarshal([]byte(body), &jobs); err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs: %v", len(jobs), err)
	}
	one, err := yaml.Marshal(jobs["proctor"])
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(one, &c.job); err != nil {
		t.Fatal(err)
	}
	return c
}

// INV-49: what the program writes at any ending is what the job keeps, and the program stops before the job is stopped.
func TestTheGitLabTemplateFitsTheProgram(t *testing.T) {
	t.Parallel()
	c := readComponent(t)
	var action struct{ Inputs map[string]any }
	if err := yaml.Unmarshal(proctor.ActionMetadata, &action); err != nil {
		t.Fatal(err)
	}
	for name := range c.job.Variables {
		input, ours := strings.CutPrefix(name, "PROCTOR_")
		if _, ok := action.Inputs[strings.ToLower(strings.ReplaceAll(input, "_", "-"))]; ours && !ok {
			t.Errorf("%s is no input of the program", name)
		}
	}
	limit, err := time.ParseDuration(c.job.Timeout)
	if max := config.Default().Stops.MaxDuration; err != nil || limit < max+15*time.Minute {
		t.Errorf("the job ends after %s and the run after %s", c.job.Timeout, max)
	}
	if a := c.job.Artifacts; a.When != "always" || !slices.Equal(a.Paths, []string{"proctor"}) || a.Reports.Dotenv != "proctor.env" {
		t.Errorf("artifacts %+v", a)
	}
	if len(c.job.Rules) != 1 || !strings.Contains(c.job.Rules[0].If, "$PROCTOR_ISSUE || $PROCTOR_GOAL") || c.job.ResourceGroup != "proctor-$PROCTOR_ISSUE$PROCTOR_GROUP" {
		t.Errorf("rules %+v, resource group %s", c.job.Rules, c.job.ResourceGroup)
	}
}

// asTemplate makes the runner do what the template says: its variables and its script, in a shell.
func (w *labWorld) asTemplate(t *testing.T, change map[string]string) {
	t.Helper()
	c := readComponent(t)
	bin := filepath.Join(w.dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.runner.Binary, filepath.Join(bin, "proctor-action")); err != nil {
		t.Fatal(err)
	}
	w.runner.Variables = merged(c.job.Variables, w.runner.Variables, change)
	w.runner.Binary, w.runner.Args = "/bin/sh", []string{"-ec", strings.Join(c.job.Script, "\n")}
	w.runner.Path = bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

func TestTheGitLabTemplateRunsALabelToAProvedDraft(t *testing.T) {
	t.Parallel()
	w := openLab(t, setting{plan: twoAttempts()})
	w.asTemplate(t, nil)
	res, rec := w.label()
	if rec.Terminal != "done" || res.ExitCode != 0 || len(w.lab.Pulls()) != 1 {
		t.Fatalf("ended %s (exit %d): %s\n%s", rec.Terminal, res.ExitCode, rec.Reason, res.Pipeline.Log)
	}
	if got := w.lab.Checks(rec.Head.ID); len(got) != 1 || got[0].Name != forge.CheckName || got[0].State != "success" || got[0].Branch != rec.Published.Branch {
		t.Errorf("the head's statuses are %+v", got)
	}
	kept := readComponent(t).job.Artifacts
	for _, p := range append(kept.Paths, kept.Reports.Dotenv) {
		if _, err := os.Stat(filepath.Join(res.Workspace, p)); err != nil {
			t.Errorf("the artifact: %v", err)
		}
	}
}
