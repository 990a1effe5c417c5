package secrets

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

//go:embed gitleaks.json
var vendorData []byte

// ownData holds formats that the vendor rules lack or read too narrowly.
//
//go:embed own.json
var ownData []byte

type vendorRule struct {
	ID       string   `json:"id"`
	Regex    string   `json:"regex"`
	Group    int      `json:"group"`
	Entropy  float64  `json:"entropy"`
	Keywords []string `json:"keywords"`
	Allow    []struct {
		Regexes   []string `json:"regexes"`
		Target    string   `json:"target"`
		Stopwords []string `json:"stopwords"`
	} `json:"allow"`

	once  sync.Once
	re    *regexp.Regexp
	allow []allowance
}

type allowance struct {
	re    *regexp.Regexp
	whole bool // matched against the whole match, not the value in it
}

type vendorRules struct {
	rules []*vendorRule
	words keywords
}

func loadVendorRules() (*vendorRules, error) {
	v := &vendorRules{}
	for _, data := range [][]byte{ownData, vendorData} {
		var file struct {
			Rules []*vendorRule `json:"rules"`
		}
		if err := json.Unmarshal(data, &file); err != nil {
			return nil, fmt.Errorf("read the detector's own rules: %w", err)
		}
		v.rules = append(v.rules, file.Rules...)
	}
	for i, r := range v.rules {
		for _, k := range r.Keywords {
			v.words.add(strings.ToLower(k), i)
		}
	}
	return v, nil
}

func (r *vendorRule) compile() {
	r.once.Do(func() {
		r.re = regexp.MustCompile(r.Regex)
		for _, a := range r.Allow {
			for _, s := range a.Regexes {
				r.allow = append(r.allow, allowance{regexp.MustCompile(s), a.Target == "match"})
			}
		}
	})
}

func (v *vendorRules) scan(text string, found func(rule string, at int, value string)) {
	for _, i := range v.words.in(text) {
		r := v.rules[i]
		r.compile()
		for _, m := range r.re.FindAllStringSubmatchIndex(text, -1) {
			from, to := r.valueOf(m)
			value := text[from:to]
			if r.Entropy > 0 && entropy(value) <= r.Entropy || isPlaceholder(value) || r.allowed(text[m[0]:m[1]], value) {
				continue
			}
			found(r.ID, from, value)
		}
	}
}

// valueOf finds the credential inside a match: the named group, else the first one that took part, else all.
func (r *vendorRule) valueOf(m []int) (from, to int) {
	if r.Group > 0 && 2*r.Group+1 < len(m) && m[2*r.Group] >= 0 {
		return m[2*r.Group], m[2*r.Group+1]
	}
	for g := 2; g+1 < len(m); g += 2 {
		if m[g] >= 0 && m[g+1] > m[g] {
			return m[g], m[g+1]
		}
	}
	return m[0], m[1]
}

func (r *vendorRule) allowed(match, value string) bool {
	for _, a := range r.allow {
		if a.whole && a.re.MatchString(match) || !a.whole && a.re.MatchString(value) {
			return true
		}
	}
	return false
}

// keywords finds which rules a text can concern, in one pass over it. A table over two bytes rules
// nearly every position out.
type keywords struct {
	first [1 << 16]uint16 // 0, or 1 + index into lists
	lists [][]keyword
}

type keyword struct {
	word string
	rule int
}

func (k *keywords) add(word string, rule int) {
	key := uint16(word[0])<<8 | uint16(word[1])
	if k.first[key] == 0 {
		k.lists = append(k.lists, nil)
		k.first[key] = uint16(len(k.lists))
	}
	at := k.first[key] - 1
	k.lists[at] = append(k.lists[at], keyword{word, rule})
}

// in lists the rules, in their own order, of which a key word occurs in text in any case.
func (k *keywords) in(text string) []int {
	hit := map[int]bool{}
	most := -1
	var prev byte
	for i := range len(text) {
		c := lower(text[i])
		if list := k.first[uint16(prev)<<8|uint16(c)]; i > 0 && list != 0 {
			for _, w := range k.lists[list-1] {
				if !hit[w.rule] && len(text)-(i-1) >= len(w.word) && strings.EqualFold(text[i-1:i-1+len(w.word)], w.word) {
					hit[w.rule] = true
					most = max(most, w.rule)
				}
			}
		}
		prev = c
	}
	var out []int
	for i := 0; i <= most; i++ {
		if hit[i] {
			out = append(out, i)
		}
	}
	return out
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}
