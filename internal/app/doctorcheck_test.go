package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// Where there is nothing yet, doctor says where to begin, and nothing that its own flags do not know.
func TestDoctorTellsANewcomerWhereToBegin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	p := &practice{t: t, dir: dir, clone: filepath.Join(dir, "none"), env: map[string]string{}, hasty: true}
	if err := os.MkdirAll(p.clone, 0o755); err != nil {
		t.Fatal(err)
	}
	says := func(when string, exit int, words ...string) {
		t.Helper()
		out, code := p.doctor(t.Context())
		for _, w := range append(words, "") {
			if code != exit || !strings.Contains(out, w) || strings.Contains(out, "--repo") {
				t.Errorf("%s: exit %d, want %d with %q:\n%s", when, code, exit, w, out)
			}
		}
	}
	says("outside of a repository", 1, "cd into the repository")
	p.clone = filepath.Join(dir, "new")
	d := &desk{t: t}
	d.git("", "init", "-q", "-b", base, p.clone)
	says("without a commit", 1, "git add -A && git commit", "git remote add origin")
	files := map[string]string{}
	for path, text := range repository(setting{}) {
		files[path] = text
	}
	p.write(files)
	d.git(p.clone, "add", "-A")
	d.git(p.clone, "-c", "user.name=maya", "-c", "user.email=maya@example.com", "commit", "-qm", "Begin")
	says("without an origin", 0, "git remote add origin", "Nothing is wrong; 1 could not be looked at.")
	d.git(p.clone, "remote", "add", "origin", "https://github.com/octo/shop.git")
	p.env[tokenOfHub], p.env["GITHUB_API_URL"] = "a-token-for-nobody", "http://127.0.0.1:9"
	says("without network", 1, "failed   forge.reach", "check the network")

	stopped, stop := context.WithCancel(t.Context())
	stop()
	if out, code := p.doctor(stopped); code != exitCancelled || !strings.Contains(out, "stopped on request") {
		t.Errorf("stopped: exit %d\n%s", code, out)
	}
}

func TestTheInputDoctorIsAWordThatIsKnown(t *testing.T) {
	t.Parallel()
	env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "octo/shop", "GITHUB_EVENT_NAME": "push", "GITHUB_WORKSPACE": t.TempDir(), "GITHUB_API_URL": "http://127.0.0.1:9",
		"GITHUB_SERVER_URL": "http://127.0.0.1:9", "INPUT_DOCTOR": "yes"}
	var out bytes.Buffer
	code := Action(t.Context(), Env{Stdout: &out, Stderr: &out, Random: rand.Reader, Now: time.Now, Getenv: func(n string) string { return env[n] }})
	if code != exitUsage || !strings.Contains(out.String(), "write true, live or false") {
		t.Errorf("exit %d: %s", code, out.String())
	}
}

func TestInitWritesTheCheckWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args    []string
		written bool
		exit    int
		words   string
	}{
		{[]string{"--ci", "github", "--check"}, true, 0, scaffold.GitHubDoctor},
		{[]string{"--ci", "github"}, false, 0, ""},
		{[]string{"--ci", "gitlab", "--check"}, false, 1, "PROCTOR_DOCTOR=true"},
	} {
		dir := t.TempDir()
		(&desk{t: t}).git("", "init", "-q", dir)
		out, code := proctorIn(t, dir, nil, append([]string{"init"}, c.args...)...)
		text, err := os.ReadFile(filepath.Join(dir, scaffold.GitHubDoctor))
		if code != c.exit || (err == nil) != c.written || c.written && string(text) != string(templates.GitHubDoctor) || !strings.Contains(out, c.words) {
			t.Errorf("%q: exit %d, %v\n%s", c.args, code, err, out)
		}
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
