package config

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// resolve follows anchors and aliases. An alias is read where the schema has a place for it, and the
// schema is three levels deep, so that aliases of aliases cannot multiply.
func (d *decoder) resolve(node ast.Node) (ast.Node, bool) {
	for range maxNested {
		switch n := node.(type) {
		case *ast.AnchorNode:
			if name, ok := text(n.Name); ok {
				d.anchors[name] = n.Value
			}
			node = n.Value
		case *ast.AliasNode:
			name, _ := text(n.Value)
			target, known := d.anchors[name]
			if !known {
				d.fail(node, "", fmt.Sprintf("put a pattern in quotes, like \"*%s\"; or write &%s before the value it stands for, earlier in the file", name, name), "*%s stands for nothing", name)
				return nil, false
			}
			node = target
		case *ast.TagNode:
			d.fail(node, "", "remove it", "tags are not read here")
			return nil, false
		case nil:
			return ast.Null(nil), false
		default:
			return node, true
		}
	}
	d.fail(node, "", "write the value out", "an alias leads to itself")
	return nil, false
}

// mapping is the entries of a block or flow mapping.
func mapping(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// text is a scalar that YAML reads as text, in any style.
func text(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.MappingNode:
		if len(n.Values) == 1 && !n.IsFlowStyle {
			return colonWord(n.Values[0])
		}
	case *ast.MappingValueNode:
		return colonWord(n)
	}
	return "", false
}

// colonWord is "host:443" in flow style, which YAML reads as one word because nothing separates the
// colon from what follows; the parser makes a mapping of it.
func colonWord(n *ast.MappingValueNode) (string, bool) {
	if n.Start == nil || n.Value == nil || n.Value.GetToken() == nil || n.Key.GetToken() == nil {
		return "", false
	}
	key, colon, value := n.Key.GetToken(), n.Start, n.Value.GetToken()
	together := key.Position.Line == colon.Position.Line && colon.Position.Line == value.Position.Line &&
		key.Position.Column+len([]rune(key.Value)) == colon.Position.Column && colon.Position.Column+1 == value.Position.Column
	switch n.Value.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode:
		if together && plainScalar(key) && plainScalar(value) {
			return key.Value + ":" + value.Value, true
		}
	}
	return "", false
}

func plainScalar(t *token.Token) bool {
	return t.Type != token.SingleQuoteType && t.Type != token.DoubleQuoteType
}

// number is a scalar that YAML reads as a number, as it was written.
func number(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.IntegerNode:
		return n.Token.Value, true
	case *ast.FloatNode:
		return n.Token.Value, true
	}
	return "", false
}

// describe names what stands there, for an error.
func describe(node ast.Node) string {
	switch n := node.(type) {
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.BoolNode:
		return n.GetToken().Value
	case *ast.NullNode:
		return "nothing"
	}
	if raw, ok := number(node); ok {
		return "the number " + raw
	}
	if s, ok := text(node); ok {
		return fmt.Sprintf("the text %q", s)
	}
	return "something else"
}

// place is where a node begins. A mapping's own token is its first colon, so its first key is asked.
func place(node ast.Node) (line, column int) {
	if entries, ok := mapping(node); ok && len(entries) > 0 {
		if m, isMap := node.(*ast.MappingNode); !isMap || !m.IsFlowStyle {
			node = entries[0].Key
		}
	}
	t := node.GetToken()
	if t == nil {
		return 1, 1
	}
	return t.Position.Line, max(t.Position.Column, 1)
}
