package prompt

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// survey lists what Markdown itself leaves off the page, and mends what the parser reads otherwise
// than the forges.
func survey(root ast.Node, source []byte, l *ledger) {
	var notTasks []*extast.TaskCheckBox
	shown, code := map[string]bool{}, map[int]bool{}
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		if n.Kind() == ast.KindFencedCodeBlock || n.Kind() == ast.KindCodeBlock {
			for i := range n.Lines().Len() {
				code[n.Lines().At(i).Start] = true
			}
		}
		switch n := n.(type) {
		case *ast.LinkReferenceDefinition:
			l.add("reference definition", "["+string(n.Label)+"]: "+string(n.Destination)+" "+string(n.Title))
		case *ast.FencedCodeBlock:
			annotation(n, source, l)
		case *extast.TableRow, *extast.TableHeader:
			excess(n, source, l)
		case *extast.Footnote:
			shown[string(n.Ref)] = true
		case *extast.TaskCheckBox:
			if t, ok := n.NextSibling().(*ast.Text); ok && t.Segment.Start > 0 && source[t.Segment.Start-1] == ']' {
				notTasks = append(notTasks, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, n := range notTasks {
		// "[ ]word" is no task without a blank behind the box.
		word := "[ ]"
		if n.IsChecked {
			word = "[x]"
		}
		n.Parent().ReplaceChild(n.Parent(), n, ast.NewString([]byte(word)))
	}
	footnotes(source, shown, code, l)
}

// annotation lists an info string that is more than a language: no forge shows it.
func annotation(n *ast.FencedCodeBlock, source []byte, l *ledger) {
	if n.Info == nil {
		return
	}
	info := strings.TrimSpace(string(n.Info.Segment.Value(source)))
	if _, rest, _ := strings.Cut(info, " "); strings.TrimSpace(rest) != "" || !plainLanguage(string(n.Language(source))) {
		l.add("code block annotation", info)
	}
}

// excess lists cells that a row has more than its table has columns.
func excess(row ast.Node, source []byte, l *ledger) {
	last := row.LastChild()
	if last == nil || last.Lines() == nil || last.Lines().Len() == 0 {
		return
	}
	stop := last.Lines().At(last.Lines().Len() - 1).Stop
	if stop < 0 || stop > len(source) {
		return
	}
	rest, _, _ := bytes.Cut(source[stop:], []byte("\n"))
	if s := strings.Trim(string(rest), "| \t"); s != "" {
		l.add("table cell beyond the last column", s)
	}
}

var footnoteLine = pattern.Of(`(?m)^ {0,3}\[\^([^\]\s]+)\]:.*$`)

// footnotes lists those that nothing refers to: they are not shown. code holds where lines of code begin.
func footnotes(source []byte, shown map[string]bool, code map[int]bool, l *ledger) {
	if !bytes.Contains(source, []byte("[^")) {
		return
	}
	for _, m := range footnoteLine.FindAllSubmatchIndex(source, -1) {
		if !shown[string(source[m[2]:m[3]])] && !code[m[0]] {
			l.add("footnote nobody refers to", string(source[m[0]:m[1]]))
		}
	}
}
