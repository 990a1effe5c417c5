package prompt

import (
	"regexp"
	"strings"
)

// breaker stands inside words that a forge would act on. It is drawn as nothing and joins lines, so
// that the text reads as it was.
const breaker = "\u2060"

// closingWord and reference together close an issue when a pull request or commit that holds them is merged.
var (
	bareAddress = regexp.MustCompile(`(?i)(www)\.`)
	reference   = regexp.MustCompile(`(?i)(#|\bgh-|!|&|~|%)([0-9])`)
	closingWord = regexp.MustCompile(`(?i)\b(clos|fix|resolv|implement)(e[sd]?|es|ed|ing|s)?(\s*:?\s+)(?:\S{0,200}?|issue\s+)(#|gh-|!|https?:)`)
)

// inertWords breaks mentions, references, closing words and addresses. GitHub and GitLab look for
// them in the rendered text, so that no escape of Markdown stops them.
func inertWords(s string) string {
	s = closingWord.ReplaceAllStringFunc(s, func(m string) string { return m[:2] + breaker + m[2:] })
	s = reference.ReplaceAllString(s, "${1}"+breaker+"${2}")
	s = strings.ReplaceAll(s, "@", "@"+breaker)
	s = strings.ReplaceAll(s, "://", ":"+breaker+"//")
	return bareAddress.ReplaceAllString(s, "${1}"+breaker+".")
}

// MarkdownText makes any untrusted text one line that Markdown shows as plain text, in a paragraph, a
// list item or a table cell: no markup, HTML, image, link, mention, reference, closing keyword,
// quick action or marker of ours survives.
func MarkdownText(s string) string {
	s = inertWords(oneLine(s))
	var b strings.Builder
	for i, r := range s {
		switch {
		case strings.ContainsRune("\\`*_{}[]<>()#|~$&!", r):
			b.WriteByte('\\')
		case i == 0 && strings.ContainsRune("+-=/:", r): // list, heading underline, quick action, workflow command
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return orderedMark.ReplaceAllString(b.String(), `$1\$2`)
}

// orderedMark is "1. " or "1) " at the start, which would begin a list.
var orderedMark = regexp.MustCompile(`^([0-9]{1,9})(\.)`)

// MarkdownCode makes any untrusted text one line of code, in a paragraph, a list item or a table
// cell. It is written as HTML with everything Markdown knows as a numeric entity, because no number
// of backticks is right both inside and outside a table.
func MarkdownCode(s string) string {
	s = closingWord.ReplaceAllStringFunc(oneLine(s), func(m string) string { return m[:2] + breaker + m[2:] })
	if s == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("<code>")
	for _, r := range s {
		if r < 0x80 && strings.ContainsRune("\\`*_{}[]<>()#|~$&!@:\"'", r) {
			b.WriteString(entity(r))
			continue
		}
		b.WriteRune(r)
	}
	b.WriteString("</code>")
	return bareAddress.ReplaceAllString(b.String(), "${1}&#46;")
}

func entity(r rune) string {
	const digits = "0123456789"
	if r < 100 {
		return "&#" + string(digits[r/10]) + string(digits[r%10]) + ";"
	}
	return "&#1" + string(digits[r/10%10]) + string(digits[r%10]) + ";"
}

// MarkdownBlock makes untrusted text of several lines a fenced code block, with a line break at its
// end. The fence is longer than any in the text; markers of ours and closing keywords are broken.
func MarkdownBlock(s string) string {
	s = terminalText(s)
	s = closingWord.ReplaceAllStringFunc(s, func(m string) string { return m[:2] + breaker + m[2:] })
	s = strings.ReplaceAll(s, "<!--", "<!"+breaker+"--")
	fence := strings.Repeat("`", max(3, longestRun(s, '`')+1))
	return fence + "text\n" + strings.TrimRight(s, "\n") + "\n" + fence + "\n"
}

// CommitLine is Inline for a commit's subject or trailer: a title like "fixes #1" closes nothing and
// mentions nobody once the commit reaches the default branch.
func CommitLine(s string, max int) string {
	return cutBytes(inertWords(Inline(s, 0)), max)
}

// terminalText is output of a program without what a terminal obeys, line by line, as valid UTF-8.
func terminalText(s string) string {
	s = escapeSequence.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), "")
	return clean(overwritten(s), new(ledger))
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
