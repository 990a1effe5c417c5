package trigger

import "strings"

// htmlNames are the tags that open an HTML block up to the next blank line.
// https://spec.commonmark.org/0.31.2/#html-blocks, condition 6
const htmlNames = " address article aside base basefont blockquote body caption center col colgroup dd details dialog dir div dl dt " +
	"fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link main menu " +
	"menuitem nav noframes ol optgroup option p param search section source summary table tbody td tfoot th thead title tr track ul "

// opensHTML reports whether text opens an HTML block, and what ends it; nothing means a blank line.
func opensHTML(text string, inParagraph bool) (end []string, ok bool) {
	if !strings.HasPrefix(text, "<") {
		return nil, false
	}
	low := strings.ToLower(text)
	if rawTag(low) && low[1] != '/' {
		return []string{"</script>", "</pre>", "</style>", "</textarea>"}, true
	}
	switch {
	case strings.HasPrefix(low, "<!--"):
		return []string{"-->"}, true
	case strings.HasPrefix(low, "<?"):
		return []string{"?>"}, true
	case strings.HasPrefix(low, "<![cdata["):
		return []string{"]]>"}, true
	case len(low) > 2 && low[1] == '!' && isLetter(low[2]):
		return []string{">"}, true
	}
	tag := strings.TrimPrefix(low[1:], "/")
	n := 0
	for n < len(tag) && (isLetter(tag[n]) || tag[n] >= '0' && tag[n] <= '9') {
		n++
	}
	after := tag[n:]
	if n > 0 && strings.Contains(htmlNames, " "+tag[:n]+" ") &&
		(after == "" || after[0] == ' ' || after[0] == '>' || strings.HasPrefix(after, "/>")) {
		return nil, true
	}
	return nil, !inParagraph && loneTag(text)
}

// rawTag reports whether text begins with an opening or closing tag of an element whose content is
// not Markdown.
func rawTag(text string) bool {
	low := strings.TrimPrefix(strings.ToLower(text), "<")
	low = strings.TrimPrefix(low, "/")
	for _, t := range []string{"script", "pre", "style", "textarea"} {
		if rest, ok := strings.CutPrefix(low, t); ok && (rest == "" || rest[0] == ' ' || rest[0] == '>') {
			return true
		}
	}
	return false
}

// loneTag reports whether text is one complete tag and nothing else.
func loneTag(text string) bool {
	n := 0
	if text[0] == '<' {
		n = tagLen(text)
	}
	return n > 0 && blank(text[n:])
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// tagLen is the length of the complete open or closing tag at the start of s, 0 when there is none.
func tagLen(s string) int {
	i := 1
	closing := strings.HasPrefix(s[i:], "/")
	if closing {
		i++
	}
	n := nameLen(s[i:], "-")
	if n == 0 {
		return 0
	}
	i += n
	for {
		ws := spaceLen(s[i:])
		i += ws
		switch {
		case i == len(s):
			return 0
		case s[i] == '>':
			return i + 1
		case !closing && strings.HasPrefix(s[i:], "/>"):
			return i + 2
		case closing || ws == 0:
			return 0
		}
		n := attrLen(s[i:])
		if n == 0 {
			return 0
		}
		i += n
	}
}

// attrLen is the length of one attribute with its value.
func attrLen(s string) int {
	if !isLetter(s[0]) && s[0] != '_' && s[0] != ':' {
		return 0
	}
	i := 1 + wordLen(s[1:], "_.:-")
	j := i + spaceLen(s[i:])
	if j == len(s) || s[j] != '=' {
		return i
	}
	j++
	j += spaceLen(s[j:])
	if j == len(s) {
		return 0
	}
	if q := s[j]; q == '"' || q == '\'' {
		k := strings.IndexByte(s[j+1:], q)
		if k < 0 {
			return 0
		}
		return j + 1 + k + 1
	}
	k := strings.IndexAny(s[j:], " \n\"'=<>`")
	if k < 0 {
		k = len(s) - j
	}
	if k == 0 {
		return 0
	}
	return j + k
}

func nameLen(s, also string) int {
	if s == "" || !isLetter(s[0]) {
		return 0
	}
	return wordLen(s, also)
}

func wordLen(s, also string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || s[n] >= '0' && s[n] <= '9' || strings.IndexByte(also, s[n]) >= 0) {
		n++
	}
	return n
}

func spaceLen(s string) int { return len(s) - len(strings.TrimLeft(s, " \n")) }
