package secrets

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
)

//go:embed gitleaks.json
var vendorData []byte

// ownData holds formats that the vendor rules lack or read too narrowly.
//
//go:embed own.json
var ownData []byte

// ruleset is all formats, and where to look for which.
type ruleset struct {
	rules []*rule
	words keywords
}

func loadRules() (*ruleset, error) {
	v := &ruleset{}
	for _, data := range [][]byte{ownData, vendorData} {
		var file struct {
			Rules []*rule `json:"rules"`
		}
		if err := json.Unmarshal(data, &file); err != nil {
			return nil, fmt.Errorf("read the detector's own rules: %w", err)
		}
		v.rules = append(v.rules, file.Rules...)
	}
	for i, r := range v.rules {
		for _, k := range r.words() {
			v.words.add(k, i)
		}
	}
	return v, nil
}

func (v *ruleset) scan(text string, found func(rule string, at int, value string)) {
	at := v.words.in(text, len(v.rules))
	for i, r := range v.rules {
		if len(at[i]) == 0 {
			continue
		}
		r.compile()
		r.find(text, at[i], func(from int, match string, m []int) {
			a, b := r.valueOf(m)
			value := match[a-m[0] : b-m[0]]
			if r.Entropy > 0 && entropy(value) <= r.Entropy || isPlaceholder(value) || r.allowed(match, value) {
				return
			}
			found(r.ID, from+a, value)
		})
	}
}

// valueOf finds the credential inside a match: the named group, else the first one that took part, else all.
func (r *rule) valueOf(m []int) (from, to int) {
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

func (r *rule) allowed(match, value string) bool {
	return slices.ContainsFunc(r.allow, func(a allowance) bool {
		if a.whole {
			return a.re.MatchString(match)
		}
		return a.re.MatchString(value)
	})
}

// keywords finds where words stand, in one pass. A table over two bytes rules nearly every position out.
type keywords struct {
	first [1 << 16]uint16 // 0, or 1 + index into lists
	lists [][]keyword
}

type keyword struct {
	word string // lower case, at least two bytes
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

// in lists, for each of n rules, the places in rising order where one of its words stands in any case.
func (k *keywords) in(text string, n int) [][]int {
	out := make([][]int, n)
	if text == "" {
		return out
	}
	prev := lower(text[0])
	for i := 1; i < len(text); i++ {
		c := lower(text[i])
		if list := k.first[uint16(prev)<<8|uint16(c)]; list != 0 {
			for _, w := range k.lists[list-1] {
				p := out[w.rule]
				if hasFold(text[i-1:], w.word) && (len(p) == 0 || p[len(p)-1] != i-1) {
					out[w.rule] = append(p, i-1)
				}
			}
		}
		prev = c
	}
	return out
}

func hasFold(text, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := 2; i < len(word); i++ {
		if lower(text[i]) != word[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}
