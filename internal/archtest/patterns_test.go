package archtest

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Expressions are compiled at their first use, which may be in a run: this is where a malformed one shows. What is no
// constant of the source could not be checked and is refused.
func TestEveryPatternCompiles(t *testing.T) {
	t.Parallel()
	n := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || f.Sel.Name != "Of" || !isIdent(f.X, "pattern") {
				return true
			}
			n++
			tv, err := types.Eval(set, nil, token.NoPos, types.ExprString(call.Args[0]))
			if err != nil || tv.Value == nil || tv.Value.Kind() != constant.String {
				t.Errorf("%s: the expression is no constant", set.Position(call.Pos()))
				return true
			}
			if _, err := regexp.Compile(constant.StringVal(tv.Value)); err != nil {
				t.Errorf("%s: %v", set.Position(call.Pos()), err)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 100 {
		t.Errorf("%d expressions were found: this test looks in the wrong place", n)
	}
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
