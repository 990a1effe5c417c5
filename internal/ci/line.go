package ci

import (
	"strings"
	"unicode"
)

// oneLine makes text harmless in a CI log: control characters, ANSI sequences, line and paragraph
// separators and bidi controls become visible or a blank, so that one value is one line.
func oneLine(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		switch {
		case r == '\n', r == '\r', r == '\t', r == '\u0085', r == '\u2028', r == '\u2029':
			b.WriteByte(' ')
		case r == unicode.ReplacementChar:
			b.WriteRune(r)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// inert is oneLine for a line of its own: runners read "::command::" and "##[command]" at the beginning of a
// line after blanks, so such a line gets a mark in front.
func inert(s string) string {
	s = oneLine(s)
	if t := strings.TrimLeft(s, " "); strings.HasPrefix(t, "::") || strings.Contains(t, "##[") || strings.HasPrefix(t, "section_") {
		return "| " + strings.ReplaceAll(s, "##[", "## [")
	}
	return s
}
