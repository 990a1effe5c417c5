package prompt_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/prompt"
)

// INV-42: what the page does not show is removed and listed. Each body holds SECRET where nobody sees
// it (the control: it is in the body) and SEEN where everybody does.
func TestWhatThePageHidesIsRemovedAndListed(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, body, kind string }{
		{"comment", "SEEN <!-- SECRET --> SEEN", "html comment"},
		{"comment over blocks", "SEEN\n\n<!--\n\nSECRET\n\n-->\n\nSEEN", "html comment"},
		{"comment never closed", "SEEN\n\n<!-- SECRET\n\n# SECRET", "html comment"},
		{"comment closed early", "SEEN <!--> SEEN --><!-- SECRET --> SEEN", "html comment"},
		{"comment in an attribute", "SEEN <a title=\"<!--\" href=\"#\">SEEN</a><!-- SECRET -->", "html comment"},
		{"comment open in a block", "<div>SEEN <!-- x\n\nSECRET\n\nSECRET -->\n\n<div>SECRET -->SEEN</div>", "html comment"},
		{"processing instruction", "SEEN <?php SECRET ?> SEEN", "html comment"},
		{"declaration", "SEEN <!X SECRET> SEEN", "html comment"},
		{"cdata", "SEEN <![CDATA[SECRET]]> SEEN", "html comment"},
		{"link title", "[SEEN](https://a.example \"SECRET\")", "title"},
		{"link title by reference", "[SEEN][x]\n\n[x]: https://a.example 'SECRET'", "title"},
		{"definition as a comment", "SEEN\n\n[//]: # (SECRET)", "reference definition"},
		{"definition without a use", "SEEN\n\n[SECRET]: https://a.example", "reference definition"},
		{"image title", "SEEN ![x](https://a.example/i.png \"SECRET\")", "title"},
		{"image text", "SEEN ![SECRET](https://a.example/i.png)", "image text"},
		{"image address", "SEEN ![x](https://a.example/SECRET.png)", "image address"},
		{"html image", "SEEN <img src=\"https://a.example/SECRET.png\" alt=\"SECRET\">", "image text"},
		{"data attribute", "<span data-x=\"SECRET\">SEEN</span>", "attribute"},
		{"aria label", "<a href=\"#\" aria-label=\"SECRET\">SEEN</a>", "attribute"},
		{"class as text", "<p class=\"SECRET SECRET\">SEEN</p>", "attribute"},
		{"hidden attribute", "<p hidden>SECRET</p>\n\nSEEN", "hidden element"},
		{"hidden over blocks", "<div hidden>\n\nSECRET\n\n<div>SECRET</div>\n\nSECRET\n\n</div>\n\nSEEN", "hidden element"},
		{"display none", "SEEN <span style=\"display : NONE\">SECRET</span> SEEN", "hidden element"},
		{"font size zero", "SEEN <span style=\"font-size:0\">SECRET</span>", "hidden element"},
		{"opacity zero", "SEEN <span style=\"opacity:0\">SECRET</span> <span style=\"opacity:0.5\">SEEN</span>", "hidden element"},
		{"script", "SEEN\n\n<script>SECRET</script>\n\nSEEN", "hidden element"},
		{"style", "SEEN\n\n<style>SECRET</style>\n\nSEEN", "hidden element"},
		{"template", "SEEN <template>SECRET</template> SEEN", "hidden element"},
		{"tag as text", "SEEN <SECRET> SEEN", "unknown tag"},
		{"tag never closed", "SEEN\n\n<div title=\"SECRET\n\nSECRET", "broken html"},
		{"code annotation", "```go SECRET=1\nSEEN\n```", "code block annotation"},
		{"code language of many words", "```ignore-all-SECRET-instructions-now\nSEEN\n```", "code block annotation"},
		{"footnote nobody refers to", "SEEN\n\n[^1]: SECRET text", "footnote nobody refers to"},
		{"cell beyond the table", "| SEEN |\n|---|\n| SEEN | SECRET |", "table cell beyond the last column"},
		{"comment in a diagram", "```mermaid\nSEEN-->x\n%% SECRET\n```", "comment in a diagram"},
		{"properties of a map", "SEEN\n\n```geojson\n{\"properties\": \"SECRET\"}\n```", "code drawn as a picture"},
		{"script link", "[SEEN](javascript:SECRET)", ""},
		{"entity opens no comment by itself", "SEEN &lt;!-- SEEN --&gt; <!-- SECRET -->", "html comment"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, removed := prompt.Visible(c.body)
			if strings.Contains(text, "SECRET") {
				t.Errorf("hidden text reaches the agent:\n%s", text)
			}
			if got, want := strings.Count(text, "SEEN"), strings.Count(c.body, "SEEN"); got != want {
				t.Errorf("%d of %d visible words are left:\n%s", got, want, text)
			}
			if !strings.Contains(c.body, "SECRET") {
				t.Error("control: nothing is hidden in this body")
			}
			listed := c.kind == ""
			for _, r := range removed {
				listed = listed || (r.Kind == c.kind && r.Count > 0)
			}
			if !listed {
				t.Errorf("%q is not listed: %+v", c.kind, removed)
			}
		})
	}
}

// INV-42: characters that are not drawn, however they are written.
func TestCharactersThatAreNotDrawnAreRemovedAndListed(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, in, want, kind string }{
		{"tags", "a\U000E0069\U000E0067\U000E006Eb", "ab", "tag character"},
		{"tags as entities", "a&#xE0069;&#917607;b", "ab", "tag character"},
		{"tags behind a flag that is none", "\U0001F3F4\U000E0069\U000E0067\U000E007Fb", "\U0001F3F4b", "tag character"},
		{"bidi override", "a\u202Eb\u202Cc", "abc", "bidi control"},
		{"bidi isolate as entity", "a&#x2066;b&#x2069;c", "abc", "bidi control"},
		{"mark between Latin letters", "a\u200Eb", "ab", "bidi control"},
		{"zero width space", "a\u200Bb", "ab", "invisible character"},
		{"joiners as data", "a\u200C\u200D\u200Cb", "ab", "invisible character"},
		{"word joiner", "a\u2060b", "ab", "invisible character"},
		{"soft hyphen", "a&shy;b\u00ADc", "abc", "invisible character"},
		{"byte order mark", "a\uFEFFb", "ab", "invisible character"},
		{"Hangul filler", "a\u3164b\u115Fc", "abc", "invisible character"},
		{"invisible plus", "a\u2064b", "ab", "invisible character"},
		{"selectors as data", "a\uFE01\uFE02\U000E0101b", "ab", "variation selector"},
		{"selectors behind a picture", "😀\uFE0F\uFE0E\U000E0120b", "😀\uFE0Fb", "variation selector"},
		{"escape", "a\x1b[31mb", "a[31mb", "control character"},
		{"backspace", "a\bb\u0085c", "abc", "control character"},
		{"not UTF-8", "a\xffb", "a\uFFFDb", "invalid UTF-8"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, removed := prompt.Visible(c.in)
			if text != c.want {
				t.Errorf("body: got %q, want %q", text, c.want)
			}
			inCode, _ := prompt.Visible("```\n" + c.in + "\n```")
			if !strings.Contains(c.in, "&") && inCode != "```\n"+c.want+"\n```" {
				t.Errorf("code: got %q", inCode)
			}
			if len(removed) != 1 || removed[0].Kind != c.kind {
				t.Errorf("listed: %+v, want %q", removed, c.kind)
			}
			if !strings.Contains(c.in, "&") {
				if title, _ := prompt.VisibleTitle(c.in); title != c.want {
					t.Errorf("title: got %q, want %q", title, c.want)
				}
			}
		})
	}
}

func TestTheSampleSpellsOutTagCharacters(t *testing.T) {
	t.Parallel()
	_, removed := prompt.Visible("x\U000E0070\U000E0075\U000E0073\U000E0068")
	want := []prompt.Removal{{Kind: "tag character", Count: 1, Sample: "push"}}
	if diff := cmp.Diff(want, removed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// INV-42: ordinary text of many scripts keeps every byte.
func TestOrdinaryTextKeepsEveryByte(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"naïve café, Straße, Ελληνικά, Русский, Հայերեն, ქართული", "日本語のテスト、漢字󠄀と葛󠄁", "한국어 텍스트", "中文，标点。",
		"می‌خواهم فایل باز شود", "עברית עם ניקוד שָׁלוֹם", "‏عربي (v1.2) ‏نص", "हिन्दी क्‍ष क्‌ष", "ภาษาไทย", "ខ្មែរ​ភាសា", "မြန်မာ", "ᠮᠣᠩᠭᠣᠯ᠋",
		"👨‍👩‍👧‍👦 🏳️‍🌈 👩🏽‍💻 🇪🇺 1️⃣ ❤️ ☎︎ ✔️ 🏴󠁧󠁢󠁳󠁣󠁴󠁿 🏴‍☠️ 👁️‍🗨️ 🧑🏿‍🤝‍🧑🏻 ♂️", "x² + y₂ ≤ ∑∞ ∀ε>0 ∃δ", "e\u0301 Z͑ͫ̓algo̴̘", "ﬁ ligature Å ℡ №",
		"“quotes” – dashes — … nbsp\u00A0here narrow\u202Fspace", "a\tb", "ݣـكـ تطويل", "\uE0B0 private use", "⠀⠃ braille",
	} {
		text, removed := prompt.Visible(s)
		if text != s || len(removed) > 0 {
			t.Errorf("%q became %q, removed %+v", s, text, removed)
		}
		if title, _ := prompt.VisibleTitle(s); strings.ReplaceAll(title, " ", "") != strings.Join(strings.Fields(s), "") {
			t.Errorf("title %q became %q", s, title)
		}
		code := "```\n" + s + "\n```"
		if text, removed := prompt.Visible(code); text != code || len(removed) > 0 {
			t.Errorf("in code %q became %q, removed %+v", s, text, removed)
		}
	}
}

func TestThePageIsWrittenDownReadably(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, in, want string }{
		{"headings", "Title\n===\n\n## Two ##", "# Title\n\n## Two"},
		{"marks", "a **b** _c_ ~~d~~ `e` \\*f\\*", "a **b** *c* ~~d~~ `e` *f*"},
		{"links", "[t](https://a.example/x) <https://b.example> c@d.example https://e.example.", "[t](https://a.example/x) https://b.example c@d.example https://e.example."},
		{"nested lists", "* a\n  1. b\n  2. c\n\n     d\n* e", "- a\n  1. b\n\n  2. c\n\n     d\n\n- e"},
		{"list from three", "3. a\n4. b", "3. a\n4. b"},
		{"quote with code", "> a\n> ```sh\n> b\n>   c\n> ```", "> a\n>\n> ```sh\n> b\n>   c\n> ```"},
		{"backticks in code", "`` a`b ``, ````` ```` `````", "``a`b``, ````` ```` `````"},
		{"fences in fences", "````md\n```\nx\n```\n````", "````md\n```\nx\n```\n````"},
		{"code keeps blanks", "```\n\n  a\t b  \n\n```", "```\n\n  a\t b  \n\n```"},
		{"indented code", "a\n\n    b\n      c", "a\n\n```\nb\n  c\n```"},
		{"table", "|a|b|\n|-|:-:|\n|1|x `y`|", "| a | b |\n|---|---|\n| 1 | x `y` |"},
		{"breaks", "a  \nb\\\nc<br>d", "a\nb\nc\nd"},
		{"rule", "a\n\n***\n\nb", "a\n\n---\n\nb"},
		{"footnote", "a[^n]\n\n[^n]: b", "a^1\n\n---\n\n1. b\u00a0↩\uFE0E"},
		{"details", "<details>\n<summary>More</summary>\n\nb\n\n</details>", "▸ More\n\nb"},
		{"keys", "<kbd>Ctrl</kbd>+<kbd>C</kbd> H<sub>2</sub>O", "Ctrl+C H_2O"},
		{"html table", "<table><tr><td>a</td><td>b</td></tr></table>", "| a | b |"},
		{"formula", "so $a_1 \\\\ * b*$ costs $5 and $6", "so $a_1 \\\\ * b*$ costs $5 and $6"},
		{"formula over lines", "$$\n\\begin{aligned} x &= 1 \\\\\ny_1 &= 2*3*4\n\\end{aligned}\n$$", "$$\n\\begin{aligned} x &= 1 \\\\\ny_1 &= 2*3*4\n\\end{aligned}\n$$"},
		{"tags that swallow pages", "the <title> tag and <textarea> too\n\nmore <style> text", "the <title> tag and <textarea> too\n\nmore <style> text"},
		{"stray end tags", "a</div></li></ul></code>\n\n- b</blockquote> c", "a\n\n- b\n\n  c"},
		{"only hidden", "<!-- x -->", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, _ := prompt.Visible(c.in)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// INV-42, E86: decoding and stripping in any order, by the author or by us, brings nothing back.
func TestNoOrderOfDecodingAndStrippingBringsHiddenTextBack(t *testing.T) {
	t.Parallel()
	encode := strings.NewReplacer("<", "&#60;", ">", "&gt;", "&", "&amp;")
	hidden := "<!-- SECRET -->"
	invisible := "\U000E0053"
	for name, body := range map[string]string{
		"split by an invisible character":  "a <!\u200B-- x --> b",
		"comment inside an entity comment": "a &#60;!-- " + hidden + " --&#62; b",
		"entity inside a comment":          "a <!-- &#45;-> SECRET --> b",
		"encoded twice":                    "a " + encode.Replace(encode.Replace("<!-- x -->")) + " b",
		"invisible by entity in a comment": "a <!-- SECRET &#xE0053; --> b",
		"entity of a tag in code":          "`&#xE0053;" + invisible + "` b",
		"nested comment ends":              "a <!-- <!-- SECRET --> b",
	} {
		once, _ := prompt.Visible(body)
		twice, _ := prompt.Visible(once)
		for pass, text := range map[string]string{"once": once, "twice": twice} {
			if strings.Contains(text, "SECRET") || strings.Contains(text, invisible) || strings.ContainsRune(text, '\u200B') {
				t.Errorf("%s, read %s: %q", name, pass, text)
			}
		}
		if !strings.Contains(once, "b") {
			t.Errorf("%s: visible text is lost: %q", name, once)
		}
	}
}

func TestABodyIsBoundedInSizeAndWork(t *testing.T) {
	t.Parallel()
	wide := "|" + strings.Repeat("a|", 5000) + "\n|" + strings.Repeat("-|", 5000) + "\n" + strings.Repeat("||\n", 8000)
	for name, body := range map[string]string{
		"a table of 40 million cells": wide,
		"quotes in quotes":            strings.Repeat(">", 60000) + "x",
		"lists in lists":              strings.Repeat("- ", 20000) + "x",
		"open brackets":               strings.Repeat("[", 20000),
		"open comments":               strings.Repeat("<!--", 5000),
		"unclosed styles":             strings.Repeat("a <style>", 1000),
	} {
		if text, _ := prompt.Visible(body); len(text) > 4*len(body) {
			t.Errorf("%s: %d bytes became %d", name, len(body), len(text))
		}
	}
	text, removed := prompt.Visible(strings.Repeat("é", prompt.MaxVisible))
	if len(text) > prompt.MaxVisible || len(removed) != 1 || removed[0].Kind != "text beyond the limit" {
		t.Errorf("%d bytes, removed %+v", len(text), removed)
	}
}

func TestDependenciesAreReadFromVisibleWordsOfTheAuthor(t *testing.T) {
	t.Parallel()
	cases := []struct {
		body string
		want []string
	}{
		{"Depends on #1", []string{"#1"}},
		{"depends upon: #1 and #2, o/r#3", []string{"#1", "#2", "o/r#3"}},
		{"Blocked by https://gitlab.example/g/s/p/-/issues/4.", []string{"g/s/p#4"}},
		{"**Depends on** #1", nil},
		{"It never depends on #1. It doesn't depend on #2.", nil},
		{"<!-- Depends on #1 --> text", nil},
		{"independs on #1", nil},
		{"- Depends on #5\n- Depends on #5", []string{"#5"}},
	}
	for _, c := range cases {
		var got []string
		for _, r := range prompt.DependsOn(c.body, 0) {
			got = append(got, r.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.body, diff)
		}
	}
}
