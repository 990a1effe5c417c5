package prompt

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/proctor-ci/proctor/internal/inert"
	"github.com/proctor-ci/proctor/internal/pattern"
)

// escapeSequence is what a terminal obeys: CSI, OSC and the two-byte forms.
var escapeSequence = pattern.Of("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\x1b\\]|\u009d)[^\x07\x1b\u009c]*(?:\x07|\x1b\\\\|\u009c)?|\x1b[ -/]*[0-~]")

// Inline makes any untrusted text one printable line of at most max bytes (0: no limit) for logs, trailers and
// tables: terminal sequences, controls, bidi and invisible characters are gone, line breaks and runs
// of blanks are one blank. What a CI log would obey ("::error::", "##[…]") is broken by a blank. It
// is no escape for Markdown; package inert has those.
func Inline(s string, max int) string {
	s = oneLine(s)
	for strings.HasPrefix(s, "::") {
		s = ": " + s[1:]
	}
	s = strings.ReplaceAll(s, "##[", "## [")
	return cutBytes(s, max)
}

func oneLine(s string) string {
	s = escapeSequence.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), "")
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '\u2028' || r == '\u2029' || r == '\u0085' {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(inert.Clean(s, nil)), " ")
}

// cutBytes keeps at most max bytes, at the border of a character, and says so by "…".
func cutBytes(s string, max int) string {
	const mark = "…"
	if max <= 0 || len(s) <= max {
		return s
	}
	if max < len(mark) {
		return strings.Repeat(".", max)
	}
	return head(s, max-len(mark)) + mark
}

// head is the first n bytes of s or fewer: it ends neither within a character nor before a mark or
// joiner that belongs to the last one.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	for back := 0; n > 0 && back < 16; back++ {
		r, _ := utf8.DecodeRuneInString(s[n:])
		last, size := utf8.DecodeLastRuneInString(s[:n])
		if !unicode.IsMark(r) && r != 0x200D && last != 0x200D && !(r >= 0x1F3FB && r <= 0x1F3FF) {
			break
		}
		n -= size
	}
	return s[:n]
}

// tail is the last n bytes of s or fewer, from the border of a character.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

// CommitLine is Inline for a commit's subject or trailer: a title like "fixes #1" closes nothing and
// mentions nobody once the commit reaches the default branch.
func CommitLine(s string, max int) string {
	return cutBytes(inert.Words(Inline(s, 0)), max)
}

// terminalText is output of a program without what a terminal obeys, line by line, as valid UTF-8.
func terminalText(s string) string {
	s = escapeSequence.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), "")
	return inert.Clean(overwritten(s), nil)
}

// overwritten keeps of a line that was rewritten in place (progress bars) what stood there last.
func overwritten(s string) string {
	if !strings.ContainsRune(s, '\r') {
		return s
	}
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, l := range lines {
		l = strings.TrimRight(l, "\r")
		lines[i] = l[strings.LastIndexByte(l, '\r')+1:]
	}
	return strings.Join(lines, "\n")
}
