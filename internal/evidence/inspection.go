package evidence

import (
	"fmt"

	"github.com/proctor-ci/proctor/internal/inert"
)

// InspectionAnswer is what a command that looked at a pull request is answered: how it ended, what was compared or found, and
// what it took. It stays within limit bytes (0: GitHub's limit).
func InspectionAnswer(r Record, limit int) string {
	return fit(limit, r.rest(), "", func(p *page) {
		t := r.terminal()
		p.linef("### %s %s\n\n%s", face(t), t.Title, inert.Text(r.verdict(), maxDetail))
		p.inspected(r)
		p.ending(r)
		p.findings(r)
		p.linef("\n%s", inert.Words(r.cost()))
		p.unenforced(r)
		if len(r.Notes) > 0 {
			p.linef("")
			p.items("note", len(r.Notes), func(i int) string { return inert.Text(r.Notes[i], maxDetail) })
		}
		p.linef("\nBy %s. %s", inert.Code(r.Run, 100), r.rest())
	})
}

// inspected says which commits a command looked at, and what it compared.
func (p *page) inspected(r Record) {
	v := r.Inspection
	if v == nil {
		return
	}
	what := fmt.Sprintf("%s at %s", inert.Link(fmt.Sprintf("pull request %d", v.Number), v.URL), inert.Code(v.Head, 80))
	switch {
	case v.Proved == "":
		p.linef("\nRead was %s, the whole difference from %s.", what, inert.Code(r.Base.ID, 80))
		return
	case v.Stands:
		p.linef("\nRepeated was the proof of %s on %s, as run %s claims it.", what, inert.Code(r.Base.ID, 80), inert.Code(v.Run, 100))
	default:
		p.linef("\n**The head is not what was proved.** The branch of %s; repeated was the proof of %s on %s, as run %s claims it.",
			what, inert.Code(v.Proved, 80), inert.Code(r.Base.ID, 80), inert.Code(v.Run, 100))
	}
	p.table("comparison", len(v.Compared), func(i int) []string {
		k := v.Compared[i]
		face := "✅"
		if !k.Same {
			face = "❌"
		}
		return []string{face + " " + inert.Text(k.Name, maxTitle), inert.Text(k.Claimed, maxDetail), inert.Text(k.Now, maxDetail)}
	}, "Compared", "Claimed", "Now")
}
