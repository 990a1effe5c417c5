package evidence

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Everything in a record may have been written by a stranger: titles, paths, commands, details. The
// functions here make such text one inert line for one kind of output. They keep every visible
// letter and show what is invisible instead of passing it on.

// inkless is put between two characters that would mean something together: "@" and a name, "#" and
// a number. It is the one invisible character that views contain, and it is always ours.
const inkless = "\u200b"

// visible makes s one line of valid, printable text of at most limit characters: control characters
// and invisible or direction-changing ones are shown by their codes, blanks are collapsed.
func visible(s string, limit int) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	var b strings.Builder
	n := 0
	blank := false
	for i, c := range s {
		if n >= limit {
			fmt.Fprintf(&b, "… (%d characters more)", utf8.RuneCountInString(s[i:]))
			break
		}
		n++
		switch {
		case c == ' ' || c == '\n' || c == '\r' || c == '\t' || unicode.Is(unicode.Zs, c):
			if !blank {
				b.WriteByte(' ')
			}
			blank = true
			continue
		case c == '\u200c' || c == '\u200d': // joiners of scripts and emoji
			b.WriteRune(c)
		case hidden(c):
			fmt.Fprintf(&b, "\\u{%x}", c)
		default:
			b.WriteRune(c)
		}
		blank = false
	}
	return b.String()
}

// hidden tells whether a character has no ink of its own and may hide or turn what stands beside it.
func hidden(c rune) bool {
	return unicode.IsControl(c) || unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs) ||
		c == '\u115f' || c == '\u1160' || c == '\u3164' || c == '\uffa0' || c >= 0xe0100 && c <= 0xe01ef
}

// references are the characters that, before a name or a number, make a forge look something up,
// tell somebody, or close an issue: mentions, issues, merge requests, labels, milestones, epics, snippets.
const references = "@#!~%&$"

var breaker = strings.NewReplacer(
	"<!--", "<!"+inkless+"--", "-->", "--"+inkless+">", "://", ":"+inkless+"//", "##[", "##"+inkless+"[",
	"www.", "www"+inkless+".", "GH-", "GH-"+inkless, "gh-", "gh-"+inkless, "Gh-", "Gh-"+inkless, "gH-", "gH-"+inkless,
)

// harmless breaks what a forge, a runner or we ourselves would act on wherever it stands, rendered
// or not: mentions, references, links by address, HTML comments, legacy workflow commands.
func harmless(s string) string {
	s = breaker.Replace(s)
	var b strings.Builder
	for i, c := range s {
		b.WriteRune(c)
		if !strings.ContainsRune(references, c) {
			continue
		}
		next, _ := utf8.DecodeRuneInString(s[i+1:])
		if unicode.IsLetter(next) || unicode.IsDigit(next) || strings.ContainsRune("_\"'-.[", next) {
			b.WriteString(inkless)
		}
	}
	return b.String()
}

// mdText is s as plain words in Markdown, in a paragraph or a table cell.
func mdText(s string, limit int) string {
	s = harmless(visible(s, limit))
	var b strings.Builder
	for i, c := range s {
		switch c {
		case '\\', '`', '*', '_', '{', '}', '[', ']', '<', '>', '|', '~', '#', '!', '$', '&':
			b.WriteByte('\\')
		case '-', '+', '=', '/', ':', '.', ')':
			// These mean something at the start of a line only: lists, rules, quick actions, workflow commands.
			if i == 0 || (c == '.' || c == ')') && allDigits(s[:i]) {
				b.WriteByte('\\')
			}
		}
		b.WriteRune(c)
	}
	return b.String()
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// oneLine shows line ends and tabs of code instead of turning them into blanks.
func oneLine(s string) string {
	return strings.NewReplacer("\r\n", `\n`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(strings.TrimSpace(s))
}

// mdCode is s as a code span in a paragraph. Neither forge acts on what stands in one, so that
// commands and paths stay exact but for HTML comments.
func mdCode(s string, limit int) string {
	s = visible(oneLine(s), limit)
	if s == "" {
		return "–"
	}
	s = strings.NewReplacer("<!--", "<!"+inkless+"--", "-->", "--"+inkless+">", "##[", "##"+inkless+"[").Replace(s)
	longest, run := 0, 0
	for _, c := range s {
		if run++; c != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// mdCell is mdCode for a table cell. A bar ends a cell even inside a code span, so code that holds
// one becomes an element with every mark written as an entity.
func mdCell(s string, limit int) string {
	if !strings.Contains(s, "|") {
		return mdCode(s, limit)
	}
	var b strings.Builder
	b.WriteString("<code>")
	for _, c := range visible(oneLine(s), limit) {
		if c < 0x80 && (unicode.IsPunct(c) || unicode.IsSymbol(c)) {
			fmt.Fprintf(&b, "&#%d;", c)
			continue
		}
		b.WriteRune(c)
	}
	b.WriteString("</code>")
	return b.String()
}

// mdLink is a link with words of ours, or the words alone when the address is no plain web address.
func mdLink(words, address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.ContainsAny(address, "()<>[]\"`\\ |\n\r\t") {
		return words
	}
	return "[" + words + "](" + address + ")"
}

// plainText is s for a terminal or a CI log. A runner obeys "::word" at the start of a line, blanks
// aside, and the older "##[word" anywhere.
func plainText(s string, limit int) string {
	s = strings.ReplaceAll(visible(s, limit), "##[", "##"+inkless+"[")
	if strings.HasPrefix(s, "::") {
		s = inkless + s
	}
	return s
}

// cutBytes cuts s to at most n bytes, between two characters.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
