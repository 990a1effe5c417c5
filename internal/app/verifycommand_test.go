package app

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
)

// scene is all that a command which only looks leaves as it found it.
func (w *world) scene() string {
	return fmt.Sprint(len(w.model.Calls()), w.statuses(), w.labels(), w.git("for-each-ref"), len(w.hub.Pulls()), w.hub.Pulls()[0].Body)
}

// answers are the answers of the harness on an issue or a pull request.
func (w *world) answers(number int) []string {
	var out []string
	for _, c := range w.talkOn(number) {
		if strings.HasPrefix(c.Body, evidence.AnswerMarker) {
			out = append(out, c.Body)
		}
	}
	return out
}

func TestTheCommandVerifyRepeatsTheProofOfTheOpenDraft(t *testing.T) {
	w := open(t, setting{plan: []tick{{spend(1000, 100), reply(allRight)}}, byLabel: true, files: map[string]string{"sealed/check.sh": loudExam}})
	w.hub.AddUser("tess", "triage")
	none, id := w.commandOn(w.issue, asker, "/proctor verify")
	none.heard(w.issue, id, "refused", "eyes confused", "no pull request that a run opened")
	run := w.command("/proctor run").ended("done", 0, "proctor:review")
	pull := w.hub.Pulls()[0]

	outsider, id := w.commandOn(pull.Number, "tess", "/proctor verify")
	outsider.heard(pull.Number, id, "refused", "confused")
	forked := w.hub.OpenPull("Theirs", w.branch(), base, "stranger", true)
	fork, id := w.commandOn(forked, asker, "/proctor verify")
	fork.heard(forked, id, "refused", "confused", "fork")
	if n := len(w.hub.Checks(pull.HeadSHA)); n != 1 {
		t.Errorf("%d checks after requests that were refused", n)
	}
	w.must(w.hub.ClosePull(forked))
	was := w.scene()

	// INV-27: job.check finds nothing of what the exam prints in anything that the job leaves.
	j, id := w.commandOn(w.issue, asker, "/proctor verify")
	j.heard(w.issue, id, "reproduced", "eyes rocket", "Reproduced", pull.HeadSHA, run.rec.Base.ID, run.rec.Run, "gate iteration | passed | passed", "gate acceptance | passed | passed", "0 model calls")
	if now := w.scene(); now != was {
		t.Errorf("a verification changed something:\n%s\n%s", was, now)
	}
	if v := j.rec.Inspection; j.ExitCode != 0 || v == nil || !v.Stands || v.Number != pull.Number || j.rec.Base != run.rec.Base || j.rec.Config != run.rec.Config || len(j.rec.Ticks[0].Proof) != 2 || j.rec.Totals.CostUSD != 0 {
		t.Errorf("exit code %d, inspection %+v on base %v", j.ExitCode, v, j.rec.Base)
	}
	if j.out["terminal"] != "reproduced" || j.out["pull-request"] != fmt.Sprint(pull.Number) || j.out["pull-request-url"] != pull.URL || j.out["cost-usd"] != "0" || j.out["commit"] != "" {
		t.Errorf("outputs %v", j.out)
	}
	if len(j.rec.Confinement) == 0 || len(w.answers(w.issue)) != 2 {
		t.Errorf("confinement %v, answers %q", j.rec.Confinement, w.answers(w.issue))
	}
	checks := w.hub.Checks(pull.HeadSHA)
	if last := checks[len(checks)-1]; len(checks) != 2 || last.State != "success" || !strings.HasPrefix(last.Title, "Reproduced") || !strings.Contains(last.Summary, j.rec.Run) {
		t.Errorf("INV-15 the head's checks are %+v", checks)
	}

	// A person's commit on top: the head is not what was proved, and no check says that it were.
	theirs := onTop(t, w.hub.GitDir(), w.branch(), "by-hand.txt", "theirs\n")
	j, id = w.commandOn(pull.Number, asker, "/proctor verify")
	j.heard(pull.Number, id, "differs", "eyes rocket", "The head is not what was proved", theirs, pull.HeadSHA, "❌ head of the branch", "✅ gate acceptance", "/proctor fix").says("1 of 9 things")
	if got := w.hub.Checks(theirs); j.ExitCode != 2 || len(got) != 0 || len(w.hub.Checks(pull.HeadSHA)) != 2 {
		t.Errorf("INV-15 exit code %d, the new head's checks are %+v", j.ExitCode, got)
	}
	w.must(w.hub.ClosePull(pull.Number))
	ended, id := w.commandOn(pull.Number, asker, "/proctor verify")
	ended.heard(pull.Number, id, "refused", "confused", "is closed")
}

// claimed is the text of a draft with a claim of somebody's own.
func claimed(t *testing.T, c evidence.Claim) string {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf("<!-- proctor:pull-request head=%s -->\n<!-- proctor:claim %s -->\nAll is well.\n", c.Head.ID, base64.RawStdEncoding.EncodeToString(b))
	if _, ok := evidence.PullRequestClaim(body); !ok {
		t.Fatal("the text is no claim, so that this proves nothing")
	}
	return body
}

// INV-15: who may write can edit the draft's text and push to its branch, and gets no check passed by it. The claim below names a base commit of
// their own, whose gates want nothing and whose confinement is off; then one on the default branch, of a commit that no run pushed. Through the
// webhook's dispatch.
func TestTheCommandVerifyBelievesNoTextOfADraft(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply(allRight)}}})
	w.label().ended("done", 0, "proctor:review")
	pull := w.hub.Pulls()[0]
	honest, ok := evidence.PullRequestClaim(pull.Body)
	if !ok {
		t.Fatal("the draft has no claim")
	}
	client, err := github.New(github.Config{BaseURL: w.hub.APIURL(), ServerURL: w.hub.URL(), Owner: w.hub.Owner(), Repo: w.hub.Repo(),
		Token: w.hub.NewToken(forgetest.Token{Login: asker}), HTTP: http.DefaultClient, Now: time.Now, Sleep: func(context.Context, time.Duration) error { return nil }})
	w.must(err)
	edit := func(c evidence.Claim) {
		t.Helper()
		body := claimed(t, c)
		_, err := client.UpdatePullRequest(t.Context(), pull.Number, forge.PullRequestEdit{Body: &body})
		w.must(err)
	}
	verify := func(terminal string, words ...string) job {
		t.Helper()
		id, err := w.hub.CommentOnPull(pull.Number, asker, "/proctor verify")
		w.must(err)
		return w.next(t.Context()).heard(pull.Number, id, terminal, "rocket eyes rocket", words...)
	}
	commit := func(id string) evidence.Commit {
		return evidence.Commit{ID: id, Tree: strings.TrimSpace(w.git("rev-parse", id+"^{tree}"))}
	}
	passed := func(id string) bool {
		return slices.ContainsFunc(w.hub.Checks(id), func(c forgetest.Check) bool { return c.State == "success" })
	}

	ran := w.dir + "/it-ran"
	weak, err := w.hub.Commit(t.Context(), "weak", fstest.MapFS{
		".github/proctor.yml": {Data: []byte(configuration(map[string]string{"gates": "{iteration: touch " + ran + "}", "sandbox": "{mode: off}"}))},
	}, "weaker gates")
	w.must(err)
	w.peoples = append(w.peoples, "refs/heads/weak")
	w.git("update-ref", "refs/heads/"+w.branch(), weak)
	bad := onTop(t, w.hub.GitDir(), w.branch(), "bad.txt", "bad\n")
	forged := honest
	forged.Base, forged.Head, forged.Gates = commit(weak), commit(bad), []evidence.ClaimedGate{{Class: "iteration", Name: "iteration", Status: "passed"}}
	edit(forged)
	j := verify("differs", "❌ base", "on neither", "no gate was run")
	if _, err := os.Stat(ran); err == nil || len(j.rec.Ticks) != 0 || passed(bad) || len(w.hub.Checks(bad)) != 1 {
		t.Errorf("INV-15 the gate ran: %v, %d ticks, checks %+v", err == nil, len(j.rec.Ticks), w.hub.Checks(bad))
	}
	if out := w.git("ls-tree", bad, "bad.txt"); out == "" {
		t.Fatal("the forged head is not there")
	}

	// The claim is true but for this: no run of the issue's proved it. It is told as what it is, and passes nothing.
	w.git("update-ref", "refs/heads/"+w.branch(), pull.HeadSHA)
	good := onTop(t, w.hub.GitDir(), w.branch(), "unasked.txt", "unasked\n")
	forged = honest
	forged.Head = commit(good)
	edit(forged)
	verify("reproduced", good)
	if got := w.hub.Checks(good); len(got) != 0 {
		t.Errorf("INV-15 a commit that no run pushed has the checks %+v", got)
	}

	// Control: the text and the branch as the run left them.
	w.git("update-ref", "refs/heads/"+w.branch(), pull.HeadSHA)
	edit(honest)
	verify("reproduced", pull.HeadSHA)
	if got := w.hub.Checks(pull.HeadSHA); len(got) != 2 || !passed(pull.HeadSHA) {
		t.Errorf("the control's checks %+v", got)
	}

	// Without a claim there is nothing to verify.
	none := "By hand."
	_, err = client.UpdatePullRequest(t.Context(), pull.Number, forge.PullRequestEdit{Body: &none})
	w.must(err)
	id, err := w.hub.CommentOnPull(pull.Number, asker, "/proctor verify")
	w.must(err)
	w.next(t.Context()).heard(pull.Number, id, "refused", "rocket confused", "no run of Proctor's")
}

func TestARepeatedProofPassesTheCheckOnlyWhereTheCheckpointKnowsIt(t *testing.T) {
	t.Parallel()
	stands := evidence.Inspection{Proved: "a", Head: "a", Stands: true, Run: "r1"}
	moved, other := stands, stands
	moved.Moved, other.Stands = "b", false
	for name, c := range map[string]struct {
		v        *evidence.Inspection
		terminal string
		known    bool
		want     forge.Conclusion
	}{
		"INV-15 reproduced and known":      {&stands, evidence.Reproduced, true, forge.ConclusionSuccess},
		"INV-15 reproduced and not known":  {&stands, evidence.Reproduced, false, ""},
		"differs":                          {&stands, evidence.Differs, false, forge.ConclusionFailure},
		"could not be repeated":            {&stands, evidence.NotRepeated, true, ""},
		"the head is another commit":       {&other, evidence.Differs, true, ""},
		"the branch has moved meanwhile":   {&moved, evidence.Reproduced, true, ""},
		"stopped":                          {&stands, evidence.Cancelled, true, ""},
		"a review":                         {&evidence.Inspection{Head: "a"}, evidence.Rejected, true, ""},
		"a command that looked at nothing": {nil, evidence.Refused, true, ""},
	} {
		r := evidence.Record{Inspection: c.v}
		r.Finish(c.terminal, "because", "")
		got, ok := repeatConclusion(r, c.known)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
	known := checkpoint{Base: "main", Pushed: []string{"a"}, Runs: []string{"r1"}}
	known.State.Version = 1
	r := evidence.Record{Base: evidence.Commit{ID: "main"}, Inspection: &stands}
	for name, spoil := range map[string]func(*checkpoint){
		"": func(*checkpoint) {}, "no checkpoint": func(c *checkpoint) { c.State.Version = 0 }, "another base": func(c *checkpoint) { c.Base = "old" },
		"a commit that no run pushed": func(c *checkpoint) { c.Pushed = nil }, "another run": func(c *checkpoint) { c.Runs = []string{"r0"} },
	} {
		c := known
		if spoil(&c); c.proved(r) != (name == "") {
			t.Errorf("%q: known is %v", name, c.proved(r))
		}
	}
}

func TestTheStricterOfTwoModesConfinesAProof(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{{"off", "auto", "auto"}, {"auto", "off", "auto"}, {"auto", "strict", "strict"}, {"strict", "off", "strict"}, {"off", "", "off"}, {"off", "off", "off"}} {
		if got := stricter(c[0], c[1]); got != c[2] {
			t.Errorf("%s and %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}
