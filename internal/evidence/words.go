package evidence

import (
	"fmt"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// Lengths of single texts in views, in characters.
const (
	maxTitle  = 200
	maxPath   = 240
	maxDetail = 400
	maxCmd    = 160
)

// took is a duration of ms milliseconds for people.
func took(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour && d%time.Minute < time.Second:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// count is a number with its noun: "1 tick", "3 ticks".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// short is a commit id as people read it.
func short(id string) string {
	if len(id) > 10 {
		return id[:10]
	}
	return id
}

// place says where a gate ran.
func place(where string) string {
	switch where {
	case "base":
		return "base commit"
	case "gate":
		return "clean checkout"
	case "proof":
		return "pristine checkout"
	case "agent":
		return "agent's directory"
	case "fail-first":
		return "base code with the added tests"
	}
	return where
}

// label names a gate: its name, and its class where the two differ.
func (g Gate) label() string {
	switch {
	case g.HeldOut():
		return strings.TrimSpace(g.Name + " (held out)")
	case g.Name == "" || g.Name == g.Class:
		return g.Class
	}
	return g.Class + ": " + g.Name
}

// result says how a gate ended. Of a held-out gate nothing but passed or not is said.
func (g Gate) result() string {
	switch {
	case g.HeldOut() && g.Where == "proof" && g.Status != "passed":
		return "did not pass"
	case g.Status == "failed" && !g.HeldOut():
		return fmt.Sprintf("failed (exit %d)", g.ExitCode)
	}
	return strings.ReplaceAll(g.Status, "_", " ")
}

func mark(status string) string {
	switch status {
	case "passed":
		return "✅"
	case "timed_out":
		return "⏱️"
	case "stopped":
		return "⏹️"
	case "broken":
		return "⚠️"
	}
	return "❌"
}

// face is the mark of a whole ending.
func face(t Terminal) string {
	switch t.Exit {
	case 0:
		return "✅"
	case 2:
		return "🧑"
	case 3, 130:
		return "⏸️"
	case 4:
		return "🛑"
	}
	return "⚠️"
}

// terminal is the record's row of the table; a running or broken record gets one that says so.
func (r Record) terminal() Terminal {
	t, ok := FindTerminal(r.Terminal)
	switch {
	case r.rehearsal():
		t.Title, t.Meaning = "Ready", "The run could start here. No agent was started and no money was spent."
	case !ok:
		return Terminal{Name: r.Terminal, Exit: r.ExitCode, Title: "Unknown ending", Meaning: "The record names no ending that this program knows."}
	}
	return t
}

// rehearsal tells whether this was a dry run that went well: it ends as done and has proved nothing.
func (r Record) rehearsal() bool { return r.DryRun && r.Terminal == Done && len(r.Ticks) == 0 }

// last is the last tick, nil when there was none.
func (r Record) last() *Tick {
	if len(r.Ticks) == 0 {
		return nil
	}
	return &r.Ticks[len(r.Ticks)-1]
}

// deciding are the gate runs that the ending rests on: those of the last tick, and of the base when
// there was no tick.
func (r Record) deciding() []Gate {
	t := r.last()
	if t == nil {
		return r.Baseline
	}
	return append(append([]Gate{}, t.Gates...), t.Proof...)
}

// goal is what was asked for, in the requester's words.
func (r Record) goal() string {
	if r.Trigger.Title != "" {
		return r.Trigger.Title
	}
	return r.Trigger.Goal
}

// closes tells whether the change settles the run's own issue (INV-50): the run proved it, read that
// issue from the forge itself, and is no revise of an older pull request.
func (r Record) closes() bool {
	return r.Terminal == Done && !r.rehearsal() && r.Trigger.Issue > 0 && r.Trigger.Verified && !r.Trigger.Revise
}

// enforced tells whether a part of the confinement was active.
func (r Record) enforced(name string) bool {
	for _, e := range r.Confinement {
		if e.Name == name && e.Active {
			return true
		}
	}
	return false
}

// spend is calls of one purpose and model together.
type spend struct {
	purpose, model                  string
	calls, reserved                 int
	input, output, cacheRead, write int64
	cost                            money.USD
}

func (r Record) spends() []spend {
	var out []spend
next:
	for _, c := range r.Calls {
		for i := range out {
			if out[i].purpose == c.Purpose && out[i].model == c.Model {
				out[i].add(c)
				continue next
			}
		}
		s := spend{purpose: c.Purpose, model: c.Model}
		s.add(c)
		out = append(out, s)
	}
	return out
}

func (s *spend) add(c Call) {
	s.calls++
	if c.Priced == "reserved" {
		s.reserved++
	}
	s.input += c.Input
	s.output += c.Output
	s.cacheRead += c.CacheRead
	s.write += c.CacheWrite
	s.cost = s.cost.Add(c.CostUSD)
}

// cost says what the run cost and what it was allowed to.
func (r Record) cost() string {
	s := fmt.Sprintf("%s in %s", r.Totals.CostUSD, count(r.Totals.Calls, "model call"))
	if r.Ceilings.CostUSD > 0 {
		s += fmt.Sprintf(", of at most %s", r.Ceilings.CostUSD)
	}
	if r.Totals.IssueUSD > r.Totals.CostUSD {
		s += fmt.Sprintf("; %s for this issue in all", r.Totals.IssueUSD)
	}
	return s
}

// verdict is the first sentence of every view.
func (r Record) verdict() string {
	t := r.terminal()
	if r.Terminal != Done || r.Head == nil {
		return t.Meaning
	}
	n := 0
	if last := r.last(); last != nil {
		n = len(last.Proof)
	}
	if n == 0 {
		return t.Meaning
	}
	return fmt.Sprintf("%s passed in a pristine checkout of exactly this commit.", count(n, "gate"))
}
