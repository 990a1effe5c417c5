package inert_test

import (
	"testing"

	"github.com/proctor-ci/proctor/internal/inert"
)

// INV-43: of a line of code nothing is lost, and nothing stands in it that nobody sees.
func TestALineOfCodeShowsWhatWouldHide(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"\tif a  == b {  ": "\tif a  == b {  ", "größe 日本語 ✓": "größe 日本語 ✓", "": "",
		"a\u202eb": `a\u{202e}b`, "a\u2066b\u200bc\ufeff": `a\u{2066}b\u{200b}c\u{feff}`, "x\x00y\x1b[2K\r": `x\u{0}y\u{1b}[2K\u{d}`, "a\nb": `a\u{a}b`,
		"caf\xe9": `caf\xe9`, "x\U000E0041": `x\u{e0041}`, "\u3164\u115f\uffa0": `\u{3164}\u{115f}\u{ffa0}`, "a\u2028\ue000": `a\u{2028}\u{e000}`, "v\ufe0f": `v\u{fe0f}`, "\u0085": `\u{85}`,
	} {
		got := inert.Source(in)
		if got != want {
			t.Errorf("Source(%q) = %q, want %q", in, got, want)
		}
		if again := inert.Source(got); again != got {
			t.Errorf("Source(%q) is %q and then %q", in, got, again)
		}
	}
}
