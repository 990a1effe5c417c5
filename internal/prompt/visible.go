package prompt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/inert"
)

// Removal is one kind of text that the forge does not show and that was therefore left out.
type Removal struct {
	Kind   string // "html comment", "invisible character", … : the words of this package
	Count  int
	Sample string // the first one, printable, at most 80 bytes; untrusted
}

// Visible is what a reader of the rendered page sees of an issue, a comment or a review: Markdown is
// rendered as the forges do (GitHub flavoured), the HTML is read as a browser does, and its text is
// written down again in Markdown's own marks, which need not be valid Markdown. Line ends are LF.
//
// Comments, hidden elements, texts of attributes, link and image titles, image addresses and their
// stand-in text, reference definitions, code block annotations, invisible, bidi and tag characters
// are removed and listed. Entities are decoded before anything is judged. What is folded in
// <details> is kept: a reader can open it. Link addresses are kept: a reader sees them.
func Visible(markdown string) (text string, removed []Removal) {
	var l ledger
	p := read(markdown, &l, everything)
	return p.String(), l.list()
}

// VisibleTitle is Visible for a title, which forges show as plain text on one line.
func VisibleTitle(title string) (text string, removed []Removal) {
	var l ledger
	text = inert.Clean(title, l.add)
	return strings.Join(strings.Fields(text), " "), l.list()
}

// Criterion is a task of the body: "- [ ] text". What the author ticked off is not done again.
type Criterion struct {
	Text string // visible text on one line
	Done bool
}

// Criteria are the tasks a reader sees, in order; those in quotes belong to somebody else. They are
// a wish for the agent and the judge, never a gate.
func Criteria(markdown string) []Criterion {
	return read(markdown, new(ledger), everything).tasks
}

// read renders and reads markdown.
func read(markdown string, l *ledger, m mode) *page {
	p := &page{ledger: l, mode: m}
	if len(markdown) > MaxVisible {
		l.add("text beyond the limit", fmt.Sprintf("%d of %d bytes", len(markdown)-MaxVisible, len(markdown)))
		markdown = head(markdown, MaxVisible)
	}
	p.readHTML(render(inert.LF(markdown), l))
	return p
}

// MaxVisible is how many bytes of a body are read: what GitHub stores at most (65,536 characters of
// four bytes). Some readings of Markdown cost the square of its length.
const MaxVisible = 256 << 10

// ledger counts what was removed.
type ledger struct{ entries []Removal }

func (l *ledger) add(kind, what string) {
	for i := range l.entries {
		if l.entries[i].Kind == kind {
			l.entries[i].Count++
			return
		}
	}
	l.entries = append(l.entries, Removal{Kind: kind, Count: 1, Sample: Inline(what, 80)})
}

func (l *ledger) list() []Removal {
	slices.SortFunc(l.entries, func(a, b Removal) int { return cmp.Compare(a.Kind, b.Kind) })
	return l.entries
}
