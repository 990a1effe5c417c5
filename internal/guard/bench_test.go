package guard

import (
	"fmt"
	"strings"
	"testing"
)

// What a run pays: the guard made new, and one candidate of a usual size; then a tick whose blobs are known.
func BenchmarkCheck(b *testing.B) {
	c := newCandidate()
	for i := range 20 {
		c.changed(fmt.Sprintf("pkg/f%d.go", i), strings.Repeat("func Token(key string) error { return nil }\n", 50), strings.Repeat("func Token(key string) error { return nil }\n", 51))
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g, err := New(Rules{Always: globs{}})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := g.Check(b.Context(), c.in); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		g, err := New(Rules{Always: globs{}})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := g.Check(b.Context(), c.in); err != nil {
				b.Fatal(err)
			}
		}
	})
}
