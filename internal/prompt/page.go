package prompt

import (
	"bytes"
	"strings"
)

// mode says what of a page is read.
type mode int

const (
	everything mode = iota
	ownWords        // without quotes, code and what was struck out
)

// page writes the visible text down, block by block.
type page struct {
	ledger *ledger
	mode   mode
	tasks  []Criterion

	out        []byte
	containers []container
	breaks     int // line breaks owed before the next text: 1 or 2
	atStart    bool

	hidden  []*veil
	code    *capture // the code being collected
	link    *anchor
	table   tableState
	task    int // where the open task's text begins, 0 when none is open
	taskBox bool
}

// container is an open quote or list item: what its first and its further lines begin with.
type container struct {
	tag         string
	first, rest string
	used        bool
}

// String is the page, without blank lines around it.
func (p *page) String() string {
	p.endCode()
	p.endLink()
	p.endTask()
	return string(bytes.TrimRight(bytes.Trim(p.out, "\n"), " \t\n"))
}

// owe asks for at least n line breaks before whatever comes next.
func (p *page) owe(n int) {
	if i := len(p.containers) - 1; i >= 0 && !p.containers[i].used {
		n = min(n, 1) // the first block of an item stands beside its mark
	}
	if len(p.out) > 0 || len(p.containers) > 0 {
		p.breaks = max(p.breaks, n)
	}
}

// begin pays owed line breaks and writes the marks of the containers a new line lies in.
func (p *page) begin() {
	if p.table.inCell && p.breaks > 0 {
		p.breaks = 0
		p.out = append(p.out, ' ')
	}
	if p.breaks == 0 && len(p.out) > 0 {
		return
	}
	if len(p.out) > 0 {
		p.out = append(p.out, '\n')
		if p.breaks > 1 {
			var blank strings.Builder
			for _, c := range p.containers {
				if c.used {
					blank.WriteString(c.rest)
				}
			}
			p.out = append(p.out, strings.TrimRight(blank.String(), " ")...)
			p.out = append(p.out, '\n')
		}
	}
	for i := range p.containers {
		c := &p.containers[i]
		if c.used {
			p.out = append(p.out, c.rest...)
			continue
		}
		p.out = append(p.out, c.first...)
		c.used = true
	}
	p.breaks = 0
	p.atStart = true
}

// write puts marks of ours or cleaned text on the page.
func (p *page) write(s string) {
	if s == "" {
		return
	}
	p.begin()
	p.out = append(p.out, s...)
	p.atStart = false
}

// text puts text of the page down: line breaks stay line breaks, blanks at a line's start go.
func (p *page) text(s string) {
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			p.owe(1)
		}
		if p.breaks > 0 || p.atStart || len(p.out) == 0 {
			line = strings.TrimLeft(line, " \t")
		}
		p.write(line)
	}
}

// lines puts code down: every byte of every line.
func (p *page) lines(s string) {
	for i, line := range strings.Split(s, "\n") {
		if i > 0 || p.breaks > 0 {
			p.breaks = max(p.breaks, 1)
		}
		p.begin()
		p.out = append(p.out, line...)
		p.atStart = false
	}
}

func (p *page) open(tag, first, rest string) {
	p.containers = append(p.containers, container{tag: tag, first: first, rest: rest})
}

// close ends the innermost open container of this tag and all in it; a stray end tag ends nothing.
func (p *page) close(tag string) {
	for i := len(p.containers) - 1; i >= 0; i-- {
		if p.containers[i].tag != tag {
			continue
		}
		if !p.containers[i].used && tag == "li" {
			p.breaks = max(p.breaks, 1)
			p.begin() // an empty item is seen too
		}
		p.containers = p.containers[:i]
		return
	}
}

func (p *page) inside(tag string) bool {
	for _, c := range p.containers {
		if c.tag == tag {
			return true
		}
	}
	return false
}
