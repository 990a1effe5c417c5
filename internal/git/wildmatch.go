package git

import "strings"

// wildmatch reports whether text matches a .gitignore pattern the way git's matcher does. With slashes
// set (a pattern that holds one), "*", "?" and classes do not match "/", and "**" between slashes does.
// Work is bounded by len(pattern)*len(text): a pattern cannot be made to run for ever.
func wildmatch(pattern, text string, slashes bool) bool {
	m := matcher{pattern: pattern, text: text, slashes: slashes}
	if strings.Count(pattern, "*") > 2 {
		m.failed = map[stretch]int{}
	}
	return m.match(0, 0)
}

type matcher struct {
	pattern, text string
	slashes       bool
	failed        map[stretch]int // the first position of text from which a star was tried in vain
}

// stretch is the pattern behind a star and the end of the text that the star may span. A star that
// fails from one position of it fails from every later one.
type stretch struct{ pattern, end int }

func (m *matcher) match(p, t int) bool {
	for p < len(m.pattern) {
		c := m.pattern[p]
		if c == '*' {
			return m.star(p, t)
		}
		if t >= len(m.text) {
			return false
		}
		switch c {
		case '?':
			if m.slashes && m.text[t] == '/' {
				return false
			}
			p++
		case '[':
			next, ok := class(m.pattern, p, m.text[t])
			if !ok || m.slashes && m.text[t] == '/' {
				return false
			}
			p = next
		case '\\':
			p++
			if p >= len(m.pattern) || m.pattern[p] != m.text[t] {
				return false
			}
			p++
		default:
			if c != m.text[t] {
				return false
			}
			p++
		}
		t++
	}
	return t == len(m.text)
}

// star handles a run of stars at p.
func (m *matcher) star(p, t int) bool {
	first := p
	for p < len(m.pattern) && m.pattern[p] == '*' {
		p++
	}
	rest := m.pattern[p:]
	cross := !m.slashes
	if m.slashes && p-first > 1 && (first == 0 || m.pattern[first-1] == '/') &&
		(rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`)) {
		cross = true
	}
	if rest == "" {
		return cross || !strings.Contains(m.text[t:], "/")
	}
	end := len(m.text)
	if i := strings.IndexByte(m.text[t:], '/'); i >= 0 && !cross {
		end = t + i
	}
	here := stretch{p, end}
	if from, tried := m.failed[here]; tried && from <= t {
		return false
	}
	// "**/x" also stands for x with nothing before it.
	if cross && m.slashes && rest[0] == '/' && m.match(p+1, t) {
		return true
	}
	for i := t; i <= end; i++ {
		if m.match(p, i) {
			return true
		}
	}
	if m.failed != nil {
		m.failed[here] = t
	}
	return false
}

// class matches one byte against the bracket expression at p and returns the position behind it. An
// expression that does not end, or names an unknown class, matches nothing.
func class(pattern string, p int, b byte) (next int, matched bool) {
	p++
	negated := p < len(pattern) && (pattern[p] == '!' || pattern[p] == '^')
	if negated {
		p++
	}
	previous := byte(0)
	for first := true; ; first = false {
		if p >= len(pattern) {
			return 0, false
		}
		c := pattern[p]
		if c == ']' && !first {
			return p + 1, matched != negated
		}
		switch {
		case c == '\\':
			p++
			if p >= len(pattern) {
				return 0, false
			}
			c = pattern[p]
			matched = matched || b == c
		case c == '-' && previous != 0 && p+1 < len(pattern) && pattern[p+1] != ']':
			p++
			if pattern[p] == '\\' {
				p++
				if p >= len(pattern) {
					return 0, false
				}
			}
			matched = matched || previous <= b && b <= pattern[p]
			c = 0
		case c == '[' && p+1 < len(pattern) && pattern[p+1] == ':':
			end := strings.IndexByte(pattern[p+2:], ']')
			if end < 0 {
				return 0, false
			}
			name, named := strings.CutSuffix(pattern[p+2:p+2+end], ":")
			if !named {
				matched = matched || b == '['
				break
			}
			in, known := posixClass(name, b)
			if !known {
				return 0, false
			}
			matched = matched || in
			p += 2 + end
			c = 0
		default:
			matched = matched || b == c
		}
		previous = c
		p++
	}
}

func posixClass(name string, b byte) (in, known bool) {
	lower, upper, digit := 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9'
	graph := '!' <= b && b <= '~'
	switch name {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return b == ' ' || b == '\t', true
	case "cntrl":
		return b < ' ' || b == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lower, true
	case "print":
		return graph || b == ' ', true
	case "punct":
		return graph && !lower && !upper && !digit, true
	case "space":
		return b == ' ' || '\t' <= b && b <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F', true
	}
	return false, false
}
