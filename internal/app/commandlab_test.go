package app

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// pipeline runs the job that waits and reads its record.
func (w *labWorld) pipeline() evidence.Record {
	w.t.Helper()
	w.lab.Settle()
	res, err := w.runner.Run(w.t.Context())
	if err != nil {
		w.t.Fatalf("the pipeline: %v\n%s", err, res.Pipeline.Log)
	}
	rec, err := evidence.Read(filepath.Join(res.Workspace, "proctor"))
	if err != nil {
		w.t.Fatalf("INV-54 the record: %v\n%s", err, res.Pipeline.Log)
	}
	return rec
}

// GitLab numbers merge requests apart from issues: a command on merge request 1 must not speak on issue 1.
func TestCommandsOnGitLabAreAnsweredWhereTheyStand(t *testing.T) {
	t.Parallel()
	w := openLab(t, setting{plan: []tick{{reply(allRight)}}})
	// So that the numbers of the issue and of its merge request differ.
	w.issue = w.lab.OpenIssue("The answer is wrong", "It should be **right**.", asker)
	id, err := w.lab.Comment(w.issue, asker, "/proctor run")
	if err != nil {
		t.Fatal(err)
	}
	if rec := w.pipeline(); rec.Terminal != "done" || rec.Trigger.Issue != w.issue || rec.Trigger.Actor != asker {
		t.Fatalf("ended %s: %s", rec.Terminal, rec.Reason)
	}
	is, _ := w.lab.Issue(w.issue)
	if is.Comments[0].ID != id || strings.Join(is.Comments[0].Reactions, " ") != "eyes rocket" || len(is.Comments) != 2 {
		t.Errorf("notes of the issue %+v", is.Comments)
	}
	pull := w.lab.Pulls()[0]
	if pull.Number == w.issue {
		t.Fatal("the numbers are equal: this test proves nothing")
	}
	ask := func(number int, body string) (evidence.Record, []forgetest.Comment) {
		t.Helper()
		if _, err := w.lab.CommentOnPull(number, asker, body); err != nil {
			t.Fatal(err)
		}
		rec := w.pipeline()
		return rec, w.lab.PullComments(number)
	}
	rec, notes := ask(pull.Number, "/proctor explain")
	if rec.Terminal != "answered" || rec.Trigger.Issue != w.issue || len(notes) != 2 || !strings.Contains(notes[1].Body, "Proved") || strings.Join(notes[0].Reactions, " ") != "eyes" {
		t.Errorf("ended %s about issue %d: %s; notes %+v", rec.Terminal, rec.Trigger.Issue, rec.Reason, notes)
	}
	foreign := w.lab.OpenPull("Mine", "main", "main", asker, false)
	rec, notes = ask(foreign, "/proctor retry")
	if rec.Terminal != "refused" || len(notes) != 2 || !strings.Contains(notes[1].Body, "no run of Proctor") {
		t.Errorf("ended %s: %s; notes %+v", rec.Terminal, rec.Reason, notes)
	}
	for n := 1; n <= 2; n++ {
		if other, _ := w.lab.Issue(n); len(other.Comments) != map[bool]int{true: 2, false: 0}[n == w.issue] {
			t.Errorf("issue %d has the notes %s", n, fmt.Sprint(other.Comments))
		}
	}
}

// Who requests changes on GitLab asks for a round, each time anew; whose word that is the run asks GitLab.
func TestAReviewOnGitLabStartsARound(t *testing.T) {
	t.Parallel()
	w := openLab(t, setting{plan: onTheSecond()})
	w.lab.AddUser("tess", "reporter")
	id, err := w.lab.Comment(w.issue, asker, "/proctor run")
	if err != nil || id == 0 {
		t.Fatal(err)
	}
	if rec := w.pipeline(); rec.Terminal != "done" {
		t.Fatalf("ended %s: %s", rec.Terminal, rec.Reason)
	}
	pull := w.lab.Pulls()[0]
	review := func(by, state string) {
		t.Helper()
		if _, err := w.lab.ReviewPull(pull.Number, by, state, "", forgetest.ReviewLine{Path: "app/answer.txt", Line: 1, Body: "There should be more."}); err != nil {
			t.Fatal(err)
		}
		w.lab.Settle()
	}
	before := len(w.lab.Pipelines())
	review(asker, "commented")
	review(asker, "approved")
	if n := len(w.lab.Pipelines()); n != before {
		t.Errorf("a review that requests nothing started %d pipelines", n-before)
	}
	review("tess", forge.ChangesRequested)
	if n := len(w.lab.Pipelines()); n != before {
		t.Errorf("INV-40 a review without write access started %d pipelines", n-before)
	}
	review(asker, forge.ChangesRequested)
	rec := w.pipeline()
	if tr := rec.Trigger; rec.Terminal != "done" || tr.Kind != "dispatch" || tr.Actor != asker || tr.Issue != w.issue || !tr.Revise {
		t.Fatalf("ended %s: %s; the trigger is %+v", rec.Terminal, rec.Reason, tr)
	}
	answered := 0
	for _, th := range w.lab.Threads(pull.Number) {
		if last := th.Comments[len(th.Comments)-1]; strings.Contains(last.Body, rec.Head.ID) {
			answered++
		}
	}
	if answered != 3 { // the asker's; the reporter's waits for nobody
		t.Errorf("%d threads were answered: %+v", answered, w.lab.Threads(pull.Number))
	}
}

// INV-53: the commands that look at a merge request, as on GitHub. Their pipelines have a resource group of their own.
func TestAMergeRequestIsVerifiedAndReviewedByComments(t *testing.T) {
	t.Parallel()
	w := openLab(t, setting{plan: []tick{{reply(allRight)}}, config: judged(nil), files: rubricFile, script: judges(approves, rejects("one line is missing"))})
	w.issue = w.lab.OpenIssue("The answer is wrong", "It should be **right**.", asker) // so that the numbers differ
	w.lab.AddUser("tess", "reporter")
	if _, err := w.lab.Comment(w.issue, asker, "/proctor run"); err != nil {
		t.Fatal(err)
	}
	run := w.pipeline()
	if run.Terminal != "done" {
		t.Fatalf("ended %s: %s", run.Terminal, run.Reason)
	}
	pull := w.lab.Pulls()[0]
	pipelines := len(w.lab.Pipelines())
	for _, name := range []string{"verify", "review"} {
		if _, err := w.lab.CommentOnPull(pull.Number, "tess", "/proctor "+name); err != nil {
			t.Fatal(err)
		}
		w.lab.Settle()
	}
	if n := len(w.lab.Pipelines()); n != pipelines {
		t.Errorf("INV-40 commands without write access started %d pipelines", n-pipelines)
	}
	if _, err := w.lab.CommentOnPull(pull.Number, asker, "/proctor verify"); err != nil {
		t.Fatal(err)
	}
	rec := w.pipeline()
	notes := w.lab.PullComments(pull.Number)
	last := notes[len(notes)-1]
	if rec.Terminal != "reproduced" || rec.ExitCode != 0 || rec.Inspection.Number != pull.Number || len(rec.Calls) != 0 || !strings.HasPrefix(last.Body, evidence.AnswerMarker) || !strings.Contains(last.Body, pull.HeadSHA) || !strings.Contains(last.Body, "gate acceptance | passed | passed") {
		t.Errorf("ended %s: %s; answered %q", rec.Terminal, rec.Reason, last.Body)
	}
	checks := w.lab.Checks(pull.HeadSHA)
	if len(checks) != 1 || checks[0].State != "success" { // GitLab takes no second success, so that the run's own words stay
		t.Errorf("the commit's statuses are %+v", checks)
	}
	id, err := w.lab.Comment(w.issue, asker, "/proctor review")
	if err != nil {
		t.Fatal(err)
	}
	rec = w.pipeline()
	is, _ := w.lab.Issue(w.issue)
	last = is.Comments[len(is.Comments)-1]
	if rec.Terminal != "rejected" || rec.ExitCode != 2 || rec.Totals.CostUSD == 0 || rec.Totals.IssueUSD != run.Totals.IssueUSD.Add(rec.Totals.CostUSD) || !strings.Contains(last.Body, "one line is missing") || !strings.Contains(last.Body, "`app/answer.txt` line 1") {
		t.Errorf("ended %s: %s, %s of %s; answered %q", rec.Terminal, rec.Reason, rec.Totals.CostUSD, rec.Totals.IssueUSD, last.Body)
	}
	for _, c := range is.Comments {
		if c.ID == id && strings.Join(c.Reactions, " ") != "eyes rocket" {
			t.Errorf("the command got the reactions %q", c.Reactions)
		}
	}
	if now := w.lab.Pulls()[0]; now.State != pull.State || now.HeadSHA != pull.HeadSHA || !now.Draft || len(w.lab.Checks(pull.HeadSHA)) != len(checks) {
		t.Errorf("a rejection changed the merge request: %+v", now)
	}
	for _, p := range w.lab.Pipelines() {
		of, command := p.Variables["PROCTOR_GROUP"], strings.Contains(p.Variables["PROCTOR_REQUEST"], "command=")
		if command != (of == "-"+p.Variables["PROCTOR_ID"]) || !command && of != "" {
			t.Errorf("a pipeline of the variables %v", p.Variables)
		}
	}
}
