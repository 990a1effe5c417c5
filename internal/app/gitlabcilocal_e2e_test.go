//go:build e2e

package app

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/scaffold"
	"github.com/proctor-ci/proctor/templates"
)

// labJob is a clone of the test GitLab's repository in which gitlab-ci-local acts as the runner: it resolves the include and
// its inputs, checks the whole against the CI schema that GitLab publishes, evaluates the rules and runs the script in a shell.
type labJob struct {
	t   *testing.T
	w   *labWorld
	dir string
	bin string
}

func newLabJob(t *testing.T, w *labWorld, pipeline string) labJob {
	t.Helper()
	j := labJob{t: t, w: w, dir: filepath.Join(w.dir, "builds", "shop"), bin: filepath.Join(w.dir, "bin")}
	token := w.lab.NewToken(forgetest.GitLabToken{Login: labBot})
	j.git(w.dir, "clone", "-q", strings.Replace(w.lab.URL(), "://", "://oauth2:"+token+"@", 1)+"/"+w.lab.Project()+".git", j.dir)
	for path, text := range map[string]string{scaffold.GitLabTemplate: string(templates.GitLab), ".gitlab-ci.yml": pipeline} {
		put(t, filepath.Join(j.dir, path), text)
	}
	j.git(j.dir, "add", "-A")
	j.git(j.dir, "-c", "user.name=maya", "-c", "user.email=maya@example.com", "commit", "-qm", "Add the job")
	j.git(j.dir, "push", "-q", "origin", "HEAD:main")
	put(t, filepath.Join(j.bin, "proctor-action"), "#!/bin/sh\nPROCTOR_TEST_PART="+partAction+" GORACE=atexit_sleep_ms=0 exec "+w.runner.Binary+"\n")
	// gitlab-ci-local copies tracked files with rsync for its containers; in a shell nothing needs the copy.
	put(t, filepath.Join(j.bin, "rsync"), "#!/bin/sh\nexit 0\n")
	return j
}

// git is a person's own, with the network.
func (j labJob) git(dir string, args ...string) {
	j.t.Helper()
	cmd := exec.CommandContext(j.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+j.w.dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		j.t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (j labJob) run(variables map[string]string, args ...string) (string, error) {
	j.t.Helper()
	program, err := filepath.Abs("../../e2e/gitlab/node_modules/gitlab-ci-local/src/index.js")
	if err != nil {
		j.t.Fatal(err)
	}
	all := append([]string{program, "--force-shell-executor"}, args...)
	for k, v := range merged(map[string]string{
		"GITLAB_CI": "true", "CI_SERVER_URL": j.w.lab.URL(), "CI_API_V4_URL": j.w.lab.URL() + "/api/v4", "CI_PROJECT_PATH": j.w.lab.Project(),
		"CI_PROJECT_DIR": j.dir, "CI_BUILDS_DIR": filepath.Dir(j.dir), "CI_COMMIT_BRANCH": "main", "GITLAB_USER_LOGIN": asker,
	}, j.w.runner.Variables, variables) {
		all = append(all, "--variable", k+"="+v)
	}
	cmd := exec.CommandContext(j.t.Context(), "node", all...)
	cmd.Dir = j.dir
	cmd.Env = append(os.Environ(), "PATH="+j.bin+":"+os.Getenv("PATH"), "HOME="+j.w.dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestGitLabsSchemaAndARunnerTakeTheTemplate(t *testing.T) {
	w := openLab(t, setting{plan: twoAttempts()})
	j := newLabJob(t, w, "include:\n  - local: .gitlab/ci/proctor.yml\n    inputs: {max-ticks: \"3\", timeout: 60m}\nbuild:\n  script: [make]\n")
	number := "1"
	when := func(variables map[string]string) string {
		out, err := j.run(variables, "--list-json")
		if err != nil || !strings.Contains(out, "json schema validated") {
			t.Fatalf("%v\n%s", err, out)
		}
		var jobs []struct{ Name, When string }
		list := out[strings.Index(out, "[\n"):]
		if err := json.NewDecoder(strings.NewReader(list)).Decode(&jobs); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, job := range jobs {
			if job.Name == "proctor" {
				return job.When
			}
		}
		t.Fatalf("no job proctor:\n%s", out)
		return ""
	}
	for source, want := range map[string]string{"trigger": "on_success", "api": "on_success", "web": "on_success", "schedule": "on_success", "push": "never", "merge_request_event": "never", "parent_pipeline": "never"} {
		if got := when(map[string]string{"PROCTOR_ISSUE": number, "CI_PIPELINE_SOURCE": source}); got != want {
			t.Errorf("a pipeline by %s runs the job %s, want %s", source, got, want)
		}
	}
	if got := when(map[string]string{"PROCTOR_GOAL": "make it right", "CI_PIPELINE_SOURCE": "web"}); got != "on_success" {
		t.Errorf("a goal: %s", got)
	}
	if got := when(map[string]string{"CI_PIPELINE_SOURCE": "web"}); got != "never" {
		t.Errorf("neither issue nor goal: %s", got)
	}
	out, err := j.run(map[string]string{"PROCTOR_ISSUE": number, "CI_PIPELINE_SOURCE": "web"}, "proctor")
	if err != nil {
		t.Fatalf("the job: %v\n%s", err, out)
	}
	rec, err := evidence.Read(filepath.Join(j.dir, "proctor"))
	if err != nil || rec.Terminal != "done" || rec.Ceilings.Ticks != 3 {
		t.Errorf("ended %s with at most %d ticks: %v\n%s", rec.Terminal, rec.Ceilings.Ticks, err, out)
	}
	if pulls := w.lab.Pulls(); len(pulls) != 1 || !pulls[0].Draft {
		t.Errorf("merge requests %+v\n%s", pulls, out)
	}
}

func TestGitLabsSchemaRefusesABrokenTemplate(t *testing.T) {
	// The control of the one above: the schema is looked at.
	w := openLab(t, setting{})
	j := newLabJob(t, w, "include:\n  - local: .gitlab/ci/proctor.yml\n")
	put(t, filepath.Join(j.dir, scaffold.GitLabTemplate), strings.Replace(string(templates.GitLab), "interruptible: false", "interruptible: seldom", 1))
	if out, err := j.run(nil, "--list-json"); err == nil || !strings.Contains(out, "interruptible") {
		t.Errorf("%v\n%s", err, out)
	}
}

// What the guide adds for a token that the webhook lends is merged into the included job.
func TestGitLabsIncludeTakesTheIdentityOfTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/gitlab.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "## Without a token in the project")
	_, section, _ = strings.Cut(section, "```yaml\n")
	text, _, ok := strings.Cut(section, "```")
	if !ok {
		t.Fatal("the guide has no such section")
	}
	for name, more := range map[string]string{"control": "", "the guide": text} {
		j := newLabJob(t, openLab(t, setting{}), "include:\n  - local: .gitlab/ci/proctor.yml\n"+more)
		out, err := j.run(nil, "--preview")
		if err != nil || !strings.Contains(out, "json schema validated") || !strings.Contains(out, "- proctor-action") {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		for _, part := range []string{"id_tokens:\n    " + idToken + ":\n      aud: https://HOST/token", "PROCTOR_TOKEN_URL: https://HOST/token"} {
			if strings.Contains(out, part) != (more != "") {
				t.Errorf("%s: %q in\n%s", name, part, out)
			}
		}
	}
}
