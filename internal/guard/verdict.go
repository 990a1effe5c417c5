package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Passed says whether the candidate may be pushed, as a checkpoint too: nothing halts or blocks.
func (v Verdict) Passed() bool {
	w := v.Worst()
	return w != Halt && w != Block
}

// Discard says that the commit must not become the parent of anything that is pushed: it holds
// something that a later commit cannot take back. The next tick starts from the last good commit's tree.
func (v Verdict) Discard() bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool {
		return f.Level == Halt || f.Level == Block && (f.Rule == Secret || f.Rule == FileSize)
	})
}

// At lists the findings of one level.
func (v Verdict) At(level Level) []Finding {
	var out []Finding
	for _, f := range v.Findings {
		if f.Level == level {
			out = append(out, f)
		}
	}
	return out
}

// Feedback is what the agent is told: every blocking reason, one line each, nothing else.
func (v Verdict) Feedback() string {
	var b strings.Builder
	for _, f := range v.Findings {
		if f.Level == Block {
			b.WriteString("- " + f.String() + "\n")
		}
	}
	return b.String()
}

// String is one printable line.
func (f Finding) String() string {
	s := string(f.Rule)
	if f.Path != "" {
		s += fmt.Sprintf(" %q", f.Path)
		if f.Line > 0 {
			s += fmt.Sprintf(" line %d", f.Line)
		}
	}
	s += ": " + f.Detail
	if f.Next != "" {
		s += ". Next: " + f.Next
	}
	return s
}

var levelOrder = map[Level]int{Halt: 0, Block: 1, Flag: 2}

func sortFindings(fs []Finding) []Finding {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(levelOrder[a.Level], levelOrder[b.Level]),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Detail, b.Detail),
		)
	})
	return slices.Compact(fs)
}

// printable makes one line of a text that somebody else wrote.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
