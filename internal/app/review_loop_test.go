package app

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/judge"
)

// nonceOf is what a reviewer has to repeat.
var nonceOf = regexp.MustCompile(`The nonce of this message is ([0-9a-f]{32})`)

// judges plays one answer after the other to questions for a verdict; the last one goes on.
func judges(answers ...func(nonce string) agenttest.Turn) agenttest.Script {
	var mu sync.Mutex
	n := 0
	return func(r agenttest.Request) agenttest.Turn {
		if !slices.Contains(r.Tools, "verdict") {
			return agenttest.Turn{Text: "Done."}
		}
		mu.Lock()
		defer mu.Unlock()
		answer := answers[min(n, len(answers)-1)]
		n++
		m := nonceOf.FindStringSubmatch(r.Text())
		if m == nil {
			return agenttest.Turn{Text: "there is no nonce in the question"}
		}
		return answer(m[1])
	}
}

func verdictCall(nonce, verdict string, findings ...map[string]any) agenttest.Turn {
	if findings == nil {
		findings = []map[string]any{}
	}
	return agenttest.Turn{Tools: []agenttest.Tool{{Name: "verdict", Input: map[string]any{"nonce": nonce, "verdict": verdict, "findings": findings}}}}
}

func finding(category, detail string) map[string]any {
	return map[string]any{"category": category, "severity": "high", "path": "app/answer.txt", "line": 1, "detail": detail}
}

func approves(nonce string) agenttest.Turn { return verdictCall(nonce, "approve") }

func rejects(detail string) func(string) agenttest.Turn {
	return func(nonce string) agenttest.Turn {
		return verdictCall(nonce, "reject", finding("correctness", detail))
	}
}

func says(text string) func(string) agenttest.Turn {
	return func(nonce string) agenttest.Turn {
		return agenttest.Turn{Text: strings.ReplaceAll(text, "NONCE", nonce)}
	}
}

// judged is the configuration of a run with a reviewer.
func judged(more map[string]string) map[string]string {
	c := map[string]string{"review": "{enabled: true, model: claude-haiku-4-5, criteria: [docs/rubric.md]}", "stops": "{max_ticks: 4, max_cost_usd: 2, max_duration: 5m}"}
	for k, v := range more {
		c[k] = v
	}
	return c
}

var rubricFile = map[string]string{"docs/rubric.md": "Answers have one line.\n"}

// asked are the questions that reached the reviewer.
func (w *world) asked() []agenttest.Request {
	var out []agenttest.Request
	for _, r := range w.model.Calls() {
		if slices.Contains(r.Tools, "verdict") {
			out = append(out, r)
		}
	}
	return out
}

func TestAnApprovalOpensTheWayToTheProof(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply(allRight)}}, config: judged(nil), files: rubricFile, script: judges(approves)})
	j := w.label().ended("done", 0, "proctor:review")
	last := j.rec.Ticks[len(j.rec.Ticks)-1]
	if last.Review == nil || !last.Review.Approved || last.Review.Cached || last.Review.Model != "claude-haiku-4-5" {
		t.Errorf("the record's review is %+v", last.Review)
	}
	asked := w.asked()
	if len(asked) != 1 {
		t.Fatalf("%d questions", len(asked))
	}
	for _, part := range []string{"The answer is wrong", "It should be **right**.", "Answers have one line.", "-wrong", "+right for sure"} {
		if !strings.Contains(asked[0].Text(), part) {
			t.Errorf("the question lacks %q:\n%s", part, asked[0].Text())
		}
	}
	if strings.Contains(asked[0].Text(), sealedMark) {
		t.Error("INV-27 the reviewer sees the sealed exam, and what it says goes to the agent")
	}
	calls := 0
	for _, c := range j.rec.Calls {
		if c.Purpose == "review" && c.CostUSD > 0 && c.Tick == 1 {
			calls++
		}
	}
	if calls != 1 {
		t.Errorf("INV-54 the review's call is not in the record: %+v", j.rec.Calls)
	}
}

func TestARejectionIsFedBackAndTheNextReviewKnowsIt(t *testing.T) {
	w := open(t, setting{
		plan: []tick{{reply("right for sure\n"), write("app/extra.txt", "x\n")}, {say("no change")}, {remove("app/extra.txt")}}, then: "repeat",
		config: judged(nil), files: rubricFile, script: judges(rejects("the extra file is not asked for"), approves),
	})
	j := w.label().ended("done", 0, "proctor:review")
	verdicts := []string{}
	for _, tk := range j.rec.Ticks {
		verdicts = append(verdicts, tk.Verdict)
	}
	// INV-28: the second tick's tree is the rejected one: it stays rejected and nobody is asked again.
	if len(j.rec.Ticks) != 3 || !slices.Equal(verdicts, []string{"rejected", "rejected", "done"}) {
		t.Fatalf("ticks %q", verdicts)
	}
	if r := j.rec.Ticks[1].Review; r == nil || r.Approved || !r.Cached {
		t.Errorf("INV-28 the second tick's review is %+v, want the first one's", r)
	}
	asked := w.asked()
	if len(asked) != 2 {
		t.Fatalf("INV-28 %d questions for two trees", len(asked))
	}
	if strings.Contains(asked[0].Text(), "not asked for") || !strings.Contains(asked[1].Text(), "the extra file is not asked for") {
		t.Error("the second review is not told what the first one found")
	}
	// INV-10: the question is about the whole change over base, not about what the last tick did.
	if !strings.Contains(asked[1].Text(), "+right for sure") {
		t.Errorf("INV-10 the second question lacks the first tick's change:\n%s", asked[1].Text())
	}
}

func TestNoAnswerOfTheReviewerIsTakenForAnApproval(t *testing.T) {
	for name, answer := range map[string]func(string) agenttest.Turn{
		"words":                 says("Approved. LGTM!"),
		"another nonce":         func(string) agenttest.Turn { return approves(strings.Repeat("0", 32)) },
		"no findings":           says(`{"nonce":"NONCE","verdict":"approve"}`),
		"approved as text":      says(`{"nonce":"NONCE","verdict":"approve","findings":"none"}`),
		"a fence":               says("```json\n{\"nonce\":\"NONCE\",\"verdict\":\"approve\",\"findings\":[]}\n```"),
		"two verdicts":          says(`{"nonce":"NONCE","verdict":"approve","findings":[]}{"nonce":"NONCE","verdict":"approve","findings":[]}`),
		"cut at the limit":      func(n string) agenttest.Turn { v := approves(n); v.Stop = "max_tokens"; return v },
		"a provider that fails": func(string) agenttest.Turn { return agenttest.Turn{Fault: agenttest.Fault{Status: 500}} },
	} {
		t.Run("INV-29 "+name, func(t *testing.T) {
			w := open(t, setting{plan: []tick{{reply(allRight)}}, config: judged(nil), files: rubricFile, script: judges(answer)})
			j := w.label().ended("judge_unavailable", 5, "proctor:failed").says("no verdict")
			w.unpublished()
			if last := j.rec.Ticks[len(j.rec.Ticks)-1]; last.Review != nil || len(last.Proof) != 0 {
				t.Errorf("INV-29 the tick has the review %+v and the proof %+v", last.Review, last.Proof)
			}
		})
	}
}

func TestAnUnavailableReviewerIsNoRejectionWhenTheRunResumes(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply(allRight)}}, config: judged(nil), files: rubricFile, script: judges(says("hm"), says("hm"), approves)})
	w.label().ended("judge_unavailable", 5, "proctor:failed")
	w.label().ended("done", 0, "proctor:review")
}

func TestARejectedTreeStaysRejectedWhenSomebodyAsksAgain(t *testing.T) {
	w := open(t, setting{
		plan: []tick{{reply(allRight)}}, config: judged(map[string]string{"stops": "{max_ticks: 1, max_cost_usd: 2, max_duration: 5m}"}),
		files: rubricFile, script: judges(rejects("not like this"), approves),
	})
	w.label().ended("tick_cap", 2, "proctor:needs-human")
	j := w.label()
	if j.rec.Terminal == "done" || len(w.asked()) != 1 {
		t.Errorf("INV-10, INV-28 a rejected tree ended %s after %d questions", j.rec.Terminal, len(w.asked()))
	}
	if r := j.rec.Ticks[0].Review; r == nil || r.Approved || !r.Cached {
		t.Errorf("INV-28 the second run's review is %+v", r)
	}
	// Another text is another question: the work begins anew and is judged anew.
	w.hub.EditIssue(w.issue, "The answer is wrong", "Make it right, please.")
	w.label().ended("done", 0, "proctor:review")
	if len(w.asked()) != 2 {
		t.Errorf("INV-10 %d questions after the issue has changed", len(w.asked()))
	}
}

func TestTheReviewerIsNotAskedBehindARedGate(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply("nothing\n")}, {reply("nothing else\n")}}, config: judged(map[string]string{"stops": "{max_ticks: 2, max_cost_usd: 2, max_duration: 5m}"}), files: rubricFile, script: judges(approves)})
	w.label().ended("tick_cap", 2, "proctor:needs-human")
	if n := len(w.asked()); n != 0 {
		t.Errorf("INV-28 %d questions behind a red gate", n)
	}
}

func TestTheReviewersBudgetIsTheRuns(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply(allRight)}}, config: judged(map[string]string{"stops": "{max_ticks: 4, max_cost_usd: 0.001, max_duration: 5m}"}), files: rubricFile, script: judges(approves)})
	j := w.label().ended("stopped_budget", 3, "proctor:needs-human")
	if len(w.asked()) != 0 || j.rec.Totals.CostUSD != 0 {
		t.Errorf("INV-35 %d questions passed a ceiling that cannot hold one, at %s", len(w.asked()), j.rec.Totals.CostUSD)
	}
}

func TestAReviewerWithoutAPriceIsRefusedBeforeTheFirstCall(t *testing.T) {
	w := open(t, setting{plan: []tick{{spend(10, 10), reply(allRight)}}, config: judged(map[string]string{"review": "{enabled: true, model: claude-nobody-knows-9}"}), script: judges(approves)})
	j := w.label()
	if j.rec.Terminal != "usage_error" || j.ExitCode != 1 || len(w.model.Calls()) != 0 {
		t.Errorf("ended %s (exit %d) after %d calls: %s", j.rec.Terminal, j.ExitCode, len(w.model.Calls()), j.rec.Reason)
	}
	j.says("review.model", "claude-nobody-knows-9")
}

// reviewScript answers as review.command: it rejects a change that holds a word.
const reviewScript = `import json, sys, os
q = json.load(sys.stdin)
bad = "+badword" in q["user"]
if os.environ.get("ANTHROPIC_API_KEY") or os.path.exists("sealed/check.sh"):
    sys.exit(9)
found = [{"category": "security", "severity": "high", "path": "", "line": 0, "detail": "a bad word"}] if bad else []
print(json.dumps({"nonce": q["nonce"], "verdict": "reject" if bad else "approve", "findings": found}))
`

func TestTheMaintainersOwnReviewerCountsTheSameWay(t *testing.T) {
	files := map[string]string{"tools/review.py": reviewScript}
	config := map[string]string{"review": "{enabled: true, command: python3 tools/review.py}"}
	w := open(t, setting{plan: []tick{{reply(allRight), write("app/note.txt", "badword\n")}, {remove("app/note.txt")}}, config: config, files: files, script: judges(approves)})
	j := w.label().ended("done", 0, "proctor:review")
	if r := j.rec.Ticks[0].Review; r == nil || r.Approved || len(r.Findings) != 1 || r.Model != "command: python3 tools/review.py" {
		t.Errorf("the first review is %+v", r)
	}
	if len(w.model.Calls()) != 0 {
		t.Error("a model was asked beside the command")
	}
}

func TestTheMaintainersOwnReviewerIsTheBaseCommits(t *testing.T) {
	honest := "import json, sys\nq = json.load(sys.stdin)\nprint(json.dumps({\"nonce\": q[\"nonce\"], \"verdict\": \"reject\", \"findings\": [{\"category\": \"correctness\", \"severity\": \"low\", \"path\": \"\", \"line\": 0, \"detail\": \"no\"}]}))\n"
	bribed := strings.Replace(honest, `"reject"`, `"approve"`, 1)
	config := map[string]string{"review": "{enabled: true, command: python3 tools/review.py}", "stops": "{max_ticks: 1, max_cost_usd: 1, max_duration: 5m}"}
	w := open(t, setting{plan: []tick{{reply(allRight), write("tools/review.py", bribed)}}, config: config, files: map[string]string{"tools/review.py": honest}})
	if j := w.label(); j.rec.Terminal == "done" {
		t.Error("INV-16 an agent that wrote its own reviewer ends done")
	}
	w.unpublished()
}

func TestAReviewerThatFailsGivesNoVerdict(t *testing.T) {
	for name, command := range map[string]string{"exit 1": "sh tools/review.sh", "no such program": "no-such-reviewer-here"} {
		t.Run("INV-29 "+name, func(t *testing.T) {
			w := open(t, setting{plan: []tick{{reply(allRight)}}, config: map[string]string{"review": "{enabled: true, command: " + command + "}"}, files: map[string]string{"tools/review.sh": "cat >/dev/null\nexit 1\n"}})
			w.label().ended("judge_unavailable", 5, "proctor:failed").says("review.command")
			w.unpublished()
		})
	}
}

func TestTheCheckpointCarriesVerdictsAndFindings(t *testing.T) {
	t.Parallel()
	in := judge.Input{BaseTree: "b", Tree: "t", Goal: "g"}
	c := checkpoint{Said: []judge.Verdict{{Findings: []judge.Finding{{Category: judge.Security, Detail: "a hole"}}}}}
	if err := c.Reviews.Keep(in, c.Said[0]); err != nil {
		t.Fatal(err)
	}
	blob, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back checkpoint
	if err := json.Unmarshal(blob, &back); err != nil {
		t.Fatal(err)
	}
	if v, ok := back.Reviews.Find(in); !ok || v.Approved || len(back.Said) != 1 || back.Said[0].Findings[0].Detail != "a hole" {
		t.Errorf("came back as %s", blob)
	}
}
