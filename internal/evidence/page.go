package evidence

import (
	"fmt"
	"math"
	"strings"

	"github.com/proctor-ci/proctor/internal/inert"
)

// Limits of what a forge takes, in bytes: a body of that many bytes has at most as many characters,
// however the forge counts them.
const (
	MaxGitHubBody = 65_536
	MaxJobSummary = 1 << 20
)

// page is Markdown in the making. rows is how many rows of each long list are shown; what is left
// out is told (INV-52).
type page struct {
	strings.Builder
	rows int
	left []string
	// limit ends lists early: what is longer already will be rendered again with fewer rows.
	limit int
}

func (p *page) linef(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

// shown is how many of n things to show, and notes the rest.
func (p *page) shown(n int, noun string) int {
	if n <= p.rows {
		return n
	}
	p.left = append(p.left, fmt.Sprintf("%d of %s", n-p.rows, count(n, noun)))
	return p.rows
}

// table writes a table of at most rows rows. Cells are Markdown already.
func (p *page) table(noun string, n int, row func(i int) []string, head ...string) {
	if n == 0 {
		return
	}
	p.linef("\n| %s |", strings.Join(head, " | "))
	p.linef("|%s", strings.Repeat("---|", len(head)))
	for i := range p.shown(n, noun) {
		if p.Len() > p.limit {
			return
		}
		p.linef("| %s |", strings.Join(row(i), " | "))
	}
}

// items writes a list of at most rows items.
func (p *page) items(noun string, n int, item func(i int) string) {
	for i := range p.shown(n, noun) {
		if p.Len() > p.limit {
			return
		}
		p.linef("- %s", item(i))
	}
}

// open starts a part that is folded away until somebody asks for it.
func (p *page) open(summary string) { p.linef("\n<details><summary>%s</summary>", summary) }
func (p *page) close()              { p.linef("\n</details>") }

// fit renders with fewer and fewer rows until the result and tail keep within limit bytes. The last
// resort, for a limit below what fixed parts take, is a cut at a line's end. rest says where
// everything lies that was left out.
func fit(limit int, rest, tail string, render func(p *page)) string {
	if limit <= 0 {
		limit = MaxGitHubBody
	}
	limit = max(0, limit-len(tail))
	var s string
	for _, rows := range []int{math.MaxInt, 300, 100, 40, 15, 5, 2} {
		p := &page{rows: rows, limit: limit}
		render(p)
		if len(p.left) > 0 {
			p.linef("\n> **Cut to fit.** Not shown here: %s. %s", strings.Join(p.left, ", "), rest)
		}
		if s = p.String(); len(s) <= limit {
			return s + tail
		}
	}
	note := "\n\n> **Cut to fit.** " + rest + "\n"
	if len(note) > limit {
		note = ""
	}
	s = inert.Cut(s, limit-len(note))
	if i := strings.LastIndexByte(s, '\n'); i > 0 {
		s = s[:i]
	}
	return closeFolds(s, limit-len(note)) + note + tail
}

// closeFolds ends what a cut left open, so that the note after it is seen.
func closeFolds(s string, limit int) string {
	const end = "\n</details>"
	for strings.Count(s, "<details>") > strings.Count(s, "</details>") {
		if len(s)+len(end) > limit {
			i := strings.LastIndexByte(s[:max(0, len(s)-len(end))], '\n')
			if i < 0 {
				return ""
			}
			s = s[:i]
			continue
		}
		s += end
	}
	return s
}
