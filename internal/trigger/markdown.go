package trigger

import "strings"

// blocks follows CommonMark's block structure line by line, as far as it must be known to say of a
// line that it is plain paragraph text: containers (quotes, list items), fences, HTML blocks, indented
// code, headings, rules. It is one pass and linear in the body, which a full parser is not on hostile input,
// and a comment is read before anybody knows whether its author may ask for anything.
// https://spec.commonmark.org/0.31.2/#appendix-a-parsing-strategy
type blocks struct {
	open []container
	leaf leaf
	// fence of an open fenced code block, and the end of an open HTML block.
	fence   string
	htmlEnd []string

	para   []string // lines of the paragraph before the current one
	triple bool     // inside GitLab's >>> quote
	doubt  bool     // parsers disagree about an earlier line: nothing below it counts
}

type container struct {
	quote bool
	width int  // list item: columns its content is indented by
	bare  bool // list item that has begun with a blank line and has no content yet
}

type leaf int

const (
	noLeaf leaf = iota
	paragraph
	fenced
	htmlBlock
	indented
)

// next takes one line without its end and reports whether it is text of a paragraph outside any quote.
func (b *blocks) next(line string) bool {
	if strings.TrimRight(line, " \t") == ">>>" && len(b.open) == 0 && b.leaf != fenced && b.leaf != htmlBlock {
		// A quote fence on GitLab. On GitHub three empty quotes: to be silent there is no harm.
		b.triple = !b.triple
		b.end(noLeaf)
		return false
	}
	rest := expandTabs(line)
	matched, rest := b.match(rest)
	all := matched == len(b.open)
	if all && b.continueLeaf(rest) {
		return false
	}
	lazy := b.leaf == paragraph
	opened := 0 // containers this line has opened
	for !blank(rest) {
		ind := indent(rest)
		if ind >= 4 {
			if lazy && opened == 0 {
				break
			}
			b.close(matched, opened)
			b.end(indented)
			return false
		}
		text := rest[ind:]
		inParagraph := all && lazy && opened == 0
		if loneTag(text) && (rawTag(text) || !all && lazy && opened == 0) {
			// Some parsers let such a tag start an HTML block (a lone </pre>; any lone tag after the
			// paragraph of a quote or item that was left), some do not.
			b.doubt = true
		}
		if inParagraph && isUnderline(text) && strings.HasPrefix(b.para[0], "[") {
			b.doubt = true // a heading, or reference definitions and then a list or text
		}
		if k, ok := b.startLeaf(text, inParagraph); ok {
			b.close(matched, opened)
			b.end(k)
			return false
		}
		c, after, ok := startContainer(text, ind, inParagraph)
		if !ok {
			break
		}
		b.close(matched, opened)
		b.end(noLeaf)
		b.open = append(b.open, c)
		opened++
		rest = after
	}
	if blank(rest) {
		b.close(matched, opened)
		b.end(noLeaf)
		return false
	}
	if opened == 0 && lazy {
		// The line goes on with the open paragraph, of its own container or lazily of a deeper one.
		b.para = append(b.para, strings.TrimLeft(rest, " "))
		return b.unquoted()
	}
	b.close(matched, opened)
	b.end(paragraph)
	b.para = append(b.para, strings.TrimLeft(rest, " "))
	return b.unquoted()
}

// match consumes the marks of the containers the line stays in.
func (b *blocks) match(rest string) (int, string) {
	for i := range b.open {
		c := &b.open[i]
		switch {
		case c.quote:
			ind := indent(rest)
			if ind > 3 || !strings.HasPrefix(rest[ind:], ">") {
				return i, rest
			}
			rest = strings.TrimPrefix(rest[ind+1:], " ")
		case blank(rest):
			if c.bare {
				return i, rest
			}
			rest = ""
		case indent(rest) >= c.width:
			rest, c.bare = rest[c.width:], false
		default:
			return i, rest
		}
	}
	return len(b.open), rest
}

// continueLeaf handles the line inside a fence, an HTML block or indented code.
func (b *blocks) continueLeaf(rest string) bool {
	switch b.leaf {
	case fenced:
		if closesFence(rest, b.fence) {
			b.end(noLeaf)
		}
		return true
	case htmlBlock:
		if len(b.htmlEnd) == 0 && blank(rest) || containsAnyFold(rest, b.htmlEnd) {
			b.end(noLeaf)
		}
		return true
	case indented:
		return blank(rest) || indent(rest) >= 4
	}
	return false
}

// startLeaf recognises blocks that hold no command. text has no indentation left.
func (b *blocks) startLeaf(text string, inParagraph bool) (leaf, bool) {
	if f, ok := opensFence(text); ok {
		b.fence = f
		return fenced, true
	}
	if end, ok := opensHTML(text, inParagraph); ok {
		b.htmlEnd = end
		if containsAnyFold(text, end) {
			return noLeaf, true
		}
		return htmlBlock, true
	}
	return noLeaf, isHeading(text) || inParagraph && isUnderline(text) || isRule(text)
}

// close ends the containers the line has left, once, before it opens its own.
func (b *blocks) close(matched, opened int) {
	if opened == 0 {
		b.open = b.open[:matched]
	}
}

func (b *blocks) end(now leaf) {
	b.leaf = now
	b.para = b.para[:0]
}

func (b *blocks) unquoted() bool {
	for _, c := range b.open {
		if c.quote {
			return false
		}
	}
	return !b.triple && !b.doubt
}

func startContainer(text string, ind int, inParagraph bool) (container, string, bool) {
	if text[0] == '>' {
		return container{quote: true}, strings.TrimPrefix(text[1:], " "), true
	}
	n := markerLen(text)
	if n == 0 || len(text) > n && text[n] != ' ' {
		return container{}, "", false
	}
	after := text[n:]
	empty := blank(after)
	// A list may interrupt a paragraph only when it has content and, if numbered, starts at 1.
	if inParagraph && (empty || n > 1 && text[:n-1] != "1") {
		return container{}, "", false
	}
	pad := indent(after)
	if empty || pad > 4 {
		pad = 1
	}
	if empty {
		return container{width: ind + n + 1, bare: true}, "", true
	}
	return container{width: ind + n + pad}, after[pad:], true
}

// markerLen is the length of a list marker at the start of text, 0 for none.
func markerLen(text string) int {
	if strings.ContainsRune("-+*", rune(text[0])) {
		return 1
	}
	n := 0
	for n < len(text) && n < 10 && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	if n == 0 || n > 9 || n == len(text) || text[n] != '.' && text[n] != ')' {
		return 0
	}
	return n + 1
}
