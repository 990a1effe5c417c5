package gate

import (
	"unicode"
	"unicode/utf8"
)

// clean makes output safe to show and to compare: terminal sequences, control and invisible characters
// are gone but for newline and tab, invalid bytes are marked, and of a line that was written over with
// carriage returns (a progress bar) the last state stays.
func clean(out []byte) string {
	b := make([]byte, 0, len(out))
	lineStart := 0 // in b
	for i := 0; i < len(out); {
		c := out[i]
		switch {
		case c == 0x1b:
			i = skipEscape(out, i+1)
			continue
		case c == '\r':
			i++
			if i < len(out) && out[i] != '\n' && out[i] != '\r' {
				b = b[:lineStart]
			}
			continue
		case c == '\n':
			b = append(b, '\n')
			lineStart = len(b)
			i++
			continue
		case c == '\t' || (c >= ' ' && c < 0x7f):
			b = append(b, c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(out[i:])
		i += n
		const joiner = '\u200d' // holds emoji together
		if unicode.Is(unicode.Cc, r) || (unicode.Is(unicode.Cf, r) && r != joiner) {
			continue
		}
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}

// skipEscape gives the index after a terminal sequence whose ESC stands before i.
func skipEscape(out []byte, i int) int {
	if i >= len(out) {
		return i
	}
	switch out[i] {
	case '[': // CSI: parameters, then one final byte
		for i++; i < len(out); i++ {
			if out[i] >= 0x40 && out[i] <= 0x7e {
				return i + 1
			}
			if out[i] < 0x20 || out[i] > 0x7e {
				return i
			}
		}
	case ']', 'P', 'X', '^', '_': // strings, to BEL or ESC \ ; one that never ends takes its line only
		for i++; i < len(out) && out[i] != '\n'; i++ {
			if out[i] == 0x07 {
				return i + 1
			}
			if out[i] == 0x1b && i+1 < len(out) && out[i+1] == '\\' {
				return i + 2
			}
		}
	case '(', ')', '*', '+', '#', '%', ' ': // two bytes
		return min(i+2, len(out))
	case '\n':
	default:
		if out[i] < utf8.RuneSelf {
			return i + 1
		}
	}
	return i
}
