package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/doctor"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/scaffold"
	"github.com/proctor-ci/proctor/templates"
)

// A maintainer's token sees it all: nothing is unknown.
func TestDoctorSeesTheWholeOfARightProjectWithAMaintainersToken(t *testing.T) {
	p := openLabPractice(t, nil)
	rep, code := p.sees()
	if code != 0 || !rep.Right || !strings.HasSuffix(rep.Text(), "Nothing is wrong.\n") {
		t.Errorf("exit %d\n%s", code, rep.Text())
	}
}

func TestDoctorFindsNothingInARightRepositoryAndSaysWhatItCouldNotSee(t *testing.T) {
	p := openPractice(t, setting{})
	rep, code := p.sees()
	if code != 0 || !rep.Right {
		t.Fatalf("exit %d\n%s", code, rep.Text())
	}
	var proved []string
	for _, f := range rep.Findings {
		if f.Status == doctor.OK {
			proved = append(proved, f.Check)
		}
	}
	for _, want := range []string{"config", "workflow", "agent", "gates", "forge.token", "forge.push", "forge.draft", "forge.issue", "forge.comment", "forge.label", "forge.start", "config.pushed", "settings.issues", "settings.workflow", "settings.branch-rules"} {
		if !slices.Contains(proved, want) {
			t.Errorf("%s is not proved:\n%s", want, rep.Text())
		}
	}
	// What a writer's token may not see is unknown, and the text says how much that is.
	for _, check := range []string{"settings.actions", "settings.actions-pull-requests"} {
		if f, ok := found(rep, check, doctor.Unproved); !ok || !strings.HasPrefix(f.Text, "unknown: ") || f.Fix == "" {
			t.Errorf("%s is not told as unknown:\n%s", check, rep.Text())
		}
	}
	if !strings.HasSuffix(rep.Text(), "Nothing is wrong; 2 could not be looked at.\n") {
		t.Errorf("the last line:\n%s", rep.Text())
	}
	delete(p.env, tokenOfHub)
	rep, code = p.sees()
	if f, ok := found(rep, "forge.token", doctor.Unproved); code != 0 || !ok || !strings.Contains(f.Fix, tokenOfHub) {
		t.Errorf("without a token, exit %d:\n%s", code, rep.Text())
	}
}

// The workflow that init writes with --check is the job here. What failed is in its log, its annotations, its summary and its colour.
func TestDoctorIsACheckInActions(t *testing.T) {
	for name, c := range map[string]struct {
		setting setting
		inputs  map[string]string
		exit    int
		log     string
		summary string
	}{
		"right": {setting{}, nil, 0, "Nothing is wrong", "### Proctor doctor: nothing is wrong"},
		"wrong": {setting{config: map[string]string{"sandbox": "{mode: off}"}}, nil, 1, "::error title=Proctor doctor%3A confinement::sandbox.mode is off", "| failed | `confinement` |"},
		"live":  {setting{}, map[string]string{"live": "true"}, 0, "the draft is closed and its branch deleted", "| ok | `live.draft` |"},
	} {
		t.Run(name, func(t *testing.T) {
			c.setting.files = map[string]string{scaffold.GitHubDoctor: string(templates.GitHubDoctor)}
			w := open(t, c.setting)
			f, err := github.New(github.Config{BaseURL: w.hub.APIURL(), ServerURL: w.hub.URL(), Owner: "octo", Repo: "shop", Token: w.hub.NewToken(forgetest.Token{Login: asker})})
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Dispatch(t.Context(), scaffold.GitHubDoctor, base, c.inputs); err != nil {
				t.Fatal(err)
			}
			r := w.runner
			a := r.Actions[0]
			a.Env = merged(a.Env, part(partAction))
			r.Actions = []forgetest.Action{a}
			res, err := r.Run(t.Context(), w.take())
			if err != nil || res.Jobs[0].ExitCode != c.exit || !strings.Contains(string(res.Run.Log), c.log) || !strings.Contains(res.Jobs[0].Summary, c.summary) {
				t.Errorf("exit %d: %v\n%s\n%s", res.Jobs[0].ExitCode, err, res.Run.Log, res.Jobs[0].Summary)
			}
			for _, p := range w.hub.Pulls() {
				if p.State != "closed" || name != "live" {
					t.Errorf("left behind: %+v", p)
				}
			}
		})
	}
}
