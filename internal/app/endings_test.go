package app

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

func TestEveryEndingHasItsTerminalItsExitCodeAndItsStatus(t *testing.T) {
	flaky := "n=$(cat ignored/n 2>/dev/null || echo 0); mkdir -p ignored; echo $((n + 1)) > ignored/n; [ $((n % 2)) = 0 ]\n"
	for _, c := range []struct {
		name  string
		s     setting
		end   string
		exit  int
		label string
		says  []string
		ticks int
	}{
		{
			name: "INV-3 an agent that does nothing", s: setting{config: map[string]string{"stops": "{max_ticks: 9, no_progress_after: 2}"}},
			end: "no_progress", exit: 2, label: "proctor:needs-human", says: []string{"2 ticks in a row"}, ticks: 2,
		},
		{
			name: "INV-7 an agent that crashes", s: setting{plan: []tick{{crash("SEGV")}}, config: map[string]string{"stops": "{max_ticks: 9, no_progress_after: 9}"}},
			end: "agent_unavailable", exit: 5, label: "proctor:failed", says: []string{"3 times"}, ticks: 3,
		},
		{
			name: "INV-7 an agent that hangs past the run's time", s: setting{plan: []tick{{hang("polite")}}, config: map[string]string{"stops": "{max_duration: 3s}"}},
			end: "stopped_time", exit: 3, label: "proctor:needs-human", says: []string{"of 3s"}, ticks: 1,
		},
		{
			name: "INV-2 an agent that spends past the ceiling", s: setting{plan: []tick{{spend(50_000, 1000), spend(50_000, 1000), reply(halfRight)}}, config: map[string]string{"stops": "{max_cost_usd: 0.06}"}},
			end: "stopped_budget", exit: 3, label: "proctor:needs-human", says: []string{"stops.max_cost_usd"}, ticks: 1,
		},
		{
			name: "INV-1 an agent that is never right", s: setting{plan: []tick{{reply("a\n")}, {reply("b\n")}}, config: map[string]string{"stops": "{max_ticks: 2, no_progress_after: 9}"}},
			end: "tick_cap", exit: 2, label: "proctor:needs-human", says: []string{"2 of 2 ticks"}, ticks: 2,
		},
		{
			name: "INV-5 an agent that only satisfies the visible gate", s: setting{plan: []tick{{reply(halfRight)}, {reply("right too\n")}}},
			end: "overfit", exit: 2, label: "proctor:needs-human", says: []string{"2 of 2 times"}, ticks: 2,
		},
		{
			name: "a gate that cannot start", s: setting{config: map[string]string{"gates": "{iteration: [no-such-program, here]}"}},
			end: "gate_broken", exit: 5, label: "proctor:failed", says: []string{"no-such-program"},
		},
		{
			name: "INV-25 a gate that disagrees with itself", s: setting{files: map[string]string{"tests/run.sh": flaky}, config: map[string]string{"gates": "{iteration: sh tests/run.sh, stability: 3}"}},
			end: "gate_flaky", exit: 5, label: "proctor:failed", says: []string{"disagree"},
		},
		{
			name: "a setup that fails", s: setting{config: map[string]string{"setup": "[exit 3]"}},
			end: "gate_broken", exit: 5, label: "proctor:failed", says: []string{"setup", "exit code 3"},
		},
		{
			name: "INV-25 an acceptance gate that passes already", s: setting{files: map[string]string{"app/answer.txt": allRight}, config: map[string]string{"gates": "{iteration: sh tests/run.sh, acceptance: {run: sh sealed/check.sh, sealed: [sealed/**], must_fail_on_base: always}, stability: 1}"}},
			end: "already_satisfied", exit: 0, label: "proctor:needs-human", says: []string{"passes on the base"},
		},
		{
			name: "INV-26 a gate that proves nothing", s: setting{config: map[string]string{"gates": `{iteration: "true"}`}},
			end: "usage_error", exit: 1, label: "proctor:failed", says: []string{".github/proctor.yml", "gates.iteration"},
		},
		{
			name: "INV-55 a configuration with an unknown key", s: setting{config: map[string]string{"stopps": "{max_ticks: 2}"}},
			end: "usage_error", exit: 1, label: "proctor:failed", says: []string{".github/proctor.yml:", "stopps"},
		},
		{
			name: "INV-7 an agent that does not exist", s: setting{config: map[string]string{"agent": "{name: command, args: [no-such-agent]}"}},
			end: "agent_unavailable", exit: 5, label: "proctor:failed", says: []string{"no-such-agent"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, set := c.s.config["gates"]; !set && c.end != "overfit" {
				c.s.config = merged(map[string]string{"gates": visibleGates}, c.s.config)
			}
			w := open(t, c.s)
			j := w.label().ended(c.end, c.exit, c.label).says(c.says...)
			if len(j.rec.Ticks) != c.ticks {
				t.Errorf("%d ticks, want %d", len(j.rec.Ticks), c.ticks)
			}
			w.unpublished()
			if j.rec.Next == "" || !strings.Contains(j.Summary, "Next") && !strings.Contains(j.Summary, j.rec.Next[:10]) {
				t.Errorf("nobody is told what to do next: %q", j.rec.Next)
			}
		})
	}
}

func TestARunOverTheIssuesBudgetMakesNoCall(t *testing.T) {
	// INV-9, with two controls: the first run, and a third with a larger budget for the issue.
	w := open(t, setting{
		plan:   []tick{{spend(50_000, 1000), reply(halfRight)}, {reply(allRight)}},
		config: map[string]string{"stops": "{max_cost_usd: 0.05}", "budget": "{per_issue_usd: 0.05, per_day_usd: 1, per_actor_day_usd: 1}"},
	})
	w.label().ended("stopped_budget", 3, "proctor:needs-human")
	calls := len(w.model.Calls())
	j := w.label().ended("stopped_budget", 3, "proctor:needs-human").says("budget.per_issue_usd")
	if got := len(w.model.Calls()); got != calls || calls != 1 || len(j.rec.Ticks) != 0 {
		t.Errorf("%d model calls, then %d; %d ticks", calls, got, len(j.rec.Ticks))
	}
	if j.rec.Totals.IssueUSD.Decimal() != "0.055" || len(j.rec.Resumed) != 1 {
		t.Errorf("the issue has cost %s, resumed from %q", j.rec.Totals.IssueUSD.Decimal(), j.rec.Resumed)
	}
}

func TestASecretIsBlockedFedBackAndNeverPushed(t *testing.T) {
	// INV-17: not the tick that wrote it, nor any commit of the branch, nor a checkpoint.
	// The plan lies in the base commit, so the values must not stand in it whole.
	secret, other := "AKIA"+"Z7Q4XK2MTR9WNB3J", "ghp"+"_"+strings.Repeat("a1B2c3", 6)
	steps := tick{sh("printf 'AWS_ACCESS_KEY_ID=AKI%s\\nTOKEN=gh%s\\n' " + secret[3:] + " " + other[2:] + " > app/config.env"), reply(allRight)}
	w := open(t, setting{plan: []tick{steps, {remove("app/config.env")}}, config: map[string]string{"agent": "{name: script, args: [.github/plan.yml]}"}})
	j := w.label().ended("done", 0, "proctor:review")
	if len(j.rec.Ticks) != 2 || len(j.rec.Ticks[0].Gates) != 0 {
		t.Errorf("the first tick went on to %+v", j.rec.Ticks[0].Gates)
	}
	rules := map[string]bool{}
	for _, f := range j.rec.Ticks[0].Guard {
		rules[f.Rule+" "+f.Level] = true
	}
	if !rules["secret block"] {
		t.Errorf("the first tick's findings %+v", j.rec.Ticks[0].Guard)
	}
	all := w.objects()
	for _, s := range []string{secret, other} {
		if strings.Contains(all, s) {
			t.Error("INV-17 the secret is in an object on the forge")
		}
		for where, text := range j.told() {
			if strings.Contains(text, s) {
				t.Errorf("INV-34 the secret is in %s", where)
			}
		}
	}
	// The control: where the policy only flags, the same agent's file is pushed.
	kinds := sh(`printf '#!/bin/sh\n' > app/run.sh; chmod +x app/run.sh; ln -s answer.txt app/link; printf '\211PNG\000\001\002\003' > app/p.png; printf 'x\342\200\256y</script>\n' > app/bidi.txt`)
	w = again(t, setting{plan: []tick{append(steps, kinds)}, config: map[string]string{"policy": "{secrets: flag}"}})
	j = w.label()
	if !strings.Contains(w.objects(), secret) {
		t.Error("the control: without the rule nothing was pushed either")
	}
	changeIsShown(t, j, secret, other)
}

// changeIsShown looks at what lies beside the record of a run whose commit has a file of each kind, and secrets.
func changeIsShown(t *testing.T, j job, secrets ...string) {
	t.Helper()
	change, err := evidence.ReadChange(j.reports, j.rec)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, f := range change.Files {
		said[f.Path] = strings.Join(f.Words, "; ") + " | " + f.Risk
		for _, h := range f.Hunks {
			said[f.Path] += " | " + strings.Join(h.Lines, "\n")
		}
	}
	for path, want := range map[string]string{
		"app/run.sh":     "it is executable (mode 100755) | becomes executable | +#!/bin/sh",
		"app/link":       "a symbolic link after; its text is where it points | is a symlink | +answer.txt\n\\ no newline at the end of the file",
		"app/p.png":      "no text: 0 bytes before, 8 after | ",
		"app/bidi.txt":   ` |  | +x\u{202e}y</script>`,
		"app/config.env": " | secret | +[redacted]\n+TOKEN=ghp_[redacted]", // by the policy's finding, and by its shape
	} {
		if said[path] != want {
			t.Errorf("of %s it says %q, want %q", path, said[path], want)
		}
	}
	page, err := os.ReadFile(filepath.Join(j.reports, evidence.ReportFile))
	if err != nil || !strings.Contains(string(page), `x\u{202e}y&lt;/script&gt;`) || !strings.Contains(string(page), "app/config.env") {
		t.Errorf("the page does not show the change as text: %v", err)
	}
	for where, text := range readAll(t, j.reports) {
		for _, s := range secrets {
			if strings.Contains(text, s) {
				t.Errorf("INV-34 the secret is in %s", where)
			}
		}
	}
}

func TestARefusalIsToldOnTheIssue(t *testing.T) {
	// INV-49: whoever asked looks at the issue, not into a job's log.
	w := open(t, setting{plan: []tick{{reply(allRight)}}, byLabel: true})
	w.hub.AddUser("tess", "triage")
	_, err := w.hub.LabelIssue(w.issue, "proctor", "tess")
	w.must(err)
	j := w.next(t.Context())
	all := w.statuses()
	if j.ExitCode != 7 || len(all) != 1 || !strings.Contains(all[0], "triage") || slices.Contains(w.labels(), "proctor") {
		t.Errorf("exit %d; the issue's status comments %q, labels %q", j.ExitCode, all, w.labels())
	}
}

func TestADryRunSpendsNothingAndPushesNothing(t *testing.T) {
	w := open(t, setting{plan: twoAttempts()})
	w.hub.AddUser("tom", "admin")
	token := w.hub.NewToken(forgetest.Token{Login: "tom"})
	body := fmt.Sprintf(`{"ref":"main","inputs":{"issue":"%d","dry_run":"true"}}`, w.issue)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.hub.APIURL()+"/repos/octo/shop/actions/workflows/proctor.yml/dispatches", strings.NewReader(body))
	w.must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	w.must(err)
	resp.Body.Close()
	run := w.take()
	before := len(w.writes())
	j := w.execute(t.Context(), run, nil)
	if j.rec.Terminal != "done" || j.ExitCode != 0 || !j.rec.DryRun || len(j.rec.Ticks) != 0 || len(j.rec.Baseline) != 2 {
		t.Errorf("ended %s (exit %d) after %d ticks and %d gates: %s", j.rec.Terminal, j.ExitCode, len(j.rec.Ticks), len(j.rec.Baseline), j.rec.Reason)
	}
	j.says("dry run", "nothing was spent and nothing pushed")
	if got := w.writes()[before:]; len(got) != 0 {
		t.Errorf("the dry run wrote to the forge: %q", got)
	}
	w.untouched()
	// The control: the same world, asked for real.
	w.label().ended("done", 0, "proctor:review")
}
