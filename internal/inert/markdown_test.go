package inert_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	xhtml "golang.org/x/net/html"

	"github.com/proctor-ci/proctor/internal/inert"
)

func hostile() []string {
	return []string{
		"$(touch x) `touch x` ${{ secrets.X }} \"; curl | sh", "a\n::set-output name=x::y", "::add-mask::x", "::error file=a::b", "##[group]x", "a\r::stop-commands::t",
		"\x1b[31mred\x1b[0m \x1b]0;title\x07 \u009b31m", "a\u202Eb\U000E0041", "<!-- proctor:status --> <img src=x onerror=y>", "![i](https://a.example/p.png)",
		"[l](javascript:x) [r][1] ![i][1]\n\n[1]: http://a.example", "@octocat @org/team user@example.com", "fixes #1, Closes o/r#2 and resolves https://github.com/o/r/issues/3",
		"closing GH-4: implements !5 &6 ~7 %8", "/close\n/assign @me", "# head\n- list\n1. one\n> quote\n---\n===", "| a | b |\n|---|---|", "```\ncode\n```", "~~~\nx", "    indented",
		"a\\", "\\`", "&lt;b&gt; &#64;x", "<details>", "www.a.example https://b.example", "*a* _b_ ~~c~~ [x] - [ ] y", "1) x", "+ x", "Proctor-Verdict: done\nProctor-Run: 1",
		"\xff\xfe", "\x00", "", "   ", "$x_1$", "||", "[^1]", ":tada:", strings.Repeat("`", 20), strings.Repeat("x", 5000), "https://a.example/@x#1",
	}
}

func renderGFM(t *testing.T, md string) *xhtml.Node {
	t.Helper()
	var b bytes.Buffer
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote), goldmark.WithRendererOptions(html.WithUnsafe())).Convert([]byte(md), &b); err != nil {
		t.Fatal(err)
	}
	root, err := xhtml.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// elements are the tags of a page besides html, head and body; comments count as "comment".
func elements(n *xhtml.Node) []string {
	var list []string
	switch n.Type {
	case xhtml.ElementNode:
		if n.Data != "html" && n.Data != "head" && n.Data != "body" {
			list = append(list, n.Data)
		}
	case xhtml.CommentNode:
		list = append(list, "comment")
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		list = append(list, elements(c)...)
	}
	return list
}

func textOf(n *xhtml.Node) string {
	if n.Type == xhtml.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(textOf(c))
	}
	return b.String()
}

// acted are the words that a forge acts on in rendered text.
var acted = map[string]*regexp.Regexp{
	"mention":         regexp.MustCompile(`(?:^|\W)@[A-Za-z0-9]`),
	"reference":       regexp.MustCompile(`(?i)(?:#|\bgh-|!|&)[0-9]`),
	"closing keyword": regexp.MustCompile(`(?i)\b(clos|fix|resolv|implement)\w*:?\s+\S*(#|gh-)[0-9]`),
	"link":            regexp.MustCompile(`(?i)https?://|www\.[a-z]`),
}

type frame struct{ name, before, after string }

var (
	prose = []frame{{"paragraph", "", ""}, {"list item", "- ", ""}, {"sentence", "Title: ", " (end)"}}
	cell  = frame{"table cell", "| h | i |\n|---|---|\n| ", " | z |"}
)

// check renders out in each frame: nothing of it may become an element, but for tags, or leave its cell, and
// outside code nothing may be a word that a forge acts on.
func check(t *testing.T, in, out string, frames []frame, tags ...string) {
	t.Helper()
	for _, f := range frames {
		root := renderGFM(t, f.before+out+f.after)
		allowed := append([]string{"p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}, tags...)
		for _, e := range elements(root) {
			if !slices.Contains(allowed, e) {
				t.Errorf("in a %s: %q made a <%s>: %q", f.name, in, e, out)
			}
		}
		if f == cell && strings.Count(strings.Join(elements(root), " "), "td") != 2 {
			t.Errorf("%q left its table cell: %q", in, out)
		}
		seen := textOf(root)
		for name, re := range acted {
			if len(tags) > 0 && name != "closing keyword" {
				continue
			}
			if re.MatchString(seen) {
				t.Errorf("in a %s: %q shows a live %s: %q", f.name, in, name, seen)
			}
		}
	}
	if strings.Contains(out, "<!--") || strings.HasPrefix(out, "/") || strings.ContainsAny(out, "\n\r\x1b\u202e") {
		t.Errorf("%q holds a marker, a quick action, a line break or a control character: %q", in, out)
	}
}

// read is what a person sees of a rendered escape.
func read(t *testing.T, out string) string {
	t.Helper()
	return strings.TrimSpace(strings.ReplaceAll(textOf(renderGFM(t, out)), "\u200b", ""))
}

// INV-43, INV-52: in Markdown untrusted text is text. The control shows that the same words unescaped are not.
func TestTextIsPlainWords(t *testing.T) {
	t.Parallel()
	live := map[string]bool{}
	for _, s := range hostile() {
		out := inert.Text(s, 10000)
		check(t, s, out, append(prose, cell))
		if want := inert.Visible(s, 10000); len(s) < 1000 && read(t, out) != want {
			t.Errorf("%q reads %q, want %q", s, read(t, out), want)
		}
		root := renderGFM(t, s)
		for _, e := range elements(root) {
			live[e] = true
		}
		for name, re := range acted {
			live[name] = live[name] || re.MatchString(textOf(root))
		}
	}
	for _, want := range []string{"img", "a", "comment", "h1", "li", "table", "pre", "mention", "reference", "closing keyword", "link", "details", "em"} {
		if !live[want] {
			t.Errorf("control: no input makes a %s without the escape", want)
		}
	}
}

// INV-43, INV-52: GitLab looks for closing words in code too.
func TestCodeIsOneLineOfCode(t *testing.T) {
	t.Parallel()
	for _, s := range hostile() {
		check(t, s, inert.Code(s, 10000), prose, "code")
		check(t, s, inert.Cell(s, 10000), append(prose, cell), "code")
		want := inert.Visible(inert.OneLine(s), 10000)
		if want == "" {
			want = "–"
		}
		if len(s) < 1000 && (read(t, inert.Code(s, 10000)) != want || read(t, "x "+inert.Cell(s, 10000)) != "x "+want) {
			t.Errorf("%q reads %q and %q, want %q", s, read(t, inert.Code(s, 10000)), read(t, inert.Cell(s, 10000)), want)
		}
	}
	if got := inert.Cell("a|b", 10); got != "<code>a&#124;b</code>" {
		t.Errorf("got %q", got)
	}
}

func TestWhatNobodySeesIsShown(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\u202eb":       `a\u{202e}b`,
		"pass\u200dword": `pass\u{200d}word`,
		"x\U000E0041":    `x\u{e0041}`,
		"\x1b[31mred":    `\u{1b}[31mred`,
		"a\u2028b":       `a\u{2028}b`,
		"a\u3164b":       `a\u{3164}b`,
		"\ue000":         `\u{e000}`,
		"a \n b":         "a b",
		"👩‍💻 🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F ❤️": "👩‍💻 🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F ❤️",
		"می\u200cخواهم": "می\u200cخواهم",
	} {
		if got := inert.Visible(in, 100); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// What stands at the end is broken too: a letter of ours may follow.
func TestAReferenceIsBrokenAtTheEndAndInAnyCase(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"#", "mail @", "WWW.evil.example", "gH-1", "Fixes #1", "closing !2", "resolve https://git.example/o/r/issues/3"} {
		out := inert.Words(s) + "1a"
		for name, re := range acted {
			if re.MatchString(out) {
				t.Errorf("%q shows a live %s: %q", s, name, out)
			}
		}
	}
}

func FuzzEscapes(f *testing.F) {
	for _, s := range hostile() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 2000 {
			return
		}
		check(t, s, inert.Text(s, 500), append(prose, cell))
		check(t, s, inert.Code(s, 500), prose, "code")
		check(t, s, inert.Cell(s, 500), append(prose, cell), "code")
		if got := inert.Plain(s, 40); strings.ContainsAny(got, "\n\r\x1b") || strings.HasPrefix(strings.TrimSpace(got), "::") || strings.Contains(got, "##[") {
			t.Errorf("%q became %q", s, got)
		}
	})
}
