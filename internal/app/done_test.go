package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// twoAttempts passes the visible gate first and the sealed one second.
func twoAttempts() []tick {
	return []tick{{spend(1000, 100), reply(halfRight)}, {spend(2000, 200), reply(allRight)}}
}

func TestALabelBecomesAProvedDraft(t *testing.T) {
	w := open(t, setting{plan: twoAttempts()})
	j := w.label().ended("done", 0, "proctor:review")
	t.Run("INV-50 one draft that closes the issue", func(t *testing.T) {
		pulls := w.hub.Pulls()
		if len(pulls) != 1 || !pulls[0].Draft || pulls[0].Head != w.branch() || pulls[0].Base != base || pulls[0].Author != bot {
			t.Fatalf("pull requests %+v", pulls)
		}
		if want := fmt.Sprintf("\nCloses #%d\n", w.issue); !strings.Contains(pulls[0].Body, want) {
			t.Errorf("the body lacks %q:\n%s", want, pulls[0].Body)
		}
		if d := cmp.Diff(gateRows(j.rec), tableRows(pulls[0].Body, "| Gate |")); d != "" {
			t.Errorf("the gate table is not the record's (-record +table):\n%s", d)
		}
		if d := cmp.Diff(gateRows(j.rec), tableRows(j.Summary, "| Gate |")); d != "" {
			t.Errorf("the gate table of the job's page is not the record's (-record +table):\n%s", d)
		}
	})
	t.Run("INV-15 the pushed commit is the proved one and the record's head", func(t *testing.T) {
		last := j.rec.Ticks[len(j.rec.Ticks)-1]
		ids := []string{w.hub.Branch(w.branch()), w.hub.Pulls()[0].HeadSHA, j.rec.Head.ID, last.Commit.ID, j.rec.Published.Commit, j.out["commit"], provedCommit(t, j)}
		if len(slices.Compact(slices.Clone(ids))) != 1 || ids[0] == "" {
			t.Errorf("commits differ: %q", ids)
		}
		if got := strings.TrimSpace(w.git("rev-parse", w.branch()+"^{tree}")); got != j.rec.Head.Tree {
			t.Errorf("tree %s was pushed, %s proved", got, j.rec.Head.Tree)
		}
	})
	t.Run("the branch holds the fix and nothing else", func(t *testing.T) {
		if got := w.file("app/answer.txt"); got != allRight {
			t.Errorf("the branch's answer is %q", got)
		}
		if got := w.git("diff", "--name-status", base, w.branch()); got != "M\tapp/answer.txt\n" {
			t.Errorf("the branch changes\n%s", got)
		}
	})
	t.Run("the commits' trailers name run, tick, issue, agent and cost", func(t *testing.T) {
		log := strings.Split(strings.TrimSpace(w.git("log", "--reverse", "--format=%(trailers:only,unfold)%x00", base+".."+w.branch())), "\x00")
		for i, c := range j.rec.Ticks {
			for _, want := range []string{
				"Proctor-Run: " + j.rec.Run, fmt.Sprintf("Proctor-Tick: %d", c.N), fmt.Sprintf("Proctor-Issue: octo/shop#%d", w.issue),
				"Proctor-Agent: script", "Proctor-Cost-USD: 0.00", "Proctor-Verdict: ",
			} {
				if !strings.Contains(log[i], want) {
					t.Errorf("commit %d lacks %q:\n%s", i+1, want, log[i])
				}
			}
		}
	})
	t.Run("INV-54 the totals are those of the calls that the model had", func(t *testing.T) {
		// $1 a million tokens in, $5 out.
		if got, want := j.rec.Totals.CostUSD.Decimal(), "0.0045"; !strings.HasPrefix(got, want) || j.rec.Totals.Calls != 2 || len(w.model.Calls()) != 2 || j.rec.Totals.Ticks != 2 {
			t.Errorf("totals %+v after %d calls", j.rec.Totals, len(w.model.Calls()))
		}
		for _, c := range w.model.Calls() {
			if c.Key() != w.key {
				t.Errorf("the model was shown the key %q", c.Key())
			}
		}
	})
	t.Run("INV-49 outputs and the status comment point at the draft", func(t *testing.T) {
		p := w.hub.Pulls()[0]
		want := map[string]string{
			"terminal": "done", "reason": j.rec.Reason, "branch": w.branch(), "commit": j.rec.Head.ID, "pull-request": fmt.Sprint(p.Number),
			"pull-request-url": p.URL, "cost-usd": j.rec.Totals.CostUSD.Decimal(), "ticks": "2", "run": j.rec.Run, "report": j.reports,
			"stage": "all", "exit": "0", "verified": "",
		}
		if d := cmp.Diff(want, j.out); d != "" {
			t.Errorf("outputs (-want +got):\n%s", d)
		}
		if s := w.statuses()[0]; !strings.Contains(s, p.URL) && !strings.Contains(s, fmt.Sprintf("#%d", p.Number)) {
			t.Errorf("the status comment does not point at the draft:\n%s", s)
		}
	})
	t.Run("the checkpoint is kept and says that the run was published", func(t *testing.T) {
		w.leaves()
		if len(j.rec.Notes) != 0 {
			t.Errorf("notes of a run without trouble: %q", j.rec.Notes)
		}
	})
}

// gateRows are name, place and result of the deciding gate runs.
func gateRows(rec evidence.Record) [][3]string {
	places := map[string]string{"gate": "clean checkout", "proof": "pristine checkout"}
	last := rec.Ticks[len(rec.Ticks)-1]
	var out [][3]string
	for _, g := range append(slices.Clone(last.Gates), last.Proof...) {
		name := g.Name
		if g.HeldOut() {
			name += " (held out)"
		}
		out = append(out, [3]string{name, places[g.Where], g.Status})
	}
	return out
}

// tableRows reads the same three from the Markdown table whose head begins so.
func tableRows(markdown, head string) [][3]string {
	_, rest, _ := strings.Cut(markdown, head)
	var out [][3]string
	for i, line := range strings.Split(rest, "\n") {
		if i < 2 {
			continue // the rest of the head, and the rule
		}
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			break
		}
		result := strings.Fields(cells[4])
		out = append(out, [3]string{strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2]), result[len(result)-1]})
	}
	return out
}

// provedCommit is the commit of the last proof that the event log tells of.
func provedCommit(t *testing.T, j job) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(j.reports, evidence.EventsFile))
	if err != nil {
		t.Fatal(err)
	}
	commit := ""
	for line := range bytes.Lines(b) {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(line), string(evidence.ProofEnded)) && e[evidence.KeyStatus] == "passed" {
			commit, _ = e[evidence.KeyCommit].(string)
		}
	}
	return commit
}

// INV-53: the doors differ in what they are told, not in what comes of it.
func TestEveryDoorLeadsToTheSameRun(t *testing.T) {
	dispatch := func(w *world, inputs map[string]string) job {
		body, err := json.Marshal(map[string]any{"ref": base, "inputs": inputs})
		if err != nil {
			w.t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.hub.APIURL()+"/repos/octo/shop/actions/workflows/proctor.yml/dispatches", bytes.NewReader(body))
		if err != nil {
			w.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+w.hub.NewToken(forgetest.Token{Login: asker}))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			w.t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			w.t.Fatalf("the dispatch was answered %s", resp.Status)
		}
		return w.next(w.t.Context())
	}
	for _, door := range []struct {
		name    string
		kind    string
		byLabel bool
		ask     func(*world) job
	}{
		{"the webhook", "dispatch", false, (*world).label},
		{"the workflow's own trigger", "label", true, (*world).label},
		{"a dispatch by hand", "dispatch", false, func(w *world) job { return dispatch(w, map[string]string{"issue": fmt.Sprint(w.issue)}) }},
	} {
		t.Run(door.name, func(t *testing.T) {
			w := open(t, setting{plan: []tick{{reply(allRight)}}, byLabel: door.byLabel})
			j := door.ask(w).ended("done", 0, "proctor:review")
			if tr := j.rec.Trigger; tr.Kind != door.kind || tr.Actor != asker || tr.Role != "write" || tr.Issue != w.issue || !tr.Verified || tr.Snapshot == "" {
				t.Errorf("trigger %+v", tr)
			}
			if w.file("app/answer.txt") != allRight || !strings.Contains(w.hub.Pulls()[0].Body, fmt.Sprintf("Closes #%d", w.issue)) {
				t.Errorf("the draft is not what was asked for:\n%s", w.hub.Pulls()[0].Body)
			}
		})
	}
	t.Run("a dispatch with a goal", func(t *testing.T) {
		w := open(t, setting{plan: []tick{{reply(allRight)}}})
		j := dispatch(w, map[string]string{"goal": "Make the answer right"})
		if j.rec.Terminal != "done" || j.ExitCode != 0 || j.rec.Trigger.Goal != "Make the answer right" || j.rec.Trigger.Issue != 0 || j.rec.Trigger.Actor != asker {
			t.Fatalf("ended %s: %s; trigger %+v", j.rec.Terminal, j.rec.Reason, j.rec.Trigger)
		}
		p := w.hub.Pulls()
		if len(p) != 1 || !p[0].Draft || strings.Contains(p[0].Body, "Closes") || w.git("show", p[0].Head+":app/answer.txt") != allRight {
			t.Errorf("pull requests %+v", p)
		}
		if got := w.statuses(); len(got) != 0 {
			t.Errorf("an issue that is none of the run's has the comments %q", got)
		}
	})
}

// local runs `proctor ARGS` in a clone of the forge's repository, as a process of its own.
func (w *world) local(args ...string) (rec evidence.Record, checkout, out string, exit int) {
	w.t.Helper()
	return w.localContext(w.t.Context(), args...)
}

// localContext sends the process the signal of ^C when ctx ends.
func (w *world) localContext(ctx context.Context, args ...string) (rec evidence.Record, checkout, out string, exit int) {
	w.t.Helper()
	checkout = filepath.Join(w.dir, "clone")
	if _, err := os.Stat(checkout); err != nil {
		if text, err := exec.Command("git", "clone", "-q", w.hub.URL()+"/octo/shop", checkout).CombinedOutput(); err != nil {
			w.t.Fatalf("clone: %v\n%s", err, text)
		}
	}
	reports := w.t.TempDir()
	cmd := exec.CommandContext(ctx, w.runner.Actions[0].Binary, append(args, "--report", reports)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Dir = checkout
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "TMPDIR=" + w.t.TempDir(), "USER=" + asker,
		"GITHUB_API_URL=" + w.hub.APIURL(), "GITHUB_SERVER_URL=" + w.hub.URL(), "ANTHROPIC_API_KEY=" + w.key,
		"ANTHROPIC_BASE_URL=" + w.runner.Actions[0].Env["ANTHROPIC_BASE_URL"], "GITHUB_TOKEN=" + w.hub.NewToken(forgetest.Token{Login: asker}),
	}
	for k, v := range part(partCLI) {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	if rec, err = evidence.Read(reports); err != nil {
		w.t.Fatalf("the record: %v\n%s", err, text)
	}
	return rec, checkout, string(text), cmd.ProcessState.ExitCode()
}

func TestAPersonRunsAnIssueFromTheirOwnCheckout(t *testing.T) {
	w := open(t, setting{plan: twoAttempts()})
	rec, _, out, exit := w.local("run", "--issue", fmt.Sprint(w.issue))
	if rec.Terminal != "done" || exit != 0 {
		t.Fatalf("ended %s (exit %d): %s\n%s", rec.Terminal, exit, rec.Reason, out)
	}
	p := w.hub.Pulls()
	if len(p) != 1 || !p[0].Draft || p[0].Author != asker || w.file("app/answer.txt") != allRight || !strings.Contains(p[0].Body, "Closes #") {
		t.Errorf("pull requests %+v", p)
	}
	if !strings.Contains(out, p[0].URL) {
		t.Errorf("the terminal was not told the draft's address:\n%s", out)
	}
}

func TestAGoalStaysOnThisMachineAndRunsNoHookOfTheCheckout(t *testing.T) {
	// INV-21: the checkout's own hooks and filters belong to a person, and run in nobody's harness.
	w := open(t, setting{plan: []tick{{reply(allRight)}}})
	canary := filepath.Join(w.dir, "a-hook-ran")
	if _, _, out, exit := w.local("run", "--goal", "x", "--dry-run"); exit != 0 {
		t.Fatalf("the dry run ended %d:\n%s", exit, out)
	}
	checkout := filepath.Join(w.dir, "clone")
	plantHooks(t, filepath.Join(checkout, ".git"), canary)
	rec, _, out, exit := w.local("run", "--goal", "Make the answer right")
	if rec.Terminal != "done" || exit != 0 || rec.Branch == "" {
		t.Fatalf("ended %s (exit %d) with branch %q: %s\n%s", rec.Terminal, exit, rec.Branch, rec.Reason, out)
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("INV-21 a hook of the checkout ran in the harness")
	}
	// The control: any git command of a person runs them. It also shows the branch.
	got, err := exec.Command("git", "-C", checkout, "-c", "core.fsmonitor=false", "show", rec.Branch+":app/answer.txt").CombinedOutput()
	if err != nil || string(got) != allRight {
		t.Errorf("the local branch's answer is %q: %v", got, err)
	}
	if text, err := exec.Command("git", "-C", checkout, "checkout", "-q", rec.Branch).CombinedOutput(); err != nil {
		t.Logf("checkout: %v %s", err, text)
	}
	if _, err := os.Stat(canary); err != nil {
		t.Error("the control: no hook ran by hand either, so this test shows nothing")
	}
	if n := w.writes(); len(n) != 0 || len(w.refs()) != 1 {
		t.Errorf("a goal wrote to the forge: %q, refs %q", n, w.refs())
	}
}

// plantHooks fills a git directory with every hook and with configuration that runs a program, each leaving the canary.
func plantHooks(t *testing.T, gitDir, canary string) {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\necho \"$0\" >> '%s'\nexit 0\n", canary)
	for _, name := range []string{
		"applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge", "post-rewrite",
		"pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "prepare-commit-msg", "reference-transaction", "sendemail-validate", "update",
		"pre-receive", "post-receive", "post-update", "push-to-checkout",
	} {
		if err := os.WriteFile(filepath.Join(gitDir, "hooks", name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := filepath.Join(gitDir, "hooks", "post-commit")
	f, err := os.OpenFile(filepath.Join(gitDir, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(f, "\n[core]\n\tfsmonitor = %[1]s\n\tpager = %[1]s\n\tsshCommand = %[1]s\n[diff]\n\texternal = %[1]s\n[credential]\n\thelper = %[1]s\n[gpg]\n\tprogram = %[1]s\n[commit]\n\tgpgSign = true\n[filter \"x\"]\n\tclean = %[1]s\n\tsmudge = %[1]s\n", run)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
