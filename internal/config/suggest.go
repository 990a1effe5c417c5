package config

import (
	"fmt"
	"slices"
	"strings"
)

// suggest says where an unknown key belongs, or which one was meant.
func (t table) suggest(parent, name string) string {
	siblings := t.children(parent)
	for _, s := range siblings {
		if plain(s) == plain(name) {
			return fmt.Sprintf("did you mean %q?", s)
		}
	}
	if homes := t.homes(name); len(homes) > 0 {
		return fmt.Sprintf("%q belongs under %s", base(homes[0]), quoted(homes, above))
	}
	if near := nearest(name, siblings); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	var names []string
	for _, p := range t.paths() {
		names = append(names, base(p))
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %s?", quoted(t.homes(near), func(p string) string { return p }))
	}
	if len(siblings) == 0 {
		return "remove it"
	}
	return "the keys here are " + strings.Join(siblings, ", ")
}

// homes are the paths whose last name is this one. A dotted path at its right place is one too.
func (t table) homes(name string) []string {
	var homes []string
	for _, p := range t.paths() {
		if plain(base(p)) == plain(name) || plain(p) == plain(name) {
			homes = append(homes, p)
		}
	}
	return homes
}

func quoted(paths []string, part func(string) string) string {
	var words []string
	for _, p := range paths {
		word := "the top of the file"
		if s := part(p); s != "" {
			word = fmt.Sprintf("%q", s)
		}
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, " or ")
}

// plain makes maxTicks, max-ticks and MAX_TICKS one word.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// Nearest is the candidate that somebody who wrote name may have meant, "" when none is near.
func Nearest(name string, candidates []string) string { return nearest(name, candidates) }

// nearest is the candidate that is one slip or two away, "" when none is.
func nearest(name string, candidates []string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", max(1, len(name)/3)+1
	for _, c := range candidates {
		if d := distance(plain(name), plain(c)); d < least {
			best, least = c, d
		}
	}
	for _, c := range candidates {
		// A word that was broken off, like max_cost for max_cost_usd.
		if best == "" && len(name) >= 4 && strings.HasPrefix(plain(c), plain(name)) {
			best = c
		}
	}
	return best
}

// distance counts insertions, deletions, replacements and swaps of neighbours between a and b.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(s); i++ {
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(s)][len(t)]
}
