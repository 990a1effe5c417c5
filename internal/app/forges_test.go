package app

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/gitlab"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
)

// labWorld is a GitLab with the same repository, the real webhook handler and the job of a pipeline.
type labWorld struct {
	t      *testing.T
	dir    string
	lab    *forgetest.GitLab
	model  *world // its model server is used, and nothing else of it
	runner forgetest.GitLabRunner
	issue  int
}

const labBot = "project_4200_bot_1"

func openLab(t *testing.T, s setting) *labWorld {
	t.Helper()
	s = s.played()
	model := again(t, s) // for its model server
	w := &labWorld{t: t, dir: model.dir, model: model}
	s.mark = sealedMark
	s.files = merged(s.files, map[string]string{".gitlab-ci.yml": "proctor: {script: [proctor-action]}\n"})
	tree := fstest.MapFS{}
	for path, content := range repository(s) {
		tree[path] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
	}
	lab, err := forgetest.NewGitLab(forgetest.GitLabOptions{Dir: filepath.Join(w.dir, "lab"), Files: tree})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lab.Close() })
	w.lab = lab
	lab.AddUser(asker, "developer")
	lab.AddUser(labBot, "developer")
	lab.AddUser("olga", "maintainer") // a trigger token acts as its owner
	starter := lab.NewTriggerToken()
	reader := lab.NewToken(forgetest.GitLabToken{Login: labBot, Scopes: []string{"read_api"}})
	h, err := webhook.New(webhook.Config{
		GitLabTokens: []string{hookSecret}, Checks: true, Store: webhook.NewMemory(time.Now), Now: time.Now,
		Rules: policy.Rules{Label: trigger.DefaultLabel, Roles: policy.DefaultRoles()},
		Connect: func(context.Context, webhook.Target) (webhook.Forge, error) {
			return gitlab.New(gitlab.Config{ServerURL: lab.URL(), Project: lab.Project(), Token: reader, TriggerToken: starter})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	lab.SetHook(server.URL+"/gitlab", hookSecret, nil)
	w.runner = forgetest.GitLabRunner{
		GitLab: lab, Binary: model.runner.Actions[0].Binary, Dir: filepath.Join(w.dir, "lab-jobs"),
		Variables: merged(part(partAction), map[string]string{
			"PROCTOR_GITLAB_TOKEN": lab.NewToken(forgetest.GitLabToken{Login: labBot}), "PROCTOR_ANTHROPIC_API_KEY": model.key,
			"PROCTOR_MODEL_BASE_URL": model.runner.Actions[0].Env["ANTHROPIC_BASE_URL"],
		}),
	}
	if path := model.runner.Actions[0].Env["PATH"]; path != "" {
		w.runner.Variables["PATH"] = path
	}
	w.issue = lab.OpenIssue("The answer is wrong", "It should be **right**.", asker)
	return w
}

// label asks and runs the pipeline's job.
func (w *labWorld) label() (forgetest.GitLabResult, evidence.Record) {
	w.t.Helper()
	d, err := w.lab.LabelIssue(w.issue, trigger.DefaultLabel, asker)
	if err != nil || !strings.Contains(string(d.Response), `"dispatched"`) {
		w.t.Fatalf("the webhook answered %d %s: %v", d.Status, d.Response, err)
	}
	res, err := w.runner.Run(w.t.Context())
	if err != nil {
		w.t.Fatalf("the pipeline: %v\n%s", err, res.Pipeline.Log)
	}
	rec, err := evidence.Read(filepath.Join(res.Workspace, "proctor"))
	if err != nil {
		w.t.Fatalf("INV-54 the record: %v\n%s", err, res.Pipeline.Log)
	}
	return res, rec
}

func TestALabelOnGitLabBecomesAProvedDraft(t *testing.T) {
	t.Parallel()
	w := openLab(t, setting{plan: twoAttempts()})
	res, rec := w.label()
	if rec.Terminal != "done" || res.ExitCode != 0 || res.Pipeline.Status != "success" {
		t.Fatalf("ended %s (exit %d): %s\n%s", rec.Terminal, res.ExitCode, rec.Reason, res.Pipeline.Log)
	}
	pulls := w.lab.Pulls()
	if len(pulls) != 1 || !pulls[0].Draft || pulls[0].HeadSHA != rec.Head.ID || pulls[0].Author != labBot || !strings.Contains(pulls[0].Body, fmt.Sprintf("Closes #%d", w.issue)) {
		t.Errorf("merge requests %+v", pulls)
	}
	is, _ := w.lab.Issue(w.issue)
	if len(is.Comments) != 1 || !strings.HasPrefix(is.Comments[0].Body, evidence.StatusMarker) || !strings.Contains(is.Comments[0].Body, "Proved") || len(is.Labels) != 1 || is.Labels[0] != "proctor:review" {
		t.Errorf("labels %q, notes %+v", is.Labels, is.Comments)
	}
	env, err := os.ReadFile(filepath.Join(res.Workspace, "proctor.env"))
	if err != nil || !bytes.Contains(env, []byte("PROCTOR_TERMINAL=done\n")) || !bytes.Contains(env, []byte("PROCTOR_COMMIT="+rec.Head.ID+"\n")) {
		t.Errorf("the dotenv report %q: %v", env, err)
	}
	for _, secret := range w.runner.Variables {
		for path, text := range readAll(t, filepath.Join(res.Workspace, "proctor")) {
			if len(secret) > 20 && strings.Contains(text, secret) {
				t.Errorf("INV-34 a secret is in %s", path)
			}
		}
	}
	if bytes.Contains(res.Pipeline.Log, []byte(sealedMark)) {
		t.Error("INV-27 the sealed text is in the log")
	}
}

func TestTheSameRunLeavesTheSameRecordOnEveryForge(t *testing.T) {
	// INV-53
	w := open(t, setting{plan: twoAttempts(), files: map[string]string{".gitlab-ci.yml": "proctor: {script: [proctor-action]}\n"}})
	want := comparable(w.label().ended("done", 0, "proctor:review").rec)
	enterprise := again(t, setting{plan: twoAttempts(), enterprise: true, files: map[string]string{".gitlab-ci.yml": "proctor: {script: [proctor-action]}\n"}})
	if d := cmp.Diff(want, comparable(enterprise.label().ended("done", 0, "proctor:review").rec)); d != "" {
		t.Errorf("GitHub and GitHub Enterprise differ (-GitHub +Enterprise):\n%s", d)
	}
	_, rec := openLab(t, setting{plan: twoAttempts()}).label()
	got := comparable(rec)
	if got.Trigger.Forge, got.Trigger.Event = want.Trigger.Forge, want.Trigger.Event; want.Trigger.Forge != "github" || rec.Trigger.Forge != "gitlab" {
		t.Errorf("the forges are called %q and %q", want.Trigger.Forge, rec.Trigger.Forge)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("GitHub and GitLab differ (-GitHub +GitLab):\n%s", d)
	}
}

// comparable takes out of a record what two runs of the same thing cannot share: times, ids that hold times, and the
// forge's own names and numbers.
func comparable(r evidence.Record) evidence.Record {
	r.Run, r.RunURL, r.Started, r.Ended, r.Totals.Millis = "", "", time.Time{}, time.Time{}, 0
	r.Base.ID, r.Reason = "", strings.ReplaceAll(r.Reason, r.Head.ID[:12], "HEAD")
	r.Head = &evidence.Commit{Tree: r.Head.Tree}
	r.Trigger.Cause, _, _ = strings.Cut(r.Trigger.Cause, " for commit ")
	r.Trigger.Delivery, r.Trigger.Repo, r.Trigger.IssueURL, r.Trigger.ActorID = "", "", "", 0
	p := *r.Published
	p.Commit, p.Number, p.URL = "", 0, ""
	r.Published = &p
	if g := r.Signing; g != nil {
		r.Signing = &evidence.Signing{Mode: g.Mode, Signed: g.Signed} // each forge has its own reason
	}
	for i := range r.Baseline {
		r.Baseline[i].Millis, r.Baseline[i].At = 0, 0
	}
	for i := range r.Ticks {
		t := &r.Ticks[i]
		t.Started, t.Millis, t.Agent.Millis = time.Time{}, 0, 0
		t.Commit = &evidence.Commit{Tree: t.Commit.Tree}
		for _, gates := range [][]evidence.Gate{t.Gates, t.Proof} {
			for k := range gates {
				gates[k].Millis, gates[k].At = 0, 0
			}
		}
	}
	for i := range r.Calls {
		r.Calls[i].Millis, r.Calls[i].At = 0, 0
	}
	return r
}

func TestTheCorrelationIDReachesAGitLabJob(t *testing.T) {
	// INV-46: a run that was dispatched is found, and told apart, by its id. The job reads what the trigger sent: one that is
	// none is refused by its name, and the control, one in its form, is not.
	for _, c := range []struct {
		name, id, says string
		exit           int
	}{
		{name: "control: an id", id: trigger.NewID("a key"), says: "done"},
		{name: "no id", id: "proctor-but-damaged", says: `input "proctor_id"`, exit: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := openLab(t, setting{plan: []tick{{reply(allRight)}}})
			f, err := gitlab.New(gitlab.Config{ServerURL: w.lab.URL(), Project: w.lab.Project(), Token: w.lab.NewToken(forgetest.GitLabToken{Login: labBot}), TriggerToken: w.lab.NewTriggerToken()})
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Dispatch(t.Context(), "", base, map[string]string{"issue": fmt.Sprint(w.issue), "proctor_id": c.id}); err != nil {
				t.Fatal(err)
			}
			res, err := w.runner.Run(t.Context())
			if err != nil || res.ExitCode != c.exit || !bytes.Contains(res.Pipeline.Log, []byte(c.says)) {
				t.Errorf("exit %d, %v; the log does not say %s:\n%s", res.ExitCode, err, c.says, res.Pipeline.Log)
			}
			if run, err := f.FindRun(t.Context(), "", base, c.id, time.Now().Add(-time.Hour)); err != nil || run.ID != res.Pipeline.ID {
				t.Errorf("found %+v, %v; the pipeline is %d", run, err, res.Pipeline.ID)
			}
		})
	}
}

func TestAGitLabJobWithoutATokenSaysWhichOneToMake(t *testing.T) {
	t.Parallel()
	w := openLab(t, setting{plan: []tick{{reply(allRight)}}})
	delete(w.runner.Variables, "PROCTOR_GITLAB_TOKEN")
	if _, err := w.lab.LabelIssue(w.issue, trigger.DefaultLabel, asker); err != nil {
		t.Fatal(err)
	}
	res, err := w.runner.Run(t.Context())
	if err != nil || res.ExitCode != 1 || !bytes.Contains(res.Pipeline.Log, []byte("PROCTOR_GITLAB_TOKEN")) {
		t.Errorf("exit %d, %v:\n%s", res.ExitCode, err, res.Pipeline.Log)
	}
	if len(w.lab.Pulls()) != 0 {
		t.Error("a merge request was opened")
	}
}
