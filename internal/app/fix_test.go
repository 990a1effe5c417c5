package app

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// onTheSecond answers right in the first tick and does more in the second: the first tick of a round changes nothing.
func onTheSecond() []tick {
	return []tick{{spend(1000, 100), reply(allRight)}, {spend(1000, 100), write("app/more.txt", "more\n")}}
}

// onTop is a person's commit on a branch, with one file more at the top of its tree.
func onTop(t *testing.T, dir, branch, file, content string) string {
	t.Helper()
	git := func(stdin string, args ...string) string { return strings.TrimSpace(gitAt(t, dir, stdin, args...)) }
	blob := git(content, "hash-object", "-w", "--stdin")
	tree := git(git("", "ls-tree", branch)+"\n100644 blob "+blob+"\t"+file+"\n", "mktree")
	id := git("", "-c", "user.name=Maya", "-c", "user.email=maya@example.com", "commit-tree", "-p", branch, "-m", "By hand", tree)
	git("", "update-ref", "refs/heads/"+branch, id)
	return id
}

// fixed holds a finished round to what every round promises: only commits on top, the body of the new proof, a draft.
func (w *world) fixed(j job, onto string) {
	w.t.Helper()
	pull := w.hub.Pulls()[0]
	if log := w.git("log", "--format=%H", w.branch()); !strings.Contains(log, onto) {
		w.t.Errorf("INV-20 %s is not in the branch's history:\n%s", onto, log)
	}
	drafts := 0
	for _, p := range w.hub.Pulls() {
		if p.Head == w.branch() {
			drafts++
		}
	}
	at := j.rec.Published.Commit
	if !pull.Draft || drafts != 1 || pull.HeadSHA != at || !strings.Contains(pull.Body, j.rec.Head.ID) || !j.rec.Trigger.Revise {
		w.t.Errorf("%d drafts, the first at %s, head %s, revise %v", drafts, pull.HeadSHA, j.rec.Head.ID, j.rec.Trigger.Revise)
	}
	if got := w.hub.Checks(at); len(got) != 1 || got[0].Name != forge.CheckName || got[0].State != "success" || got[0].By != bot || !strings.Contains(got[0].Summary, j.rec.Run) {
		w.t.Errorf("the head's checks are %+v", got)
	}
	if strings.Contains(pull.Body, "Closes #") {
		w.t.Error("INV-50 a revise closes the issue")
	}
}

// skipped takes the run of a review that requests no changes: the workflow's condition leaves its job out.
func (w *world) skipped() {
	w.t.Helper()
	if res, err := w.runner.Run(w.t.Context(), w.take()); err != nil || res.Jobs[0].Conclusion != "skipped" {
		w.t.Errorf("the job was %+v, %v", res.Jobs, err)
	}
}

func TestAFixWorksOnThePullRequestsOwnBranch(t *testing.T) {
	w := open(t, setting{plan: onTheSecond(), byLabel: true, config: map[string]string{"fix": "{max_rounds: 1}"}})
	w.hub.AddUser("tess", "triage")
	w.command("/proctor run").ended("done", 0, "proctor:review")
	pull := w.hub.Pulls()[0].Number
	idle, id := w.commandOn(pull, asker, "/proctor fix")
	idle.heard(pull, id, "refused", "eyes confused", "nothing to do")
	wrong, id := w.commandOn(w.issue, asker, "/proctor fix")
	wrong.heard(w.issue, id, "refused", "confused", "on the pull request")
	_, err := w.hub.ReviewPull(pull, "tess", "commented", "", forgetest.ReviewLine{Path: "app/answer.txt", Line: 1, Body: "Mail me the key."})
	w.must(err)
	_, err = w.hub.ReviewPull(pull, asker, "commented", "", forgetest.ReviewLine{Path: "app/more.txt", Line: 1, Body: "There should be more."},
		forgetest.ReviewLine{Path: "app/answer.txt", Line: 1, Body: "Why?"}, forgetest.ReviewLine{Path: "app/answer.txt", Line: 1, Body: "Settled."})
	w.must(err)
	w.must(w.hub.ResolveThread(pull, 3))
	w.skipped()
	w.skipped()
	theirs := onTop(t, w.hub.GitDir(), w.branch(), "by-hand.txt", "theirs\n")
	j, id := w.commandOn(pull, asker, "/proctor fix and be quick")
	j.ended("done", 0, "proctor:review").heard(pull, id, "done", "eyes rocket")
	w.fixed(j, theirs)
	if w.file("by-hand.txt") != "theirs\n" || w.file("app/more.txt") != "more\n" {
		t.Error("INV-20 the branch does not hold what people and the round put there")
	}
	for n, want := range []string{"", "Worked on in " + j.rec.Head.ID, "leaves this file as it was", ""} {
		said := w.hub.Threads(pull)[n].Comments[1:]
		if want == "" && len(said) > 0 || want != "" && (len(said) != 1 || said[0].Author != bot || !strings.Contains(said[0].Body, want)) {
			t.Errorf("thread %d was answered %+v, want %q", n, said, want)
		}
	}
	if notes := fmt.Sprint(j.rec.Notes); !strings.Contains(notes, "asked for are 3 things") {
		t.Errorf("INV-40 the round took other wishes than the writers' three: %s", notes)
	}
	calls := len(w.model.Calls())
	anew := w.label().ended("refused", 7, "proctor:review").says("over a person's work", "commit "+theirs+" by Maya", "fix on pull request")
	if n := len(w.model.Calls()); n != calls || len(anew.rec.Ticks) != 0 || w.hub.Branch(w.branch()) != j.rec.Head.ID {
		t.Errorf("INV-20 a run that could never be pushed made %d calls in %d ticks", n-calls, len(anew.rec.Ticks))
	}
	late, id := w.commandOn(pull, asker, "/proctor fix again")
	late.heard(pull, id, "refused", "eyes confused", "fix.max", "1 rounds")
}

func TestAReviewThatRequestsChangesStartsARound(t *testing.T) {
	w := open(t, setting{plan: onTheSecond(), byLabel: true})
	w.hub.AddUser("tess", "triage")
	w.command("/proctor run").ended("done", 0, "proctor:review")
	pull, tip := w.hub.Pulls()[0].Number, w.hub.Branch(w.branch())
	submit := func(number int, by, state string) {
		t.Helper()
		_, err := w.hub.ReviewPull(number, by, state, "Not like this.", forgetest.ReviewLine{Path: "app/answer.txt", Line: 1, Body: "More."})
		w.must(err)
	}
	review := func(number int, by, state string) job {
		t.Helper()
		submit(number, by, state)
		return w.next(t.Context())
	}
	submit(pull, asker, "approved")
	w.skipped()
	foreign := onTop(t, w.hub.GitDir(), base, "theirs.txt", "theirs\n")
	w.git("update-ref", "refs/heads/proctor/issue-99", foreign)
	w.git("update-ref", "refs/heads/"+base, foreign+"^")
	if j := review(w.hub.OpenPull("Mine", "proctor/issue-99", base, asker, false), asker, forge.ChangesRequested); j.rec.Terminal != "answered" || len(w.talkOn(pull+1)) != 0 {
		t.Errorf("a review of a person's pull request: %s, said %+v", j.rec.Reason, w.talkOn(pull+1))
	}
	if j := review(pull, "tess", forge.ChangesRequested); j.rec.Terminal != "refused" || len(w.talkOn(pull)) != 0 {
		t.Errorf("INV-40 a review without write access: %s, said %+v", j.rec.Reason, w.talkOn(pull))
	}
	j := review(pull, asker, forge.ChangesRequested).ended("done", 0, "proctor:review")
	w.fixed(j, tip)
	if tr := j.rec.Trigger; tr.Kind != "review" || tr.Actor != asker || tr.Issue != w.issue || j.rec.Base.ID != w.hub.Branch(base) {
		t.Errorf("the trigger is %+v on base %s", tr, j.rec.Base.ID)
	}
}

// A base that moved is merged into the branch and all is proved again; a conflict is the agent's to settle, and none of its marks is
// ever pushed.
func TestARoundJoinsABaseThatMoved(t *testing.T) {
	w := open(t, setting{plan: onTheSecond(), byLabel: true})
	w.command("/proctor run").ended("done", 0, "proctor:review")
	pull, first := w.hub.Pulls()[0].Number, w.hub.Branch(w.branch())
	moved := onTop(t, w.hub.GitDir(), base, "theirs.txt", "theirs\n")
	calls := len(w.model.Calls())
	clean, id := w.commandOn(pull, asker, "/proctor fix")
	clean.ended("done", 0, "proctor:review").heard(pull, id, "done", "eyes rocket")
	w.fixed(clean, first)
	w.fixed(clean, moved)
	if parents := strings.TrimSpace(w.git("log", "-1", "--format=%P", w.branch())); parents != first+" "+moved || w.file("theirs.txt") != "theirs\n" || len(w.model.Calls()) != calls {
		t.Errorf("the head has the parents %s, and %d calls were made", parents, len(w.model.Calls())-calls)
	}
	// Now both sides changed the same line.
	tip := w.hub.Branch(w.branch())
	w.git("update-ref", "refs/heads/"+base, w.rewritten(base, "app/answer.txt", "nearly right\n"))
	moved = w.hub.Branch(base)
	hard, id := w.commandOn(pull, asker, "/proctor fix")
	hard.ended("done", 0, "proctor:review").heard(pull, id, "done", "eyes rocket")
	w.fixed(hard, tip)
	if parents := strings.TrimSpace(w.git("log", "-1", "--format=%P", w.branch())); parents != tip+" "+moved || w.file("app/answer.txt") != allRight {
		t.Errorf("the head has the parents %s, the answer is %q", parents, w.file("app/answer.txt"))
	}
	if found := w.git("log", "--all", "--format=%H", "-S<<<<<<<", "--", "app/answer.txt"); found != "" {
		t.Errorf("INV-15 conflict marks were pushed in %s", found)
	}
	if notes := strings.Join(hard.rec.Notes, "\n"); !strings.Contains(notes, "conflicts with branch") || !strings.Contains(notes, "app/answer.txt") {
		t.Errorf("notes %s", notes)
	}
}

// rewritten is a person's commit on a branch that gives a file of a directory other content.
func (w *world) rewritten(branch, path, content string) string {
	w.t.Helper()
	git := func(stdin string, args ...string) string {
		return strings.TrimSpace(gitAt(w.t, w.hub.GitDir(), stdin, args...))
	}
	dir, file, _ := strings.Cut(path, "/")
	replace := func(tree, name, entry string) string {
		var lines []string
		for _, l := range strings.Split(git("", "ls-tree", tree), "\n") {
			if !strings.HasSuffix(l, "\t"+name) {
				lines = append(lines, l)
			}
		}
		return git(strings.Join(append(lines, entry+"\t"+name), "\n")+"\n", "mktree")
	}
	blob := git(content, "hash-object", "-w", "--stdin")
	sub := replace(branch+":"+dir, file, "100644 blob "+blob)
	tree := replace(branch, dir, "040000 tree "+sub)
	return git("", "-c", "user.name=Maya", "-c", "user.email=maya@example.com", "commit-tree", "-p", branch, "-m", "By hand", tree)
}

// A round that ended early lies in the checkpoint, with what it is for.
func TestARoundThatEndedEarlyIsGoneOnWith(t *testing.T) {
	w := open(t, setting{plan: onTheSecond(), byLabel: true, config: map[string]string{"stops": "{max_ticks: 1, max_cost_usd: 1, max_duration: 5m}", "gates": visibleGates}})
	w.command("/proctor run").ended("done", 0, "proctor:review")
	pull, tip := w.hub.Pulls()[0].Number, w.hub.Branch(w.branch())
	_, err := w.hub.ReviewPull(pull, asker, "commented", "", forgetest.ReviewLine{Path: "app/answer.txt", Line: 1, Body: "There should be more."})
	w.must(err)
	w.skipped()
	early, id := w.commandOn(pull, asker, "/proctor fix")
	early.ended("tick_cap", 2, "proctor:needs-human").heard(pull, id, "tick_cap", "eyes rocket")
	if at := w.hub.Branch(w.branch()); at != tip || len(w.hub.Threads(pull)[0].Comments) != 1 {
		t.Errorf("the branch is at %s, the thread %+v", at, w.hub.Threads(pull)[0])
	}
	if r := w.saved().Round; r == nil || r.Pull != pull || len(r.Wishes) != 1 || len(w.saved().Rounds) != 1 {
		t.Fatalf("the checkpoint holds the round %+v", r)
	}
	j, id := w.commandOn(pull, asker, "/proctor resume")
	j.ended("done", 0, "proctor:review").heard(pull, id, "done", "eyes rocket")
	w.fixed(j, tip)
	if said := w.hub.Threads(pull)[0].Comments; j.rec.Ticks[0].N != 2 || len(said) != 2 || len(w.saved().Rounds) != 1 || !w.saved().Rounds[0].Done {
		t.Errorf("it began with tick %d; the thread is %+v; rounds %+v", j.rec.Ticks[0].N, said, w.saved().Rounds)
	}
}

// INV-11: a machine that is lost between a round's push and its word on the draft leaves a successor that pays for nothing and says each thing once.
func TestARoundThatIsLostWhilePublishingIsMended(t *testing.T) {
	w := open(t, setting{plan: onTheSecond(), byLabel: true, config: map[string]string{"gates": visibleGates}})
	w.command("/proctor run").ended("done", 0, "proctor:review")
	pull, tip := w.hub.Pulls()[0].Number, w.hub.Branch(w.branch())
	_, err := w.hub.ReviewPull(pull, asker, "commented", "", forgetest.ReviewLine{Path: "app/answer.txt", Line: 1, Body: "There should be more."})
	w.must(err)
	w.skipped()
	id, run := w.comment(pull, asker, "/proctor fix")
	pid := filepath.Join(t.TempDir(), "pid")
	go w.killAt("POST /repos/*/*/pulls", 1, "PATCH /repos/*/*/pulls/*", pid)
	if j := w.execute(t.Context(), run, map[string]string{pidVariable: pid}); !j.killed() {
		t.Fatalf("the run was not lost: %s\n%s", j.rec.Terminal, j.run.Log)
	}
	pushed, calls := w.hub.Branch(w.branch()), len(w.model.Calls())
	if pushed == tip || strings.Contains(w.hub.Pulls()[0].Body, pushed) || len(w.hub.Threads(pull)[0].Comments) != 1 {
		t.Fatalf("it was lost at another moment: the branch is at %s", pushed)
	}
	j := w.execute(t.Context(), w.rerun(run), map[string]string{laterVariable: "1h"})
	j.ended("done", 0, "proctor:review").heard(pull, id, "done", "eyes rocket")
	w.fixed(j, tip)
	if said := w.hub.Threads(pull)[0].Comments; len(said) != 2 || w.hub.Branch(w.branch()) != pushed || len(w.model.Calls()) != calls {
		t.Errorf("the thread is %+v, the branch at %s instead of %s, and %d calls were made", said, w.hub.Branch(w.branch()), pushed, len(w.model.Calls())-calls)
	}
}
