package prompt

import "strings"

// capture collects code until its end, because its fence depends on what is in it.
type capture struct {
	tag  string // "pre" or "code"
	lang string
	text strings.Builder
}

// endCode writes the collected code down with a fence that nothing in it can close.
func (p *page) endCode() {
	c := p.code
	if c == nil {
		return
	}
	p.code = nil
	s := c.text.String()
	if c.tag == "code" {
		p.write(codeSpan(strings.ReplaceAll(s, "\n", " ")))
		return
	}
	s = p.drawn(c.lang, strings.TrimSuffix(s, "\n"))
	fence := strings.Repeat("`", max(3, longestRun(s, '`')+1))
	lang := c.lang
	if !plainLanguage(lang) {
		lang = ""
	}
	p.lines(fence + lang + "\n" + s + "\n" + fence)
	p.owe(2)
}

// drawn is what is seen of code that a forge draws as a picture instead of showing it.
func (p *page) drawn(lang, s string) string {
	comment := ""
	switch strings.ToLower(lang) {
	case "mermaid":
		comment = "%%"
	case "geojson", "topojson", "stl":
		p.ledger.add("code drawn as a picture", s)
		return "[" + strings.ToLower(lang) + ": drawn as a picture]"
	default:
		return s
	}
	var kept []string
	for line := range strings.SplitSeq(s, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), comment) {
			p.ledger.add("comment in a diagram", line)
			continue
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}

func codeSpan(s string) string {
	if s == "" {
		return ""
	}
	ticks := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] == c {
			run++
		} else {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}
