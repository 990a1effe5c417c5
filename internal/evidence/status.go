package evidence

import (
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/inert"
)

// RunningComment is the status comment while a run goes on: the stages that are behind it, the one
// it is at, and what it has spent. It stays within limit bytes (0: GitHub's limit).
func RunningComment(p Progress, limit int) string {
	rest := "The CI job shows the rest."
	if p.RunURL != "" {
		rest = inert.Link("The CI job", p.RunURL) + " shows the rest."
	}
	return fit(limit, rest, "", func(out *page) {
		out.linef("%s\n### ⏳ Proctor is working on this issue\n", StatusMarker)
		out.linef("%s · %s", asked(p), spent(p))
		if p.RunURL != "" {
			out.linef("\n%s", inert.Link("Watch the run", p.RunURL))
		}
		out.linef("")
		out.linef("- %s", steps("**Base commit**", p.Baseline))
		from := max(0, len(p.Ticks)-out.rows)
		if from > 0 {
			out.left = append(out.left, fmt.Sprintf("%d of %s", from, count(len(p.Ticks), "tick")))
		}
		for _, t := range p.Ticks[from:] {
			name := fmt.Sprintf("**Tick %d**", t.N)
			if p.MaxTicks > 0 {
				name = fmt.Sprintf("**Tick %d** of at most %d", t.N, p.MaxTicks)
			}
			line := steps(name, t.Steps)
			if t.Verdict != "" {
				line += " → " + inert.Text(t.Verdict, 60)
			}
			out.linef("- %s", line)
		}
		if p.Now != "" {
			out.linef("- ⏳ *now: %s*", inert.Text(p.Now, maxTitle))
		}
		out.items("note", len(p.Notes), func(i int) string { return "note: " + inert.Text(p.Notes[i], maxDetail) })
	})
}

func asked(p Progress) string {
	s := "Run " + inert.Code(p.Run, 100)
	switch {
	case p.Cause != "":
		s += ", since " + inert.Text(p.Cause, maxDetail)
		if p.Actor != "" {
			s += ", on the account of " + inert.Code(p.Actor, 60)
		}
	case p.Actor != "":
		s += ", asked for by " + inert.Code(p.Actor, 60)
	}
	if p.Agent != "" {
		s += ", with " + inert.Code(p.Agent, 60)
	}
	return s
}

func spent(p Progress) string {
	s := fmt.Sprintf("spent so far: %s", p.Cost)
	if p.MaxCost > 0 {
		s += fmt.Sprintf(" of at most %s", p.MaxCost)
	}
	return inert.Words(s)
}

func steps(name string, all []Step) string {
	parts := make([]string, 0, len(all))
	for _, s := range all {
		text := mark(s.Mark) + " " + inert.Text(s.Name, 80)
		if s.Detail != "" {
			text += " (" + inert.Text(s.Detail, maxTitle) + ")"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return name
	}
	return name + ": " + strings.Join(parts, " · ")
}

// StatusComment is the final word on the issue, for every terminal. It stays within limit bytes
// (0: GitHub's limit).
func StatusComment(r Record, limit int) string {
	return fit(limit, r.rest(), "", func(p *page) {
		p.linef("%s", StatusMarker)
		p.outcome(r)
	})
}

// CheckTitle is the end of a run as one line of plain text, at most limit characters.
func CheckTitle(r Record, limit int) string {
	t := r.terminal()
	return inert.Cut(inert.Visible(t.Title+": "+r.verdict(), limit), limit)
}

// CheckSummary is what a run's check on a commit says. It stays within limit bytes.
func CheckSummary(r Record, limit int) string {
	return fit(limit, r.rest(), "", func(p *page) { p.outcome(r) })
}

// outcome is how a run ended, what decided it, and what it took.
func (p *page) outcome(r Record) {
	t := r.terminal()
	p.linef("### %s %s\n\n%s", face(t), t.Title, inert.Text(r.verdict(), maxDetail))
	p.ending(r)
	if gates := r.deciding(); len(gates) > 0 {
		p.linef("")
		p.items("gate run", len(gates), func(i int) string {
			g := gates[i]
			return fmt.Sprintf("%s %s on the %s: %s", mark(g.Status), inert.Text(g.label(), maxTitle), place(g.Where), g.result())
		})
	}
	p.linef("\n%s in %s · %s", count(r.Totals.Ticks, "tick"), took(r.Totals.Millis), inert.Words(r.cost()))
	p.unenforced(r)
	began := ""
	if r.Trigger.Cause != "" {
		began = ", since " + inert.Text(r.Trigger.Cause, maxDetail)
	}
	p.linef("\nRun %s%s. %s", inert.Code(r.Run, 100), began, r.rest())
}

// unenforced names what the machine does not confine.
func (p *page) unenforced(r Record) {
	var off []string
	for _, e := range r.Confinement {
		if e.missing() {
			off = append(off, inert.Text(e.Name, 40))
		}
	}
	if len(off) > 0 {
		p.linef("\n**Not enforced on this machine:** %s", strings.Join(off, ", "))
	}
}
