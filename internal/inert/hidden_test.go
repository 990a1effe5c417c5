package inert

import "testing"

// The short cut of clean agrees with the tables for every character there is.
func TestPlainCharactersAreNeverInvisible(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= 0x10FFFF; r++ {
		if plain(r) && hidden([]rune{'a', r, 'b'}, 1) != "" {
			t.Errorf("%U is taken for plain and is %s", r, hidden([]rune{'a', r, 'b'}, 1))
		}
	}
}
