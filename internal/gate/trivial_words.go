package gate

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// literal is a word's text when it is known without running anything.
func literal(w *syntax.Word) word {
	var b strings.Builder
	if !literalParts(&b, w.Parts) {
		return word{}
	}
	return word{text: b.String(), known: true}
}

func literalParts(b *strings.Builder, parts []syntax.WordPart) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if !literalParts(b, p.Parts) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// unescape drops the backslashes that the shell would drop: `tr\ue` is true.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// testWords turns [[ … ]] into the arguments that [ … ] would have, as far as those are comparisons.
func testWords(x syntax.TestExpr) []string {
	switch x := x.(type) {
	case *syntax.Word:
		return texts([]word{literal(x)})
	case *syntax.BinaryTest:
		l, okL := x.X.(*syntax.Word)
		r, okR := x.Y.(*syntax.Word)
		if okL && okR {
			return texts([]word{literal(l), {text: x.Op.String(), known: true}, literal(r)})
		}
	case *syntax.UnaryTest:
		if w, ok := x.X.(*syntax.Word); ok {
			return texts([]word{{text: x.Op.String(), known: true}, literal(w)})
		}
	}
	return []string{unknown}
}
