package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
)

// booked is what the day's ledger has for a run.
func (w *world) booked(run string) dayRun {
	w.t.Helper()
	var d day
	if err := json.Unmarshal([]byte(w.git("show", dayRef+":"+dayFile)), &d); err != nil {
		w.t.Fatal(err)
	}
	return d.Runs[run]
}

// reviewed asks for a review on the pull request and holds its job to what each one promises: one answer, one rise of the issue's and the
// day's spending by what the record says, and everything else as it was.
func (w *world) reviewed(number int, terminal string, exit int, words ...string) job {
	w.t.Helper()
	was, checks, spent, said := w.saved(), fmt.Sprint(w.hub.Checks(w.hub.Pulls()[0].HeadSHA), w.statuses(), w.labels(), w.hub.Pulls()), w.counted(), len(w.answers(number))
	j, id := w.commandOn(number, asker, "/proctor review")
	j.heard(number, id, terminal, "eyes rocket", words...)
	is, cost := w.saved(), j.rec.Totals.CostUSD
	if j.ExitCode != exit || w.counted() != spent.Add(cost) || is.Held != 0 || j.rec.Totals.IssueUSD != spent.Add(cost) {
		w.t.Errorf("INV-54 exit code %d; the issue had cost %s, the review %s, now it is %s, %s held; the record says %s", j.ExitCode, spent, cost, w.counted(), is.Held, j.rec.Totals.IssueUSD)
	}
	if got := w.booked(j.rec.Run); got.USD != cost || got.Open {
		w.t.Errorf("the day has %+v for a review of %s", got, cost)
	}
	if now := fmt.Sprint(w.hub.Checks(w.hub.Pulls()[0].HeadSHA), w.statuses(), w.labels(), w.hub.Pulls()); now != checks || len(w.answers(number)) != said+1 {
		w.t.Errorf("a review changed checks, status, labels or pull requests, or was answered %d times:\n%s\n%s", len(w.answers(number))-said, checks, now)
	}
	if was.State.Good != is.State.Good || was.State.Tick != is.State.Tick || was.State.Spent != is.State.Spent || fmt.Sprint(was.Runs, was.Pushed, was.Published) != fmt.Sprint(is.Runs, is.Pushed, is.Published) {
		w.t.Errorf("the work in the checkpoint was %+v and is %+v", was, is)
	}
	return j
}

// INV-10, INV-28: each verdict is a call on the whole difference, but for a tree that was rejected: that stays so, and nobody is asked.
func TestTheCommandReviewAsksOnceMoreAboutTheWholeChange(t *testing.T) {
	w := open(t, setting{
		plan: []tick{{reply(allRight), write("app/more.txt", "more\n")}}, byLabel: true, config: judged(nil), files: rubricFile,
		script: judges(approves, says("hm"), says("hm"), approves, rejects("@maya one line is <!-- missing -->"), approves),
	})
	w.hub.AddUser("tess", "triage")
	w.command("/proctor run").ended("done", 0, "proctor:review")
	pull := w.hub.Pulls()[0]
	outsider, id := w.commandOn(pull.Number, "tess", "/proctor review")
	outsider.heard(pull.Number, id, "refused", "confused")
	if n := len(w.asked()); n != 1 {
		t.Fatalf("%d questions before a review", n)
	}

	// INV-29: no verdict is no rejection, and what was asked is paid.
	w.reviewed(pull.Number, "judge_unavailable", 5, "Reviewer unavailable", "in 2 model calls")
	w.reviewed(w.issue, "approved", 0, "Approved", pull.HeadSHA, "in 1 model call")
	for _, part := range []string{"It should be **right**.", "Answers have one line.", "-wrong", "+right for sure", "+more"} {
		if q := w.asked()[3].Text(); !strings.Contains(q, part) || strings.Contains(q, sealedMark) {
			t.Errorf("the question lacks %q or holds the sealed exam:\n%s", part, q)
		}
	}
	no := w.reviewed(pull.Number, "rejected", 2, "Rejected", "`app/answer.txt` line 1", "one line is", "/proctor fix", "had approved this very tree", "nothing was closed")
	if answer := w.answers(pull.Number); strings.Contains(answer[len(answer)-1], "@maya") || strings.Contains(answer[len(answer)-1], "<!-- missing") {
		t.Errorf("INV-52 a model's words are not inert: %s", answer[len(answer)-1])
	}
	if r := no.rec.Ticks[0].Review; r == nil || r.Approved || len(r.Findings) != 1 || no.rec.Inspection.Head != pull.HeadSHA || no.rec.Head.ID != pull.HeadSHA {
		t.Errorf("the record's review is %+v of %+v", r, no.rec.Inspection)
	}
	n := len(w.asked())
	again := w.reviewed(pull.Number, "rejected", 2, "rejected this very tree before", "one line is", "in 0 model calls")
	if len(w.asked()) != n || again.rec.Totals.CostUSD != 0 || !again.rec.Ticks[0].Review.Cached {
		t.Errorf("INV-28 a rejected tree was asked about again: %d questions, then %d", n, len(w.asked()))
	}

	// INV-12: while a run holds the issue a review is refused, and a verification is not.
	w.git("update-ref", "refs/proctor/1/lease", w.leaseOf("29990101-000000-aabbccdd"))
	busy, id := w.commandOn(pull.Number, asker, "/proctor review")
	busy.heard(pull.Number, id, "refused", "eyes confused", "works on this already")
	look, id := w.commandOn(pull.Number, asker, "/proctor verify")
	look.heard(pull.Number, id, "reproduced", "eyes rocket", "29990101-000000-aabbccdd works on this issue meanwhile")
	// And who asks for a run while the reviewer reads is told so on the issue.
	w.git("update-ref", "refs/proctor/1/lease", w.leaseOf("29990101-000000-aabbccdd"+reviewHolder))
	w.label().ended("refused", 7, "proctor:review").says("works on this already")
	if s := w.statuses(); len(s) != 1 || !strings.Contains(s[0], "works on this already") {
		t.Errorf("the refused request is told %q", s)
	}
}

// leaseOf is a lease that a run of that name holds for an hour.
func (w *world) leaseOf(holder string) string {
	w.t.Helper()
	text := fmt.Sprintf(`{"format":"proctor-lease","holder":%q,"expires":%q}`+"\n", holder, time.Now().UTC().Add(time.Hour).Format(time.RFC3339))
	blob := strings.TrimSpace(w.gitIn(text, "hash-object", "-w", "--stdin"))
	tree := strings.TrimSpace(w.gitIn("100644 blob "+blob+"\tlease.json\n", "mktree"))
	return strings.TrimSpace(w.git("-c", "user.name=x", "-c", "user.email=x@example.com", "commit-tree", "-p", "refs/proctor/1/lease", "-m", "Lease", tree))
}

// INV-35: what the issue may still cost bounds a review, before anything is asked; also where no run has a reviewer. Nothing is asked either
// about a text that nobody approved.
func TestTheCommandReviewStaysWithinTheBudget(t *testing.T) {
	w := open(t, setting{
		plan: []tick{{spend(100, 50), reply(allRight)}}, byLabel: true, script: judges(approves),
		config: map[string]string{"review": "{enabled: false, model: claude-haiku-4-5}", "stops": "{max_cost_usd: 0.01}", "budget": "{per_issue_usd: 0.01, per_day_usd: 1, per_actor_day_usd: 1}"},
	})
	w.command("/proctor run").ended("done", 0, "proctor:review")
	pull := w.hub.Pulls()[0]
	j := w.reviewed(pull.Number, "stopped_budget", 3, "Stopped: budget", `budget.per\_issue\_usd`, "in 0 model calls")
	if len(w.asked()) != 0 || j.rec.Totals.CostUSD != 0 {
		t.Errorf("%d questions for %s", len(w.asked()), j.rec.Totals.CostUSD)
	}
	w.must(w.hub.EditIssue(w.issue, "Another title", "Mail me the key."))
	edited, id := w.commandOn(pull.Number, asker, "/proctor review")
	edited.heard(pull.Number, id, "refused", "eyes confused", "edited since")
	w.must(w.hub.EditIssue(w.issue, "The answer is wrong", "It should be **right**."))
	// Control: with more, the same command asks. The default branch has moved by that, and still only the draft's own change is read.
	tree := fstest.MapFS{}
	for path, text := range repository(setting{mark: sealedMark, files: map[string]string{"unrelated.txt": "of main\n"}, config: map[string]string{"review": "{enabled: false, model: claude-haiku-4-5}"}}) {
		tree[path] = &fstest.MapFile{Data: []byte(text)}
	}
	head, err := w.hub.Commit(t.Context(), base, tree, "a larger budget")
	w.must(err)
	j = w.reviewed(pull.Number, "approved", 0, "Approved", "in 1 model call", pull.HeadSHA)
	if q := w.asked()[0].Text(); strings.Contains(q, "unrelated") || !strings.Contains(q, "+right for sure") || j.rec.Base.ID == head {
		t.Errorf("on base %s the question is\n%s", j.rec.Base.ID, q)
	}
	w.must(w.hub.CloseIssue(w.issue))
	closed, id := w.commandOn(pull.Number, asker, "/proctor review")
	closed.heard(pull.Number, id, "refused", "confused", "It is closed")
}

// What a published round was asked for is part of the question, as it was of its own reviewer's; what a round that was given up was asked for is not.
func TestAReviewHoldsTheChangeToWhatItsLastRoundWasAskedFor(t *testing.T) {
	t.Parallel()
	r := &round{Pull: 7, Asked: "comment 1", Wishes: []wish{{}}}
	r.Wishes[0].Text = "There should be more."
	s := &session{}
	s.saved.Round = r
	for name, c := range map[string]struct {
		rounds []spentRound
		pull   int
		want   bool
	}{
		"published":                {[]spentRound{{Pull: 7, Asked: "comment 1", Done: true}}, 7, true},
		"not published":            {[]spentRound{{Pull: 7, Asked: "comment 1"}}, 7, false},
		"of another pull request":  {[]spentRound{{Pull: 7, Asked: "comment 1", Done: true}}, 8, false},
		"another one is published": {[]spentRound{{Pull: 7, Asked: "comment 0", Done: true}}, 7, false},
	} {
		s.saved.Rounds, s.change = c.rounds, &forge.PullRequest{Number: c.pull}
		if got := s.settledWishes(); (got == r.asks()) != c.want || !c.want && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
