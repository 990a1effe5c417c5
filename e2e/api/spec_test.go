//go:build e2e

package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// spec is GitHub's OpenAPI description, made ready for a JSON Schema validator.
type spec struct {
	doc       map[string]any
	templates []template
	compiler  *jsonschema.Compiler

	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema
}

type template struct {
	path     string
	segments []string
}

const specURL = "https://api.github.com/openapi.json"

// npmFile is a file of an installed package; a test that needs it says how to get it.
func npmFile(t testing.TB, name ...string) string {
	t.Helper()
	p := filepath.Join(append([]string{"node_modules", "@octokit"}, name...)...)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("%s is not installed: run npm ci --ignore-scripts in e2e/api", filepath.Join(name...))
	}
	return p
}

var loadSpec = sync.OnceValues(func() (*spec, error) {
	data, err := os.ReadFile(filepath.Join("node_modules", "@octokit", "openapi", "generated", "api.github.com.json"))
	if err != nil {
		return nil, err
	}
	return parseSpec(data)
})

func openSpec(t testing.TB) *spec {
	t.Helper()
	npmFile(t, "openapi", "generated", "api.github.com.json")
	s, err := loadSpec()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parseSpec(data []byte) (*spec, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		return nil, err
	}
	root, ok := nullable(doc).(map[string]any)
	if !ok {
		return nil, errors.New("the description is no object")
	}
	s := &spec{doc: root, compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	s.compiler.DefaultDraft(jsonschema.Draft7) // like OpenAPI 3.0, it ignores what stands beside a $ref
	if err := s.compiler.AddResource(specURL, root); err != nil {
		return nil, err
	}
	for p := range root["paths"].(map[string]any) {
		s.templates = append(s.templates, template{p, strings.Split(p, "/")})
	}
	return s, nil
}

// nullable turns OpenAPI 3.0's keyword into JSON Schema.
func nullable(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = nullable(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = nullable(v[k])
		}
		if v["nullable"] == true {
			inner := maps.Clone(v)
			delete(inner, "nullable")
			return map[string]any{"anyOf": []any{inner, map[string]any{"type": "null"}}}
		}
	}
	return v
}

// operation finds the description of a call.
func (s *spec) operation(method, path string) (where string, op map[string]any, err error) {
	segments := strings.Split(path, "/")
	best := ""
	literals := -1
	for _, t := range s.templates {
		if n := t.match(segments); n > literals {
			if _, ok := s.doc["paths"].(map[string]any)[t.path].(map[string]any)[strings.ToLower(method)]; ok {
				best, literals = t.path, n
			}
		}
	}
	if best == "" {
		return "", nil, fmt.Errorf("%s %s: the API has no such operation", method, path)
	}
	item := s.doc["paths"].(map[string]any)[best].(map[string]any)
	return "/paths/" + escape(best) + "/" + strings.ToLower(method), item[strings.ToLower(method)].(map[string]any), nil
}

// match counts literal segments, -1 when it does not fit. The last parameter of a ref or path takes the rest.
func (t template) match(segments []string) int {
	n := 0
	for i, want := range t.segments {
		switch {
		case i >= len(segments):
			return -1
		case want == segments[i]:
			n++
		case want == "{ref}" || want == "{path}":
			if i == len(t.segments)-1 {
				return n
			}
		case !strings.HasPrefix(want, "{") || segments[i] == "":
			return -1
		}
	}
	if len(segments) != len(t.segments) {
		return -1
	}
	return n
}

func escape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// at follows a JSON pointer and any $ref at its end; it gives the final pointer too.
func (s *spec) at(pointer string) (string, any) {
	var v any = s.doc
	for _, part := range strings.Split(pointer, "/")[1:] {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch c := v.(type) {
		case map[string]any:
			v = c[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(c) {
				return pointer, nil
			}
			v = c[i]
		default:
			return pointer, nil
		}
	}
	if m, ok := v.(map[string]any); ok {
		if ref, ok := m["$ref"].(string); ok {
			return s.at(strings.TrimPrefix(ref, "#"))
		}
	}
	return pointer, v
}

// check validates a JSON value against the schema at a pointer, and reports members it does not know.
func (s *spec) check(pointer string, value any) error {
	pointer, schema := s.at(pointer)
	if schema == nil {
		return fmt.Errorf("the description has nothing at %s", pointer)
	}
	compiled, err := s.compile(pointer)
	if err != nil {
		return err
	}
	if err := compiled.Validate(value); err != nil {
		return fmt.Errorf("against %s: %w", pointer, err)
	}
	if unknown := s.unknown(pointer, value, "$"); len(unknown) > 0 {
		return fmt.Errorf("against %s: members the API does not have: %s", pointer, strings.Join(unknown, ", "))
	}
	return nil
}

func (s *spec) compile(pointer string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.compiled[pointer]; c != nil {
		return c, nil
	}
	c, err := s.compiler.Compile(specURL + "#" + (&url.URL{Path: pointer}).EscapedPath())
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", pointer, err)
	}
	s.compiled[pointer] = c
	return c, nil
}

// unknown lists members that no branch of the schema names. The description leaves objects open, so a
// misspelt optional member would pass the validator.
func (s *spec) unknown(pointer string, value any, path string) []string {
	switch v := value.(type) {
	case []any:
		var out []string
		for i, x := range v {
			for _, p := range s.children(pointer, "items") {
				out = append(out, s.unknown(p, x, fmt.Sprintf("%s[%d]", path, i))...)
			}
		}
		return out
	case map[string]any:
		var out []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			ps, open := s.property(pointer, k)
			if len(ps) == 0 && !open {
				out = append(out, path+"."+k)
			}
			if len(ps) == 1 { // several branches: which one is meant is the validator's business
				out = append(out, s.unknown(ps[0], v[k], path+"."+k)...)
			}
		}
		return out
	}
	return nil
}

// property gives the schemas of one member over all branches, and whether other members are allowed.
func (s *spec) property(pointer, name string) (found []string, open bool) {
	for _, b := range s.branches(pointer) {
		_, v := s.at(b)
		m, _ := v.(map[string]any)
		props, hasProps := m["properties"].(map[string]any)
		if _, ok := props[name]; ok {
			found = append(found, b+"/properties/"+escape(name))
			continue
		}
		switch extra := m["additionalProperties"].(type) {
		case bool:
			open = open || extra
		case map[string]any:
			open = true
		default:
			open = open || !hasProps && m["type"] == "object"
		}
	}
	return found, open
}

func (s *spec) children(pointer, key string) []string {
	var out []string
	for _, b := range s.branches(pointer) {
		if _, v := s.at(b + "/" + key); v != nil {
			out = append(out, b+"/"+key)
		}
	}
	if len(out) > 1 {
		return nil
	}
	return out
}

// branches are the schema itself and everything it composes.
func (s *spec) branches(pointer string) []string {
	pointer, v := s.at(pointer)
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	out := []string{pointer}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[key].([]any)
		for i := range list {
			out = append(out, s.branches(fmt.Sprintf("%s/%s/%d", pointer, key, i))...)
		}
	}
	return out
}

// jsonValue decodes as the validator wants it.
func jsonValue(data []byte) (any, error) {
	if !json.Valid(data) {
		return nil, fmt.Errorf("no JSON: %.80q", data)
	}
	return jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
}
