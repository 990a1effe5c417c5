package tamper

import (
	"regexp"
	"strings"
	"sync"
)

// tableLine is a line on which a table usually begins.
var tableLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\bparametrize\b|\.each\b|@(?:\w+\.)*(?:ValueSource|CsvSource|EnumSource|InlineData)\b|#\[(?:test_case|case)\b|\b(?:cases|tests|tt|tcs?|table|examples|samples|scenarios|vectors)\b[^\n]*(?:=|:)|\b(?:for|range)\b[^\n]*[\[{(]`)
})

// cells counts the values of the tables that begin on such lines, by the words before each table. A table is counted
// from its first to its last bracket, so that layout does not matter. What stands inside of a row is not counted: a
// column that goes away takes no case along.
func cells(bare string) map[string]int {
	out := map[string]int{}
	for at := 0; at < len(bare); {
		end := at + len(lineAt(bare[at:], 0))
		if !tableLine().MatchString(bare[at:end]) {
			at = end + 1
			continue
		}
		words, from := "", at
		for i := at; i < end; i++ {
			if !strings.ContainsRune("[{(", rune(bare[i])) {
				continue
			}
			words += bare[from:i]
			from = i + 1
			if opens(bare, i) == codeBlock {
				continue
			}
			n, last := values(bare, i, 0)
			out[squeeze(words)] += n
			i, from = last, last+1
			end = max(end, last+len(lineAt(bare[last:], 0)))
		}
		at = end + 1
	}
	return out
}

// bracket is what an opening bracket begins.
type bracket int

const (
	list      bracket = iota
	call              // arguments, an index or a type
	result            // arguments for what a call gave back: no part of a table
	codeBlock         // statements or fields
)

func opens(bare string, i int) bracket {
	before := strings.TrimRight(bare[:i], " \t")
	if before == "" {
		return list
	}
	touches := len(before) == i
	last := before[len(before)-1]
	word := last == '_' || last >= '0' && last <= '9' || last >= 'a' && last <= 'z' || last >= 'A' && last <= 'Z'
	switch {
	case bare[i] == '{' && (last == ')' || strings.HasSuffix(before, "=>") || strings.HasSuffix(before, "struct") || strings.HasSuffix(before, "interface")):
		return codeBlock
	case bare[i] == '{' && !touches && (word || last == ']' || last == '}'):
		return codeBlock
	case bare[i] == '(' && touches && (last == ')' || last == '`'):
		return result
	case bare[i] != '{' && touches && (word || last == ')'):
		return call
	}
	return list
}

// maxDepth is how deep brackets are followed; a text that goes deeper is no table.
const maxDepth = 100

// values counts the elements of the list that begins at open, or of the lists among a call's arguments, and gives the
// offset of its last bracket.
func values(bare string, open, depth int) (n, last int) {
	if depth > maxDepth {
		return 0, open
	}
	kind := opens(bare, open)
	some := false // something stands since the last comma
	for i := open + 1; i < len(bare); i++ {
		switch c := bare[i]; c {
		case ' ', '\t', '\r', '\n':
		case '[', '{', '(':
			inner, end := values(bare, i, depth+1)
			if kind == call && opens(bare, i) != codeBlock {
				n += inner
			}
			some, i = true, end
		case ']', '}', ')':
			if some && kind == list {
				n++
			}
			return n, i
		case ',':
			if kind == list {
				n++
			}
			some = false
		default:
			some = true
		}
	}
	return n, len(bare) - 1
}

// total is the number of all values.
func total(cells map[string]int) int {
	n := 0
	for _, c := range cells {
		n += c
	}
	return n
}

// shrank tells whether one table has fewer values than it had. One that is called otherwise now may have been moved.
func shrank(before, after map[string]int) bool {
	for words, n := range before {
		if now, ok := after[words]; ok && now < n {
			return true
		}
	}
	return false
}
