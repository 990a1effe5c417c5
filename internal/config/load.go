package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of a file. They are far above any honest one; they keep the parser, whose cost grows with
// the square of the nesting, from being the thing that ends the job.
const (
	MaxBytes  = 64 << 10
	maxTokens = 20_000
	maxNested = 20
)

// Load reads one file strictly. name is used in errors only. An empty file is Default. The error
// is an Errors: everything that is wrong, each with line and column; the Config is then Default.
func Load(name string, data []byte) (Config, error) {
	c, _, err := load(name, data)
	return c, err
}

func load(name string, data []byte) (Config, *decoder, error) {
	d := &decoder{file: name, table: schema(), config: Default(), places: map[string]ast.Node{}, anchors: map[string]ast.Node{}}
	root, err := d.parse(data)
	if err != nil {
		return Default(), d, Errors{err}
	}
	if root != nil {
		d.section("", root)
	}
	if len(d.errs) == 0 {
		d.combinations()
	}
	if len(d.errs) > 0 {
		return Default(), d, d.errs.sorted()
	}
	return d.config, d, nil
}

// decoder is one Load.
type decoder struct {
	file    string
	table   table
	config  Config
	places  map[string]ast.Node // where each key or section of the file stands
	anchors map[string]ast.Node
	errs    Errors
}

// parse turns bytes into the one document's root; nil when there is nothing in it.
func (d *decoder) parse(data []byte) (root ast.Node, failed *Error) {
	fail := func(line, column int, next, format string, args ...any) (ast.Node, *Error) {
		return nil, &Error{File: d.file, Line: line, Column: column, Msg: fmt.Sprintf(format, args...), Next: next}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > MaxBytes {
		return fail(0, 0, "keep long scripts in files and name them", "the file has %d bytes, more than %d", len(data), MaxBytes)
	}
	if line, column, ok := unreadable(data); !ok {
		return fail(line, column, "save the file as UTF-8", "not readable as UTF-8 text")
	}
	// The parser is fed hostile bytes in forks and fuzzers; a panic of it is a fault of the file.
	defer func() {
		if r := recover(); r != nil {
			root, failed = fail(1, 1, "check the file with a YAML linter", "cannot be read as YAML")
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if t := tooDeep(tokens); t != nil {
		return fail(t.Position.Line, t.Position.Column, "this file needs three levels", "nested too deep or too long")
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		line, column, msg := 1, 1, "cannot be read as YAML"
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) {
			msg = syntax.Message
			if syntax.Token != nil {
				line, column = syntax.Token.Position.Line, max(syntax.Token.Position.Column, 1)
			}
		}
		return fail(line, column, "mend the YAML here", "%s", msg)
	}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case root != nil:
			line, column := place(doc.Body)
			return fail(line, column, "keep one document in the file", "a second document begins here")
		default:
			root = doc.Body
		}
	}
	return root, nil
}

// unreadable finds the first byte that is no UTF-8 text.
func unreadable(data []byte) (line, column int, ok bool) {
	line, column = 1, 1
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1, r == 0:
			return line, column, false
		case r == '\n':
			line, column = line+1, 0
		}
		data, column = data[n:], column+1
	}
	return 0, 0, true
}

// tooDeep is the token at which the file passes a limit, nil when it passes none.
func tooDeep(tokens token.Tokens) *token.Token {
	depth, opened, line := 0, 0, 0
	for i, t := range tokens {
		if t.Position.Line != line {
			line, opened = t.Position.Line, 0
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			opened++
		}
		// In flow style one line may hold many entries, in block style each is a level.
		if depth > maxNested || opened > maxNested || i > maxTokens || t.Position.Column > 4*MaxBytes {
			return t
		}
	}
	return nil
}

// section reads a mapping, or the single value that stands for one of its keys.
func (d *decoder) section(path string, node ast.Node) {
	node, ok := d.resolve(node)
	if !ok {
		return
	}
	s, _ := d.table.section(path)
	entries, isMapping := mapping(node)
	switch {
	case isMapping:
	case node.Type() == ast.NullType:
		return // a section whose keys are all commented out
	case s.short != "":
		if k, ok := d.table.key(join(path, s.short)); ok {
			d.places[k.path] = node
			d.key(k, node)
		}
		return
	default:
		next := "write keys under it: " + strings.Join(d.table.children(path), ", ")
		d.fail(node, path, next, "want a mapping, got %s", describe(node))
		return
	}
	seen := map[string]bool{}
	for _, e := range entries {
		d.entry(path, e, seen)
	}
}

func (d *decoder) entry(parent string, e *ast.MappingValueNode, seen map[string]bool) {
	if _, isMerge := e.Key.(*ast.MergeKeyNode); isMerge {
		d.fail(e.Key, parent, "write the keys out", "merge keys are not read here")
		return
	}
	name, ok := text(e.Key)
	if !ok {
		d.fail(e.Key, parent, "write keys as plain words", "a key must be text")
		return
	}
	path := join(parent, name)
	if seen[name] {
		d.fail(e.Key, path, "remove one of them", "stands here twice")
		return
	}
	seen[name] = true
	_, isSection := d.table.section(path)
	k, isKey := d.table.key(path)
	switch {
	case name == "" || (!isSection && !isKey) || strings.Contains(name, "."):
		d.fail(e.Key, path, d.table.suggest(parent, name), "unknown key")
	case isSection:
		d.places[path] = e.Key
		d.section(path, e.Value)
	default:
		d.places[path] = e.Key
		if v, ok := d.resolve(e.Value); ok {
			d.key(k, v)
		}
	}
}

func (d *decoder) key(k key, node ast.Node) {
	if node.Type() == ast.NullType {
		// An absent value has no place of its own.
		d.fail(d.places[k.path], k.path, "write a value like "+k.example+", or remove the line", "has no value")
		return
	}
	for _, f := range d.value(k, node, k.field(&d.config)) {
		d.fail(f.node, k.path, f.next, "%s", f.msg)
	}
}

func (d *decoder) fail(node ast.Node, path, next, format string, args ...any) {
	line, column := place(node)
	d.errs = append(d.errs, &Error{File: d.file, Line: line, Column: column, Key: path, Msg: fmt.Sprintf(format, args...), Next: next})
}
