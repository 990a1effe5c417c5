package trigger

import "strings"

// visible reports whether the line just read (the last of b.para) starts as text that readers see
// as text: not inside a code span, an HTML tag or comment, a link's address or title, an image's
// description or a reference definition that began on an earlier line of the same paragraph. What
// cannot be told without reading on counts as hidden. after is what follows the line.
func (b *blocks) visible(after string) bool {
	before := strings.Join(b.para[:len(b.para)-1], "\n")
	if before == "" {
		return true
	}
	if before[0] == '[' && strings.Contains(before, "]:") {
		return false
	}
	after = b.para[len(b.para)-1] + "\n" + after
	depth := 0 // open square brackets
	for i := 0; i < len(before); {
		switch c := before[i]; c {
		case '\\':
			i += 2
		case '`':
			n := run(before[i:], '`')
			j := findRun(before[i+n:], n)
			if j < 0 && findRun(after, n) >= 0 {
				return false
			}
			i += n + max(j, 0)
		case '<':
			n, ok := angleLen(before[i:])
			if !ok {
				return false
			}
			i += n
		case '[':
			depth++
			i++
		case ']':
			depth = max(depth-1, 0)
			i++
			if strings.HasPrefix(before[i:], "(") {
				n := targetLen(before[i:])
				if n == 0 {
					return false
				}
				i += n
			}
		default:
			i++
		}
	}
	return depth == 0
}

// findRun is the end of the first run of exactly n backticks in s, -1 when there is none.
func findRun(s string, n int) int {
	for i := 0; i < len(s); {
		j := strings.IndexByte(s[i:], '`')
		if j < 0 {
			return -1
		}
		i += j
		got := run(s[i:], '`')
		i += got
		if got == n {
			return i
		}
	}
	return -1
}

// angleLen is the length of the tag, comment or address at the start of s, 1 for a plain "<". ok is
// false where something was opened and its end is not in s.
func angleLen(s string) (int, bool) {
	if len(s) < 2 || !isLetter(s[1]) && !strings.ContainsRune("/!?", rune(s[1])) {
		return 1, true
	}
	if s[1] == '!' || s[1] == '?' {
		end := ">"
		switch {
		case strings.HasPrefix(s, "<!--"):
			end = "-->"
		case strings.HasPrefix(s, "<![CDATA["):
			end = "]]>"
		case s[1] == '?':
			end = "?>"
		}
		j := strings.Index(s, end)
		return j + len(end), j >= 0
	}
	if n := tagLen(s); n > 0 {
		return n, true
	}
	// An address in angle brackets holds neither blanks nor brackets.
	if j := strings.IndexAny(s[1:], "<> \n"); j >= 0 && s[1+j] == '>' {
		return j + 2, true
	}
	return 0, false
}

// targetLen is the length of "(address "title")" at the start of s, 0 when it is not complete in s.
func targetLen(s string) int {
	i := 1 + spaceLen(s[1:])
	if strings.HasPrefix(s[i:], "<") {
		j := strings.IndexAny(s[i:], ">\n")
		if j < 0 || s[i+j] == '\n' {
			return 0
		}
		i += j + 1
	} else {
		i += addressLen(s[i:])
	}
	i += spaceLen(s[i:])
	if i < len(s) && (s[i] == '"' || s[i] == '\'' || s[i] == '(') {
		q := s[i]
		if q == '(' {
			q = ')'
		}
		j := closing(s[i+1:], q)
		if j < 0 {
			return 0
		}
		i += j + 2
		i += spaceLen(s[i:])
	}
	if i < len(s) && s[i] == ')' {
		return i + 1
	}
	return 0
}

// addressLen is the length of a bare address: no blanks, brackets in pairs.
func addressLen(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case ' ', '\n':
			return i
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return len(s)
}

// closing is the index of the first q in s that is not escaped, -1 when there is none.
func closing(s string, q byte) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if s[i] == q {
			return i
		}
	}
	return -1
}
