package inert

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible makes s one line of valid, printable text of at most limit characters: what Clean would remove
// is shown by its code instead, so are characters of private use, and blanks are collapsed. What is cut is
// counted.
func Visible(s string, limit int) string {
	rs := []rune(strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD")))
	var b strings.Builder
	blank := false
	for i := 0; i < len(rs); i++ {
		if i >= limit {
			fmt.Fprintf(&b, "… (%d characters more)", len(rs)-i)
			break
		}
		r := rs[i]
		if r == '\n' || r == '\r' || r == '\t' || unicode.Is(unicode.Zs, r) {
			if !blank {
				b.WriteByte(' ')
			}
			blank = true
			continue
		}
		blank = false
		switch n := flagSequence(rs[i:]); {
		case n > 0 && i+n <= limit:
			b.WriteString(string(rs[i : i+n]))
			i += n - 1
		case !plain(r) && (hidden(rs, i) != "" || unicode.In(r, unicode.Co, unicode.Zl, unicode.Zp)):
			fmt.Fprintf(&b, "\\u{%x}", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// OneLine shows line ends and tabs of code instead of turning them into blanks.
func OneLine(s string) string {
	return strings.NewReplacer("\r\n", `\n`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(strings.TrimSpace(s))
}

// Plain is s for a terminal or a CI log, one line of at most limit characters. A runner obeys "::word" at
// the start of a line, blanks aside, and the older "##[word" anywhere.
func Plain(s string, limit int) string {
	s = strings.ReplaceAll(Visible(s, limit), "##[", "##"+inkless+"[")
	if strings.HasPrefix(s, "::") {
		s = inkless + s
	}
	return s
}

// Cut cuts s to at most n bytes, between two characters.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
