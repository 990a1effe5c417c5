package secrets

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
)

// rule is one format. It is compiled when a key word of its first occurs in a text.
type rule struct {
	ID       string   `json:"id"`
	Regex    string   `json:"regex"`
	Group    int      `json:"group"`
	Entropy  float64  `json:"entropy"`
	Keywords []string `json:"keywords"`
	Allow    []struct {
		Regexes []string `json:"regexes"`
		Target  string   `json:"target"`
	} `json:"allow"`

	once  sync.Once
	re    *regexp.Regexp
	allow []allowance
	// reach tells where a match can lie, seen from a key word.
	reach reach
}

type allowance struct {
	re    *regexp.Regexp
	whole bool // matched against the whole match, not the value in it
}

// reach bounds the search. Most formats begin with their key word: trying there and nowhere else is what makes
// scanning fast. A rule whose key word only says what the file is about is tried everywhere.
type reach struct {
	atWord   bool // every match begins at a key word
	boundary bool // and the word must begin there
	near     bool // every match holds a key word
	longest  int  // bytes; unbounded: noLimit
}

const (
	noLimit = 1 << 30
	// leadIn is more than any rule allows before its key word.
	leadIn = 256
)

func (r *rule) compile() {
	r.once.Do(func() {
		tree, err := syntax.Parse(r.Regex, syntax.Perl)
		if err != nil {
			panic("secrets: rule " + r.ID + ": " + err.Error()) // a test compiles them all
		}
		r.reach.longest = longest(tree)
		begins := prefixes(tree)
		r.reach.atWord = r.startsAtWord(begins)
		r.reach.near = r.reach.atWord || holds(tree, r.words())
		source := r.Regex
		if r.reach.atWord {
			source, r.reach.boundary = strings.CutPrefix(source, `\b`)
			source = `\A(?:` + source + `)`
		}
		r.re = regexp.MustCompile(source)
		for _, a := range r.Allow {
			for _, s := range a.Regexes {
				r.allow = append(r.allow, allowance{regexp.MustCompile(s), a.Target == "match"})
			}
		}
	})
}

func (r *rule) words() []string {
	out := make([]string, len(r.Keywords))
	for i, k := range r.Keywords {
		out[i] = strings.ToLower(k)
	}
	return out
}

func (r *rule) startsAtWord(begins []string) bool {
	for _, b := range begins {
		if !slices.ContainsFunc(r.words(), func(k string) bool { return strings.HasPrefix(b, k) }) {
			return false
		}
	}
	return len(begins) > 0
}

// find reports every match, given where key words of the rule stand.
func (r *rule) find(text string, at []int, found func(from int, match string, m []int)) {
	switch {
	case r.reach.atWord:
		end := 0
		for _, p := range at {
			if p < end || r.reach.boundary && p > 0 && isWord(text[p-1]) {
				continue
			}
			window := text[p:min(len(text), p+min(r.reach.longest, noLimit)+2)]
			if m := r.re.FindStringSubmatchIndex(window); m != nil {
				found(p, window[m[0]:m[1]], m)
				end = p + m[1]
			}
		}
	case r.reach.near:
		for _, w := range r.windows(len(text), at) {
			r.all(text, w, found)
		}
	default:
		r.all(text, span{0, len(text)}, found)
	}
}

func (r *rule) all(text string, w span, found func(from int, match string, m []int)) {
	part := text[w.from:w.to]
	for _, m := range r.re.FindAllStringSubmatchIndex(part, -1) {
		found(w.from, part[m[0]:m[1]], m)
	}
}

// windows are the stretches around key words, joined where they overlap.
func (r *rule) windows(size int, at []int) []span {
	var out []span
	for _, p := range at {
		w := span{max(0, p-leadIn), min(size, p+min(r.reach.longest, noLimit)+leadIn)}
		if n := len(out); n > 0 && w.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, w.to)
		} else {
			out = append(out, w)
		}
	}
	return out
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// longest is the most bytes that a match can have.
func longest(re *syntax.Regexp) int {
	sum := func(n int) int {
		for _, s := range re.Sub {
			n = min(noLimit, n+longest(s))
		}
		return n
	}
	switch re.Op {
	case syntax.OpLiteral:
		return 4 * len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		if len(re.Rune) > 0 && re.Rune[len(re.Rune)-1] < 0x80 {
			return 1
		}
		return 4
	case syntax.OpStar, syntax.OpPlus:
		return noLimit
	case syntax.OpRepeat:
		if re.Max < 0 {
			return noLimit
		}
		return min(noLimit, re.Max*longest(re.Sub[0]))
	case syntax.OpAlternate:
		n := 0
		for _, s := range re.Sub {
			n = max(n, longest(s))
		}
		return n
	}
	return sum(0)
}

// maxBegins bounds how many beginnings are told apart; a rule with more is not searched by its beginning.
const maxBegins = 400

// prefixes are all strings, in lower case, that a match can begin with, each as long as it is certain.
func prefixes(re *syntax.Regexp) []string {
	out, _ := begin(re)
	return out
}

// begin also says whether the strings are all of re, so that what follows it follows them.
func begin(re *syntax.Regexp) (out []string, whole bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}, true
	case syntax.OpEmptyMatch, syntax.OpWordBoundary, syntax.OpNoWordBoundary, syntax.OpBeginLine, syntax.OpBeginText:
		return []string{""}, true
	case syntax.OpCharClass:
		return class(re.Rune)
	case syntax.OpCapture:
		return begin(re.Sub[0])
	case syntax.OpPlus:
		out, _ = begin(re.Sub[0])
		return out, false
	case syntax.OpRepeat:
		if re.Min > 0 {
			out, whole = begin(re.Sub[0])
			return out, whole && re.Min == 1 && re.Max == 1
		}
	case syntax.OpConcat:
		return sequence(re.Sub)
	case syntax.OpAlternate:
		whole = true
		for _, s := range re.Sub {
			more, all := begin(s)
			out, whole = append(out, more...), whole && all
		}
		return out, whole && len(out) <= maxBegins
	}
	return []string{""}, false
}

func sequence(subs []*syntax.Regexp) (out []string, whole bool) {
	out = []string{""}
	for _, s := range subs {
		next, all := begin(s)
		if len(out)*len(next) > maxBegins {
			return out, false
		}
		var longer []string
		for _, a := range out {
			for _, b := range next {
				longer = append(longer, a+b)
			}
		}
		if out = longer; !all {
			return out, false
		}
	}
	return out, true
}

func class(ranges []rune) (out []string, whole bool) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] > 36 {
			return []string{""}, false
		}
		for c := ranges[i]; c <= ranges[i+1]; c++ {
			seen[strings.ToLower(string(c))] = true
		}
	}
	if len(seen) > 36 {
		return []string{""}, false
	}
	for s := range seen {
		out = append(out, s)
	}
	return out, true
}

// holds says whether every match certainly contains one of the words.
func holds(re *syntax.Regexp, words []string) bool {
	switch re.Op {
	case syntax.OpLiteral:
		text := strings.ToLower(string(re.Rune))
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	case syntax.OpCapture, syntax.OpPlus:
		return holds(re.Sub[0], words)
	case syntax.OpRepeat:
		return re.Min > 0 && holds(re.Sub[0], words)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(s *syntax.Regexp) bool { return !holds(s, words) })
	case syntax.OpConcat:
		// The parser takes a common beginning out of alternatives, so a word may be spread over neighbours.
		if all, whole := sequence(re.Sub); whole && contained(all, words) {
			return true
		}
		for i := range re.Sub {
			if holds(re.Sub[i], words) {
				return true
			}
			for j := i + 2; j <= min(len(re.Sub), i+4); j++ {
				if all, _ := sequence(re.Sub[i:j]); contained(all, words) {
					return true
				}
			}
		}
	}
	return false
}

func contained(all, words []string) bool {
	for _, s := range all {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) }) {
			return false
		}
	}
	return len(all) > 0
}
