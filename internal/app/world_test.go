package app

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/proctor-ci/proctor"
	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/templates"
)

// setting is what a scenario changes about the world below. The zero setting is the repository of world.go's files
// with an agent that does nothing.
type setting struct {
	plan     []tick
	then     string            // "idle" or, the default, "repeat"
	config   map[string]string // top-level keys of proctor.yml; "" takes one out
	files    map[string]string // of the first commit; "" takes one out
	workflow func(string) string
	env      map[string]string // of the action's process
	title    string
	body     string
	script   agenttest.Script
	byLabel  bool   // the workflow's own trigger starts runs, and there is no webhook
	mark     string // what the sealed file holds, where a test looks for it among others
	leaks    bool   // a control in which the sealed text may be seen

	enterprise bool // the API lies below /api/v3
}

// world is a GitHub, a model, a webhook and a runner on loopback, with one issue.
type world struct {
	t      *testing.T
	dir    string
	hub    *forgetest.GitHub
	model  *agenttest.Model
	called chan struct{} // gets one element for each model call
	runner forgetest.Runner
	env    map[string]string
	key    string
	issue  int
	hook   string // where the webhook listens
	mark   string // what nobody may see, "" where everybody may
}

// What the sealed file holds and nobody may see, and the two lines of the answer that the gates look at. In a file
// dirMark stands for the world's directory.
const (
	dirMark    = "@DIR@"
	sealedMark = "only-the-proof-may-see-this-4f1b"
	halfRight  = "right\n"
	allRight   = "right for sure\n"
	base       = "main"
	asker      = "maya"
	bot        = "github-actions[bot]"
	hookSecret = "a secret for deliveries in tests"
)

// repository is the first commit: the visible gate wants the word "right", the sealed one the whole line.
func repository(s setting) map[string]string {
	files := map[string]string{
		"README.md":              "# Answers\n",
		"app/answer.txt":         "wrong\n",
		"app/lib.sh":             ":\n",
		"tests/run.sh":           "#!/bin/sh\n. ./app/lib.sh\ngrep -q right app/answer.txt || { echo 'the answer is not right'; exit 1; }\n",
		"sealed/check.sh":        "# " + s.mark + "\n. ./app/lib.sh\ngrep -qx 'right for sure' app/answer.txt\n",
		".gitignore":             "ignored/\n",
		".github/proctor.yml":    configuration(s.config),
		".github/plan.yml":       planText(s.plan, s.then),
		workflowFile:             string(templates.GitHubWorkflow),
		"docs/unrelated page.md": "Nothing.\n",
	}
	if s.workflow != nil {
		files[workflowFile] = s.workflow(files[workflowFile])
	}
	for path, content := range s.files {
		if files[path] = content; content == "" {
			delete(files, path)
		}
	}
	return files
}

const workflowFile = ".github/workflows/proctor.yml"

func configuration(change map[string]string) string {
	keys := map[string]string{
		"version": "1",
		"agent":   "{name: script, args: [.github/plan.yml], timeout: 30s}",
		"gates":   gates(""),
		"review":  "{enabled: false}",
		"stops":   "{max_ticks: 4, max_cost_usd: 1, max_duration: 5m}",
	}
	for k, v := range change {
		if keys[k] = v; v == "" {
			delete(keys, k)
		}
	}
	var b strings.Builder
	for _, k := range slices.Sorted(mapsKeys(keys)) {
		fmt.Fprintf(&b, "%s: %s\n", k, keys[k])
	}
	return b.String()
}

func mapsKeys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// gates is the configuration of both gates with something more.
func gates(more string) string {
	return "{iteration: sh tests/run.sh, acceptance: {run: sh sealed/check.sh, sealed: [sealed/**], attempts: 2}, timeout: 20s, stability: 1" + more + "}"
}

// visibleGates has no held-out gate.
const visibleGates = "{iteration: sh tests/run.sh, timeout: 20s, stability: 1}"

// tick is what the scripted agent does in one tick.
type tick []agent.Step

func planText(ticks []tick, then string) string {
	if len(ticks) == 0 {
		ticks = []tick{{say("I do nothing.")}}
	}
	plan := map[string]any{"ticks": ticks}
	if then != "" {
		plan["then"] = then
	}
	b, err := json.Marshal(plan)
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

func write(path, content string) agent.Step {
	return agent.Step{Write: &agent.WriteStep{Path: path, Content: content}}
}
func sh(line string) agent.Step       { return agent.Step{Run: &line} }
func say(text string) agent.Step      { return agent.Step{Say: &text} }
func crash(sig string) agent.Step     { return agent.Step{Crash: &sig} }
func hang(how string) agent.Step      { return agent.Step{Hang: &how} }
func remove(path string) agent.Step   { return agent.Step{Delete: &path} }
func reply(content string) agent.Step { return write("app/answer.txt", content) }

// spend costs input and five times output micro-dollars: claude-haiku-4-5 is $1 and $5 per million tokens.
func spend(input, output int64) agent.Step {
	return agent.Step{Spend: &agent.SpendStep{Input: input, Output: output}}
}

// open makes the world and its issue; nobody has labelled it yet.
func open(t *testing.T, s setting) *world {
	t.Helper()
	t.Parallel()
	return again(t, s)
}

// again makes one more world in a test that has opened one.
func again(t *testing.T, s setting) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), called: make(chan struct{}, 1000), env: s.env, key: "sk-" + "e2e-" + strings.Repeat("k3y", 12)}
	// The untrusted processes have a user of their own, who must be able to come by.
	if err := os.Chmod(filepath.Dir(w.dir), 0o711); err != nil {
		t.Fatal(err)
	}
	if s.mark == "" {
		s.mark = sealedMark
	}
	if !s.leaks {
		w.mark = s.mark
	}
	tree := fstest.MapFS{}
	for path, content := range repository(s) {
		tree[path] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(content, dirMark, w.dir)), Mode: 0o644}
	}
	hub, err := forgetest.NewGitHub(forgetest.Options{Dir: filepath.Join(w.dir, "forge"), Files: tree, WorkflowTriggers: s.byLabel, Enterprise: s.enterprise})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Close() })
	w.hub = hub
	hub.AddUser(asker, "write")
	w.model = agenttest.NewModel(s.script)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.model.ServeHTTP(rw, r)
		w.called <- struct{}{}
	}))
	t.Cleanup(func() { w.model.Close(); server.CloseClientConnections(); server.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.runner = forgetest.Runner{
		GitHub: hub, Dir: filepath.Join(w.dir, "jobs"), Secrets: map[string]string{"ANTHROPIC_API_KEY": w.key},
		Actions: []forgetest.Action{{Uses: "proctor-ci/proctor", Metadata: proctor.ActionMetadata, Binary: self, Env: map[string]string{"ANTHROPIC_BASE_URL": server.URL}}},
	}
	if !s.byLabel {
		w.serveWebhook()
	}
	title, body := s.title, s.body
	if title == "" {
		title, body = "The answer is wrong", "It should be **right**."
	}
	w.issue = hub.OpenIssue(title, body, asker)
	return w
}

// serveWebhook puts the real handler behind the forge's deliveries.
func (w *world) serveWebhook() {
	w.hub.AddBot("proctor-app[bot]", "write")
	token := w.hub.NewToken(forgetest.Token{Login: "proctor-app[bot]", Installation: true, Permissions: map[string]string{"actions": "write", "contents": "read", "issues": "write", "metadata": "read"}})
	h, err := webhook.New(webhook.Config{
		GitHubSecrets: []string{hookSecret}, Store: webhook.NewMemory(time.Now), Now: time.Now,
		Rules: policy.Rules{Label: trigger.DefaultLabel, Roles: policy.DefaultRoles()},
		Connect: func(_ context.Context, to webhook.Target) (webhook.Forge, error) {
			return github.New(github.Config{BaseURL: w.hub.APIURL(), ServerURL: w.hub.URL(), Owner: to.Repo.Owner, Repo: to.Repo.Name, Token: token, Now: time.Now, Sleep: clock.Sleep})
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	server := httptest.NewServer(h)
	w.t.Cleanup(server.Close)
	w.hook = server.URL + "/github"
	w.hub.SetHook(w.hook, hookSecret)
}

// job is one run of the action as it ended.
type job struct {
	*world
	forgetest.JobResult
	run     forgetest.Run
	rec     evidence.Record
	out     map[string]string
	reports string
	temp    string
}

// label asks for a run as the asker and lets the runner execute it.
func (w *world) label() job {
	w.t.Helper()
	w.ask()
	return w.next(w.t.Context())
}

// ask adds the label and checks what the webhook said, where there is one.
func (w *world) ask() {
	w.t.Helper()
	d, err := w.hub.LabelIssue(w.issue, trigger.DefaultLabel, asker)
	if err != nil {
		w.t.Fatal(err)
	}
	if d.ID != "" && (d.Status != http.StatusAccepted || !strings.Contains(string(d.Response), `"dispatched"`)) {
		w.t.Fatalf("the webhook answered %d %s", d.Status, d.Response)
	}
}

// next executes the run that waits.
func (w *world) next(ctx context.Context) job {
	w.t.Helper()
	return w.execute(ctx, w.take(), nil)
}

func (w *world) take() forgetest.Run {
	w.t.Helper()
	ctx, done := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer done()
	run, err := w.hub.NextRun(ctx)
	if err != nil {
		w.t.Fatalf("no run is queued: %v; deliveries: %s", err, w.deliveries())
	}
	return run
}

func (w *world) deliveries() string {
	w.hub.Settle()
	var b strings.Builder
	for _, d := range w.hub.Deliveries() {
		fmt.Fprintf(&b, "%d %s; ", d.Status, d.Response)
	}
	return b.String()
}

// execute runs one job; env is added to the action's process.
func (w *world) execute(ctx context.Context, run forgetest.Run, env map[string]string) job {
	w.t.Helper()
	r := w.runner
	a := r.Actions[0]
	environ := filepath.Join(w.t.TempDir(), "environ")
	a.Env = merged(a.Env, part(partAction), map[string]string{environVariable: environ}, w.env, env)
	r.Actions = []forgetest.Action{a}
	res, err := r.Run(ctx, run)
	if err != nil {
		w.t.Fatalf("the job could not be run: %v\n%s", err, res.Run.Log)
	}
	j := job{world: w, run: res.Run, JobResult: res.Jobs[0]}
	j.out = j.Outputs["proctor"]
	home := filepath.Join(filepath.Dir(j.Workspace), "home")
	j.reports, j.temp = filepath.Join(home, "proctor"), j.Temp
	j.check(environ)
	return j
}

func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// check holds every run, however it ended, to what is always promised.
func (j *job) check(environ string) {
	j.t.Helper()
	rec, err := evidence.Read(j.reports)
	if err != nil {
		if j.killed() {
			return
		}
		j.t.Fatalf("INV-49, INV-54 the record: %v\n%s", err, j.run.Log)
	}
	j.rec = rec
	if j.killed() {
		return
	}
	if rec.ExitCode != j.ExitCode {
		j.t.Errorf("the record says exit code %d, the process %d", rec.ExitCode, j.ExitCode)
	}
	if j.out["terminal"] != rec.Terminal || j.out["run"] != rec.Run || j.out["reason"] == "" || j.out["cost-usd"] != rec.Totals.CostUSD.Decimal() {
		j.t.Errorf("INV-49 outputs %q do not tell the record's %s of run %s", j.out, rec.Terminal, rec.Run)
	}
	if !strings.Contains(j.Summary, evidenceTitle(rec)) {
		j.t.Errorf("INV-49 the job's page does not say %q:\n%s", evidenceTitle(rec), j.Summary)
	}
	if rec.Terminal == evidence.Done && !rec.DryRun && rec.Trigger.Issue != 0 && (rec.Published == nil || rec.Published.Number == 0) {
		j.t.Error("INV-49 a green job has published nothing")
	}
	j.checkForge()
	j.checkLeaks(environ)
	if left, _ := filepath.Glob(filepath.Join(j.temp, "proctor-*")); len(left) > 0 {
		j.t.Errorf("the run left %s", left)
	}
	if alive := processesIn(filepath.Dir(j.Workspace)); len(alive) > 0 {
		j.t.Errorf("processes of the run are alive: %s", alive)
	}
}

// killed tells whether the job's process was ended by kill -9.
func (j *job) killed() bool { return j.ExitCode == 128+9 }

func evidenceTitle(rec evidence.Record) string {
	t, _ := evidence.FindTerminal(rec.Terminal)
	if rec.DryRun && rec.Terminal == evidence.Done && len(rec.Ticks) == 0 {
		return "Ready"
	}
	return t.Title
}

// checkForge: only our refs, only drafts, at most one status comment.
func (j *job) checkForge() {
	j.t.Helper()
	for _, ref := range j.refs() {
		if ref != "refs/heads/main" && !strings.HasPrefix(ref, "refs/heads/proctor/") && !strings.HasPrefix(ref, "refs/proctor/") {
			j.t.Errorf("INV-20 the run made %s", ref)
		}
	}
	for _, p := range j.hub.Pulls() {
		if !p.Draft {
			j.t.Errorf("INV-50 pull request %d is no draft", p.Number)
		}
	}
	if n := len(j.statuses()); n > 1 {
		j.t.Errorf("INV-49 there are %d status comments", n)
	}
}

// checkLeaks looks for the job's secrets and the sealed text wherever somebody could read them.
func (j *job) checkLeaks(environ string) {
	j.t.Helper()
	canaries := map[string]string{"model key": j.key}
	b, err := os.ReadFile(environ)
	if err != nil {
		j.t.Fatal(err)
	}
	for _, kv := range strings.Split(string(b), "\n") {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains([]string{"INPUT_GITHUB-TOKEN", "ACTIONS_RUNTIME_TOKEN"}, name) && value != "" {
			canaries[name] = value
		}
	}
	if len(canaries) != 3 {
		j.t.Fatalf("the job's environment lacks a canary: %d of 3", len(canaries))
	}
	if j.mark != "" {
		canaries["sealed text"] = j.mark
	}
	for where, text := range j.told() {
		for name, value := range canaries {
			if strings.Contains(text, value) {
				j.t.Errorf("INV-27, INV-34 the %s is in %s", name, where)
			}
		}
	}
}

// told is every text that a run leaves for people: log, outputs, page, reports, comments, pull requests.
func (j *job) told() map[string]string {
	j.t.Helper()
	out := map[string]string{"the log": string(j.run.Log), "the summary": j.Summary, "the outputs": fmt.Sprint(j.out)}
	for _, number := range j.numbers() {
		is, _ := j.hub.Issue(number)
		for _, c := range is.Comments {
			out[fmt.Sprintf("comment %d", c.ID)] = c.Body
		}
		if number != j.issue {
			out[fmt.Sprintf("pull request %d", number)] = is.Title + is.Body
		}
	}
	for path, text := range readAll(j.t, j.reports) {
		out["report "+path] = text
	}
	return out
}

func (w *world) numbers() []int {
	out := []int{w.issue}
	for _, p := range w.hub.Pulls() {
		out = append(out, p.Number)
	}
	return out
}

// readAll reads every file below dir, unpacked.
func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".gz") {
			r, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				return err
			}
			if b, err = io.ReadAll(r); err != nil {
				return err
			}
		}
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ended asserts how the run ended and that the requester was told so by the status comment and label.
func (j job) ended(terminal string, exit int, label string) job {
	j.t.Helper()
	if j.rec.Terminal != terminal || j.ExitCode != exit {
		j.t.Fatalf("ended %s (exit %d): %s, want %s (exit %d)\n%s", j.rec.Terminal, j.ExitCode, j.rec.Reason, terminal, exit, j.run.Log)
	}
	all := j.statuses()
	if len(all) != 1 || !strings.Contains(all[0], evidenceTitle(j.rec)) {
		j.t.Errorf("INV-49 the status comments %q do not say %q", all, evidenceTitle(j.rec))
	}
	if is := j.labels(); !slices.Equal(is, []string{label}) {
		j.t.Errorf("the issue's labels are %q, want %q", is, label)
	}
	return j
}

// reason asserts words of the reason or the next step.
func (j job) says(words ...string) job {
	j.t.Helper()
	for _, word := range words {
		if !strings.Contains(j.rec.Reason+" "+j.rec.Next, word) {
			j.t.Errorf("reason %q, next %q do not say %q", j.rec.Reason, j.rec.Next, word)
		}
	}
	return j
}

// statuses are the comments of our account that begin with the marker.
func (w *world) statuses() []string {
	is, _ := w.hub.Issue(w.issue)
	var out []string
	for _, c := range is.Comments {
		if c.Author == bot && strings.HasPrefix(c.Body, evidence.StatusMarker) {
			out = append(out, c.Body)
		}
	}
	return out
}

func (w *world) labels() []string {
	is, _ := w.hub.Issue(w.issue)
	return is.Labels
}

// git reads from the forge's bare repository.
func (w *world) git(args ...string) string {
	w.t.Helper()
	return w.gitIn("", args...)
}

func (w *world) gitIn(stdin string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", w.hub.GitDir()}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=/nonexistent"}
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (w *world) refs() []string {
	w.t.Helper()
	return strings.Fields(w.git("for-each-ref", "--format=%(refname)"))
}

// branch is the run's branch.
func (w *world) branch() string { return fmt.Sprintf("proctor/issue-%d", w.issue) }

// writes are the requests that change something on the forge: the API's, queries aside, and pushes.
func (w *world) writes() []string {
	var out []string
	for _, r := range w.hub.Requests() {
		query := r.Path == "/graphql" && !bytes.Contains(r.Body, []byte("mutation"))
		if r.Method != http.MethodGet && !query && (!r.Git || strings.HasSuffix(r.Path, "/git-receive-pack")) {
			out = append(out, r.Method+" "+r.Path)
		}
	}
	return out
}

// file is a file of the run's branch.
func (w *world) file(path string) string {
	w.t.Helper()
	return w.git("show", w.branch()+":"+path)
}

// published tells whether anything but checkpoints was made on the forge.
func (w *world) unpublished() {
	w.t.Helper()
	if w.hub.Branch(w.branch()) != "" || len(w.hub.Pulls()) != 0 {
		w.t.Errorf("branch %q, pull requests %v: want none", w.hub.Branch(w.branch()), w.hub.Pulls())
	}
}

// objects is the content of every object that the forge's repository holds, pushed or not reachable.
func (w *world) objects() string {
	w.t.Helper()
	return w.git("cat-file", "--batch-all-objects", "--batch", "--buffer", "--unordered")
}

// processesIn are processes whose working directory lies below dir.
func processesIn(dir string) []string {
	all, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var out []string
	for _, link := range all {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, dir) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			out = append(out, fmt.Sprintf("%s %q in %s", filepath.Base(filepath.Dir(link)), line, at))
		}
	}
	return out
}
