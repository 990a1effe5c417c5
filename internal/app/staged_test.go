package app

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/templates"
)

// staged is the workflow of a split run, with steps of a test's in the jobs named.
func staged(steps map[string]string) func(string) string {
	return func(string) string {
		text := string(templates.GitHubStaged)
		for job, step := range steps {
			head, tail, _ := strings.Cut(text, "\n  "+job+":\n")
			text = head + "\n  " + job + ":\n" + strings.Replace(tail, "      - id: proctor\n", step+"      - id: proctor\n", 1)
		}
		return text
	}
}

// push tries to push with the job's own token, as whoever has the machine could.
func push(branch, want string) string {
	return `      - env: {TOKEN: "${{ github.token }}", HUB: "${{ github.server_url }}/${{ github.repository }}.git"}
        run: if git push -q "${HUB/:\/\//://x:$TOKEN@}" HEAD:refs/heads/` + branch + `; then test ` + want + ` = yes; else test ` + want + ` = no; fi
`
}

// chain runs all jobs of the run that waits.
func (w *world) chain() map[string]forgetest.JobResult {
	w.t.Helper()
	r := w.runner
	a := r.Actions[0]
	a.Env = merged(a.Env, part(partAction), w.env)
	r.Actions = []forgetest.Action{a}
	res, err := r.Run(w.t.Context(), w.take())
	if err != nil {
		w.t.Fatalf("the jobs could not be run: %v\n%s", err, res.Run.Log)
	}
	jobs := map[string]forgetest.JobResult{}
	for _, j := range res.Jobs {
		jobs[j.Job] = j
	}
	if w.t.Failed() {
		w.t.Logf("%s", res.Run.Log)
	}
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Logf("%s", res.Run.Log)
		}
	})
	return jobs
}

func endings(jobs map[string]forgetest.JobResult) string {
	var out []string
	for _, j := range []string{"agent", "verify", "publish", "tell"} {
		out = append(out, j+" "+jobs[j].Conclusion)
	}
	return strings.Join(out, ", ")
}

func recordOf(t *testing.T, j forgetest.JobResult) evidence.Record {
	t.Helper()
	rec, err := evidence.Read(filepath.Join(filepath.Dir(j.Workspace), "home", "proctor"))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// INV-12, INV-15, INV-50: three jobs with three tokens. Those of the agent and of the verify job can push nothing (the control: the publish job's can), and
// until a person approves nothing is written; then exactly the commit is pushed that the fresh machine proved, and what it cost is on record.
func TestASplitRunPublishesWhatAFreshMachineProved(t *testing.T) {
	w := open(t, setting{
		byLabel: true, plan: []tick{{spend(1000, 100), reply(halfRight)}, {spend(1000, 100), reply(allRight)}},
		workflow: staged(map[string]string{"agent": push("stolen", "no"), "verify": push("stolen", "no"), "publish": push("control", "yes")}),
	})
	asked := 0
	w.runner.Approve = func(environment string) bool {
		asked++
		is, _ := w.hub.Issue(w.issue)
		if refs := w.refs(); environment != "proctor-publish" || len(refs) != 1 || fmt.Sprint(is.Labels) != "[proctor]" || len(w.statuses()) != 0 {
			t.Errorf("before %s: refs %q, labels %q", environment, refs, is.Labels)
		}
		return true
	}
	w.ask()
	jobs := w.chain()
	if got := endings(jobs); got != "agent success, verify success, publish success, tell skipped" || asked != 1 {
		t.Fatalf("jobs: %s; asked %d times", got, asked)
	}
	agent, verify, rec := recordOf(t, jobs["agent"]), recordOf(t, jobs["verify"]), recordOf(t, jobs["publish"])
	pulls := w.hub.Pulls()
	if len(pulls) != 1 || !pulls[0].Draft || pulls[0].HeadSHA != agent.Head.ID || verify.Head.ID != agent.Head.ID || rec.Published == nil || rec.Published.Commit != agent.Head.ID {
		t.Fatalf("INV-15 pulls %+v, agent %+v, verify %+v, published %+v", pulls, agent.Head, verify.Head, rec.Published)
	}
	if refs := strings.Join(w.refs(), " "); strings.Contains(refs, "stolen") || !strings.Contains(refs, "refs/heads/control") {
		t.Errorf("refs %s", refs)
	}
	if b := pulls[0].Body; !strings.Contains(b, "Who says so") || !strings.Contains(b, fmt.Sprintf("Closes #%d", w.issue)) || !strings.Contains(b, "acceptance") {
		t.Errorf("the body:\n%s", b)
	}
	if is, _ := w.hub.Issue(w.issue); fmt.Sprint(is.Labels) != "[proctor:review]" || len(w.statuses()) != 1 {
		t.Errorf("labels %q, %d status comments", is.Labels, len(w.statuses()))
	}
	if agent.Totals.CostUSD == 0 || rec.Totals.CostUSD != agent.Totals.CostUSD || rec.Totals.IssueUSD != agent.Totals.CostUSD || verify.Totals.CostUSD != 0 {
		t.Errorf("INV-54 costs: %s, %s, %s", agent.Totals.CostUSD, rec.Totals.CostUSD, verify.Totals.CostUSD)
	}
	if day := w.git("show", "refs/proctor/spend:day.json"); strings.Count(day, `"usd":`+strings.TrimSpace(agent.Totals.CostUSD.Decimal())) != 1 || strings.Contains(day, "open") {
		t.Errorf("the day's ledger is %s, the run cost %s", day, agent.Totals.CostUSD.Decimal())
	}
	for name, j := range jobs {
		if name == "tell" {
			continue
		}
		out := j.Outputs["proctor"]
		if out["stage"] != name || out["exit"] != "0" || out["terminal"] != "done" || out["commit"] != agent.Head.ID {
			t.Errorf("%s: outputs %q", name, out)
		}
	}
}

// INV-15: where the forge signs, the publish job has it sign what the fresh machine proved, and pushes that: the same tree under another id. Its checkpoint
// is what the forge has the trees from.
func TestASplitRunsCommitsAreSigned(t *testing.T) {
	w := open(t, setting{
		byLabel: true, signs: true, plan: []tick{{spend(1000, 100), reply(allRight)}}, workflow: staged(nil),
		config: map[string]string{"publish": "{signing: required}"},
	})
	w.runner.Approve = func(string) bool { return true }
	w.ask()
	jobs := w.chain()
	if got := endings(jobs); got != "agent success, verify success, publish success, tell skipped" {
		t.Fatalf("jobs: %s", got)
	}
	verify, rec, pulls := recordOf(t, jobs["verify"]), recordOf(t, jobs["publish"]), w.hub.Pulls()
	g := rec.Signing
	if len(pulls) != 1 || g == nil || !g.Signed || g.Proved != *verify.Head || pulls[0].HeadSHA != g.Pushed.ID || g.Pushed.ID == verify.Head.ID || g.Pushed.Tree != verify.Head.Tree {
		t.Fatalf("INV-15 pulls %+v, verify %+v, signing %+v", pulls, verify.Head, g)
	}
}
