package prompt_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	xhtml "golang.org/x/net/html"

	"github.com/proctor-ci/proctor/internal/prompt"
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

// INV-43: one logged value is one line, and nothing in it is obeyed by a CI log or a terminal.
func TestInlineIsOneInertLine(t *testing.T) {
	t.Parallel()
	for _, s := range hostile() {
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

var (
	mention   = regexp.MustCompile(`(?:^|\W)@[A-Za-z0-9]`)
	issueRef  = regexp.MustCompile(`(?i)(?:#|\bgh-|!|&)[0-9]`)
	closesRef = regexp.MustCompile(`(?i)\b(clos|fix|resolv|implement)\w*:?\s+\S*(#|gh-)[0-9]`)
	autolink  = regexp.MustCompile(`(?i)https?://|www\.[a-z]`)
)

func inert(t *testing.T, how, in, out string, tags ...string) {
	t.Helper()
	for _, frame := range []struct{ name, before, after string }{
		{"paragraph", "", ""}, {"list item", "- ", ""}, {"table cell", "| h | i |\n|---|---|\n| ", " | z |"}, {"sentence", "Title: ", " (end)"},
	} {
		root := renderGFM(t, frame.before+out+frame.after)
		allowed := append([]string{"p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}, tags...)
		for _, e := range elements(root) {
			if !strings.Contains(" "+strings.Join(allowed, " ")+" ", " "+e+" ") {
				t.Errorf("%s in a %s: %q made a <%s>: %q", how, frame.name, in, e, out)
			}
		}
		if frame.name == "table cell" && strings.Count(strings.Join(elements(root), " "), "td") != 2 {
			t.Errorf("%s: %q left its table cell: %q", how, in, out)
		}
		if frame.name != "paragraph" || how == "MarkdownCode" {
			continue
		}
		seen := textOf(root)
		for name, re := range map[string]*regexp.Regexp{"mention": mention, "reference": issueRef, "closing keyword": closesRef, "link": autolink} {
			if re.MatchString(seen) {
				t.Errorf("%s: %q shows a live %s: %q", how, in, name, seen)
			}
		}
	}
	if strings.Contains(out, "<!--") || strings.HasPrefix(out, "/") || strings.ContainsAny(out, "\n\r") {
		t.Errorf("%s: %q holds a marker, a quick action or a line break: %q", how, in, out)
	}
}

// INV-43, INV-52: in Markdown untrusted text is text. The control shows that the same words unescaped are not.
func TestMarkdownTextIsPlainText(t *testing.T) {
	t.Parallel()
	live := map[string]bool{}
	for _, s := range hostile() {
		out := prompt.MarkdownText(s)
		inert(t, "MarkdownText", s, out)
		if len(s) < 1000 && strings.ToValidUTF8(s, "") == s && !strings.ContainsAny(s, "\x1b\u009b\x00\n\r\u202E") {
			seen := strings.TrimSpace(strings.ReplaceAll(textOf(renderGFM(t, out)), "\u2060", ""))
			if want := prompt.Inline(s, 0); seen != want && !strings.HasPrefix(want, ": ") && seen != strings.TrimSpace(s) {
				t.Errorf("%q reads %q", s, seen)
			}
		}
		root := renderGFM(t, s)
		for _, e := range elements(root) {
			live[e] = true
		}
		for name, re := range map[string]*regexp.Regexp{"mention": mention, "reference": issueRef, "closing keyword": closesRef, "link": autolink} {
			live[name] = live[name] || re.MatchString(textOf(root))
		}
	}
	for _, want := range []string{"img", "a", "comment", "h1", "li", "table", "pre", "mention", "reference", "closing keyword", "link", "details", "em"} {
		if !live[want] {
			t.Errorf("control: no input makes a %s without the escape", want)
		}
	}
}

func TestMarkdownCodeIsOneLineOfCode(t *testing.T) {
	t.Parallel()
	for _, s := range hostile() {
		out := prompt.MarkdownCode(s)
		inert(t, "MarkdownCode", s, out, "code")
		seen := textOf(renderGFM(t, "x "+out))
		if want := "x " + prompt.Inline(s, 0); len(s) < 1000 && !strings.Contains(want, ": :") && !strings.Contains(want, "## [") &&
			strings.TrimSpace(strings.ReplaceAll(seen, "\u2060", "")) != strings.TrimSpace(want) {
			t.Errorf("%q reads %q", want, seen)
		}
	}
	if got := prompt.MarkdownCode("a|b"); got != "<code>a&#124;b</code>" {
		t.Errorf("got %q", got)
	}
}

func TestMarkdownBlockKeepsLinesInOneFence(t *testing.T) {
	t.Parallel()
	for _, s := range hostile() {
		out := prompt.MarkdownBlock(s) + "after"
		root := renderGFM(t, out)
		if got := strings.Join(elements(root), " "); got != "pre code p" {
			t.Errorf("%q left its fence (%s): %q", s, got, out)
		}
		if strings.Contains(out, "<!--") || closesRef.MatchString(out) || strings.ContainsAny(out, "\x1b\r") {
			t.Errorf("%q holds a marker, a closing keyword or terminal codes", out)
		}
	}
}

func TestCommitLineClosesNothing(t *testing.T) {
	t.Parallel()
	for _, s := range hostile() {
		out := prompt.CommitLine(s, 72)
		if len(out) > 72 || strings.Contains(out, "\n") || closesRef.MatchString(out) || mention.MatchString(out) || !utf8.ValidString(out) {
			t.Errorf("%q became %q", s, out)
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
		inert(t, "MarkdownText", s, prompt.MarkdownText(s))
		inert(t, "MarkdownCode", s, prompt.MarkdownCode(s), "code")
		if got := elements(renderGFM(t, prompt.MarkdownBlock(s)+"after")); strings.Join(got, " ") != "pre code p" {
			t.Errorf("%q left its fence: %v", s, got)
		}
		if got := prompt.Inline(s, 40); len(got) > 40 || strings.ContainsAny(got, "\n\r\x1b") || strings.HasPrefix(got, "::") {
			t.Errorf("%q became %q", s, got)
		}
	})
}
