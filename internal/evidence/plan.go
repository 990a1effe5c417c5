package evidence

import (
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/inert"
)

// done is how many items are no longer open.
func (p *Plan) done() int {
	n := 0
	for _, i := range p.Items {
		if i.Status != "open" && i.Status != "claimed" {
			n++
		}
	}
	return n
}

// summary is one sentence: "2 of 3 items of the plan are done".
func (p *Plan) summary() string {
	return fmt.Sprintf("%d of %s done", p.done(), count(len(p.Items), "item"))
}

// said is what the status means, in words that claim no more than was shown.
func (i PlanItem) said() string {
	by := i.By
	if by == "gates" {
		by = "gates; no reviewer looked at it"
	}
	switch i.Status {
	case "proved":
		return fmt.Sprintf("proved with the whole change; ticked off in tick %d by %s", i.Tick, by)
	case "passed":
		return fmt.Sprintf("ticked off in tick %d by %s; the whole change is not proved", i.Tick, by)
	case "claimed":
		return fmt.Sprintf("not done: only the agent called it done, first in tick %d", i.Tick)
	case "before":
		return "ticked off on the base commit"
	}
	return "not done"
}

// box is the item's mark in a checklist.
func (i PlanItem) box() string {
	switch i.Status {
	case "open", "claimed":
		return "[ ]"
	}
	return "[x]"
}

// plan is the checklist with what was shown of each item.
func (p *page) plan(r Record) {
	if r.Plan == nil || len(r.Plan.Items) == 0 {
		return
	}
	from := "the issue's task list"
	if r.Plan.From != "issue" {
		from = inert.Code(r.Plan.From, maxPath) + " of the base commit"
	}
	p.linef("\n### Plan: %s\n\nFrom %s. The agent ticks nothing off: gates do, and the reviewer where there is one.\n", r.Plan.summary(), from)
	p.items("item of the plan", len(r.Plan.Items), func(n int) string {
		i := r.Plan.Items[n]
		return fmt.Sprintf("%s %s (%s)", i.box(), inert.Text(i.Text, maxTitle), i.said())
	})
}

// tickNo finds a tick of this run; nil when it is an earlier run's.
func (r Record) tickNo(n int) *Tick {
	for i := range r.Ticks {
		if r.Ticks[i].N == n {
			return &r.Ticks[i]
		}
	}
	return nil
}

// plan holds each item's status to what the rest of the record shows.
func (c *checker) plan(r Record) {
	if r.Plan == nil {
		return
	}
	for n, i := range r.Plan.Items {
		known := strings.Contains(" proved passed claimed open before ", " "+i.Status+" ")
		c.need(known, "item %d of the plan has the status %q", n+1, i.Status)
		ticked := i.Status == "proved" || i.Status == "passed"
		c.need(!ticked || i.Tick > 0 && i.By != "", "item %d of the plan is %s and nobody ticked it off", n+1, i.Status)
		if t := r.tickNo(i.Tick); ticked && i.By == "gates and reviewer" && t != nil && t.Item == n+1 && t.Share != nil {
			c.need(t.Share.Approved, "item %d of the plan is %s, and the reviewer rejected its share in tick %d", n+1, i.Status, t.N)
		}
		c.need(i.Status != "proved" || r.Terminal == Done || r.Terminal == PublishFailed, "item %d of the plan is proved and the run ended %s", n+1, r.Terminal)
		open := i.Status == "open" || i.Status == "claimed"
		c.need(!open || r.Terminal != Done || r.rehearsal(), "the run is done and item %d of the plan is %s", n+1, i.Status)
	}
}
