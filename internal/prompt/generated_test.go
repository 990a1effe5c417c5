package prompt_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	xhtml "golang.org/x/net/html"

	"github.com/proctor-ci/proctor/internal/prompt"
)

// writer makes ordinary issue bodies and remembers the words a reader sees, in order.
type writer struct {
	r    *rand.Rand
	seen []string
	n    int
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// word is a visible word with a number, so that order and loss are both seen.
func (w *writer) word() string {
	w.n++
	s := pick(w.r, []string{
		"crash", "naïve", "Größe", "файл", "δοκιμή", "テスト", "数据", "오류", "ملف", "קובץ", "می‌خواهم", "हिन्दी", "ไฟล์", "👩‍💻", "❤️", "🇪🇺", "x²", "∑i", "snake_case_name",
		"std::vector", "a.b.c()", "C:\\temp\\new", "50%", "$HOME", "R&D", "1<2", "it's", "foo/bar.go:12", "v1.2.3-rc.1", "issue#", "É́",
	}) + fmt.Sprintf("·%d", w.n)
	w.seen = append(w.seen, s)
	return s
}

func (w *writer) words(n int) string {
	var list []string
	for range n {
		list = append(list, w.word())
	}
	return strings.Join(list, " ")
}

func (w *writer) block() string {
	switch w.r.IntN(14) {
	case 0:
		return "## " + w.words(3)
	case 1:
		return "- " + w.words(2) + "\n- [ ] " + w.words(2) + "\n  - " + w.words(3)
	case 2:
		return "1. " + w.words(2) + "\n2. " + w.words(2)
	case 3:
		return "> " + w.words(4) + "\n> " + w.words(2)
	case 4:
		return "```go\nfunc main() { // <!-- " + w.word() + " -->\n\t" + w.word() + " := `x`\n}\n```"
	case 5:
		return "    " + w.word() + "\n      " + w.word()
	case 6:
		return "| " + w.word() + " | " + w.word() + " |\n|---|:-:|\n| `" + w.word() + "` | " + w.word() + " |"
	case 7:
		return "**" + w.words(2) + "** and *" + w.word() + "* or ~~" + w.word() + "~~"
	case 8:
		return "see [" + w.word() + "](https://a.example/x?y=1&z=2) and `" + w.word() + "`"
	case 9:
		return "<details><summary>" + w.word() + "</summary>\n\n" + w.words(3) + "\n\n</details>"
	case 10:
		return "<kbd>" + w.word() + "</kbd> H<sub>" + w.word() + "</sub><br>" + w.word()
	case 11:
		return "where $a_1 \\cdot b*c$ is " + w.word() + " and\n\n$$\nE = mc^2 \\\\\n$$\n\n" + w.word()
	case 12:
		return w.words(3) + "  \n" + w.words(3) + "\\\n" + w.word()
	default:
		return w.words(8) + ".\n" + w.words(5) + "?"
	}
}

// INV-42: two hundred ordinary bodies of many scripts lose no word, in order, and nothing is called hidden.
func TestOrdinaryBodiesLoseNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		w := &writer{r: rand.New(rand.NewPCG(seed, 7))}
		var blocks []string
		for range 3 + w.r.IntN(12) {
			blocks = append(blocks, w.block())
		}
		body := strings.Join(blocks, "\n\n")
		text, removed := prompt.Visible(body)
		rest := text
		for _, s := range w.seen {
			i := strings.Index(rest, s)
			if i < 0 {
				t.Fatalf("seed %d: %q is lost or out of order\n--- body\n%s\n--- read\n%s", seed, s, body, text)
			}
			rest = rest[i+len(s):]
		}
		if len(removed) > 0 {
			t.Errorf("seed %d: removed %+v\n%s", seed, removed, body)
		}
		for formula := range strings.SplitSeq(strings.Join(regexp.MustCompile(`(?s)\$a_1.*?\$|\$\$.*?\$\$`).FindAllString(body, -1), "\x00"), "\x00") {
			if !strings.Contains(text, formula) {
				t.Errorf("seed %d: the formula %q is changed", seed, formula)
			}
		}
	}
}

var letters = regexp.MustCompile(`[A-Za-z0-9]+`)

// shownBy is a second, independent reading: of goldmark's own HTML all text nodes, run together, and
// all link targets, in letters and digits only.
func shownBy(t *testing.T, body string) string {
	t.Helper()
	var b bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote), goldmark.WithRendererOptions(html.WithUnsafe()))
	if err := md.Convert([]byte(body), &b); err != nil {
		t.Fatal(err)
	}
	var shown, targets strings.Builder
	z := xhtml.NewTokenizer(&b)
	for {
		switch z.Next() {
		case xhtml.ErrorToken:
			return shown.String() + " " + targets.String() + " image x geojson topojson stl drawn as a picture"
		case xhtml.StartTagToken, xhtml.SelfClosingTagToken, xhtml.EndTagToken:
			raw := string(z.Raw())
			tok := z.Token()
			for _, a := range tok.Attr {
				if a.Key == "href" || a.Key == "start" || a.Key == "class" {
					targets.WriteString(strings.Join(letters.FindAllString(a.Val, -1), " ") + " ")
				}
			}
			switch tok.Data {
			case "title", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext", "noscript", "script", "style":
				z.NextIsNotRawText()
				shown.WriteString(strings.Join(letters.FindAllString(raw, -1), "")) // shown as text
			}
		case xhtml.TextToken:
			shown.WriteString(strings.Join(letters.FindAllString(string(z.Text()), -1), ""))
		}
	}
}

// FuzzVisible checks that nothing reaches the agent that the page does not show.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{
		"a <!-- b --> c", "<p hidden>a</p>b", "[a](b \"c\") ![d](e \"f\")", "&#60;!-- a --&#62;", "```go x\n<!-- a -->\n```", "- [ ] a\n  > b", "|a|b|\n|-|-|\n|c|d|e|",
		"$a <!-- b --> c$", "$$\na\n$$", "<div title=\"a\n\nb", "a[^1]\n\n[^1]: b", "<a href='x'>b<a href='y'>c", "<pre>a<b>c</pre>d<code>e", "x\U000E0041\u202E\u200B", "<title>a</title>b",
		"[a]: b 'c'\n[a]", "<ul><li>a<ol start=5><li>b", "`a\u200b`b", "http://a.b/c?d=e&f=g", "<table><tr><td>a<td>b", "\\<b\\>", "<style>a", "~~~ a b\nc",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > 3000 {
			return
		}
		text, removed := prompt.Visible(body)
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\r\x00\x1b\u202e\u200b\U000E0041") {
			t.Errorf("%q became %q", body, text)
		}
		for _, r := range removed {
			if r.Count < 1 || r.Kind == "" || len(r.Sample) > 80 || strings.ContainsAny(r.Sample, "\n\r\x1b") {
				t.Errorf("listed: %+v", r)
			}
		}
		// Digits are numbers of lists; words in which an invisible character stood have become one.
		if strings.ContainsFunc(body, func(r rune) bool { return r > 0x7e }) || strings.ContainsAny(body, "&\x00\x7f\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x1b$%\\") {
			return
		}
		shown := shownBy(t, body)
		for _, w := range letters.FindAllString(text, -1) {
			if strings.Trim(w, "0123456789") != "" && !strings.Contains(shown, w) {
				t.Errorf("%q is not on the page of %q: %q", w, body, text)
			}
		}
		_ = prompt.Criteria(body)
		_ = prompt.DependsOn(body, 7)
	})
}
