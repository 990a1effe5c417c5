package evidence

import (
	"fmt"
	"html/template"
	"slices"

	"github.com/proctor-ci/proctor/internal/inert"
)

// reportChange is the change as text on the page.
type reportChange struct {
	Missing    string // why there is none
	Instead    bool   // it says all that the last tick's list of files does
	Tick       int    // that made it; 0: none of this record
	Base, Head string
	Files      []reportChanged
	Left       string
}

// reportChanged is one file.
type reportChanged struct {
	ChangedFile
	Add, Del int // of 72
	Open     bool
	Findings []Finding
	Slot     template.HTML // what unfolds takes its place
}

type reportBody struct {
	Path     string
	Words    []string
	Findings []Finding // of the file, or of a line that is not shown
	Rows     []reportRow
	Cut      string
}

// reportRow is a line of code, a hunk's heading or, below the line that it is of, a finding.
type reportRow struct {
	Class, Text string
	N           int
	Finding     *Finding
}

// openFiles is how many changed files a page shows unfolded; of more none.
const openFiles = 3

func newReportChange(r Record, c *Change, rows int) *reportChange {
	if r.Head == nil {
		return nil
	}
	v := &reportChange{Base: r.Base.ID, Head: r.Head.ID}
	if c == nil {
		v.Missing = "The text of the change does not lie beside this record (" + ChangeFile + ")."
		return v
	}
	findings := map[string][]Finding{}
	t := r.made(r.Head.Tree)
	if t != nil {
		v.Tick = t.N
		for _, f := range t.findings() {
			findings[f.Path] = append(findings[f.Path], f)
		}
	}
	last := r.last()
	v.Instead = t != nil && last != nil && t.N == last.N
	most := 1
	for _, f := range c.Files {
		most = max(most, f.Added+f.Removed)
	}
	left := c.FilesCut + max(0, len(c.Files)-rows)
	if left > 0 {
		v.Left = fmt.Sprintf("%s more are not shown here.", count(left, "file"))
	}
	for i, f := range c.Files[:min(rows, len(c.Files))] {
		v.Files = append(v.Files, reportChanged{
			Slot: template.HTML(fmt.Sprintf("<!--file %d-->", i)), ChangedFile: f, Add: share(f.Added, most), Del: share(f.Removed, most),
			Open: len(c.Files)+c.FilesCut <= openFiles, Findings: top(findings[f.Path], rows, "", nil),
		})
	}
	return v
}

// size is about what the bodies take.
func (c *reportChange) size() int {
	n := 0
	if c != nil {
		for _, f := range c.Files {
			n += f.ChangedFile.size()
		}
	}
	return n
}

// bodies are the files' slots, each before what unfolds there. All together keep within room bytes, of which no file takes
// more than its share.
func (c *reportChange) bodies(t *template.Template, room int) ([]string, error) {
	if c == nil {
		return nil, nil
	}
	sizes := make([]int, len(c.Files))
	all := make([]string, len(c.Files))
	for i := range c.Files {
		body, err := execute(t, "body", c.Files[i].body())
		if err != nil {
			return nil, err
		}
		all[i], sizes[i] = string(body), len(body)
	}
	share := fair(sizes, room)
	var out []string
	for i, body := range all {
		if len(body) > share {
			short, err := c.Files[i].shorter(t, share)
			if err != nil {
				return nil, err
			}
			body = short
		}
		out = append(out, string(c.Files[i].Slot), body)
	}
	return out, nil
}

// shorter is the body with fewer lines, no longer than share but where the share holds none.
func (f *reportChanged) shorter(t *template.Template, share int) (string, error) {
	for limit := share; limit >= 100; limit /= 2 {
		short := *f
		short.Hunks = slices.Clone(f.Hunks)
		short.cut(limit, func(l string) int { return len(l) + 40 }) // 40: the markup of a row
		body, err := execute(t, "body", short.body())
		if err != nil || len(body) <= share {
			return string(body), err
		}
	}
	return `<p class="note">Too long for this page.</p>`, nil
}

func (f *reportChanged) body() reportBody {
	b := reportBody{Path: f.Path, Words: f.Words}
	if f.LinesCut > 0 {
		b.Cut = count(f.LinesCut, "line") + " more of this file are not shown here."
	}
	at := map[int][]Finding{}
	for _, g := range f.Findings {
		at[g.Line] = append(at[g.Line], g)
	}
	for _, h := range f.Hunks {
		b.Rows = append(b.Rows, reportRow{Class: "at", Text: fmt.Sprintf("@@ -%d +%d @@", h.Old, h.New)})
		h.each(func(i, old, now int) {
			row := reportRow{Class: map[byte]string{'+': "a", '-': "d", '\\': "r"}[h.Lines[i][0]], Text: inert.Source(h.Lines[i]), N: max(old, now)}
			if now > 0 {
				row.N = now
			}
			b.Rows = append(b.Rows, row)
			if now == 0 {
				return
			}
			for _, g := range at[now] {
				b.Rows = append(b.Rows, reportRow{Class: "f", Finding: &g})
			}
			delete(at, now)
		})
	}
	for _, g := range f.Findings {
		if _, unseen := at[g.Line]; unseen {
			b.Findings = append(b.Findings, g)
		}
	}
	return b
}
