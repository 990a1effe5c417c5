package agent

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sizes of what is kept of an agent's words, in bytes.
const (
	detailMax = 500
	eventMax  = 300
	finalMax  = 64 << 10
	stderrMax = 8 << 10
)

// tell passes an event on, where somebody listens, with its texts fit for one line.
func tell(on func(Event), e Event) {
	if on != nil {
		e.Text, e.Tool = printable(e.Text, eventMax), printable(e.Tool, 80)
		on(e)
	}
}

// printable makes text fit for one line of a log: no control or format characters (line breaks,
// escape sequences, changes of writing direction), spaces joined, cut at a whole character.
func printable(s string, limit int) string {
	s = cut(strings.ToValidUTF8(s, "\uFFFD"), 8*limit)
	var b strings.Builder
	gap := false
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.Is(unicode.Cc, r) {
			gap = b.Len() > 0
			continue
		}
		if !unicode.IsPrint(r) {
			continue
		}
		if gap {
			b.WriteByte(' ')
			gap = false
		}
		b.WriteRune(r)
	}
	out := b.String()
	if len(out) > limit {
		out = cut(out, limit-len("…")) + "…"
	}
	return out
}

// cut shortens s to at most limit bytes without tearing a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// tail keeps the last bytes that are written to it. It is written by one goroutine.
type tail struct {
	buf []byte
	max int
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if n >= t.max {
		p = p[n-t.max:]
		t.buf = t.buf[:0]
	}
	if over := len(t.buf) + len(p) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

// text returns what is kept, with secret masked. The secret may have been cut at the front.
func (t *tail) text(secret string) string {
	s := strings.ToValidUTF8(string(t.buf), "\uFFFD")
	if len(secret) >= 8 {
		s = strings.ReplaceAll(s, secret, "***")
		for n := len(secret) - 1; n >= 8; n-- {
			if rest, ok := strings.CutPrefix(s, secret[len(secret)-n:]); ok {
				return "***" + rest
			}
		}
	}
	return s
}
