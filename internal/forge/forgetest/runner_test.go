package forgetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

const actionYML = `name: proctor
inputs:
  github-token: {required: true}
  issue: {default: ""}
  max ticks: {default: 10}
  event: {default: "${{ github.event_name }}"}
runs:
  using: docker
  image: Dockerfile
  args: [run, "${{ inputs.issue }}"]
`

// stub writes an executable that stands for the action.
func stub(t *testing.T, script string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "action")
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

type bench struct {
	*forgetest.GitHub
	runner *forgetest.Runner
	out    *bytes.Buffer
}

func newBench(t *testing.T, workflow, script string) bench {
	t.Helper()
	g, err := forgetest.NewGitHub(forgetest.Options{Dir: t.TempDir(), WorkflowTriggers: true, Files: fstest.MapFS{
		"README.md":                     {Data: []byte("# shop\n")},
		".github/workflows/proctor.yml": {Data: []byte(workflow)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	g.AddUser("alice", "write")
	out := &bytes.Buffer{}
	return bench{g, &forgetest.Runner{GitHub: g, Dir: t.TempDir(), Stdout: out, Secrets: map[string]string{"MODEL_KEY": "sk" + "-canary-1234"},
		Actions: []forgetest.Action{{Uses: "proctor-ci/proctor", Metadata: []byte(actionYML), Binary: stub(t, script)}}}, out}
}

// whenLogged is closed when the job has written a line. Call it before the run starts.
func (b bench) whenLogged(line string) <-chan struct{} {
	w := &watcher{line: line, seen: make(chan struct{})}
	b.runner.Stdout = w
	return w.seen
}

type watcher struct {
	line string
	seen chan struct{}
	once sync.Once
}

func (w *watcher) Write(p []byte) (int, error) {
	if string(p) == w.line {
		w.once.Do(func() { close(w.seen) })
	}
	return len(p), nil
}

func (b bench) run(t *testing.T, ctx context.Context) forgetest.RunResult {
	t.Helper()
	run, err := b.NextRun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.runner.Run(ctx, run)
	if err != nil {
		t.Fatalf("%v\n%s", err, b.out)
	}
	return res
}

const labelWorkflow = `name: proctor
on: {issues: {types: [labeled]}, workflow_dispatch: {inputs: {issue: {required: true}}}}
permissions: {contents: write, issues: write}
env: {SHARED: from-workflow}
jobs:
  proctor:
    if: github.event_name == 'workflow_dispatch' || github.event.label.name == 'proctor'
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with: {persist-credentials: false}
      - id: proctor
        uses: proctor-ci/proctor@v1
        env: {ANTHROPIC_API_KEY: "${{ secrets.MODEL_KEY }}"}
        with: {github-token: "${{ github.token }}", issue: "${{ inputs.issue || github.event.issue.number }}"}
      - if: always()
        run: echo "saw ${{ steps.proctor.outputs.verdict }}" >> "$GITHUB_STEP_SUMMARY"
`

func TestALabelStartsTheActionWithARunnersEnvironmentAndNothingElse(t *testing.T) {
	t.Setenv("FORGETEST_CANARY", "leaked") // in our own environment; it must not arrive
	b := newBench(t, labelWorkflow, `tr '\0' '\n' < /proc/$$/environ > "$RUNNER_TEMP/env" # a shell does not pass on names with a hyphen
cat "$GITHUB_EVENT_PATH" > "$RUNNER_TEMP/event"
git -C "$GITHUB_WORKSPACE" log --oneline > "$RUNNER_TEMP/log"
git -C "$GITHUB_WORKSPACE" symbolic-ref -q HEAD > "$RUNNER_TEMP/head"
cat .git/config > "$RUNNER_TEMP/config"
echo "$@" > "$RUNNER_TEMP/args"
echo "key is $ANTHROPIC_API_KEY and token $(grep -z ^INPUT_GITHUB-TOKEN= /proc/$$/environ | tr -d '\0' | cut -d= -f2)"
printf 'verdict<<E1\ndone\nreally\nE1\n' >> "$GITHUB_OUTPUT"
echo "## Proved" >> "$GITHUB_STEP_SUMMARY"
`)
	n := b.OpenIssue("Totals", "are wrong", "mallory")
	if _, err := b.LabelIssue(n, "other", "alice"); err != nil {
		t.Fatal(err)
	}
	if res := b.run(t, t.Context()); res.Run.Conclusion != "skipped" {
		t.Errorf("a run for another label = %q, want skipped", res.Run.Conclusion)
	}
	if _, err := b.LabelIssue(n, "proctor", "alice"); err != nil {
		t.Fatal(err)
	}
	res := b.run(t, t.Context())
	job := res.Jobs[0]
	if res.Run.Conclusion != "success" || res.Run.Event != "issues" || res.Run.Actor != "alice" {
		t.Fatalf("run %d of %s by %s ended %s\n%s", res.Run.ID, res.Run.Event, res.Run.Actor, res.Run.Conclusion, b.out)
	}
	env := readEnv(t, filepath.Join(job.Temp, "env"))
	for name, want := range map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "octo/shop", "GITHUB_REPOSITORY_ID": "500", "GITHUB_EVENT_NAME": "issues", "GITHUB_ACTOR": "alice",
		"GITHUB_REF": "refs/heads/main", "GITHUB_SHA": b.Branch("main"), "GITHUB_API_URL": b.APIURL(), "GITHUB_SERVER_URL": b.URL(), "GITHUB_WORKSPACE": job.Workspace,
		"GITHUB_RUN_ATTEMPT": "1", "RUNNER_OS": "Linux", "SHARED": "from-workflow", "INPUT_ISSUE": "1", "INPUT_MAX_TICKS": "10", "INPUT_EVENT": "issues",
	} {
		if env[name] != want {
			t.Errorf("%s = %q, want %q", name, env[name], want)
		}
	}
	for _, name := range []string{"GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_STATE", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_ACTOR_ID", "GITHUB_RUN_ID", "ACTIONS_RUNTIME_TOKEN", "HOME", "INPUT_GITHUB-TOKEN"} {
		if env[name] == "" {
			t.Errorf("%s is empty", name)
		}
	}
	for _, name := range []string{"FORGETEST_CANARY", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "GITHUB_TOKEN"} {
		if v, ok := env[name]; ok {
			t.Errorf("%s = %q reached the step", name, v)
		}
	}
	if head := read(t, job.Temp, "head"); head != "" {
		t.Errorf("HEAD is on %q, want it detached", head)
	}
	if log := read(t, job.Temp, "log"); strings.Count(log, "\n") != 1 {
		t.Errorf("history = %q, want one commit", log)
	}
	if c := read(t, job.Temp, "config"); strings.Contains(c, "extraheader") {
		t.Errorf("the credential stayed in .git/config:\n%s", c)
	}
	if args := read(t, job.Temp, "args"); args != "run 1\n" {
		t.Errorf("arguments = %q", args)
	}
	var event struct{ Label, Sender map[string]any }
	if err := json.Unmarshal([]byte(read(t, job.Temp, "event")), &event); err != nil || event.Label["name"] != "proctor" || event.Sender["login"] != "alice" {
		t.Errorf("event = %+v, %v", event, err)
	}
	if d := cmp.Diff(map[string]map[string]string{"proctor": {"verdict": "done\nreally"}}, job.Outputs); d != "" {
		t.Errorf("outputs (-want +got):\n%s", d)
	}
	if job.Summary != "## Proved\nsaw done\nreally\n" {
		t.Errorf("summary = %q", job.Summary)
	}
	for _, s := range []string{"sk" + "-canary-1234", env["INPUT_GITHUB-TOKEN"]} {
		if strings.Contains(string(res.Run.Log), s) || strings.Contains(b.out.String(), s) {
			t.Errorf("a secret is in the log:\n%s", res.Run.Log)
		}
	}
	if !strings.Contains(string(res.Run.Log), "key is ***") {
		t.Errorf("log = %s", res.Run.Log)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func readEnv(t *testing.T, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(read(t, filepath.Dir(path), filepath.Base(path))) {
		if k, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			out[k] = v
		}
	}
	return out
}

func TestAJobsTokenIsAsWideAsItsPermissionsAndEndsWithTheJob(t *testing.T) {
	t.Parallel()
	b := newBench(t, strings.Replace(labelWorkflow, "{contents: write, issues: write}", "{contents: read, issues: write}", 1),
		`grep -z ^INPUT_GITHUB-TOKEN= /proc/$$/environ | tr -d '\0' | cut -d= -f2 > "$RUNNER_TEMP/token"
echo ready; while [ ! -e "$RUNNER_TEMP/go" ]; do sleep 0.02; done`)
	n := b.OpenIssue("A", "b", "alice")
	if _, err := b.LabelIssue(n, "proctor", "alice"); err != nil {
		t.Fatal(err)
	}
	run, err := b.NextRun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ready := b.whenLogged("ready\n")
	ended := make(chan forgetest.RunResult, 1)
	go func() {
		res, err := b.runner.Run(t.Context(), run)
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	<-ready
	temp := filepath.Dir(glob(b.runner.Dir + "/run-*/temp/token")[0])
	token := strings.TrimSpace(read(t, temp, "token"))
	tries := []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/repos/octo/shop/issues/1/comments", `{"body":"x"}`, 201},
		{"POST", "/repos/octo/shop/pulls", `{"title":"t","head":"h","base":"main"}`, 403},
		{"POST", "/repos/octo/shop/actions/workflows/proctor.yml/dispatches", `{"ref":"main"}`, 403},
		{"GET", "/repos/octo/shop", "", 200},
		{"GET", "/user", "", 403},
	}
	for _, c := range tries {
		if status, answer := call(t, b.GitHub, token, c.method, c.path, c.body); status != c.status {
			t.Errorf("%s %s = %d %s, want %d", c.method, c.path, status, answer, c.status)
		}
	}
	if out, err := gitCmd(t, t.TempDir(), "ls-remote", strings.Replace(b.URL(), "://", "://x-access-token:"+token+"@", 1)+"/octo/shop.git"); err != nil {
		t.Errorf("contents: read does not fetch: %s", out)
	}
	if err := os.WriteFile(filepath.Join(temp, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if res := <-ended; res.Run.Conclusion != "success" {
		t.Errorf("conclusion %s:\n%s", res.Run.Conclusion, res.Run.Log)
	}
	for _, c := range tries {
		if status, _ := call(t, b.GitHub, token, c.method, c.path, c.body); status != 401 {
			t.Errorf("%s %s after the job = %d, want 401", c.method, c.path, status)
		}
	}
}

const checkoutOnly = `name: w
on: {workflow_dispatch: {inputs: {issue: {required: true}}}}
permissions: write-all
jobs:
  j:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with: {fetch-depth: 0}
      - uses: proctor-ci/proctor@v1
        with: {github-token: "${{ github.token }}"}
`

func dispatch(t *testing.T, b bench, inputs map[string]string) {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"ref": "main", "inputs": inputs})
	status, answer := call(t, b.GitHub, b.NewToken(forgetest.Token{Login: "alice"}), "POST", "/repos/octo/shop/actions/workflows/proctor.yml/dispatches", string(body))
	if status != 204 {
		t.Fatalf("dispatch = %d %s", status, answer)
	}
}

func TestCheckoutPersistsItsCredentialUnlessToldNotTo(t *testing.T) {
	t.Parallel()
	b := newBench(t, checkoutOnly, `git config --get-regexp extraheader | head -c 30 > "$RUNNER_TEMP/config"; git rev-list --count HEAD > "$RUNNER_TEMP/n"; git push -q origin HEAD:refs/heads/by-checkout`)
	if _, err := b.Commit(t.Context(), "main", fstest.MapFS{".github/workflows/proctor.yml": {Data: []byte(checkoutOnly)}}, "second"); err != nil {
		t.Fatal(err)
	}
	dispatch(t, b, map[string]string{"issue": "1"})
	res := b.run(t, t.Context())
	if res.Run.Conclusion != "success" || !strings.HasPrefix(read(t, res.Jobs[0].Temp, "config"), "http.") || read(t, res.Jobs[0].Temp, "n") != "2\n" {
		t.Errorf("conclusion %s:\n%s", res.Run.Conclusion, res.Run.Log)
	}
	if b.Branch("by-checkout") == "" {
		t.Error("the persisted credential did not push")
	}
}

func gitCmd(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.com"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
