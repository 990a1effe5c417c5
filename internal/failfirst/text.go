package failfirst

import (
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// escapes are terminal sequences: runners colour their output.
var escapes = pattern.Of(`\x1b\[[0-9;?]*[A-Za-z]`)

func plain(s string) string {
	return strings.ReplaceAll(escapes.ReplaceAllString(s, ""), "\r\n", "\n")
}

// all gives the first group of each match.
func all(re *pattern.Regexp, s string) []string {
	var out []string
	for _, m := range re.FindAllStringSubmatch(s, -1) {
		out = append(out, strings.TrimSpace(m[1]))
	}
	return out
}

// blocks cuts text at each line that begins one, and gives heading (the first group) and the rest up to the next.
func blocks(begin *pattern.Regexp, s string) (heads, bodies []string) {
	at := begin.FindAllStringSubmatchIndex(s, -1)
	for i, m := range at {
		end := len(s)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		heads = append(heads, strings.TrimSpace(s[m[2]:m[3]]))
		bodies = append(bodies, s[m[1]:end])
	}
	return heads, bodies
}

// sorted puts the failed tests into what fell by an assertion and what was ended by something else.
func sorted(heads, bodies []string, assertion *pattern.Regexp) (failed []string, thrown int) {
	for i, h := range heads {
		if assertion.MatchString(bodies[i]) {
			failed = append(failed, h)
		} else {
			thrown++
		}
	}
	return failed, thrown
}

// verdict is the reading of a runner whose tests ran.
func verdict(failed []string, thrown int, collection bool) Reading {
	switch {
	case len(failed) > 0:
		return Reading{Kind: Assertion, Failed: failed}
	case thrown > 0:
		return Reading{Kind: Thrown}
	case collection:
		return Reading{Kind: Collection}
	}
	return Reading{Kind: Unknown}
}
