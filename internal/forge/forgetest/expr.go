package forgetest

import (
	"fmt"
	"strconv"
	"strings"
)

// This file evaluates the expressions of workflow files: literals, contexts, the operators and the
// functions that need no file system. Source: GitHub's "Evaluate expressions in workflows and actions".

// scope holds the contexts by name, and the job's state for success() and its kin.
type scope struct {
	contexts map[string]any
	status   string // "success", "failure" or "cancelled"
}

// expand replaces each ${{ … }} in s.
func expand(s string, sc scope) (string, error) {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "${{")
		out.WriteString(before)
		if !ok {
			return out.String(), nil
		}
		inner, after, ok := strings.Cut(rest, "}}")
		if !ok {
			return "", fmt.Errorf("expression %q: }} is missing", cut(rest))
		}
		v, err := eval(inner, sc)
		if err != nil {
			return "", err
		}
		out.WriteString(text(v))
		s = after
	}
}

// condition is an `if:`. Without a status function, success() is implied; an empty one is success().
func condition(s string, sc scope) (bool, error) {
	s = strings.TrimSpace(s)
	if inner, ok := strings.CutPrefix(s, "${{"); ok && strings.HasSuffix(inner, "}}") {
		s = strings.TrimSuffix(inner, "}}")
	}
	ok := sc.status == "success"
	if strings.TrimSpace(s) == "" {
		return ok, nil
	}
	p := &parser{src: s, scope: sc}
	v, err := p.all()
	if err != nil {
		return false, err
	}
	if !p.usedStatus && !ok {
		return false, nil
	}
	return truthy(v), nil
}

func eval(s string, sc scope) (any, error) { return (&parser{src: s, scope: sc}).all() }

type parser struct {
	src        string
	pos        int
	scope      scope
	usedStatus bool
}

func (p *parser) all() (any, error) {
	v, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.skip(); p.pos < len(p.src) {
		return nil, fmt.Errorf("expression %q: do not understand %q", cut(p.src), cut(p.src[p.pos:]))
	}
	return v, nil
}

func (p *parser) skip() {
	for p.pos < len(p.src) && strings.ContainsRune(" \t\r\n", rune(p.src[p.pos])) {
		p.pos++
	}
}

func (p *parser) take(tok string) bool {
	p.skip()
	if strings.HasPrefix(p.src[p.pos:], tok) {
		p.pos += len(tok)
		return true
	}
	return false
}

// or and and give an operand, not a boolean, as JavaScript does.
func (p *parser) or() (any, error) {
	v, err := p.and()
	for err == nil && p.take("||") {
		var w any
		if w, err = p.and(); !truthy(v) {
			v = w
		}
	}
	return v, err
}

func (p *parser) and() (any, error) {
	v, err := p.equal()
	for err == nil && p.take("&&") {
		var w any
		if w, err = p.equal(); truthy(v) {
			v = w
		}
	}
	return v, err
}

func (p *parser) equal() (any, error) {
	v, err := p.compare()
	for err == nil {
		switch {
		case p.take("=="):
			var w any
			w, err = p.compare()
			v = same(v, w)
		case p.take("!="):
			var w any
			w, err = p.compare()
			v = !same(v, w)
		default:
			return v, nil
		}
	}
	return nil, err
}

func (p *parser) compare() (any, error) {
	v, err := p.unary()
	for err == nil {
		op := ""
		for _, o := range []string{"<=", ">=", "<", ">"} {
			if p.take(o) {
				op = o
				break
			}
		}
		if op == "" {
			return v, nil
		}
		var w any
		if w, err = p.unary(); err == nil {
			v = less(op, number(v), number(w))
		}
	}
	return nil, err
}

func less(op string, a, b float64) bool {
	switch op {
	case "<=":
		return a <= b
	case ">=":
		return a >= b
	case "<":
		return a < b
	}
	return a > b
}

func (p *parser) unary() (any, error) {
	p.skip()
	if strings.HasPrefix(p.src[p.pos:], "!") && !strings.HasPrefix(p.src[p.pos:], "!=") {
		p.pos++
		v, err := p.unary()
		return !truthy(v), err
	}
	return p.postfix()
}

// postfix reads a value and its .name and [index] parts. Keys are compared without case; what is not there is null.
func (p *parser) postfix() (any, error) {
	v, err := p.primary()
	for err == nil {
		switch {
		case p.take("."):
			v = member(v, p.name())
		case p.take("["):
			var key any
			if key, err = p.or(); err == nil && !p.take("]") {
				err = fmt.Errorf("expression %q: ] is missing", cut(p.src))
			}
			v = member(v, text(key))
		default:
			return v, nil
		}
	}
	return nil, err
}

func (p *parser) name() string {
	p.skip()
	if p.take("*") { // an object filter: labels.*.name
		return "*"
	}
	start := p.pos
	for p.pos < len(p.src) && (isWord(p.src[p.pos]) || p.src[p.pos] == '-') {
		p.pos++
	}
	return p.src[start:p.pos]
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (p *parser) primary() (any, error) {
	p.skip()
	if p.pos >= len(p.src) {
		return nil, fmt.Errorf("expression %q ends too early", cut(p.src))
	}
	switch c := p.src[p.pos]; {
	case c == '(':
		p.pos++
		v, err := p.or()
		if err == nil && !p.take(")") {
			err = fmt.Errorf("expression %q: ) is missing", cut(p.src))
		}
		return v, err
	case c == '\'':
		return p.quoted()
	case c >= '0' && c <= '9' || c == '-':
		return p.number()
	case isWord(c):
		return p.word()
	}
	return nil, fmt.Errorf("expression %q: do not understand %q", cut(p.src), cut(p.src[p.pos:]))
}

func (p *parser) quoted() (any, error) {
	var out strings.Builder
	for p.pos++; p.pos < len(p.src); p.pos++ {
		if p.src[p.pos] != '\'' {
			out.WriteByte(p.src[p.pos])
			continue
		}
		if p.pos++; p.pos >= len(p.src) || p.src[p.pos] != '\'' { // a doubled quote is one
			return out.String(), nil
		}
		out.WriteByte('\'')
	}
	return nil, fmt.Errorf("expression %q: a quote is not closed", cut(p.src))
}

func (p *parser) number() (any, error) {
	start := p.pos
	for p.pos < len(p.src) && (isWord(p.src[p.pos]) || strings.IndexByte(".+-", p.src[p.pos]) >= 0) {
		p.pos++
	}
	f, err := strconv.ParseFloat(p.src[start:p.pos], 64)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %q is no number", cut(p.src), p.src[start:p.pos])
	}
	return f, nil
}

func (p *parser) word() (any, error) {
	w := p.name()
	switch w {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	}
	if p.take("(") {
		return p.function(w)
	}
	v, ok := lookup(p.scope.contexts, w)
	if !ok {
		return nil, fmt.Errorf("expression %q: the test runner has no context %q", cut(p.src), w)
	}
	return v, nil
}
