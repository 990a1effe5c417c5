// Package inert owns the forms in which text of strangers is passed on: one line that a person reads as it
// was and that no forge, runner or terminal acts on. It must never drop a visible letter, nor pass on a
// character that nobody can see without being told.
package inert

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// inkless is put between two characters that would mean something together: "@" and a name, "#" and
// a number. It is the one invisible character that our output contains, and it is always ours. Both
// forges look for such words in the rendered text, so that no escape of Markdown stops them.
const inkless = "\u200b"

// references are the characters that, before a name or a number, make a forge look something up,
// tell somebody, or close an issue: mentions, issues, merge requests, labels, milestones, epics, snippets.
const references = "@#!~%&$"

var (
	breaker = strings.NewReplacer("<!--", "<!"+inkless+"--", "-->", "--"+inkless+">", "://", ":"+inkless+"//", "##[", "##"+inkless+"[")
	address = pattern.Of(`(?i)(www)(\.)|(gh-)`)
	// closing words close an issue when what holds them is merged. GitLab looks for them in code too.
	closing = pattern.Of(`(?i)\b(?:clos|fix|resolv|implement)(?:e[sd]?|ed|ing|s)?(?:\s*:?\s+)(?:\S{0,200}?|issue\s+)(?:#|gh-|!|https?:)`)
)

// Words breaks what a forge, a runner or we ourselves would act on wherever it stands, rendered
// or not: mentions, references, closing words, links by address, HTML comments, legacy workflow commands.
func Words(s string) string {
	s = breaker.Replace(open(s))
	s = address.ReplaceAllString(s, "${1}${3}"+inkless+"${2}")
	var b strings.Builder
	for i, c := range s {
		b.WriteRune(c)
		if !strings.ContainsRune(references, c) {
			continue
		}
		// At the end too: what we write behind it may be a letter.
		next, n := utf8.DecodeRuneInString(s[i+1:])
		if n == 0 || unicode.IsLetter(next) || unicode.IsDigit(next) || strings.ContainsRune("_\"'-.[", next) {
			b.WriteString(inkless)
		}
	}
	return b.String()
}

// open keeps closing words from closing anything.
func open(s string) string {
	return closing.ReplaceAllStringFunc(s, func(m string) string { return m[:2] + inkless + m[2:] })
}

// Text is s as plain words in Markdown, in a paragraph, a list item or a table cell, of at most limit
// characters: no markup, HTML, image, link, mention, reference, closing keyword, quick action or marker
// of ours survives.
func Text(s string, limit int) string {
	s = Words(Visible(s, limit))
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

var codeMarks = strings.NewReplacer("<!--", "<!"+inkless+"--", "-->", "--"+inkless+">", "##[", "##"+inkless+"[")

// Code is s as a code span in a paragraph, of at most limit characters, "–" when there is nothing. Neither
// forge renders what stands in one, so that commands and paths stay exact but for HTML comments and words
// that GitLab closes issues by.
func Code(s string, limit int) string {
	s = Visible(OneLine(s), limit)
	if s == "" {
		return "–"
	}
	s = codeMarks.Replace(open(s))
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

// Cell is Code for a table cell. A bar ends a cell even inside a code span, so code that holds
// one becomes an element with every mark written as an entity.
func Cell(s string, limit int) string {
	if !strings.Contains(s, "|") {
		return Code(s, limit)
	}
	var b strings.Builder
	b.WriteString("<code>")
	for _, c := range open(Visible(OneLine(s), limit)) {
		if c < 0x80 && (unicode.IsPunct(c) || unicode.IsSymbol(c)) {
			fmt.Fprintf(&b, "&#%d;", c)
			continue
		}
		b.WriteRune(c)
	}
	b.WriteString("</code>")
	return b.String()
}

// Link is a link with words of ours, or the words alone when the address is no plain web address.
func Link(words, address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.ContainsAny(address, "()<>[]\"`\\ |\n\r\t") {
		return words
	}
	return "[" + words + "](" + address + ")"
}
