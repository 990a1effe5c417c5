package evidence

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/proctor-ci/proctor/internal/inert"
)

// Plain is the account for a terminal or a CI log: verdict first, what proved it, what it cost, where
// the rest lies. dir is the run's directory, "" when there is none. No line begins with text of
// others, and none holds a workflow command.
func Plain(r Record, dir string) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %-12s %s", name, fmt.Sprintf(format, args...)), " "))
		b.WriteByte('\n')
	}
	t := r.terminal()
	title := strings.ToUpper(t.Title)
	if r.DryRun {
		title += " (dry run: nothing pushed, nothing written on the forge)"
	}
	fmt.Fprintf(&b, "%s\n  %s\n\n", title, inert.Plain(r.verdict(), maxDetail))
	if g := r.goal(); g != "" {
		line("Goal", "%s", inert.Plain(g, 100))
	}
	if r.Terminal != Done {
		line("Why", "%s", inert.Plain(r.Reason, 2*maxDetail))
	}
	for i, g := range r.deciding() {
		name := ""
		if i == 0 {
			name = "Gates"
		}
		time := took(g.Millis)
		if g.Where == "proof" {
			time = ""
		}
		line(name, "%-28s %-18s %-18s %s", inert.Plain(g.label(), 60), g.result(), place(g.Where), time)
	}
	if p := r.Plan; p != nil {
		line("Plan", "%s", p.summary())
		for _, i := range p.Items {
			line("", "%s %s (%s)", i.box(), inert.Plain(i.Text, 80), i.said())
		}
	}
	line("Ticks", "%d in %s", r.Totals.Ticks, took(r.Totals.Millis))
	for _, t := range r.Ticks {
		line("", "%d  %-14s %s", t.N, inert.Plain(strings.ReplaceAll(t.Verdict, "_", " "), 40), inert.Plain(t.Note, 120))
	}
	line("Cost", "%s", r.cost())
	var off []string
	for _, e := range r.Confinement {
		if e.missing() {
			off = append(off, inert.Plain(e.Name, 40))
		}
	}
	if len(off) > 0 {
		line("Unconfined", "%s (see the report)", strings.Join(off, ", "))
	}
	if r.Egress != nil {
		line("Egress", "%s", r.Egress.summary(func(s string) string { return inert.Plain(s, 80) }))
	}
	for i, n := range r.Notes {
		if i < 10 {
			line("Note", "%s", inert.Plain(n, maxDetail))
		}
	}
	if v := r.Published; v != nil {
		switch {
		case v.Number == 0:
			line("Branch", "%s at %s; no pull request is open", inert.Plain(v.Branch, maxPath), short(v.Commit))
		default:
			line(draftWord(v), "%s", plainURL(v.URL))
			line("Branch", "%s at %s", inert.Plain(v.Branch, maxPath), short(v.Commit))
		}
	}
	if s := r.Signing; s != nil && r.Published != nil {
		line("Signature", "%s", inert.Plain(s.Said(), maxDetail))
	}
	if r.Kept != "" && r.Terminal != Done && r.Head != nil {
		line("Kept", "%s on %s", short(r.Head.ID), inert.Plain(r.Kept, maxPath))
	}
	if dir != "" {
		line("Report", "%s", filepath.Join(dir, ReportFile))
		line("Record", "%s", filepath.Join(dir, RecordFile))
	}
	if r.RunURL != "" {
		line("CI job", "%s", plainURL(r.RunURL))
	}
	if r.Next != "" {
		line("Next", "%s", inert.Plain(r.Next, 2*maxDetail))
	}
	return b.String()
}

func draftWord(v *Published) string {
	if v.Draft {
		return "Draft PR"
	}
	return "PR"
}

// plainURL keeps an address clickable; it holds no blank and so begins no command.
func plainURL(s string) string { return strings.ReplaceAll(inert.Plain(s, 2000), " ", "%20") }
