package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/pattern"
)

// located is a fault with the node it lies in.
type located struct {
	node ast.Node
	*fault
}

// value reads node into the field of k. Everything that is wrong is told, with the element it lies in.
func (d *decoder) value(k key, node ast.Node, into any) []located {
	one := func(err *fault) []located {
		if err == nil {
			return nil
		}
		return []located{{node, err}}
	}
	switch p := into.(type) {
	case *string:
		return one(readString(k, node, p))
	case *bool:
		return one(readBool(node, p))
	case *int:
		n, err := readInt(k, node)
		*p = int(n)
		return one(err)
	case *int64:
		return one(readSize(k, node, p))
	case *time.Duration:
		return one(readDuration(node, p))
	case *money.USD:
		return one(readMoney(node, p))
	case *Command:
		return d.command(k, node, p)
	case *[]string:
		return list(d, k, node, p, func(n ast.Node, s *string) []located { return at(n, readString(k, n, s)) })
	case *[]int64:
		return list(d, k, node, p, func(n ast.Node, id *int64) []located {
			v, err := readInt(k, n)
			*id = v
			return at(n, err)
		})
	case *[]Command:
		return list(d, k, node, p, func(n ast.Node, c *Command) []located {
			found := d.command(k, n, c)
			if found == nil && len(c.Argv) == 0 {
				return at(n, wrong("write a command or remove the entry", "empty command"))
			}
			return found
		})
	case *[]Probe:
		return list(d, k, node, p, d.probe)
	case *[]Price:
		return d.prices(node, p)
	}
	panic(fmt.Sprintf("config: key %s has a type that cannot be read: %T", k.path, into))
}

func at(n ast.Node, err *fault) []located {
	if err == nil {
		return nil
	}
	return []located{{n, err}}
}

// list reads a sequence; an entry that occurs twice is a slip worth telling.
func list[T any](d *decoder, k key, node ast.Node, into *[]T, read func(ast.Node, *T) []located) []located {
	seq, ok := node.(*ast.SequenceNode)
	if !ok {
		return at(node, wrong("write it like "+k.example, "want a %s, got %s", k.kind(), describe(node)))
	}
	all := make([]T, 0, len(seq.Values))
	seen := make(map[string]bool, len(seq.Values))
	var found []located
	for _, n := range seq.Values {
		n, ok := d.resolve(n)
		if !ok {
			continue
		}
		var v T
		errs := read(n, &v)
		if s := fmt.Sprint(v); errs == nil && seen[s] && !repeats(k.path) {
			errs = at(n, wrong("remove one of them", "%q stands here twice", s))
		} else {
			seen[s] = true
		}
		found = append(found, errs...)
		all = append(all, v)
	}
	*into = all
	return found
}

// repeats tells the lists in which an entry may well stand twice.
func repeats(path string) bool { return path == "agent.args" || path == "setup" }

func readString(k key, node ast.Node, into *string) *fault {
	s, ok := text(node)
	if !ok {
		next := "write it in quotes"
		if k.allowed != nil {
			next = "write one of " + strings.Join(k.allowed, ", ")
		}
		return wrong(next, "want text, got %s", describe(node))
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return wrong("write it on one line", "%q holds a line break or control character", s)
	}
	if k.allowed != nil && !slices.Contains(k.allowed, s) {
		next := "write one of " + strings.Join(k.allowed, ", ")
		if near := nearest(s, k.allowed); near != "" {
			next = fmt.Sprintf("did you mean %q? %s", near, next)
		}
		return wrong(next, "%q is not allowed here", s)
	}
	if k.check != nil {
		if err := k.check(s); err != nil {
			f, ok := err.(*fault)
			if !ok {
				f = wrong("write it like "+k.example, "%v", err)
			}
			return f
		}
	}
	*into = s
	return nil
}

func readBool(node ast.Node, into *bool) *fault {
	b, ok := node.(*ast.BoolNode)
	if !ok {
		return wrong("write true or false", "want true or false, got %s", describe(node))
	}
	*into = b.Value
	return nil
}

var wholeNumber = pattern.Of(`^-?(0|[1-9][0-9]*)$`)

func readInt(k key, node ast.Node) (int64, *fault) {
	raw, ok := number(node)
	if !ok {
		return 0, wrong("write it like "+k.example, "want a whole number, got %s", describe(node))
	}
	n, err := strconv.ParseInt(raw, 10, 64)
	switch {
	case !wholeNumber.MatchString(raw) || err != nil:
		return 0, wrong("write plain digits", "want a whole number, got %s", raw)
	case k.path == "version" && n != k.max:
		return 0, wrong(fmt.Sprintf("write version: %d, or use the release of proctor that knows %d", k.max, n), "this release reads version %d, not %d", k.max, n)
	case n < k.min:
		return 0, wrong(fmt.Sprintf("write %d or more", k.min), "%d is too small", n)
	case k.max != 0 && n > k.max:
		return 0, wrong(fmt.Sprintf("write %d or less", k.max), "%d is too large", n)
	case n > 1<<53:
		return 0, wrong("write a number below 2^53", "%d is too large", n)
	}
	return n, nil
}

var sizePattern = pattern.Of(`^([1-9][0-9]{0,9}) ?(B|KB|MB|GB|KiB|MiB|GiB)$`)

// readSize takes bytes as a number, or a text with a unit; "MB" is 10^6, "MiB" is 2^20.
func readSize(k key, node ast.Node, into *int64) *fault {
	if s, ok := text(node); ok {
		m := sizePattern.FindStringSubmatch(s)
		if m == nil {
			return wrong("write bytes as a number, or like 2MB or 512KiB", "%q is not a size", s)
		}
		n, _ := strconv.ParseInt(m[1], 10, 64) // at most ten digits
		units := map[string]int64{"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
		if n > (1<<53)/units[m[2]] {
			return wrong("write a smaller one", "%q is too large", s)
		}
		*into = n * units[m[2]]
		return nil
	}
	n, err := readInt(k, node)
	if err == nil {
		*into = n
	}
	return err
}

// readDuration wants a unit: "45" could be seconds or minutes.
func readDuration(node ast.Node, into *time.Duration) *fault {
	const next = `write it with a unit, like 90s, 45m or 1h30m`
	if raw, ok := number(node); ok {
		return wrong(next, "want a duration, got the number %s", raw)
	}
	s, ok := text(node)
	if !ok {
		return wrong(next, "want a duration, got %s", describe(node))
	}
	v, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return wrong(next, "%q is not a duration", s)
	case v <= 0:
		return wrong("write one above zero", "%q is not above zero", s)
	case v < time.Second:
		return wrong("write 1s or more", "%q is too short", s)
	case v > 7*24*time.Hour:
		return wrong("write 168h or less", "%q is longer than a week", s)
	}
	*into = v
	return nil
}

// readMoney takes a number, exactly as written: no binary fraction comes between.
func readMoney(node ast.Node, into *money.USD) *fault {
	const next = "write dollars like 5 or 0.25"
	raw, ok := number(node)
	if !ok {
		return wrong(next, "want an amount in US dollars, got %s", describe(node))
	}
	if strings.HasPrefix(raw, "-") {
		return wrong(next, "%s is below zero", raw)
	}
	v, err := money.Parse(raw)
	if err != nil {
		return wrong(next, "%s is not an amount in US dollars", raw)
	}
	if v == 0 {
		return wrong("write an amount above 0; to run without paying, use an agent whose model costs nothing", "with 0 nothing could be spent")
	}
	*into = v
	return nil
}
