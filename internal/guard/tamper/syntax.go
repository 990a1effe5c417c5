package tamper

import "strings"

// syntax is as much of a language as is needed to tell code from comments and strings.
type syntax struct {
	line   []string  // openers of a comment to the end of the line
	block  [2]string // opener and closer, or empty
	quotes []quote   // longest first
	hash   bool      // # begins a comment only at the start of a word
}

type quote struct {
	open, close string
	multi       bool // runs over line ends
	raw         bool // no escapes
}

// mask gives two readings of the same length as text, line for line: code without its comments, and bare
// without the insides of strings too. What is taken out becomes blanks.
func (s syntax) mask(text string) (code, bare string) {
	c, b := []byte(text), []byte(text)
	blank := func(dst []byte, from, to int) {
		for i := from; i < to; i++ {
			if dst[i] != '\n' {
				dst[i] = ' '
			}
		}
	}
	for i := 0; i < len(text); {
		if n := s.comment(text, i); n > 0 {
			blank(c, i, i+n)
			blank(b, i, i+n)
			i += n
			continue
		}
		if q, ok := s.quote(text[i:]); ok {
			from := i + len(q.open)
			to, end := q.end(text, from)
			blank(b, from, to)
			i = end
			continue
		}
		i++
	}
	return string(c), string(b)
}

// comment is the length of the comment that begins at i, 0 when none does.
func (s syntax) comment(text string, i int) int {
	rest := text[i:]
	if s.block[0] != "" && strings.HasPrefix(rest, s.block[0]) {
		if n := strings.Index(rest[len(s.block[0]):], s.block[1]); n >= 0 {
			return len(s.block[0]) + n + len(s.block[1])
		}
		return len(rest)
	}
	for _, l := range s.line {
		if !strings.HasPrefix(rest, l) || l == "#" && strings.HasPrefix(rest, "#[") && !s.hash && len(s.line) > 1 {
			continue
		}
		if s.hash && i > 0 && !strings.ContainsRune(" \t\n;&|(", rune(text[i-1])) {
			continue
		}
		if n := strings.IndexByte(rest, '\n'); n >= 0 {
			return n
		}
		return len(rest)
	}
	return 0
}

func (s syntax) quote(rest string) (quote, bool) {
	for _, q := range s.quotes {
		if strings.HasPrefix(rest, q.open) {
			return q, true
		}
	}
	return quote{}, false
}

// end finds where the string's inside ends and where the code goes on. A string that is not closed ends
// with its line, so that one stray quote cannot hide a file.
func (q quote) end(text string, from int) (to, end int) {
	for i := from; i < len(text); i++ {
		switch {
		case !q.raw && text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], q.close):
			return i, i + len(q.close)
		case text[i] == '\n' && !q.multi:
			return i, i
		}
	}
	return len(text), len(text)
}
