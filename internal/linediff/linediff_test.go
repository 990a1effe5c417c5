package linediff

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// apply rebuilds the new text from the old lines and the edits.
func apply(a, b [][]byte, edits []Edit) string {
	var out strings.Builder
	at := 0
	for _, e := range edits {
		for _, l := range a[at:e.A] {
			out.Write(l)
		}
		for _, l := range b[e.B:e.BEnd] {
			out.Write(l)
		}
		at = e.AEnd
	}
	for _, l := range a[at:] {
		out.Write(l)
	}
	return out.String()
}

// check holds both functions to each other.
func check(t *testing.T, before, after string) {
	t.Helper()
	a, b := Split([]byte(before)), Split([]byte(after))
	edits := Edits(a, b)
	if got := apply(a, b, edits); got != after {
		t.Fatalf("edits of %q give %q, want %q", before, got, after)
	}
	added, removed := 0, 0
	for _, e := range edits {
		added += e.BEnd - e.B
		removed += e.AEnd - e.A
	}
	if gotAdded, gotRemoved := Count(a, b); added+removed <= maxTraced && (gotAdded != added || gotRemoved != removed) {
		t.Errorf("%q to %q: counted +%d -%d, the edits have +%d -%d", before, after, gotAdded, gotRemoved, added, removed)
	}
}

func numbered(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d\n", prefix, i)
	}
	return b.String()
}

func TestEditsTurnOneSideIntoTheOther(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range r.IntN(40) {
			fmt.Fprintf(&b, "%d\n", r.IntN(6))
		}
		return b.String()
	}
	for range 2000 {
		check(t, text(), text())
	}
	// Past the bound the script is long and still true.
	check(t, "same\n"+numbered("a", 1500), "same\n"+numbered("b", 1500))
	check(t, "same\n"+numbered("a", 5000)+"end", "same\n"+numbered("b", 4000)+"end")
}

func TestLinesAreCountedAsAMinimalDiffDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, before, after string
		added, removed      int
	}{
		{"nothing", "", "", 0, 0},
		{"new", "", "a\nb\n", 2, 0},
		{"gone", "a\nb", "", 0, 2},
		{"one changed", "a\nb\nc\n", "a\nB\nc\n", 1, 1},
		{"moved", "a\nb\nc\n", "c\na\nb\n", 1, 1},
		{"line ends", "a\nb\n", "a\r\nb\r\n", 2, 2},
		{"very long", numbered("a", 5000), numbered("b", 5000), 5000, 5000},
		{"very long, some of it moved", numbered("a", 2000) + numbered("b", 2000), numbered("c", 2000) + numbered("a", 2000), 2000, 2000},
		{"no newline at the end", "a\n", "a", 1, 1},
	} {
		if a, r := Count(Split([]byte(c.before)), Split([]byte(c.after))); a != c.added || r != c.removed {
			t.Errorf("%s: got +%d -%d, want +%d -%d", c.name, a, r, c.added, c.removed)
		}
	}
}

func FuzzEditsAndCountsAgree(f *testing.F) {
	f.Add("a\nb\n", "a\nc\n")
	f.Add("a\r\n", "a\n")
	f.Add("", "x\x00y")
	f.Fuzz(func(t *testing.T, before, after string) { check(t, before, after) })
}
