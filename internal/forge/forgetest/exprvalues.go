package forgetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

func (p *parser) function(name string) (any, error) {
	var args []any
	for !p.take(")") {
		v, err := p.or()
		if err != nil {
			return nil, err
		}
		args = append(args, v)
		if !p.take(",") && !strings.HasPrefix(strings.TrimSpace(p.src[p.pos:]), ")") {
			return nil, fmt.Errorf("expression %q: ) is missing after %s(", cut(p.src), name)
		}
	}
	return p.call(strings.ToLower(name), args)
}

func (p *parser) call(name string, args []any) (any, error) {
	switch name {
	case "success", "failure", "cancelled", "always":
		p.usedStatus = true
		return name == "always" || p.scope.status == name, nil
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("expression %q: %s needs arguments", cut(p.src), name)
	}
	low := func(i int) string {
		if i >= len(args) {
			return ""
		}
		return strings.ToLower(text(args[i]))
	}
	switch name {
	case "contains":
		if list, ok := args[0].([]any); ok {
			return len(args) > 1 && slices.ContainsFunc(list, func(v any) bool { return same(v, args[1]) }), nil
		}
		return strings.Contains(low(0), low(1)), nil
	case "startswith":
		return strings.HasPrefix(low(0), low(1)), nil
	case "endswith":
		return strings.HasSuffix(low(0), low(1)), nil
	case "tojson":
		b, err := json.MarshalIndent(args[0], "", "  ")
		return string(b), err
	case "fromjson":
		var v any
		err := json.Unmarshal([]byte(text(args[0])), &v)
		return v, err
	case "format":
		return format(text(args[0]), args[1:]), nil
	}
	return nil, fmt.Errorf("expression %q: the test runner has no function %s", cut(p.src), name)
}

func format(f string, args []any) string {
	pairs := []string{"{{", "{", "}}", "}"}
	for i, a := range args {
		pairs = append(pairs, "{"+strconv.Itoa(i)+"}", text(a))
	}
	return strings.NewReplacer(pairs...).Replace(f)
}

func lookup(m map[string]any, name string) (any, bool) {
	if v, ok := m[name]; ok {
		return v, true
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if strings.EqualFold(k, name) {
			return m[k], true
		}
	}
	return nil, false
}

func member(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		if name == "*" {
			return slices.Collect(maps.Values(v))
		}
		w, _ := lookup(v, name)
		return w
	case []any:
		if name == "*" {
			return v
		}
		if i, err := strconv.Atoi(name); err == nil {
			if i >= 0 && i < len(v) {
				return v[i]
			}
			return nil
		}
		out := []any{} // after a filter: the member of each
		for _, x := range v {
			out = append(out, member(x, name))
		}
		return out
	}
	return nil
}

func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0 && !math.IsNaN(v)
	case string:
		return v != ""
	}
	return true
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'g', 15, 64)
	case []any:
		return "Array"
	case map[string]any:
		return "Object"
	}
	return fmt.Sprint(v)
}

func number(v any) float64 {
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 1
		}
		return 0
	case float64:
		return v
	case string:
		if strings.TrimSpace(v) == "" {
			return 0
		}
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return f
		}
	}
	return math.NaN()
}

// same compares loosely: strings without case, unlike kinds as numbers.
func same(a, b any) bool {
	as, aok := a.(string)
	bs, bok := b.(string)
	if aok && bok {
		return strings.EqualFold(as, bs)
	}
	if ab, ok := a.(bool); ok {
		if bb, ok := b.(bool); ok {
			return ab == bb
		}
	}
	if a == nil && b == nil {
		return true
	}
	return number(a) == number(b)
}

func cut(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
