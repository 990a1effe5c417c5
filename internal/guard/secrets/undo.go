package secrets

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden are characters that print as nothing between the letters of a value.
func hidden(text string) []piece {
	if !strings.ContainsFunc(text, func(r rune) bool { return r == 0 || r >= 0xAD }) {
		return nil
	}
	var out []piece
	for i, r := range text {
		if r == 0 || r >= 0xAD && (unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r)) {
			out = append(out, piece{i, i + utf8.RuneLen(r), ""})
		}
	}
	return out
}

// seams are where a value was cut into literals: "a" + "b", 'a' . 'b', "a" "b", over a line end too, and a
// backslash at the end of a line.
func seams(text string) []piece {
	var out []piece
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text) && (text[i+1] == '\n' || strings.HasPrefix(text[i+1:], "\r\n")):
			end := blanks(text, i+1, 1)
			out = append(out, piece{i, end, ""})
			i = end
		case isQuote(c):
			if end, ok := seam(text, i+1); ok {
				out = append(out, piece{i, end, ""})
				i = end
				continue
			}
			i++
		default:
			i++
		}
	}
	return out
}

// seam looks for the opening quote of the next literal, with at most one operator and two line ends between.
func seam(text string, i int) (end int, ok bool) {
	i = blanks(text, i, 1)
	for _, op := range []string{"..", "<>", "||", "+", ".", "&", "~", "\\"} {
		if strings.HasPrefix(text[i:], op) {
			i += len(op)
			break
		}
	}
	i = blanks(text, i, 1)
	if i+1 < len(text) && strings.IndexByte("frbu", text[i]) >= 0 && isQuote(text[i+1]) {
		i++
	}
	return i + 1, i < len(text) && isQuote(text[i])
}

// blanks skips blanks and at most lines line ends.
func blanks(text string, i, lines int) int {
	for i < len(text) {
		switch text[i] {
		case ' ', '\t', '\r':
		case '\n':
			if lines == 0 {
				return i
			}
			lines--
		default:
			return i
		}
		i++
	}
	return i
}

// listSeams are commas between literals, near a word that joins lists.
func listSeams(text string) []piece {
	var out []piece
	end := 0
	for _, word := range []string{"join", "Join", "concat", "Concat"} {
		for from := 0; ; {
			i := strings.Index(text[from:], word)
			if i < 0 {
				break
			}
			at := from + i
			from = at + len(word)
			out = append(out, commas(text, max(end, at-around), min(len(text), at+around))...)
			end = min(len(text), at+around)
		}
		end = 0
	}
	return apart(out)
}

func commas(text string, from, to int) []piece {
	var out []piece
	for i := from; i < to; i++ {
		if !isQuote(text[i]) {
			continue
		}
		j := blanks(text, i+1, 1)
		if j < len(text) && text[j] == ',' {
			if j = blanks(text, j+1, 1); j < len(text) && isQuote(text[j]) {
				out = append(out, piece{i, j + 1, ""})
				i = j
			}
		}
	}
	return out
}

// escapes are characters written as numbers: \x41 \u0041 \u{41} \101 %41 &#65; and lists of bytes.
func escapes(text string) []piece {
	out := byteLists(text)
	for i := 0; i < len(text); {
		n := strings.IndexAny(text[i:], `\%&`)
		if n < 0 {
			break
		}
		i += n
		if c, size := escape(text[i:]); size > 0 {
			out = append(out, piece{i, i + size, string(c)})
			i += size
			continue
		}
		i++
	}
	return apart(out)
}

// escape reads one escape of a printable ASCII character; size is 0 when there is none.
func escape(s string) (c byte, size int) {
	number := func(from, digits, base int, after string) (byte, int) {
		if from+digits+len(after) > len(s) || !strings.HasPrefix(s[from+digits:], after) {
			return 0, 0
		}
		n, err := strconv.ParseUint(s[from:from+digits], base, 16)
		if err != nil || n < ' ' || n > '~' {
			return 0, 0
		}
		return byte(n), from + digits + len(after)
	}
	switch {
	case s[0] == '%':
		return number(1, 2, 16, "")
	case strings.HasPrefix(s, `\x`):
		return number(2, 2, 16, "")
	case strings.HasPrefix(s, `\u{`):
		return number(3, 2, 16, "}")
	case strings.HasPrefix(s, `\u`), strings.HasPrefix(s, `\U`):
		return number(2, 4, 16, "")
	case strings.HasPrefix(s, "&#x"), strings.HasPrefix(s, "&#X"):
		return number(3, 2, 16, ";")
	case strings.HasPrefix(s, "&#"):
		if c, n := number(2, 2, 10, ";"); n > 0 {
			return c, n
		}
		return number(2, 3, 10, ";")
	case len(s) > 1 && s[0] == '\\' && s[1] >= '0' && s[1] <= '1':
		return number(1, 3, 8, "")
	}
	return 0, 0
}

// byteLists are at least 16 numbers of printable characters in a row.
func byteLists(text string) []piece {
	var out []piece
	for i := 0; i < len(text); {
		if text[i] < '0' || text[i] > '9' || i > 0 && isWord(text[i-1]) {
			i++
			continue
		}
		from := i
		var list []byte
		for {
			c, next := byteNumber(text, i)
			if next == 0 {
				break
			}
			list = append(list, c)
			i = blanks(text, next, 1)
			if i >= len(text) || text[i] != ',' {
				i = next
				break
			}
			i = blanks(text, i+1, 1)
		}
		if len(list) >= 16 {
			out = append(out, piece{from, i, `"` + string(list) + `"`})
		}
		i = max(i, from+1)
	}
	return out
}

func byteNumber(text string, i int) (c byte, next int) {
	end := i
	for end < len(text) && end-i < 5 && isWord(text[end]) {
		end++
	}
	n, err := strconv.ParseUint(text[i:end], 0, 8)
	if err != nil || n < ' ' || n > '~' {
		return 0, 0
	}
	return byte(n), end
}

// apart sorts pieces and drops those that overlap an earlier one.
func apart(ps []piece) []piece {
	sortPieces(ps)
	out, end := ps[:0], 0
	for _, p := range ps {
		if p.from >= end {
			out = append(out, p)
			end = p.to
		}
	}
	return out
}
