package trigger

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

func commandIn(body string) string {
	c, ok := FindCommand(body, "/proctor")
	if !ok {
		return ""
	}
	return strings.Join(append([]string{c.Name}, c.Args...), " ")
}

var commandCases = []struct{ name, body, want string }{
	{"alone", "/proctor run", "run"},
	{"with arguments", "/proctor budget +5", "budget +5"},
	{"bare prefix asks for help", "/proctor", "help"},
	{"bare prefix with blanks", "/proctor  \t", "help"},
	{"upper case from a phone", "/Proctor RUN", "run"},
	{"E08 CRLF and more lines below", "/proctor run\r\n\r\nplease, when you can\r\n", "run"},
	{"E08 lone CR", "/proctor run\rthanks", "run"},
	{"E08 blanks and CR at the end", "/proctor run  \r", "run"},
	{"tab between the words", "/proctor\trun", "run"},
	{"no-break space between the words", "/proctor\u00a0run", "run"},
	{"after a paragraph", "I agree.\n\n/proctor run", "run"},
	{"next line of a paragraph", "I agree.\n/proctor run", "run"},
	{"the first of two wins", "/proctor status\n/proctor stop", "status"},
	{"unknown name is reported", "/proctor dance", "dance"},
	{"after a closed fence", "```\ncode\n```\n/proctor run", "run"},
	{"after a quote and a blank line", "> do it\n\n/proctor run", "run"},
	{"after a list", "- one\n- two\n\n/proctor run", "run"},
	{"lazily after a list item", "- one\n/proctor run", "run"},
	{"after a list with a fence in it", "- do\n  ```\n  x\n  ```\n\n/proctor run", "run"},
	{"after a heading", "# Plan\n/proctor run", "run"},
	{"after closed inline code", "use `a` and ``b ` c``\n/proctor run", "run"},
	{"after a lone backtick", "don`t wait\n/proctor run", "run"},
	{"after a link with a title", "see [x](http://a.b/(c) \"t) t\")\n/proctor run", "run"},
	{"after an autolink", "<https://a.b>\n\n/proctor run", "run"},
	{"after a closed comment", "<!-- note -->\n\n/proctor run", "run"},
	{"after less-than", "if a < b\n/proctor run", "run"},
	{"after a task list", "- [ ] a\n- [x] b\n\n/proctor run", "run"},

	{"E09 prose with the words in it", "we could /proctor run this later", ""},
	{"E09 glued name", "/proctorrun", ""},
	{"other product", "/proctor-ci run", ""},
	{"indented by one", " /proctor run", ""},
	{"invisible character in front", "\u200b/proctor run", ""},
	{"byte order mark in front", "\ufeff/proctor run", ""},
	{"E14 quote", "> /proctor run", ""},
	{"E14 nested quote", "> > /proctor run", ""},
	{"E14 lazy continuation of a quote", "> please\n/proctor run", ""},
	{"E14 lazy continuation of a quote in a list", "- > please\n/proctor run", ""},
	{"GitLab quote fence", ">>>\n/proctor run\n>>>", ""},
	{"fence", "Type this:\n```\n/proctor run\n```", ""},
	{"tilde fence with an info string", "~~~ sh\n/proctor run\n~~~", ""},
	{"fence that is never closed", "```\n/proctor run", ""},
	{"longer fence around a shorter one", "````\n```\n/proctor run\n````", ""},
	{"fence that opens where a list item's fence was left", "- ```\n\n```\n/proctor run\n```", ""},
	{"fence left by a lazy line", "- a\n  ```\nx\n```\n/proctor run\n```", ""},
	{"fence after an HTML block that hid one", "<x>\n```\n\n```\n/proctor run\n```", ""},
	{"inline code over two lines", "so `\n/proctor run\n`", ""},
	{"inline code inside one line", "use `/proctor run`", ""},
	{"HTML comment block", "<!--\n/proctor run\n-->", ""},
	{"HTML comment with blank lines", "<!--\n\n/proctor run\n\n-->", ""},
	{"HTML comment inside a paragraph", "a <!--\n/proctor run\n-->", ""},
	{"details block", "<details>\n/proctor run\n</details>", ""},
	{"pre block", "<pre>\n\n/proctor run\n</pre>", ""},
	{"attribute over two lines", "a <b title=\">\n/proctor run\n\">", ""},
	{"link title over two lines", "[x](y \"a)\n/proctor run\n\")", ""},
	{"image description over two lines", "![a\n/proctor run\n](b)", ""},
	{"reference definition's title", "[a]: b '\n/proctor run\n'", ""},
	{"indented code", "\n    /proctor run", ""},
	{"empty", "", ""},
}

// INV-48. The cases with an answer are the positive controls of those without.
func TestCommandsCountOnlyFirstOnALineOutsideQuotesAndCode(t *testing.T) {
	t.Parallel()
	for _, c := range commandCases {
		t.Run("INV-48 "+c.name, func(t *testing.T) {
			t.Parallel()
			if got := commandIn(c.body); got != c.want {
				t.Errorf("%q: command %q, want %q", c.body, got, c.want)
			}
		})
	}
}

// goldmarkSees reports whether a full CommonMark parser shows the line that starts at offset as
// text, outside quotes and code.
func goldmarkSees(src string, offset int) bool {
	b := []byte(src)
	seen := false
	root := goldmark.DefaultParser().Parse(text.NewReader(b))
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Blockquote, *ast.CodeSpan, *ast.RawHTML, *ast.Image, *ast.HTMLBlock, *ast.FencedCodeBlock, *ast.CodeBlock:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if n.Segment.Start <= offset && offset < n.Segment.Stop {
				seen = true
			}
		}
		return ast.WalkContinue, nil
	})
	return seen
}

// disagreement is a command that the line reader took and a full parser does not show.
func disagreement(body string) (string, bool) {
	src := normaliseLines(body)
	at, line, ok := commandLine(src, "/proctor")
	return line, ok && !goldmarkSees(src, at)
}

func TestTheLineReaderNeverTakesWhatAFullParserHides(t *testing.T) {
	t.Parallel()
	for _, c := range commandCases {
		if line, bad := disagreement(c.body); bad {
			t.Errorf("%q: took %q, which CommonMark does not show as text", c.body, line)
		}
	}
	// The control: a reader that looks at lines alone is caught by this very comparison.
	if goldmarkSees("```\n/proctor run\n```", 4) || !goldmarkSees("/proctor run", 0) {
		t.Error("the comparison cannot tell code from text")
	}
}

func FuzzFindCommand(f *testing.F) {
	for _, c := range commandCases {
		f.Add(c.body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		// goldmark replaces NUL and reads odd blanks in its own way; neither is ours to compare.
		if len(body) > 2000 || strings.ContainsAny(body, "\x00\v\f") {
			t.Skip("outside what is compared")
		}
		if line, bad := disagreement(body); bad {
			t.Errorf("%q: took %q, which CommonMark does not show as text", body, line)
		}
	})
}

func TestABudgetIsAnAmountToAddAndNothingElse(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"/proctor budget +5":       "5",
		"/proctor budget +$2.50":   "2.50",
		"/proctor budget 5":        "",
		"/proctor budget":          "",
		"/proctor budget +0.00":    "",
		"/proctor budget +-5":      "",
		"/proctor budget ++5":      "",
		"/proctor budget +1e9":     "",
		"/proctor budget +9999999": "",
		"/proctor budget +5 +5":    "",
		"/proctor budget +NaN":     "",
		"/proctor budget +5.":      "",
		"/proctor budget +\u0665":  "",
		"/proctor status +5":       "",
	} {
		cmd, _ := FindCommand(line, "/proctor")
		if got, err := cmd.Amount(); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", line, got, err, want)
		}
		if cmd.Name != "budget" {
			continue
		}
		if s, err := cmd.Canonical(); (err == nil) != (want != "") || err == nil && s != "budget +"+want {
			t.Errorf("%s: canonical %q, %v", line, s, err)
		}
	}
}

func TestEveryKnownCommandIsInTheHelpAndSurvivesADispatch(t *testing.T) {
	t.Parallel()
	help := Help("/proctor")
	for _, c := range Commands() {
		if !strings.Contains(help, "`/proctor "+c.Name) || c.Help == "" {
			t.Errorf("%s is not in the help", c.Name)
		}
		in := Command{Name: c.Name, CommentID: 9}
		if c.Name == "budget" {
			in.Args = []string{"+5"}
		}
		canonical, err := in.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseDispatch(map[string]string{InputIssue: "1", InputCommand: canonical, InputComment: "9"})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(&in, got.Command); d != "" {
			t.Error(d)
		}
	}
	if _, ok := FindCommand(help, "/proctor"); ok {
		t.Error("the help reads as a command")
	}
	if _, err := (Command{Name: "dance"}).Canonical(); err == nil || !strings.Contains(err.Error(), "run, resume") {
		t.Errorf("unknown command: %v, want an error that lists the known ones", err)
	}
}
