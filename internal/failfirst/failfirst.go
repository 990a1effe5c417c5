// Package failfirst owns the question whether tests that a change adds fail without the rest of it: which files are
// tests, and what a test runner's output says of a failure. It must never call anything a proof that it does not
// recognise, and its answer never makes a gate green: the tests print that output themselves.
package failfirst

import (
	"slices"
	"strings"
)

// Kind says how tests failed.
type Kind string

// Kinds. Only Assertion shows that a test tells the base code from the change. Collection means that the tests did not
// run: they could not be compiled, imported or collected. Thrown means that a test ran and was ended by something else
// than an assertion, such as a name that the base code lacks. Unknown is everything that is not recognised.
const (
	Assertion  Kind = "assertion"
	Thrown     Kind = "error"
	Collection Kind = "collection"
	Unknown    Kind = "unknown"
)

// Reading is what the output of one failed gate says.
type Reading struct {
	Kind   Kind
	Runner string   // "go test", "pytest", …; empty when none was recognised
	Failed []string // tests that failed by an assertion, as the runner names them; may be empty where it names none
}

// runner reads the output of one test runner. ok is false when it is not that runner's.
type runner struct {
	name string
	read func(text string) (r Reading, ok bool)
}

func runners() []runner {
	return []runner{
		{"go test", goTest}, {"pytest", pytest}, {"unittest", unittest}, {"cargo test", cargo}, {"maven", maven}, {"gradle", gradle},
		{"rspec", rspec}, {"minitest", minitest}, {"vitest", vitest}, {"jest", jest}, {"mocha", mocha}, {"node:test", nodeTest},
	}
}

// maxRead is how much of an output is read, from its end.
const maxRead = 4 << 20

// Read reads the output of a gate that failed. Where several runners are recognised (a gate may run more than one),
// an assertion counts before anything else, then an error in a test, then a failed collection.
func Read(output string) Reading {
	if cut := len(output) - maxRead; cut > 0 {
		output = output[cut:] // runners sum up at the end
	}
	text := plain(output)
	best := Reading{Kind: Unknown}
	for _, r := range runners() {
		got, ok := r.read(text)
		if !ok {
			continue
		}
		got.Runner = r.name
		if rank(got.Kind) < rank(best.Kind) {
			got.Failed = append(got.Failed, best.Failed...)
			best = got
			continue
		}
		best.Failed = append(best.Failed, got.Failed...)
	}
	slices.Sort(best.Failed)
	best.Failed = slices.Compact(best.Failed)
	return best
}

func rank(k Kind) int { return slices.Index([]Kind{Assertion, Thrown, Collection, Unknown}, k) }

// Names tells whether a failed test is one of the added ones. Runners put file, class or suite before a name, and
// parameters behind it.
func (r Reading) Names(added []string) []string {
	var hits []string
	for _, a := range added {
		for _, f := range r.Failed {
			if f == a || endsIn(f, a) || strings.HasPrefix(f, a+"/") || strings.HasPrefix(f, a+"[") || endsIn(cutParameters(f), a) {
				hits = append(hits, a)
				break
			}
		}
	}
	return hits
}

func endsIn(failed, name string) bool {
	for _, sep := range []string{"::", ".", " ", "#", "/", ">"} {
		if strings.HasSuffix(failed, sep+name) {
			return true
		}
	}
	return false
}

// cutParameters takes "[1-2]" and "/sub" off.
func cutParameters(s string) string {
	if i := strings.IndexByte(s, '['); i > 0 {
		s = s[:i]
	}
	return s
}
