package prompt

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// math keeps $…$ and $$…$$ as written: a forge takes them out before Markdown sees their backslashes
// and stars. It is stricter than the forges, because what it takes for a formula is not looked into:
// anything in which Markdown could hide text is left to Markdown.
type math struct{}

func (math) Trigger() []byte { return []byte{'$'} }

func (math) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	if before := block.PrecendingCharacter(); before == '$' || before == '\\' || before < 0x80 && util.IsAlphaNumeric(byte(before)) {
		return nil
	}
	line, _ := block.PeekLine()
	if bytes.HasPrefix(line, []byte("$$")) {
		return display(block)
	}
	end := closing(line)
	if end < 0 || opaque(line[:end]) {
		return nil
	}
	block.Advance(end + 1)
	return verbatim(line[:end+1])
}

// closing finds the dollar that ends an inline formula. Prices ("$5 and $6") are none: a formula
// neither begins nor ends with a blank, nor is it followed by a letter or digit.
func closing(line []byte) int {
	if len(line) < 3 || util.IsSpace(line[1]) {
		return -1
	}
	for i := 2; i < len(line); i++ {
		switch {
		case line[i-1] == '\\':
		case line[i] == '$' && util.IsSpace(line[i-1]):
			return -1
		case line[i] == '$' && (i+1 == len(line) || !util.IsAlphaNumeric(line[i+1])):
			return i
		case line[i] == '$':
			return -1
		}
	}
	return -1
}

// display reads $$…$$, which may go over several lines of a paragraph.
func display(block text.Reader) ast.Node {
	startLine, start := block.Position()
	var formula []byte
	for first := true; ; first = false {
		line, _ := block.PeekLine()
		if line == nil {
			break
		}
		from := 0
		if first {
			from = 2
		}
		if i := bytes.Index(line[from:], []byte("$$")); i >= 0 {
			formula = append(formula, line[:from+i+2]...)
			if opaque(formula) {
				break
			}
			block.Advance(from + i + 2)
			return verbatim(formula)
		}
		formula = append(formula, line...)
		block.AdvanceLine()
	}
	block.SetPosition(startLine, start)
	return nil
}

// opaque tells that Markdown or HTML could hide something in here.
func opaque(formula []byte) bool {
	for i, c := range formula {
		next := byte(0)
		if i+1 < len(formula) {
			next = formula[i+1]
		}
		switch {
		case c == '`':
			return true
		case c == '<' && (next == '!' || next == '/' || next == '?' || util.IsAlphaNumeric(next)):
			return true
		case c == ']' && (next == '(' || next == '['):
			return true
		case c == '&' && next == '#':
			return true
		case c == '%' && (i == 0 || formula[i-1] != '\\'):
			return true // a comment: the rest of the line is not drawn
		}
	}
	return false
}

func verbatim(formula []byte) ast.Node {
	s := ast.NewString(formula)
	s.SetRaw(true)
	return s
}
