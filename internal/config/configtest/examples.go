// Package configtest owns the check that documentation's configuration examples load. It must never
// be imported outside tests.
package configtest

import (
	"bytes"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/proctor-ci/proctor/internal/config"
)

// Example is a fenced block of Markdown that shows the configuration file.
type Example struct {
	File string
	Line int // of the block's first line
	YAML []byte
}

// isConfig tells a configuration from other YAML: its first line names the file, or it begins with
// the file's version.
var isConfig = regexp.MustCompile(`\A(#[^\n]*\bproctor\.ya?ml|version: *\d)`)

// Examples finds the configurations among the fenced yaml blocks of one Markdown file.
func Examples(file string, markdown []byte) []Example {
	var found []Example
	root := goldmark.DefaultParser().Parse(text.NewReader(markdown))
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		block, ok := n.(*ast.FencedCodeBlock)
		if !ok || !entering || block.Lines().Len() == 0 {
			return ast.WalkContinue, nil
		}
		lang := string(block.Language(markdown))
		body := block.Lines().Value(markdown)
		if (lang == "yaml" || lang == "yml") && isConfig.Match(body) {
			line := 1 + bytes.Count(markdown[:block.Lines().At(0).Start], []byte("\n"))
			found = append(found, Example{File: file, Line: line, YAML: body})
		}
		return ast.WalkContinue, nil
	})
	return found
}

// CheckDocs loads every example of every Markdown file under root and fails for each that does not
// load. It returns how many there were, so that a caller can insist on some.
func CheckDocs(t testing.TB, root fs.FS) int {
	t.Helper()
	n := 0
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || (strings.HasPrefix(d.Name(), ".") && d.Name() != "." && d.Name() != ".github")) {
			return fs.SkipDir
		}
		if d.IsDir() || path.Ext(p) != ".md" {
			return nil
		}
		data, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		for _, e := range Examples(p, data) {
			n++
			if _, err := config.Load(p, e.YAML); err != nil {
				t.Errorf("the example at %s:%d does not load:\n%v", e.File, e.Line, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("read documentation: %v", err)
	}
	return n
}
