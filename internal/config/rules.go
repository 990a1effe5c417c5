package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/money"
)

// combinations are the rules between keys: each value is right by itself, together they promise
// something that cannot be kept.
func (d *decoder) combinations() {
	for _, r := range []func(*decoder){
		heldOut, heldOutIsSet, heldOutOnce, somethingToCount, probesHaveNames, sealsSomething, ceilings, somethingMayChange, egressIsEnforced, labelsStayApart, roundsMayBegin,
	} {
		r(d)
	}
}

// conflict reports at the first of keys that stands in the file.
func (d *decoder) conflict(keys []string, next, format string, args ...any) {
	for _, k := range keys {
		for p := k; p != ""; p = above(p) {
			if node := d.places[p]; node != nil {
				d.fail(node, p, next, format, args...)
				return
			}
		}
	}
	d.errs = append(d.errs, &Error{File: d.file, Line: 1, Column: 1, Key: keys[0], Msg: fmt.Sprintf(format, args...), Next: next})
}

func (d *decoder) set(path string) bool { return d.places[path] != nil }

// heldOut: a gate that the agent sees the output of is not held out.
func heldOut(d *decoder) {
	g := d.config.Gates
	const next = "give the held-out gate a command of its own"
	check := func(key string, c Command) {
		switch {
		case len(c.Argv) == 0:
		case sameCommand(c, g.Iteration):
			d.conflict([]string{key}, next, "is the same command as gates.iteration, so nothing would be held out")
		case sameCommand(c, g.Regression):
			d.conflict([]string{key}, next, "is the same command as gates.regression, so nothing would be held out")
		}
	}
	check("gates.acceptance.run", g.Acceptance.Run)
	for _, c := range g.Acceptance.Parts {
		check("gates.acceptance.parts", c)
	}
}

func sameCommand(a, b Command) bool {
	words := func(c Command) string {
		if c.Line != "" {
			return strings.Join(strings.Fields(c.Line), " ")
		}
		return strings.Join(c.Argv, " ")
	}
	return words(a) == words(b)
}

func heldOutIsSet(d *decoder) {
	if d.config.Gates.HeldOut() > 0 {
		return
	}
	for _, name := range []string{"sealed", "source.repo", "source.ref", "source.path", "dir", "overwrite", "attempts", "feedback", "must_fail_on_base"} {
		path := "gates.acceptance." + name
		if d.set(path) {
			d.conflict([]string{path}, "write gates.acceptance.run, the command that uses it", "means nothing without gates.acceptance.run")
		}
	}
}

// heldOutOnce: two places of held-out files would have to say which one wins.
func heldOutOnce(d *decoder) {
	a := d.config.Gates.Acceptance
	if a.Source != (Source{}) && a.Dir != "" {
		d.conflict([]string{"gates.acceptance.dir"}, "keep one of them", "gates.acceptance.source brings held-out files already")
	}
}

func somethingToCount(d *decoder) {
	if g := d.config.Gates; g.Acceptance.Feedback == "count" && g.HeldOut() == 1 {
		d.conflict([]string{"gates.acceptance.feedback"}, "write the held-out checks as separate commands under gates.acceptance.parts, or write feedback: none", "there is one held-out gate, so there is nothing to count")
	}
}

func probesHaveNames(d *decoder) {
	seen := map[string]bool{}
	for _, p := range d.config.Gates.Probes {
		if seen[p.Name] {
			d.conflict([]string{"gates.probes"}, "give each a name of its own", "two probes are called %q", p.Name)
		}
		seen[p.Name] = true
	}
}

func sealsSomething(d *decoder) {
	for _, g := range d.config.Gates.Acceptance.Sealed {
		if g == "**" || g == "**/*" {
			d.conflict([]string{"gates.acceptance.sealed"}, "name the held-out tests only", "%q would hide the whole repository from the agent", g)
		}
	}
}

func ceilings(d *decoder) {
	b := d.config.Budget
	for _, limit := range []struct {
		path   string
		amount money.USD
	}{
		{"budget.per_issue_usd", b.PerIssue},
		{"budget.per_day_usd", b.PerDay},
		{"budget.per_actor_day_usd", b.PerActorDay},
	} {
		if d.config.Stops.MaxCost > limit.amount {
			next := fmt.Sprintf("lower stops.max_cost_usd or raise %s", limit.path)
			d.conflict([]string{"stops.max_cost_usd", limit.path}, next,
				"stops.max_cost_usd %s is more than %s %s, so a run could never spend it", d.config.Stops.MaxCost.Decimal(), limit.path, limit.amount.Decimal())
		}
	}
}

func somethingMayChange(d *decoder) {
	if len(d.config.Policy.Allow) == 0 {
		d.conflict([]string{"policy.allow"}, `write ["**"] or remove the line`, "an empty list lets nothing change")
	}
	for path, globs := range map[string][]string{"policy.deny": d.config.Policy.Deny, "policy.protected": d.config.Policy.Protected} {
		if slices.Contains(globs, "**") || slices.Contains(globs, "**/*") {
			d.conflict([]string{path}, "list what must not change", "covers the whole repository, so nothing could change")
		}
	}
	if len(d.config.Trigger.Roles) == 0 && len(d.config.Trigger.Bots) == 0 {
		d.conflict([]string{"trigger.roles"}, "write [admin, maintain, write] or fewer of them", "an empty list lets nobody ask")
	}
}

// egressIsEnforced: a list that nothing enforces would read like a promise.
func egressIsEnforced(d *decoder) {
	if d.config.Sandbox.Mode == "off" && len(d.config.Sandbox.Egress) > 0 {
		d.conflict([]string{"sandbox.egress"}, "set sandbox.mode to auto or strict, or remove the list", "nothing enforces it while sandbox.mode is off")
	}
}

// labelsStayApart: a draft that carries the trigger or a state label would speak for the loop.
func labelsStayApart(d *decoder) {
	label := d.config.Trigger.Label
	for _, l := range d.config.Publish.Labels {
		if strings.EqualFold(l, label) || strings.HasPrefix(strings.ToLower(l), strings.ToLower(label)+":") {
			d.conflict([]string{"publish.labels"}, "choose another label", "%q belongs to the loop itself", l)
		}
	}
}

// roundsMayBegin: without rounds there is none that CI could start.
func roundsMayBegin(d *decoder) {
	if f := d.config.Fix; f.OnCheckFailure && f.MaxRounds == 0 {
		d.conflict([]string{"fix.on_check_failure", "fix.max_rounds"}, "raise fix.max_rounds or take fix.on_check_failure out", "starts nothing while fix.max_rounds is 0")
	}
}
