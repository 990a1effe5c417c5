package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// Override is what a door asks to differ from the file. Zero values ask for nothing.
type Override struct {
	// From names the door in errors: "input" gives "input max_ticks", "flag" gives "flag --max-ticks".
	From string
	// Operator says that the words come from whoever owns the machine or the workflow file of the
	// base commit, who may name any agent and model. A dispatch or a comment may not: it chooses
	// among agent.choices and agent.models.
	Operator    bool
	Agent       string
	Model       string
	MaxTicks    int
	MaxCost     money.USD
	MaxDuration time.Duration
	// Remaining is the time that the run has whatever the file says, such as its token's. It lowers stops.max_duration and, unlike
	// MaxDuration, asks for nothing where it is longer.
	Remaining time.Duration
}

// Narrow applies o to c. Limits only go down. It returns what changed, one line each, or an Errors in
// which every attempt to widen names the input and the limit; c is then returned unchanged.
func Narrow(c Config, o Override) (Config, []string, error) {
	n := narrowing{from: cmp.Or(o.From, "input")}
	out := c
	out.Agent.Name = n.choose("agent", "agent.name", "agent.choices", c.Agent.Name, o.Agent, c.Agent.Choices, o.Operator, checkName)
	out.Agent.Model = n.choose("model", "agent.model", "agent.models", c.Agent.Model, o.Model, c.Agent.Models, o.Operator, checkModel)
	if out.Agent.Name != c.Agent.Name && o.Model == "" {
		// A model belongs to its agent: another agent starts from its own default.
		out.Agent.Model = ""
	}
	out.Stops.MaxTicks = lower(&n, "max_ticks", "stops.max_ticks", c.Stops.MaxTicks, o.MaxTicks, func(v int) string { return fmt.Sprint(v) })
	out.Stops.MaxCost = lower(&n, "max_cost_usd", "stops.max_cost_usd", c.Stops.MaxCost, o.MaxCost, money.USD.Decimal)
	out.Stops.MaxDuration = lower(&n, "max_duration", "stops.max_duration", c.Stops.MaxDuration, o.MaxDuration, durationText)
	if o.Remaining > 0 && o.Remaining < out.Stops.MaxDuration {
		n.changed = append(n.changed, fmt.Sprintf("stops.max_duration: %s → %s (the time that the run's token has left)", durationText(out.Stops.MaxDuration), durationText(o.Remaining)))
		out.Stops.MaxDuration = o.Remaining
	}
	if len(n.errs) > 0 {
		return c, nil, n.errs
	}
	return out, n.changed, nil
}

type narrowing struct {
	from    string
	changed []string
	errs    Errors
}

// input is the name as its door writes it.
func (n *narrowing) input(name string) string {
	if n.from == "flag" {
		return "flag --" + strings.TrimSuffix(strings.ReplaceAll(name, "_", "-"), "-usd")
	}
	return n.from + " " + name
}

func (n *narrowing) fail(name, key, next, format string, args ...any) {
	n.errs = append(n.errs, &Error{File: n.input(name), Key: key, Msg: fmt.Sprintf(format, args...), Next: next})
}

func (n *narrowing) note(name, key, from, to string) {
	n.changed = append(n.changed, fmt.Sprintf("%s: %s → %s (%s)", key, cmp.Or(from, "default"), to, n.input(name)))
}

func (n *narrowing) choose(name, key, listKey, now, want string, list []string, operator bool, check func(string) error) string {
	switch {
	case want == "" || want == now:
		return now
	case check(want) != nil:
		n.fail(name, key, "write its name", "%q is not a name", want)
		return now
	case !operator && !slices.Contains(list, want):
		n.fail(name, key, fmt.Sprintf("add it to %s on the default branch, or leave the input out", listKey), "%q is not in %s", want, listKey)
		return now
	}
	n.note(name, key, now, want)
	return want
}

// lower takes want where it is below the limit.
func lower[T cmp.Ordered](n *narrowing, name, key string, limit, want T, show func(T) string) T {
	var zero T
	switch {
	case want == zero || want == limit:
		return limit
	case want < zero:
		n.fail(name, key, "write an amount above zero", "%s is below zero", show(want))
		return limit
	case want > limit:
		n.fail(name, key, fmt.Sprintf("ask for %s or less, or raise %s on the default branch", show(limit), key),
			"%s is more than the limit of %s: a run may narrow its configuration, never widen it", show(want), show(limit))
		return limit
	}
	n.note(name, key, show(limit), show(want))
	return want
}
