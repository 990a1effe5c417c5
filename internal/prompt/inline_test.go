package prompt_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/proctor-ci/proctor/internal/prompt"
)

func commands() []string {
	return []string{
		"a\n::set-output name=x::y", "::add-mask::x", "::error file=a::b", "##[group]x", "a\r::stop-commands::t", "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u009b31m",
		"a\u202Eb\U000E0041", "@octocat @org/team user@example.com", "fixes #1, Closes o/r#2 and resolves https://github.com/o/r/issues/3", "closing GH-4: implements !5 &6 ~7 %8",
		"Proctor-Verdict: done\nProctor-Run: 1", "\xff\xfe", "\x00", "", "   ", strings.Repeat("x", 5000), "https://a.example/@x#1", "日本語",
	}
}

// INV-43: one logged value is one line, and nothing in it is obeyed by a CI log or a terminal.
func TestInlineIsOneInertLine(t *testing.T) {
	t.Parallel()
	for _, s := range commands() {
		for _, max := range []int{0, 1, 2, 3, 10, 500} {
			got := prompt.Inline(s, max)
			if max > 0 && len(got) > max {
				t.Errorf("%q: %d bytes, want at most %d", s, len(got), max)
			}
			if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) && r != 0x2060 }) {
				t.Errorf("%q became %q", s, got)
			}
			if strings.HasPrefix(got, "::") || strings.Contains(got, "##[") {
				t.Errorf("%q is a workflow command", got)
			}
		}
	}
	for in, want := range map[string]string{
		"a\n::error::b": "a ::error::b", "::error::b": ": :error::b", ":::x": ": ::x", "\x1b[1;31mred\x1b[0m": "red",
		"日本語": "日本語", "a \t b": "a b", "👩‍💻": "👩‍💻",
	} {
		if got := prompt.Inline(in, 0); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := prompt.Inline("日本語", 7); got != "日…" {
		t.Errorf("cut within a character: %q", got)
	}
	if got := prompt.Inline("xé👩‍💻", 13); got != "xé…" {
		t.Errorf("cut within a picture: %q", got)
	}
}

var (
	mention   = regexp.MustCompile(`(?:^|\W)@[A-Za-z0-9]`)
	closesRef = regexp.MustCompile(`(?i)\b(clos|fix|resolv|implement)\w*:?\s+\S*(#|gh-)[0-9]`)
)

func TestCommitLineClosesNothing(t *testing.T) {
	t.Parallel()
	for _, s := range commands() {
		out := prompt.CommitLine(s, 72)
		if len(out) > 72 || strings.Contains(out, "\n") || closesRef.MatchString(out) || mention.MatchString(out) || !utf8.ValidString(out) {
			t.Errorf("%q became %q", s, out)
		}
	}
}
