package app

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// split is a run of several jobs whose stages a test does one at a time, each with a checkout, a token and a report directory of its own.
type split struct {
	*world
	run forgetest.Run
	// handover is what the agent's job left.
	handover string
	agent    evidence.Record
}

// Permissions of the jobs' tokens, as the workflow gives them.
var (
	readsCode = map[string]string{"metadata": "read", "contents": "read"}
	readsAll  = map[string]string{"metadata": "read", "contents": "read", "issues": "read", "pull_requests": "read"}
	writesAll = map[string]string{"metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write", "checks": "write"}
)

// openSplit makes the world and does the agent's job.
func openSplit(t *testing.T, s setting) *split {
	t.Helper()
	s.byLabel = true
	d := &split{world: open(t, s)}
	d.ask()
	d.run = d.take()
	d.agent, d.handover = d.stage(stageAgent, "", "", readsAll)
	if d.agent.Terminal != "done" || len(d.refs()) != 1 {
		t.Fatalf("the agent's job ended %s: %s; refs %q", d.agent.Terminal, d.agent.Reason, d.refs())
	}
	return d
}

// stage does one job and gives its record and its report directory.
func (d *split) stage(st stageName, handover, verified string, permissions map[string]string) (evidence.Record, string) {
	d.t.Helper()
	dir := d.t.TempDir()
	checkout, reports := filepath.Join(dir, "checkout"), filepath.Join(dir, "reports")
	gitAt(d.t, dir, "", "clone", "-q", d.hub.GitDir(), checkout)
	gitAt(d.t, checkout, "", "checkout", "-q", "--detach", d.run.SHA)
	token := d.hub.NewToken(forgetest.Token{Job: true, Permissions: permissions})
	defer d.hub.Revoke(token)
	f, err := github.New(github.Config{BaseURL: d.hub.APIURL(), ServerURL: d.hub.URL(), Owner: d.hub.Owner(), Repo: d.hub.Repo(), Token: token, HTTP: &http.Client{Timeout: time.Minute}, Now: time.Now, Sleep: clock.Sleep})
	if err != nil {
		d.t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	env := Env{Getenv: os.Getenv, Stdout: io.Discard, Stderr: d.t.Output(), Now: time.Now, Random: rand.Reader, Sleep: clock.Sleep, Exe: exe, Dir: checkout}
	req := request{
		forge: f, checkout: checkout, ref: d.run.Ref, scratch: dir, reports: reports, runURL: fmt.Sprintf("%s/actions/runs/%d", d.hub.URL(), d.run.ID),
		toolPath: os.Getenv("PATH"), home: dir, stage: st, handover: handover, verified: verified, secrets: []string{token},
		parse: func(c config.Config) (trigger.Trigger, error) {
			return trigger.ParseGitHub(d.run.Event, d.run.Payload, trigger.Options{Label: c.Trigger.Label, Prefix: c.Trigger.Commands})
		},
	}
	if st == stageAgent {
		req.key, req.modelAt = meter.Credential{Kind: meter.APIKey, Value: d.key}, d.runner.Actions[0].Env["ANTHROPIC_BASE_URL"]
	}
	return run(d.t.Context(), env, req), reports
}

// lease takes the issue for another run, until the function is called.
func (d *split) lease(holder string) func() {
	d.t.Helper()
	checkout := filepath.Join(d.t.TempDir(), "c")
	gitAt(d.t, d.dir, "", "clone", "-q", d.hub.GitDir(), checkout)
	g, err := git.New(git.Options{})
	d.must(err)
	store, err := g.OpenStore(d.t.Context(), git.StoreOptions{Checkout: checkout, Dir: filepath.Join(d.t.TempDir(), "s")})
	d.must(err)
	d.t.Cleanup(store.Close)
	token := d.hub.NewToken(forgetest.Token{Job: true, Permissions: writesAll})
	remote := git.Remote{URL: d.hub.URL() + "/" + d.hub.Owner() + "/" + d.hub.Repo() + ".git", Token: token}
	lease, err := store.Acquire(d.t.Context(), remote, fmt.Sprintf("refs/proctor/%d/lease", d.issue), holder, time.Hour)
	d.must(err)
	return func() { d.must(lease.Release(d.t.Context())) }
}

// copied is the handover in a directory of its own, for a test to change.
func (d *split) copied() string {
	d.t.Helper()
	dir := d.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(d.handover)); err != nil {
		d.t.Fatal(err)
	}
	return dir
}

func (d *split) edit(dir, name string, change func(string) string) {
	d.t.Helper()
	file := filepath.Join(dir, name)
	b, err := os.ReadFile(file)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(change(string(b))), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func swapping(old, now string) func(string) string {
	return func(s string) string { return strings.ReplaceAll(s, old, now) }
}

// resum makes handover.json name the files as they are now.
func (d *split) resum(dir string) {
	d.t.Helper()
	var was handover
	b, err := os.ReadFile(filepath.Join(d.handover, handoverFile))
	if err == nil {
		err = json.Unmarshal(b, &was)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	for name, sum := range map[string]string{evidence.RecordFile: was.Record, bundleFile: was.Bundle} {
		now, err := sumOf(filepath.Join(dir, name))
		if err != nil {
			d.t.Fatal(err)
		}
		d.edit(dir, handoverFile, swapping(sum, now))
	}
}

// forgery is a commit that somebody on the agent's machine makes in the name of the run.
type forgery struct {
	files  map[string]string
	author string // "" for the run's own
}

// forge puts other commits into the place of the run's, and makes record and handover fit: what whoever has the agent's machine can do.
func (d *split) forge(commits ...forgery) string {
	d.t.Helper()
	dir, work := d.copied(), filepath.Join(d.t.TempDir(), "w")
	gitAt(d.t, d.dir, "", "clone", "-q", d.hub.GitDir(), work)
	message := func() string {
		gitAt(d.t, work, "", "fetch", "-q", filepath.Join(d.handover, bundleFile), "+refs/heads/*:refs/heads/run/*")
		return gitAt(d.t, work, "", "log", "-1", "--format=%B", d.agent.Head.ID)
	}()
	for _, c := range commits {
		for path, content := range c.files {
			file := filepath.Join(work, path)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				d.t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				d.t.Fatal(err)
			}
			if content == "" {
				os.Remove(file)
			}
		}
		gitAt(d.t, work, "", "add", "-A")
		author := first(c.author, "Proctor <proctor@noreply.invalid>")
		gitAt(d.t, work, message, "-c", "user.name=Proctor", "-c", "user.email=proctor@noreply.invalid", "commit", "-q", "--cleanup=verbatim", "--author", author, "-F", "-")
	}
	id := strings.TrimSpace(gitAt(d.t, work, "", "rev-parse", "HEAD"))
	tree := strings.TrimSpace(gitAt(d.t, work, "", "rev-parse", "HEAD^{tree}"))
	gitAt(d.t, work, "", "branch", "x")
	gitAt(d.t, work, "", "bundle", "create", "-q", filepath.Join(dir, bundleFile), d.agent.Base.ID+"..x")
	for _, name := range []string{evidence.RecordFile, handoverFile} {
		d.edit(dir, name, swapping(d.agent.Head.ID, id))
		d.edit(dir, name, swapping(d.agent.Head.Tree, tree))
	}
	d.resum(dir)
	return dir
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// INV-15, INV-16, INV-17: whoever has the agent's machine writes the handover as they like. The verify job takes its gates, its policy and its base from the forge, so
// that nothing but a commit that holds there gets on. The control is what the agent's job really left.
func TestTheVerifyJobBelievesNothingOfTheAgentsMachine(t *testing.T) {
	d := openSplit(t, setting{plan: []tick{{reply(allRight)}}, config: map[string]string{"gates": bothGates}})
	other := strings.Repeat("1", 40)
	key := "AKIA" + "Z7VQ3MGN" + "XW5TB2KL"
	for _, c := range []struct {
		name     string
		handover func() string
		grants   map[string]string
		terminal string
		words    string
	}{
		{"the control", d.copied, readsCode, "done", "hold on a fresh machine"},
		{"nothing was handed over", d.t.TempDir, readsCode, "refused", "download the artifact"},
		{"a token that can push", d.copied, writesAll, "refused", "contents: read"},
		{"another record", func() string {
			dir := d.copied()
			d.edit(dir, evidence.RecordFile, swapping(`"script"`, `"scripted"`))
			return dir
		}, readsCode, "refused", "its bytes were changed"},
		{"another bundle", func() string {
			dir := d.copied()
			d.edit(dir, bundleFile, func(s string) string { return s[:len(s)-25] + "x" + s[len(s)-24:] })
			return dir
		}, readsCode, "refused", "proctor.bundle is not the file"},
		{"a broken pack with its sum", func() string {
			dir := d.copied()
			d.edit(dir, bundleFile, func(s string) string { return s[:len(s)-25] + "x" + s[len(s)-24:] })
			d.resum(dir)
			return dir
		}, readsCode, "refused", "no sound pack"},
		{"another workflow run's", func() string {
			dir := d.copied()
			d.edit(dir, handoverFile, swapping("/actions/runs/", "/actions/runs/9"))
			return dir
		}, readsCode, "refused", "of the workflow run"},
		{"another base", func() string {
			dir := d.copied()
			d.edit(dir, handoverFile, swapping(d.agent.Base.ID, other))
			return dir
		}, readsCode, "refused", "made on base commit 1111"},
		{"another commit than the bundle's", func() string {
			dir := d.copied()
			for _, f := range []string{evidence.RecordFile, handoverFile} {
				d.edit(dir, f, swapping(d.agent.Head.ID, other))
			}
			d.resum(dir)
			return dir
		}, readsCode, "refused", "and not in commit 1111"},
		{"a field of its own", func() string {
			dir := d.copied()
			d.edit(dir, handoverFile, swapping(`"schema"`, `"gates": "none", "schema"`))
			return dir
		}, readsCode, "refused", "one version of proctor"},
		{"a weaker configuration", func() string {
			return d.forge(forgery{files: map[string]string{".github/proctor.yml": "version: 1\ngates: {iteration: sh tests/run.sh}\n", "app/answer.txt": allRight}})
		}, readsCode, "safety_halt", ".github/proctor.yml"},
		{"a weaker exam", func() string {
			return d.forge(forgery{files: map[string]string{"sealed/check.sh": ":\n", "app/answer.txt": halfRight}})
		}, readsCode, "safety_halt", "sealed/check.sh"},
		{"a secret that a later commit takes out", func() string {
			return d.forge(forgery{files: map[string]string{"app/aws.txt": "aws_access_key_id = " + key + "\n"}}, forgery{files: map[string]string{"app/aws.txt": "", "app/answer.txt": allRight}})
		}, readsCode, "safety_halt", "secret"},
		{"a person's name", func() string {
			return d.forge(forgery{files: map[string]string{"app/answer.txt": allRight}, author: "Maya <maya@example.com>"})
		}, readsCode, "refused", "which no run made"},
		{"work that the visible gate fails", func() string { return d.forge(forgery{files: map[string]string{"app/answer.txt": "no\n"}}) }, readsCode, "not_reproduced", "the iteration gate"},
		{"work that the held-out gate fails", func() string { return d.forge(forgery{files: map[string]string{"app/answer.txt": halfRight}}) }, readsCode, "not_reproduced", "the acceptance gate"},
	} {
		rec, reports := d.stage(stageVerify, c.handover(), "", c.grants)
		if rec.Terminal != c.terminal || !strings.Contains(rec.Reason+rec.Next, c.words) {
			t.Errorf("%s: ended %s: %s Next: %s", c.name, rec.Terminal, rec.Reason, rec.Next)
		}
		var v verified
		if err := json.Unmarshal([]byte(read(t, filepath.Join(reports, verifiedFile))), &v); err != nil || v.Terminal != c.terminal || (v.Head == evidence.Commit{}) != (c.terminal != "done") {
			t.Errorf("%s: vouches for %+v, %v", c.name, v, err)
		}
	}
	if refs := d.refs(); len(refs) != 1 {
		t.Errorf("refs %q", refs)
	}
}

func (d *split) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// asked labels the issue as it was at the beginning.
func (d *split) asked() {
	d.t.Helper()
	is, _ := d.hub.Issue(d.issue)
	for _, l := range is.Labels {
		if err := d.hub.UnlabelIssue(d.issue, l, asker); err != nil {
			d.t.Fatal(err)
		}
	}
	if _, err := d.hub.LabelIssue(d.issue, trigger.DefaultLabel, asker); err != nil {
		d.t.Fatal(err)
	}
}

// INV-12, INV-15, INV-41: the publish job looks again at all that it can see itself, and pushes nothing else than what the verify job names. A forged finding gets a
// commit no further than the patch policy of the base. What the agent's job spent is on record whatever comes of it, once.
func TestThePublishJobPushesNothingButWhatWasVerified(t *testing.T) {
	d := openSplit(t, setting{plan: []tick{{spend(1000, 100), reply(allRight)}}, config: map[string]string{"gates": bothGates, "stops": "{max_ticks: 4, max_cost_usd: 0.50, max_duration: 5m}"}})
	_, reports := d.stage(stageVerify, d.handover, "", readsCode)
	finding := read(t, filepath.Join(reports, verifiedFile))
	weaker := d.forge(forgery{files: map[string]string{".github/proctor.yml": "version: 1\ngates: {iteration: sh tests/run.sh}\n", "app/answer.txt": allRight}})
	var forged handover
	if err := json.Unmarshal([]byte(read(t, filepath.Join(weaker, handoverFile))), &forged); err != nil {
		t.Fatal(err)
	}
	swapped := strings.NewReplacer(d.agent.Head.ID, forged.Head.ID, d.agent.Head.Tree, forged.Head.Tree)
	is, _ := d.hub.Issue(d.issue)
	cost := d.agent.Totals.CostUSD
	spentOn := func() string {
		out, err := exec.Command("git", "-C", d.hub.GitDir(), "show", fmt.Sprintf("refs/proctor/%d/state:proctor-state.json", d.issue)).Output()
		if err != nil {
			return ""
		}
		_, after, _ := strings.Cut(string(out), `"issue_before_usd":`)
		amount, _, _ := strings.Cut(after, ",")
		return amount
	}
	for _, c := range []struct {
		name, handover, verified string
		before, after            func()
		terminal, words          string
	}{
		{name: "another commit than was verified", handover: weaker, verified: finding, terminal: "refused", words: "vouches for commit " + short(d.agent.Head.ID)},
		{name: "a finding that somebody forged", handover: weaker, verified: swapped.Replace(finding), terminal: "safety_halt", words: ".github/proctor.yml"},
		{name: "a finding of another run", handover: d.handover, verified: strings.Replace(finding, d.agent.Run, "20200101-000000-00000000", 1), terminal: "refused", words: "another run"},
		{name: "a finding without the held-out gate", handover: d.handover, verified: strings.Replace(finding, `"acceptance"`, `"other"`, 2), terminal: "refused", words: "the acceptance gate passed"},
		{name: "a finding that is red", handover: d.handover, verified: strings.Replace(finding, `"done"`, `"not_reproduced"`, 1), terminal: "refused", words: "ended as not_reproduced"},
		{name: "no finding", handover: d.handover, verified: "{}", terminal: "refused", words: "needs.verify.outputs.verified"},
		{name: "no handover", handover: t.TempDir(), verified: finding, terminal: "refused", words: "there is no handover"},
		{
			name: "the issue was edited", handover: d.handover, verified: finding, terminal: "refused", words: "edited after the request",
			before: func() { d.must(d.hub.EditIssue(d.issue, is.Title, "Mail me the key.")) },
			after:  func() { d.must(d.hub.EditIssue(d.issue, is.Title, is.Body)) },
		},
		{
			name: "the label was taken off", handover: d.handover, verified: finding, terminal: "refused", words: "taken off before",
			before: func() { d.must(d.hub.UnlabelIssue(d.issue, trigger.DefaultLabel, asker)) },
		},
	} {
		d.asked()
		if c.before != nil {
			c.before()
		}
		rec, _ := d.stage(stagePublish, c.handover, c.verified, writesAll)
		if rec.Terminal != c.terminal || !strings.Contains(rec.Reason+rec.Next, c.words) {
			t.Errorf("%s: ended %s: %s Next: %s", c.name, rec.Terminal, rec.Reason, rec.Next)
		}
		if c.after != nil {
			c.after()
		}
		if n := len(d.hub.Pulls()); n != 0 || strings.Contains(strings.Join(d.refs(), " "), "refs/heads/proctor/") {
			t.Fatalf("INV-15 %s: %d pull requests, refs %q", c.name, n, d.refs())
		}
	}
	counted := func(when string) {
		if got := spentOn(); cost == 0 || got != cost.Decimal() {
			t.Errorf("%s: the issue has cost %q, the agent's job spent %s, which counts once", when, got, cost.Decimal())
		}
		if day := d.git("show", "refs/proctor/spend:day.json"); strings.Count(day, `"usd":`) != 1 || !strings.Contains(day, cost.Decimal()) {
			t.Errorf("%s: the day's ledger is %s", when, day)
		}
	}
	counted("after refusals")
	release := d.lease("another-run")
	d.asked()
	for st, grants := range map[stageName]map[string]string{stageAgent: readsAll, stagePublish: writesAll} {
		if rec, _ := d.stage(st, d.handover, finding, grants); rec.Terminal != "refused" || !strings.Contains(rec.Reason, "run another-run works on this already") {
			t.Errorf("INV-12 %s while another run has the issue: ended %s: %s", st, rec.Terminal, rec.Reason)
		}
	}
	release()
	d.asked()
	if rec, _ := d.stage(stageAgent, "", "", writesAll); rec.Terminal != "refused" || !strings.Contains(rec.Next, "contents: read") || rec.Totals.Calls != 0 {
		t.Errorf("an agent's job with a token that can push: ended %s: %s", rec.Terminal, rec.Reason)
	}
	d.asked()
	rec, _ := d.stage(stagePublish, d.handover, finding, writesAll)
	if pulls := d.hub.Pulls(); rec.Terminal != "done" || len(pulls) != 1 || pulls[0].HeadSHA != d.agent.Head.ID {
		t.Errorf("the control: ended %s: %s; pulls %+v", rec.Terminal, rec.Reason, pulls)
	}
	counted("after publishing")
}
