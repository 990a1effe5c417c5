package prompt

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// flavour is Markdown as GitHub and GitLab read it in issues. Raw HTML is passed on: what it hides is
// judged on the whole page, as a browser would, since one tag can reach over many blocks.
func flavour() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.GFM, extension.Footnote),
		goldmark.WithParserOptions(parser.WithInlineParsers(util.Prioritized(math{}, 150))),
		goldmark.WithRendererOptions(html.WithUnsafe()),
	)
}

// maxNesting bounds containers in containers; a forge shows no more either. The renderer recurses.
const maxNesting = 100

// render makes HTML and lists what Markdown itself does not show.
func render(markdown string, l *ledger) []byte {
	source := []byte(flatten(markdown))
	md := flavour()
	root := md.Parser().Parse(text.NewReader(source))
	survey(root, source, l)
	var out bytes.Buffer
	// Writing to memory does not fail.
	_ = md.Renderer().Render(&out, source, root)
	return out.Bytes()
}

// plainLanguage is a word like "go", "c++" or "objective-c".
func plainLanguage(s string) bool {
	return len(s) <= 20 && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+#._-", r))
	}) < 0
}

// flatten bounds what a few bytes can make the parser and renderer do: marks of containers that would
// nest deeper than maxNesting are taken off their line, and a table that would have more than
// maxCells cells (a short row is filled up) is left as the text it is written as.
func flatten(s string) string {
	rows := strings.Count(s, "\n") + 1
	var b strings.Builder
	for line := range strings.Lines(s) {
		if columns := strings.Count(line, "|"); columns*rows > maxCells && strings.Trim(line, " \t|:->\n") == "" {
			line = strings.Replace(line, "|", `\|`, 1)
		}
		if end := deep(line); end > 0 {
			line = line[:end] + strings.TrimLeft(line[end:], ">-+* \t")
			if !strings.HasSuffix(line, "\n") {
				line += "\n"
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

const maxCells = 500_000

// deep is where a line's containers pass maxNesting, 0 when they do not.
func deep(line string) int {
	depth := 0
	for i := range len(line) {
		switch line[i] {
		case '>', '-', '+', '*':
			if depth++; depth > maxNesting {
				return i
			}
		case ' ', '\t':
		default:
			return 0
		}
	}
	return 0
}
