package tamper

import (
	"regexp"
	"strings"
	"sync"
)

// pythonBlock is a line that opens a block, with its indentation.
var pythonBlock = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([ \t]*)(async[ \t]+def|def|class|if|elif|else|while|for|with|try|except|finally)\b[ \t]*(\w*)[ \t]*(\([^)\n]*\)?)?`)
})

// pythonHides tells whether a definition stands where pytest and unittest do not collect it: in a function, behind a
// condition, in a class that is not taken for a test.
func pythonHides(bare string, def int) bool {
	start := strings.LastIndexByte(bare[:def], '\n') + 1
	lines := strings.Split(bare[:start], "\n")
	indent := width(bare[start:def])
	for i := len(lines) - 1; i >= 0 && indent > 0; i-- {
		line := lines[i]
		if strings.TrimSpace(line) == "" || width(line) >= indent {
			continue
		}
		m := pythonBlock().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		indent = width(line)
		switch {
		case m[2] != "class":
			return true
		case len(strings.Trim(m[4], "() \t")) > 0 || strings.HasPrefix(m[4], "(") && !strings.HasSuffix(m[4], ")"):
			// A base class decides, and it may be one of unittest's.
		case !strings.HasPrefix(m[3], "Test") || constructs(bare, indent, i):
			return true
		}
	}
	return false
}

// constructs tells whether the class that begins in line first has a constructor, for which pytest leaves it out.
func constructs(bare string, indent, first int) bool {
	lines := strings.Split(bare, "\n")
	for _, line := range lines[first+1:] {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if width(line) <= indent {
			return false
		}
		if strings.HasPrefix(strings.TrimSpace(line), "def __init__") {
			return true
		}
	}
	return false
}

// width is a line's indentation; a tab counts for eight.
func width(line string) int {
	n := 0
	for _, c := range line {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 8
		default:
			return n
		}
	}
	return n
}
