package trigger

import "strings"

func blank(s string) bool { return strings.Trim(s, " ") == "" }

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// expandTabs gives tabs their columns (stops of four), so that indentation can be counted in bytes.
// Only the line's marks matter, so widths of characters do not.
func expandTabs(line string) string {
	if !strings.ContainsRune(line, '\t') {
		return line
	}
	var b strings.Builder
	for _, c := range []byte(line) {
		if c != '\t' {
			b.WriteByte(c)
			continue
		}
		b.WriteString("    "[b.Len()%4:])
	}
	return b.String()
}

func run(s string, c byte) int {
	n := 0
	for n < len(s) && s[n] == c {
		n++
	}
	return n
}

func opensFence(text string) (string, bool) {
	for _, c := range []byte("`~") {
		n := run(text, c)
		if n < 3 || c == '`' && strings.ContainsRune(text[n:], '`') {
			continue
		}
		return text[:n], true
	}
	return "", false
}

func closesFence(rest, fence string) bool {
	ind := indent(rest)
	if ind > 3 {
		return false
	}
	n := run(rest[ind:], fence[0])
	return n >= len(fence) && blank(rest[ind+n:])
}

func isHeading(text string) bool {
	n := run(text, '#')
	return n >= 1 && n <= 6 && (n == len(text) || text[n] == ' ')
}

func isUnderline(text string) bool {
	t := strings.TrimRight(text, " ")
	return t != "" && (run(t, '=') == len(t) || run(t, '-') == len(t))
}

func isRule(text string) bool {
	t := strings.ReplaceAll(text, " ", "")
	return len(t) >= 3 && strings.ContainsRune("-_*", rune(t[0])) && run(t, t[0]) == len(t)
}

func containsAnyFold(s string, subs []string) bool {
	if len(subs) == 0 {
		return false
	}
	s = strings.ToLower(s)
	for _, sub := range subs {
		if strings.Contains(s, sub) {
			return true
		}
	}
	return false
}
