package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/proctor-ci/proctor"
	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
)

// setting is what a scenario changes about the world below. The zero setting is the repository below with an agent that does nothing.
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
	mute     bool   // the model takes requests and never answers
	leaks    bool   // a control in which the sealed text may be seen

	enterprise bool // the API lies below /api/v3
	exchange   bool // the webhook gives runs their tokens
	signs      bool // the forge signs commits; else it is as a server without web commit signing
}

// world is a GitHub, a model, a webhook and a runner on loopback, with one issue.
type world struct {
	t        *testing.T
	dir      string
	hub      *forgetest.GitHub
	model    *agenttest.Model
	called   chan struct{}          // gets one element for each model call
	mid      atomic.Pointer[func()] // what happens in front of the next model call, once
	runner   forgetest.Runner
	env      map[string]string
	key      string
	issue    int
	hook     string   // where the webhook listens
	tokenURL string   // of its exchange
	peoples  []string // refs that people made
	mark     string   // what nobody may see, "" where everybody may
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
	appBot     = "proctor-app[bot]"
	hookSecret = "a secret for deliveries in tests"
)

// open makes the world and its issue; nobody has labelled it yet.
func open(t *testing.T, s setting) *world {
	t.Helper()
	t.Parallel()
	return again(t, s)
}

// again makes one more world in a test that has opened one.
func again(t *testing.T, s setting) *world {
	t.Helper()
	s = s.played()
	w := &world{t: t, dir: t.TempDir(), peoples: []string{"refs/heads/" + base}, called: make(chan struct{}, 1000), env: s.env, key: "sk-" + "e2e-" + strings.Repeat("k3y", 12)}
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
	hub, err := forgetest.NewGitHub(forgetest.Options{Dir: filepath.Join(w.dir, "forge"), Files: tree, WorkflowTriggers: s.byLabel, Enterprise: s.enterprise, Installation: map[bool]int64{true: appInstall}[s.exchange]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Close() })
	hub.Set(forgetest.CommitSigning(s.signs))
	w.hub = hub
	hub.AddUser(asker, "write")
	w.model = agenttest.NewModel(s.script)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if s.mute {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			w.model.ServeHTTP(httptest.NewRecorder(), r)
			w.called <- struct{}{}
			<-r.Context().Done()
			return
		}
		if f := w.mid.Swap(nil); f != nil {
			(*f)()
		}
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
		Actions: []forgetest.Action{{Uses: "proctor-ci/proctor/host", Metadata: proctor.ActionMetadata, Binary: self, Env: map[string]string{"ANTHROPIC_BASE_URL": server.URL}}},
	}
	if os.Getenv(realAgent) != "" {
		w.runner.Actions[0].Env["PATH"] = os.Getenv("PATH") // else the runner's own
	}
	if !s.byLabel {
		w.serveWebhook(s.exchange)
	}
	title, body := s.title, s.body
	if title == "" {
		title, body = "The answer is wrong", "It should be **right**."
	}
	w.issue = hub.OpenIssue(title, body, asker)
	return w
}

// serveWebhook puts the real handler behind the forge's deliveries.
func (w *world) serveWebhook(exchange bool) {
	w.hub.AddBot(appBot, "write")
	door := &doorway{}
	server := httptest.NewServer(door)
	w.t.Cleanup(server.Close)
	w.tokenURL = server.URL + "/token"
	token := w.hub.NewToken(forgetest.Token{Login: appBot, Installation: true, Permissions: map[string]string{"actions": "write", "contents": "read", "issues": "write", "metadata": "read"}})
	h, err := webhook.New(webhook.Config{
		GitHubSecrets: []string{hookSecret}, Checks: true, Store: webhook.NewMemory(time.Now), Now: time.Now,
		Rules: policy.Rules{Label: trigger.DefaultLabel, Roles: policy.DefaultRoles()}, Exchange: w.exchange(exchange),
		Connect: func(_ context.Context, to webhook.Target) (webhook.Forge, error) {
			return github.New(github.Config{BaseURL: w.hub.APIURL(), ServerURL: w.hub.URL(), Owner: to.Repo.Owner, Repo: to.Repo.Name, Token: token, Now: time.Now, Sleep: clock.Sleep})
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	door.Handler = h
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
		maps.Copy(out, m)
	}
	return out
}
