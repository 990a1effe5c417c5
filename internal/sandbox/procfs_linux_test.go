package sandbox

import "testing"

func TestStatWithAHostileNameIsReadRight(t *testing.T) {
	t.Parallel()
	tail := " 7 70 700 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 12345 1 2"
	for _, name := range []string{"sh", "a b", ") S 1 1", "x) Z 9 (y", "new\nline", ""} {
		p, ok := parseStat(42, []byte("42 ("+name+") S"+tail))
		if want := (proc{pid: 42, parent: 7, session: 700, start: "12345"}); !ok || p != want {
			t.Errorf("%q: got %+v %v, want %+v", name, p, ok, want)
		}
	}
	if p, ok := parseStat(1, []byte("1 (z) Z"+tail)); !ok || !p.dead {
		t.Errorf("a zombie: %+v %v", p, ok)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) b) S 7 70 700 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 12345 1 2"))
	f.Add([]byte("1 (sh) S 0"))
	f.Add([]byte(")"))
	f.Fuzz(func(_ *testing.T, raw []byte) { _, _ = parseStat(1, raw) })
}
