package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/proctor-ci/proctor"
	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/demo"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
)

// stageSecret signs the demo's deliveries; it guards nothing but a loopback port.
const stageSecret = "the demo's webhook secret"

// stage is the world around the product: a forge, a model, a webhook, a runner.
type stage struct {
	env   Env
	opts  demoOptions
	view  *account
	out   string
	hub   *forgetest.GitHub
	model *agenttest.Model
	hook  *http.Server
	issue int
}

func (s *stage) open(ctx context.Context) error {
	s.out = s.opts.out
	if s.out == "" {
		dir, err := os.MkdirTemp("", "proctor-demo-")
		if err != nil {
			return fmt.Errorf("make a directory for the demo: %w. Next: free space, or set TMPDIR", err)
		}
		s.out = dir
	}
	// Agents and gates run as users of their own below it.
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return fmt.Errorf("make a directory for the demo: %w. Next: give --out a directory that can be written", err)
	}
	if err := os.Chmod(s.out, 0o755); err != nil {
		return fmt.Errorf("open the demo's directory: %w", err)
	}
	files := filepath.Join(s.out, "files")
	if err := demo.Write(files, s.opts.agent, s.opts.sandbox, s.opts.scenario); err != nil {
		return err
	}
	defer os.RemoveAll(files)
	hub, err := forgetest.NewGitHub(forgetest.Options{Dir: filepath.Join(s.out, "forge"), Owner: "octo", Name: "till", Files: os.DirFS(files), Clock: s.env.Now})
	if err != nil {
		return fmt.Errorf("start the forge: %w", err)
	}
	s.hub = hub
	s.view.step(-1, "forge", "a GitHub of its own on "+hub.URL()+", repository octo/till")
	s.hub.AddUser("maya", "write")
	s.model = agenttest.NewModel(demo.Model(s.opts.agent))
	return s.openWebhook(ctx)
}

// openWebhook serves the real handler, as `webhook -listen` does.
func (s *stage) openWebhook(ctx context.Context) error {
	s.hub.AddBot("proctor-demo[bot]", "write")
	token := s.hub.NewToken(forgetest.Token{Login: "proctor-demo[bot]", Installation: true, Permissions: map[string]string{"actions": "write", "contents": "read", "issues": "write", "metadata": "read"}})
	h, err := webhook.New(webhook.Config{
		GitHubSecrets: []string{stageSecret}, Store: webhook.NewMemory(s.env.Now), Now: s.env.Now,
		Rules: policy.Rules{Label: trigger.DefaultLabel, Roles: policy.DefaultRoles()},
		Connect: func(_ context.Context, to webhook.Target) (webhook.Forge, error) {
			return github.New(github.Config{BaseURL: s.hub.APIURL(), ServerURL: s.hub.URL(), Owner: to.Repo.Owner, Repo: to.Repo.Name, Token: token, Now: s.env.Now, Sleep: s.env.Sleep})
		},
	})
	if err != nil {
		return fmt.Errorf("start the webhook: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start the webhook: %w", err)
	}
	s.hook = &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.hook.Serve(l) }()
	s.hub.SetHook("http://"+l.Addr().String()+"/github", stageSecret)
	return nil
}

func (s *stage) close() {
	if s.hook != nil {
		_ = s.hook.Close()
	}
	if s.model != nil {
		s.model.Close()
	}
	if s.hub != nil {
		_ = s.hub.Close()
	}
}

// play labels the issue and executes the run that the webhook dispatches.
func (s *stage) play(ctx context.Context) (evidence.Record, error) {
	s.issue = s.hub.OpenIssue(demo.Title, demo.Body, "maya")
	rec, err := s.ask(ctx, s.opts.scenario.Interrupted)
	if err != nil || !s.opts.scenario.Interrupted {
		return rec, err
	}
	s.view.step(-1, "cancelled", fmt.Sprintf("%s: %s", rec.Terminal, rec.Reason))
	return s.ask(ctx, false)
}

// ask labels the issue and executes what is dispatched; interrupted, it is cancelled as soon as its first tick has ended.
func (s *stage) ask(ctx context.Context, interrupted bool) (evidence.Record, error) {
	delivery, err := s.hub.LabelIssue(s.issue, trigger.DefaultLabel, "maya")
	if err != nil {
		return evidence.Record{}, fmt.Errorf("label the issue: %w", err)
	}
	s.view.step(-1, "issue", fmt.Sprintf("#%d %q, labelled %q by maya", s.issue, demo.Title, trigger.DefaultLabel))
	s.view.step(-1, "webhook", fmt.Sprintf("signed delivery, answered %d %s", delivery.Status, answer(delivery)))
	waiting, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	queued, err := s.hub.NextRun(waiting)
	if err != nil {
		return evidence.Record{}, fmt.Errorf("the webhook dispatched no run (answer %d %s): %w", delivery.Status, answer(delivery), err)
	}
	s.view.step(-1, "runner", "the workflow starts the action's binary as a job of its own on "+short(queued.SHA))
	return s.execute(ctx, queued, interrupted)
}

// answer is what the webhook said, in one line.
func answer(d forgetest.Delivery) string {
	var a struct{ Status, Reason string }
	if json.Unmarshal(d.Response, &a) != nil || a.Status == "" {
		return strings.TrimSpace(string(d.Response))
	}
	return strings.TrimSpace(a.Status + " " + a.Reason)
}

func (s *stage) execute(ctx context.Context, queued forgetest.Run, interrupted bool) (evidence.Record, error) {
	at, err := s.model.Start(ctx)
	if err != nil {
		return evidence.Record{}, err
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if s.opts.path != "" {
		path = s.opts.path + ":" + path
	}
	key := "sk-demo-" + s.hub.NewToken(forgetest.Token{Login: "maya"})
	runner := forgetest.Runner{
		GitHub: s.hub, Dir: filepath.Join(s.out, "jobs"), Path: path, Secrets: map[string]string{"ANTHROPIC_API_KEY": key, "OPENAI_API_KEY": key, "GEMINI_API_KEY": key},
		// The host action would install a release first. The container action's door to the same program takes the same inputs.
		Actions: []forgetest.Action{{Uses: "proctor-ci/proctor/host", Metadata: proctor.ActionMetadata, Binary: s.opts.action, Env: map[string]string{"ANTHROPIC_BASE_URL": at, "OPENAI_BASE_URL": at + "/v1", "GOOGLE_GEMINI_BASE_URL": at}}},
	}
	watching, stop := context.WithCancel(ctx)
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(watching, runner.Dir, func(e evidence.Event) {
			if interrupted && e.Kind == evidence.TickEnded {
				cancel()
			}
		})
	}()
	res, err := runner.Run(running, queued)
	stop()
	<-watched
	if err != nil {
		return evidence.Record{}, fmt.Errorf("the job could not be run: %w\n%s", err, res.Run.Log)
	}
	kept := "report"
	if interrupted {
		kept = "report-cancelled"
	}
	rec, err := s.record(runner.Dir, kept)
	if err != nil {
		return rec, fmt.Errorf("the job left no record: %w\n%s", err, res.Run.Log)
	}
	return rec, nil
}

// watch tells the job's events as they are written.
func (s *stage) watch(ctx context.Context, jobs string, on func(evidence.Event)) {
	wait := func(c context.Context) error { return clock.Sleep(c, 40*time.Millisecond) }
	for {
		found, _ := filepath.Glob(filepath.Join(jobs, "*", "*", "proctor", evidence.EventsFile))
		if len(found) == 0 {
			found, _ = filepath.Glob(filepath.Join(jobs, "*", "*", "*", "proctor", evidence.EventsFile))
		}
		if len(found) > 0 {
			for e, err := range evidence.Tail(ctx, found[0], wait) {
				if err != nil {
					return
				}
				s.view.Event(e)
				on(e)
			}
			return
		}
		if wait(ctx) != nil {
			return
		}
	}
}

// record moves what the job left to the demo's own directory.
func (s *stage) record(jobs, name string) (evidence.Record, error) {
	var found []string
	for _, depth := range []string{"*/*", "*/*/*"} {
		more, _ := filepath.Glob(filepath.Join(jobs, depth, "proctor"))
		found = append(found, more...)
	}
	if len(found) == 0 {
		return evidence.Record{}, errors.New("there is no report directory in the job's home")
	}
	to := filepath.Join(s.out, name)
	if err := os.Rename(found[0], to); err != nil {
		return evidence.Record{}, fmt.Errorf("keep the report: %w", err)
	}
	return evidence.Read(to)
}
