package prompt

import (
	"fmt"
	"strings"
)

// Plan is the checklist that a run works through. Texts are untrusted.
type Plan struct {
	Items   []PlanItem
	Current int // index; -1: all are done, what is left is what the feedback says
}

// PlanItem is one line of it.
type PlanItem struct {
	Text string
	Done bool
}

const itemRule = "- The task is done item by item. Do only the current item of the plan below in this turn, whole, and leave the others alone. The harness ticks items off; what you tick off or claim has no effect.\n"

// rule is what the fixed words say about working by a plan.
func (p *Plan) rule() string {
	if p == nil || p.Current < 0 {
		return ""
	}
	return itemRule
}

// part is the plan as data. It is never nil, so that parts keep their places.
func (p *Plan) part() *part {
	out := &part{name: "plan", share: 6}
	if p == nil || len(p.Items) == 0 {
		return out
	}
	out.heading = "The plan. Every item is done; what is left is what came of the attempt before this one."
	if p.Current >= 0 && p.Current < len(p.Items) {
		out.heading = fmt.Sprintf("The plan. The current item is number %d.", p.Current+1)
		out.sections = append(out.sections, section{label: "current item", text: itemLine(p.Current, p.Items[p.Current])})
	}
	var list []string
	for i, item := range p.Items {
		list = append(list, itemLine(i, item))
	}
	out.sections = append(out.sections, section{label: "all items", text: strings.Join(list, "\n")})
	return out
}

func itemLine(i int, item PlanItem) string {
	box := "[ ]"
	if item.Done {
		box = "[x]"
	}
	return fmt.Sprintf("%d. %s %s", i+1, box, Inline(item.Text, 500))
}
