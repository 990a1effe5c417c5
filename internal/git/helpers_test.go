package git

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// clock is the fixed time that commits of tests carry.
func clock() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func newGit(t testing.TB) *Git {
	t.Helper()
	g, err := New(Options{Now: clock, Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func openStore(t testing.TB, g *Git, checkout, base string) *Store {
	t.Helper()
	s, err := g.OpenStore(t.Context(), StoreOptions{Checkout: checkout, Dir: filepath.Join(t.TempDir(), "store"), Base: base})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
