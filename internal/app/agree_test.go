package app

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor"
)

// inputsRead are the names that the program's source asks a job for.
func inputsRead(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			sel, isMethod := call.Fun.(*ast.SelectorExpr)
			lit, isText := call.Args[0].(*ast.BasicLit)
			if isMethod && isText && sel.Sel.Name == "Input" {
				name, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				names[name] = true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(names))
}

// An input that only one of them knows would be silently without effect, or could not be given at all.
func TestInputsOfTheActionTheProgramAndTheTemplatesAgree(t *testing.T) {
	t.Parallel()
	var action struct {
		Inputs map[string]struct {
			Description, Default string
			Required             bool
		}
		Outputs map[string]struct{ Description string }
	}
	if err := yaml.Unmarshal(proctor.ActionMetadata, &action); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(action.Inputs)), inputsRead(t)); d != "" {
		t.Errorf("action.yml and the program (-action.yml +program):\n%s", d)
	}
	for name, in := range action.Inputs {
		if !strings.HasSuffix(in.Description, ".") && !strings.HasSuffix(in.Description, ")") || in.Required {
			t.Errorf("the input %s is not described, or required, which the runner does not enforce", name)
		}
	}
	templates, err := filepath.Glob("../../templates/github/*.yml")
	if err != nil || len(templates) < 3 {
		t.Fatalf("%d templates: %v", len(templates), err)
	}
	raw, err := os.ReadFile("../../host/action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var host metadata // has inputs beside the container action's
	if err := yaml.Unmarshal(raw, &host); err != nil {
		t.Fatal(err)
	}
	type inputs map[string]struct{ Description string }
	for _, path := range templates {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var w struct {
			On struct {
				Dispatch struct{ Inputs inputs } `yaml:"workflow_dispatch"`
				Call     struct{ Inputs inputs } `yaml:"workflow_call"`
			}
			Jobs map[string]struct {
				Uses  string
				With  map[string]string
				Steps []struct {
					ID, Uses string
					With     map[string]string
				}
			}
		}
		if err := yaml.Unmarshal(data, &w); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for in := range merge(w.On.Dispatch.Inputs, w.On.Call.Inputs) {
			if !strings.Contains(string(data), "inputs."+in) {
				t.Errorf("%s: the input %s has no effect", path, in)
			}
		}
		ours := 0
		for _, j := range w.Jobs {
			if j.Uses != "" {
				ours++
			}
			for _, s := range j.Steps {
				if !strings.HasPrefix(s.Uses, "proctor-ci/proctor/host@") {
					continue
				}
				ours++
				for name := range s.With {
					if _, known := host.Inputs[name]; !known {
						t.Errorf("%s: the action has no input %s", path, name)
					}
				}
			}
		}
		want := 1
		if filepath.Base(path) == "staged.yml" {
			want = len([]stageName{stageAgent, stageVerify, stagePublish, stageTell})
		}
		if ours != want {
			t.Errorf("%s runs the action %d times, want %d", path, ours, want)
		}
		for out := range action.Outputs {
			if action.Outputs[out].Description == "" {
				t.Errorf("the output %s is not described", out)
			}
		}
	}
}

func merge[M ~map[string]V, V any](a, b M) M {
	out := M{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}
