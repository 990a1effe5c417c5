package app

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// comment writes a comment and gives its id and the run that it started.
func (w *world) comment(number int, author, body string) (int64, forgetest.Run) {
	w.t.Helper()
	id, err := w.hub.Comment(number, author, body)
	w.must(err)
	return id, w.take()
}

// command writes a comment on the issue as the asker and runs its job.
func (w *world) command(body string) job {
	w.t.Helper()
	j, _ := w.commandOn(w.issue, asker, body)
	return j
}

func (w *world) commandOn(number int, author, body string) (job, int64) {
	w.t.Helper()
	id, run := w.comment(number, author, body)
	return w.execute(w.t.Context(), run, nil), id
}

// talkOn are the comments on an issue or a pull request.
func (w *world) talkOn(number int) []forgetest.Comment {
	is, _ := w.hub.Issue(number)
	return is.Comments
}

// heard asserts how the job of a command ended, which reaction its comment got, and what the answer says; no words
// mean that there is no answer.
func (j job) heard(number int, id int64, terminal, reactions string, words ...string) job {
	j.t.Helper()
	if j.rec.Terminal != terminal {
		j.t.Fatalf("ended %s (exit %d): %s, want %s\n%s", j.rec.Terminal, j.ExitCode, j.rec.Reason, terminal, j.run.Log)
	}
	all := j.talkOn(number)
	at := slices.IndexFunc(all, func(c forgetest.Comment) bool { return c.ID == id })
	if at < 0 {
		j.t.Fatal("the comment is gone")
	}
	if got := strings.Join(all[at].Reactions, " "); got != reactions {
		j.t.Errorf("%q got the reactions %q, want %q", all[at].Body, got, reactions)
	}
	var answer string
	for _, c := range all[at+1:] {
		if c.Author == bot && !strings.HasPrefix(c.Body, evidence.StatusMarker) {
			answer = c.Body
		}
	}
	if len(words) == 0 && answer != "" {
		j.t.Errorf("%q was answered %q", all[at].Body, answer)
	}
	for _, word := range words {
		if !strings.Contains(answer, word) {
			j.t.Errorf("%q was answered %q, want %q in it", all[at].Body, answer, word)
		}
	}
	if _, again := trigger.FindCommand(answer, trigger.DefaultPrefix); again {
		j.t.Errorf("INV-48 the answer %q is a command", answer)
	}
	return j
}

func TestACommandThatStartsNothingIsAnswered(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply(allRight)}}, byLabel: true})
	for _, c := range []struct {
		body, terminal, reactions string
		exit                      int
		words                     []string
	}{
		{"/proctor help", "answered", "eyes", 0, []string{"`/proctor run`", "`/proctor budget +N`"}},
		{"/proctor dance @everyone", "answered", "eyes", 0, []string{"no such command", "`/proctor stop`"}},
		{"/proctor split", "answered", "eyes", 0, []string{"not there yet"}},
		{"/proctor budget lots", "answered", "eyes", 0, []string{"budget +5"}},
		{"/proctor status", "answered", "eyes", 0, []string{"Nothing runs here"}},
		{"Why?\n\n/PROCTOR explain please", "answered", "eyes", 0, []string{"No run has saved anything"}},
		{"/proctor stop", "answered", "eyes", 0, []string{"nothing to stop"}},
		{"/proctor resume", "refused", "eyes confused", 7, []string{"nothing to resume", "/proctor run"}},
	} {
		j, id := w.commandOn(w.issue, asker, c.body)
		j.heard(w.issue, id, c.terminal, c.reactions, c.words...)
		if j.ExitCode != c.exit || strings.Contains(w.talkOn(w.issue)[len(w.talkOn(w.issue))-1].Body, "everyone") {
			t.Errorf("%q: exit code %d, last comment %q", c.body, j.ExitCode, w.talkOn(w.issue)[len(w.talkOn(w.issue))-1].Body)
		}
	}
	if len(w.model.Calls()) != 0 || len(w.statuses()) != 0 || len(w.labels()) != 0 {
		t.Errorf("%d calls, status comments %q, labels %q: want none", len(w.model.Calls()), w.statuses(), w.labels())
	}
	w.unpublished()
}

// The registry is whole: what it does not call missing is answered here or begins a run.
func TestEveryCommandHasAnEngineOrSaysThatItHasNone(t *testing.T) {
	t.Parallel()
	engines, inspections := (&session{}).answers(), (&session{}).inspections()
	begins := []string{"run", "resume", "retry", "fix", "budget"}
	for _, c := range trigger.Commands() {
		_, steers := engines[c.Name]
		_, replied := trigger.Command{Name: c.Name, Args: []string{"+1"}}.Reply(trigger.DefaultPrefix)
		n := 0
		_, looks := inspections[c.Name]
		for _, has := range []bool{steers, replied, looks, slices.Contains(begins, c.Name)} {
			if has {
				n++
			}
		}
		if n != 1 || steers && c.Asks() || slices.Contains(begins, c.Name) && !c.Starts || looks != c.Check || looks && c.Starts {
			t.Errorf("%s: steers %v, replied %v, looks %v, begins a run %v, registry %+v", c.Name, steers, replied, looks, slices.Contains(begins, c.Name), c)
		}
	}
	for name := range inspections {
		if _, ok := (trigger.Command{Name: name}).Info(); !ok {
			t.Errorf("the engine of %s has no command", name)
		}
	}
	for name := range engines {
		if _, ok := (trigger.Command{Name: name}).Info(); !ok {
			t.Errorf("the engine of %s has no command", name)
		}
	}
}

// INV-48: what is no command, or not from somebody who may ask, starts nothing and makes nobody write.
func TestCommandsCountOnlyWhereAndFromWhomTheyShould(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply(allRight)}}, byLabel: true})
	w.hub.AddUser("tess", "triage")
	w.hub.AddBot("robot[bot]", "write")
	for _, c := range []struct{ name, by, body, terminal, reactions string }{
		{"in a quote", asker, "> /proctor run\n\nI would not.", "answered", ""},
		{"in a lazily continued quote", asker, "> as said:\n/proctor run", "answered", ""},
		{"in code", asker, "```\n/proctor run\n```", "answered", ""},
		{"indented", asker, "  /proctor run", "answered", ""},
		{"not first on its line", asker, "please /proctor run", "answered", ""},
		{"by somebody without write access", "tess", "/proctor run", "refused", "confused"},
		{"an unknown one by somebody without write access", "tess", "/proctor dance", "refused", "confused"},
		{"help for somebody without write access", "tess", "/proctor help", "refused", "confused"},
		{"by a stranger", "nobody-knows", "/proctor stop", "refused", "confused"},
		{"by a bot", "robot[bot]", "/proctor run", "refused", "confused"},
		{"by our own account", bot, "/proctor run", "refused", "confused"},
	} {
		j, id := w.commandOn(w.issue, c.by, c.body)
		j.heard(w.issue, id, c.terminal, c.reactions)
		if t.Failed() {
			t.Fatal(c.name)
		}
	}
	// Changed or deleted before its run read it.
	for _, to := range []string{"/proctor status", "never mind", ""} {
		id, run := w.comment(w.issue, asker, "/proctor run")
		w.must(w.hub.EditComment(id, to))
		if j := w.execute(t.Context(), run, nil); j.rec.Terminal != "refused" || !strings.Contains(j.rec.Reason, "comment") {
			t.Errorf("changed to %q: ended %s: %s", to, j.rec.Terminal, j.rec.Reason)
		}
	}
	// An edit starts nothing either, nor does the run's own word.
	if runs := w.hub.Runs(); runs[len(runs)-1].Status != "completed" {
		t.Errorf("a run waits: %+v", runs[len(runs)-1])
	}
	if len(w.model.Calls()) != 0 || len(w.statuses()) != 0 {
		t.Errorf("%d calls, status comments %q", len(w.model.Calls()), w.statuses())
	}
	w.unpublished()
	// Control: the same words from the asker.
	j, id := w.commandOn(w.issue, asker, "Go on:\n\n/proctor run")
	j.ended("done", 0, "proctor:review").heard(w.issue, id, "done", "eyes rocket")
}

func TestACommandIsOldAfterADay(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply(allRight)}}, byLabel: true})
	id, run := w.comment(w.issue, asker, "/proctor run")
	j := w.execute(t.Context(), run, map[string]string{laterVariable: "25h"})
	j.heard(w.issue, id, "refused", "confused").says("counts for a day")
}

func TestRunsAreAskedForAndExplainedByComments(t *testing.T) {
	w := open(t, setting{plan: []tick{{spend(1000, 100), reply("one\n")}, {reply(allRight)}}, byLabel: true, config: map[string]string{"stops": "{max_ticks: 1, max_cost_usd: 1, max_duration: 5m}"}})
	j, id := w.commandOn(w.issue, asker, "/proctor run")
	j.ended("tick_cap", 2, "proctor:needs-human").heard(w.issue, id, "tick_cap", "eyes rocket")
	if tr := j.rec.Trigger; tr.Kind != "comment" || tr.Actor != asker || tr.Role != "write" {
		t.Errorf("the trigger is %+v", tr)
	}
	why, id := w.commandOn(w.issue, asker, "/proctor explain")
	why.heard(w.issue, id, "answered", "eyes", "tick_cap", "Tick cap", "**Next:**")
	what, id := w.commandOn(w.issue, asker, "/proctor status")
	what.heard(w.issue, id, "answered", "eyes", "Nothing runs here", j.rec.Run, "tick 1")
	j = w.command("/proctor resume").ended("done", 0, "proctor:review")
	if len(j.rec.Resumed) != 1 || j.rec.Ticks[0].N != 2 {
		t.Errorf("resumed %q with tick %d", j.rec.Resumed, j.rec.Ticks[0].N)
	}
	pull := w.hub.Pulls()[0]
	// On the pull request the same commands are about its issue.
	said, id := w.commandOn(pull.Number, asker, "/proctor explain")
	said.heard(pull.Number, id, "answered", "eyes", "Proved", j.rec.Run)
	if said.rec.Trigger.Issue != w.issue {
		t.Errorf("the record names issue %d, want %d", said.rec.Trigger.Issue, w.issue)
	}
	// One that no run opened is nobody's, and a fork never gets near a run.
	w.must2(w.hub.Commit(t.Context(), "by-hand", theirFile(), "by hand"))
	w.peoples = append(w.peoples, "refs/heads/by-hand")
	foreign, forked := w.hub.OpenPull("Mine", "by-hand", base, asker, false), w.hub.OpenPull("Theirs", w.branch(), base, "stranger", true)
	for number, word := range map[int]string{foreign: "no run of Proctor", forked: "fork"} {
		j, id := w.commandOn(number, asker, "/proctor retry")
		j.heard(number, id, "refused", "confused", word)
	}
	if n := len(w.model.Calls()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

func (w *world) must2(_ string, err error) {
	w.t.Helper()
	w.must(err)
}

func TestRetryBeginsAtTheBaseAndWhatWasSpentCounts(t *testing.T) {
	w := open(t, setting{
		plan: []tick{{spend(1000, 100), write("app/one.txt", "1\n")}, {spend(1000, 100), reply(allRight)}}, byLabel: true,
		config: map[string]string{"stops": "{max_ticks: 1, max_cost_usd: 1, max_duration: 5m}"},
	})
	first := w.command("/proctor run").ended("tick_cap", 2, "proctor:needs-human")
	again := w.command("/proctor retry").ended("tick_cap", 2, "proctor:needs-human")
	if again.rec.Ticks[0].N != 1 || again.rec.Totals.IssueUSD != first.rec.Totals.CostUSD.Add(again.rec.Totals.CostUSD) {
		t.Errorf("retry began with tick %d, and the issue has cost %s", again.rec.Ticks[0].N, again.rec.Totals.IssueUSD)
	}
	// Control: resume goes on.
	if j := w.command("/proctor resume").ended("done", 0, "proctor:review"); j.rec.Ticks[0].N != 2 {
		t.Errorf("resume began with tick %d", j.rec.Ticks[0].N)
	}
}

func TestBudgetRaisesTheIssuesOnceForEachComment(t *testing.T) {
	w := open(t, setting{
		plan: []tick{{spend(50_000, 1000), reply(halfRight)}, {spend(50_000, 1000), reply(allRight)}}, byLabel: true,
		config: map[string]string{"stops": "{max_cost_usd: 0.05}", "budget": "{per_issue_usd: 0.05, per_day_usd: 1, per_actor_day_usd: 1}"},
	})
	w.command("/proctor run").ended("stopped_budget", 3, "proctor:needs-human")
	calls := len(w.model.Calls())
	// Control: without the raise there is nothing left.
	w.command("/proctor resume").ended("stopped_budget", 3, "proctor:needs-human").says("budget.per_issue_usd")
	if n := len(w.model.Calls()); n != calls {
		t.Errorf("%d calls above the ceiling", n-calls)
	}
	id, run := w.comment(w.issue, asker, "/proctor budget +0.10")
	rich := w.execute(t.Context(), run, nil).ended("done", 0, "proctor:review")
	rich.heard(w.issue, id, "done", "eyes rocket")
	if notes := strings.Join(rich.rec.Notes, "\n"); !strings.Contains(notes, "$0.15") || !strings.Contains(notes, "$0.10") {
		t.Errorf("notes %q", notes)
	}
	// The same comment's job run again.
	twice := w.execute(t.Context(), w.rerun(run), nil)
	if !strings.Contains(strings.Join(twice.rec.Notes, "\n"), "counts once") {
		t.Errorf("notes %q", twice.rec.Notes)
	}
}

// INV-10, INV-41: a run that raised the budget and ended before its own work began leaves the old work what it was: that of
// another text.
func TestARaiseLeavesTheOldWorkThatOfItsOwnText(t *testing.T) {
	w := open(t, setting{plan: []tick{{spend(10, 10), reply(allRight)}}, byLabel: true, config: map[string]string{"gates": visibleGates}})
	w.label().ended("done", 0, "proctor:review")
	was := w.saved()
	w.must(w.hub.EditIssue(w.issue, "", "Something else altogether."))
	_, run := w.comment(w.issue, asker, "/proctor budget +0.10")
	j := w.execute(t.Context(), run, map[string]string{"ANTHROPIC_BASE_URL": "http://203.0.113.1"})
	is := w.saved()
	if j.rec.Terminal != evidence.UsageError || len(is.Raised) != 1 || is.raised() != money.Dollar/10 {
		t.Fatalf("ended %s (%s) with the raises %+v", j.rec.Terminal, j.rec.Reason, is.Raised)
	}
	if is.Goal != was.Goal || is.Base != was.Base || is.Asked != was.Asked || !slices.Equal(is.Runs, was.Runs) || is.State.Good != was.State.Good {
		t.Errorf("the old work is now that of %q on %s for %q by %q, it was %q on %s for %q by %q", is.Goal, is.Base, is.Asked, is.Runs, was.Goal, was.Base, was.Asked, was.Runs)
	}
	next := w.label().ended("done", 0, "proctor:review")
	if notes := strings.Join(next.rec.Notes, "\n"); !strings.Contains(notes, "another text") || next.rec.Ticks[0].N != 1 || next.rec.Totals.Calls != 1 {
		t.Errorf("the next run began with tick %d and made %d calls: %q", next.rec.Ticks[0].N, next.rec.Totals.Calls, notes)
	}
}

func TestStopEndsTheRunAndKeepsItsWork(t *testing.T) {
	// INV-9, INV-12: the job of the comment runs beside the job that it stops.
	w := open(t, setting{plan: []tick{{spend(1000, 100), reply("one\n")}, {reply("two\n"), spend(1000, 100), hang("stubborn")}, {spend(1000, 100), reply(allRight)}}, byLabel: true})
	w.ask()
	run := w.take()
	ended := make(chan job)
	go func() { ended <- w.execute(t.Context(), run, map[string]string{hurryVariable: "3s"}) }()
	<-w.called
	<-w.called
	busy, id := w.commandOn(w.issue, asker, "/proctor status")
	busy.heard(w.issue, id, "answered", "eyes", "works on this issue", "tick 1")
	second, id := w.commandOn(w.issue, asker, "/proctor run")
	second.heard(w.issue, id, "refused", "eyes confused", "works on this already")
	stop, id := w.commandOn(w.issue, asker, "/proctor stop")
	stop.heard(w.issue, id, "answered", "eyes", "was asked to stop")
	first := (<-ended).ended("cancelled", 130, "proctor:failed").says("maya", "/proctor resume")
	w.unpublished()
	if got := w.git("show", "refs/proctor/1/state^:app/answer.txt"); got != "two\n" {
		t.Errorf("the checkpoint's answer is %q", got)
	}
	done := w.command("/proctor resume").ended("done", 0, "proctor:review")
	if !slices.Equal(done.rec.Resumed, []string{first.rec.Run}) || w.file("app/answer.txt") != allRight {
		t.Errorf("resumed %q", done.rec.Resumed)
	}
}

func TestStopIsNotForARunThatBeganAfterIt(t *testing.T) {
	t.Parallel()
	asked := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for run, want := range map[string]bool{"20260102-030000-aabbccdd": false, "20260102-030450-aabbccdd": false, "20260102-030600-aabbccdd": true, "odd": false, "20269999-000000-x": false} {
		if startedAfter(run, asked) != want {
			t.Errorf("%s: want %v", run, want)
		}
	}
}

// Through the webhook a dispatch carries ids only; the run believes the comment, not the dispatch.
func TestADispatchedCommandIsHeldToItsComment(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply(allRight)}}})
	w.hub.AddUser("tess", "triage")
	own, err := w.hub.Comment(w.issue, asker, "/proctor status")
	w.must(err)
	w.execute(t.Context(), w.take(), nil).heard(w.issue, own, "answered", "rocket eyes", "Nothing runs here")
	theirs, err := w.hub.Comment(w.issue, "tess", "/proctor run")
	w.must(err)
	w.hub.Settle()
	client, err := github.New(github.Config{BaseURL: w.hub.APIURL(), ServerURL: w.hub.URL(), Owner: w.hub.Owner(), Repo: w.hub.Repo(),
		Token: w.hub.NewToken(forgetest.Token{Login: asker}), HTTP: http.DefaultClient, Now: time.Now, Sleep: func(context.Context, time.Duration) error { return nil }})
	w.must(err)
	maya, err := client.Self(t.Context())
	w.must(err)
	for name, request := range map[string]string{
		"another command than the comment's": fmt.Sprintf("command=run&comment=%d&actor=%d:%s", own, maya.ID, asker),
		"another account's comment":          fmt.Sprintf("command=run&comment=%d&actor=%d:%s", theirs, maya.ID, asker),
		"no comment":                         fmt.Sprintf("command=run&comment=%d&actor=%d:%s", 424242, maya.ID, asker),
	} {
		w.must(client.Dispatch(t.Context(), "proctor.yml", base, map[string]string{"issue": fmt.Sprint(w.issue), "request": request}))
		if j := w.next(t.Context()); j.rec.Terminal != "refused" || !strings.Contains(j.rec.Reason, "comment") || len(j.rec.Ticks) != 0 {
			t.Errorf("%s: ended %s: %s", name, j.rec.Terminal, j.rec.Reason)
		}
	}
	w.unpublished()
}

// INV-48: a command that meets a broken configuration is answered below it, and only to who may ask.
func TestACommandInABrokenRepositoryIsToldToWritersOnly(t *testing.T) {
	w := open(t, setting{byLabel: true, config: map[string]string{"stops": "{max_tickz: 4}"}})
	w.hub.AddUser("tess", "triage")
	j, id := w.commandOn(w.issue, "tess", "/proctor run")
	j.heard(w.issue, id, "usage_error", "confused")
	j, id = w.commandOn(w.issue, asker, "/proctor run")
	j.heard(w.issue, id, "usage_error", "confused", `max\_tickz`)
	if len(w.statuses()) != 0 || len(w.labels()) != 0 {
		t.Errorf("status comments %q, labels %q: want none", w.statuses(), w.labels())
	}
}
