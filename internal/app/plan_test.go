package app

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/evidence"
)

// checklist is the plan file of the base commit: its first open item wants the half answer, its second the whole.
const checklist = "# Plan\n\n- [x] Say what is asked\n- [ ] Write the word *right*\n- [ ] Be sure of it\n"

func planned(more map[string]string) map[string]string {
	out := map[string]string{"plan": "file", "stops": "{max_ticks: 6, max_cost_usd: 1, max_duration: 5m, no_progress_after: 9}"}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func statuses(rec evidence.Record) []string {
	if rec.Plan == nil {
		return nil
	}
	var out []string
	for _, i := range rec.Plan.Items {
		s := i.Status
		if i.Tick > 0 {
			s = fmt.Sprintf("%s in %d", s, i.Tick)
		}
		out = append(out, s)
	}
	return out
}

func TestAPlanIsDoneItemByItemAndTheAgentTicksNothingOff(t *testing.T) {
	t.Run("the checklist of the base commit", func(t *testing.T) {
		w := open(t, setting{
			files: map[string]string{"PLAN.md": checklist}, config: planned(nil),
			plan: []tick{
				{reply(halfRight), sh("sed -i 's/\\[ \\]/[x]/' PLAN.md")}, // ticks everything off by itself
				{reply(allRight)},
			},
		})
		j := w.label().ended("done", 0, "proctor:review")
		if d := cmp.Diff([]string{"before", "proved in 1", "proved in 2"}, statuses(j.rec)); d != "" {
			t.Errorf("plan (-want +got):\n%s", d)
		}
		if got := w.file("PLAN.md"); got != checklist {
			t.Errorf("the checklist was changed to %q", got)
		}
		body := w.hub.Pulls()[0].Body
		for _, want := range []string{"### Plan: 3 of 3 items done", "Write the word", "no reviewer looked at it"} {
			if !strings.Contains(body, want) {
				t.Errorf("the pull request does not say %q:\n%s", want, body)
			}
		}
	})
	t.Run("what only the agent calls done is claimed and ends in a stall", func(t *testing.T) {
		w := open(t, setting{
			files: map[string]string{"PLAN.md": checklist}, config: planned(nil),
			plan: []tick{{reply(allRight)}, {sh("sed -i 's/\\[ \\]/[x]/' PLAN.md"), say("All items are done.")}}, then: "repeat",
		})
		j := w.label().ended("plan_stall", 2, "proctor:needs-human").says("2 of 3 are", "item 3")
		if d := cmp.Diff([]string{"before", "passed in 1", "claimed in 2"}, statuses(j.rec)); d != "" {
			t.Errorf("plan (-want +got):\n%s", d)
		}
		w.unpublished()
	})
	t.Run("the control: without a plan the same agent is done at once", func(t *testing.T) {
		w := open(t, setting{files: map[string]string{"PLAN.md": checklist}, config: planned(map[string]string{"plan": "off"}), plan: []tick{{reply(allRight)}}})
		j := w.label().ended("done", 0, "proctor:review")
		if j.rec.Plan != nil || len(j.rec.Ticks) != 1 {
			t.Errorf("plan %v, %d ticks", j.rec.Plan, len(j.rec.Ticks))
		}
	})
	t.Run("the issue's own task list", func(t *testing.T) {
		w := open(t, setting{
			title: "Answers", body: "- [ ] half\n- [ ] whole\n\n> - [ ] somebody else's\n", config: planned(map[string]string{"plan": "auto"}),
			plan: []tick{{reply(halfRight)}, {reply(allRight)}},
		})
		j := w.label().ended("done", 0, "proctor:review")
		if d := cmp.Diff([]string{"proved in 1", "proved in 2"}, statuses(j.rec)); d != "" || j.rec.Plan.From != "issue" {
			t.Errorf("plan from %s (-want +got):\n%s", j.rec.Plan.From, d)
		}
	})
	t.Run("an issue without tasks is worked on as a whole", func(t *testing.T) {
		w := open(t, setting{config: planned(map[string]string{"plan": "issue"}), plan: []tick{{reply(allRight)}}})
		if j := w.label().ended("done", 0, "proctor:review"); j.rec.Plan != nil || !strings.Contains(strings.Join(j.rec.Notes, "\n"), "no open task") {
			t.Errorf("plan %v, notes %q", j.rec.Plan, j.rec.Notes)
		}
	})
	t.Run("a checklist that is not there", func(t *testing.T) {
		w := open(t, setting{config: planned(map[string]string{"plan": "{from: file, file: docs/TODO.md}"})})
		w.label().ended("usage_error", 1, "proctor:failed").says("plan.file", "docs/TODO.md", "plan.from: auto")
	})
	t.Run("a directory in the way of the checklist is a change like any other", func(t *testing.T) {
		w := open(t, setting{
			files: map[string]string{"docs/PLAN.md": checklist}, config: planned(map[string]string{"plan": "{from: file, file: docs/PLAN.md}"}),
			plan: []tick{{sh("rm -r docs && echo mine > docs"), reply(halfRight)}},
		})
		w.label().ended("safety_halt", 4, "proctor:needs-human").says("docs/PLAN.md")
		w.unpublished()
	})
}

var nonceLine = regexp.MustCompile(`The nonce of this message is ([0-9a-f]+)`)

// reviewer answers as the judge's model does; says gives the findings for a question, none is an approval.
func reviewer(says func(question string) string) agenttest.Script {
	return func(r agenttest.Request) agenttest.Turn {
		m := nonceLine.FindStringSubmatch(r.Text())
		if m == nil {
			return agenttest.Turn{Text: "I am no reviewer."}
		}
		verdict, findings := "approve", "[]"
		if detail := says(r.Text()); detail != "" {
			verdict = "reject"
			findings = fmt.Sprintf(`[{"category":"incomplete","severity":"high","path":"app/answer.txt","line":1,"detail":%q}]`, detail)
		}
		return agenttest.Turn{Text: fmt.Sprintf(`{"nonce":%q,"verdict":%q,"findings":%s}`, m[1], verdict, findings)}
	}
}

func TestTheReviewerJudgesEachItemByItsShareAndThenTheWhole(t *testing.T) {
	const review = "{enabled: true, model: claude-haiku-4-5}"
	var mu sync.Mutex
	var asked []string
	w := open(t, setting{
		files: map[string]string{"PLAN.md": checklist}, config: planned(map[string]string{"review": review}),
		plan: []tick{{reply(halfRight)}, {write("app/more.txt", "not what was asked\n")}, {reply(allRight)}},
		script: reviewer(func(q string) string {
			mu.Lock()
			defer mu.Unlock()
			item := "whole"
			if _, rest, ok := strings.Cut(q, "The item:\n"); ok {
				item, _, _ = strings.Cut(rest, "\n")
			}
			shown := ""
			for _, f := range []string{"app/answer.txt", "app/more.txt"} {
				if strings.Contains(q, "+++ b/"+f) || strings.Contains(q, f) {
					shown += " " + f
				}
			}
			asked = append(asked, item+":"+shown)
			if item == "Be sure of it" && !strings.Contains(q, "right for sure") {
				return "it is not sure yet"
			}
			return ""
		}),
	})
	j := w.label().ended("done", 0, "proctor:review")
	want := []string{
		"Write the word *right*: app/answer.txt",
		"Be sure of it: app/more.txt",
		"Be sure of it: app/answer.txt app/more.txt",
		"whole: app/answer.txt app/more.txt",
	}
	if d := cmp.Diff(want, asked); d != "" {
		t.Errorf("the reviewer was asked (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"before", "proved in 1", "proved in 3"}, statuses(j.rec)); d != "" {
		t.Errorf("plan (-want +got):\n%s", d)
	}
	var words []string
	for _, tick := range j.rec.Ticks {
		words = append(words, tick.Verdict)
	}
	if d := cmp.Diff([]string{"item_done", "rejected", "done"}, words); d != "" {
		t.Errorf("ticks (-want +got):\n%s", d)
	}
	// INV-54: each question is booked to its tick, and those about items are told from the one about the whole.
	var booked, shares []string
	for _, c := range j.rec.Calls {
		booked = append(booked, fmt.Sprintf("%d %s", c.Tick, c.Purpose))
		if c.CostUSD <= 0 {
			t.Errorf("the %s of tick %d costs %s", c.Purpose, c.Tick, c.CostUSD)
		}
	}
	if d := cmp.Diff([]string{"1 item_review", "2 item_review", "3 item_review", "3 review"}, booked); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	for _, tick := range j.rec.Ticks {
		if s := tick.Share; s != nil {
			shares = append(shares, fmt.Sprintf("%d item %d %t by %s, %d findings", tick.N, tick.Item, s.Approved, s.Model, len(s.Findings)))
		}
	}
	want = []string{"1 item 2 true by claude-haiku-4-5, 0 findings", "2 item 3 false by claude-haiku-4-5, 1 findings", "3 item 3 true by claude-haiku-4-5, 0 findings"}
	if d := cmp.Diff(want, shares); d != "" {
		t.Errorf("what the record says of the items' shares (-want +got):\n%s", d)
	}
	if body := w.hub.Pulls()[0].Body; !strings.Contains(strings.ReplaceAll(body, "\\", ""), "item_review") {
		t.Errorf("the pull request does not say what the reviews of the items cost:\n%s", body)
	}
}
