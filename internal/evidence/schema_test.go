package evidence

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/money"
)

//go:generate go test -run TestTheSchemaIsGeneratedFromTheTypes -update .

const schemaPath = "../../docs/record.schema.json"

// object is a JSON object with its keys in order, so that the schema reads like the types.
type object []member

type member struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		k, err := json.Marshal(m.key)
		if err != nil {
			return nil, err
		}
		v, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s:%s", k, v)
	}
	return []byte("{" + b.String() + "}"), nil
}

// comments are the doc and line comments of record.go by "Type" and "Type.Field".
func comments(t *testing.T) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "record.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	text := func(groups ...*ast.CommentGroup) string {
		var s []string
		for _, g := range groups {
			if g != nil {
				s = append(s, strings.Join(strings.Fields(g.Text()), " "))
			}
		}
		return strings.Join(s, " ")
	}
	ast.Inspect(f, func(n ast.Node) bool {
		d, ok := n.(*ast.GenDecl)
		if !ok {
			return true
		}
		for _, spec := range d.Specs {
			ts, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			out[ts.Name.Name] = text(d.Doc)
			for _, field := range ts.Type.(*ast.StructType).Fields.List {
				for _, name := range field.Names {
					out[ts.Name.Name+"."+name.Name] = text(field.Doc, field.Comment)
				}
			}
		}
		return true
	})
	return out
}

func schemaOf(t reflect.Type, docs map[string]string, defs map[string]object) any {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{{"type", "string"}, {"format", "date-time"}}
	case reflect.TypeFor[money.USD]():
		return object{{"type", "number"}}
	}
	switch t.Kind() {
	case reflect.String:
		return object{{"type", "string"}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Int, reflect.Int64:
		return object{{"type", "integer"}}
	case reflect.Pointer:
		return schemaOf(t.Elem(), docs, defs)
	case reflect.Slice:
		return object{{"type", "array"}, {"items", schemaOf(t.Elem(), docs, defs)}}
	}
	if _, ok := defs[t.Name()]; !ok {
		defs[t.Name()] = nil
		defs[t.Name()] = structSchema(t, docs, defs)
	}
	return object{{"$ref", "#/$defs/" + t.Name()}}
}

func structSchema(t reflect.Type, docs map[string]string, defs map[string]object) object {
	var props object
	required := []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		s := schemaOf(f.Type, docs, defs)
		if doc := docs[t.Name()+"."+f.Name]; doc != "" {
			s = append(object{{"description", doc}}, s.(object)...)
		}
		if t.Name() == "Record" && f.Name == "Terminal" {
			var names []string
			for _, term := range Terminals() {
				names = append(names, term.Name)
			}
			s = append(s.(object), member{"enum", names})
		}
		props = append(props, member{name, s})
		if !strings.Contains(opts, "omitempty") {
			required = append(required, name)
		}
	}
	return object{
		{"description", docs[t.Name()]}, {"type", "object"}, {"additionalProperties", false}, {"required", required}, {"properties", props},
	}
}

func schema(t *testing.T) []byte {
	t.Helper()
	defs := map[string]object{}
	root := structSchema(reflect.TypeFor[Record](), comments(t), defs)
	var names []string
	for n := range defs {
		names = append(names, n)
	}
	slices.Sort(names)
	var sorted object
	for _, n := range names {
		sorted = append(sorted, member{n, defs[n]})
	}
	root = append(object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", fmt.Sprintf("Proctor run record, version %d", SchemaVersion)},
	}, append(root, member{"$defs", sorted})...)
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

func TestTheSchemaIsGeneratedFromTheTypes(t *testing.T) {
	t.Parallel()
	got := schema(t)
	if *update {
		if err := WriteFile(schemaPath, got); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("docs/record.schema.json has drifted (go generate ./internal/evidence):\n%s", d)
	}
}

func TestRecordsSatisfyTheirSchema(t *testing.T) {
	t.Parallel()
	var root map[string]any
	if err := json.Unmarshal(schema(t), &root); err != nil {
		t.Fatal(err)
	}
	check := func(r Record) []string {
		b, err := json.Marshal(normal(r))
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		return conforms(root, root, v, "record")
	}
	for _, term := range Terminals() {
		r := sample()
		if term.Name != Done {
			r = ended(t, term.Name)
		}
		if bad := check(r); len(bad) > 0 {
			t.Errorf("%s: %v", term.Name, bad)
		}
	}
	if bad := check(Record{Terminal: "no such"}); len(bad) == 0 {
		t.Error("control: an unknown terminal conforms")
	}
}

// conforms is as much of JSON Schema as our schema uses.
func conforms(root, s map[string]any, v any, at string) []string {
	if ref, ok := s["$ref"].(string); ok {
		s = root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	var bad []string
	wrong := func() []string { return append(bad, fmt.Sprintf("%s: %v is no %s", at, v, s["type"])) }
	switch s["type"] {
	case "object":
		m, ok := v.(map[string]any)
		if !ok {
			return wrong()
		}
		props := s["properties"].(map[string]any)
		for _, k := range s["required"].([]any) {
			if _, ok := m[k.(string)]; !ok {
				bad = append(bad, at+": missing "+k.(string))
			}
		}
		for k, v := range m {
			p, ok := props[k].(map[string]any)
			if !ok {
				bad = append(bad, at+": unknown "+k)
				continue
			}
			bad = append(bad, conforms(root, p, v, at+"."+k)...)
		}
	case "array":
		l, ok := v.([]any)
		if !ok {
			return wrong()
		}
		for i, v := range l {
			bad = append(bad, conforms(root, s["items"].(map[string]any), v, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case "string":
		if _, ok := v.(string); !ok {
			return wrong()
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return wrong()
		}
	case "number", "integer":
		n, ok := v.(float64)
		if !ok || s["type"] == "integer" && n != float64(int64(n)) {
			return wrong()
		}
	}
	if enum, ok := s["enum"].([]any); ok && !slices.Contains(enum, v) {
		bad = append(bad, fmt.Sprintf("%s: %v is not one of %v", at, v, enum))
	}
	return bad
}
