package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/proctor-ci/proctor/internal/money"
)

// command reads a line of shell or a list of arguments.
func (d *decoder) command(k key, node ast.Node, into *Command) []located {
	if seq, ok := node.(*ast.SequenceNode); ok {
		var argv []string
		for _, n := range seq.Values {
			n, ok := d.resolve(n)
			if !ok {
				return nil
			}
			arg, isText := text(n)
			if !isText {
				return at(n, wrong("write it in quotes", "want an argument as text, got %s", describe(n)))
			}
			if strings.ContainsRune(arg, 0) {
				return at(n, wrong("remove it", "an argument holds a NUL byte"))
			}
			argv = append(argv, arg)
		}
		if len(argv) == 0 || argv[0] == "" {
			return at(node, wrong("write the program first, like [npm, test]", "the list names no program"))
		}
		*into = Command{Argv: argv}
		return nil
	}
	line, ok := text(node)
	if !ok {
		return at(node, wrong("write it like "+k.example, "want a command as a line or a list, got %s", describe(node)))
	}
	line = strings.TrimSpace(line)
	if strings.ContainsRune(line, 0) {
		return at(node, wrong("remove it", "the command holds a NUL byte"))
	}
	*into = Shell(line)
	return nil
}

// Shell is the Command of a line of shell; the empty line is no command.
func Shell(line string) Command {
	if line == "" {
		return Command{}
	}
	return Command{Line: line, Argv: []string{"sh", "-c", line}}
}

// prices reads model → {input, output, cache_read, cache_write}.
func (d *decoder) prices(node ast.Node, into *[]Price) []located {
	const next = "write it like {my-model: {input: 3, output: 15}}"
	entries, ok := mapping(node)
	if !ok {
		return at(node, wrong(next, "want prices by model, got %s", describe(node)))
	}
	var found []located
	var all []Price
	for _, e := range entries {
		model, _ := text(e.Key)
		if err := checkModel(model); err != nil {
			found = append(found, at(e.Key, wrong(next, "%q is not a model id", model))...)
			continue
		}
		if slices.ContainsFunc(all, func(p Price) bool { return p.Model == model }) {
			found = append(found, at(e.Key, wrong("remove one of them", "%q stands here twice", model))...)
			continue
		}
		v, ok := d.resolve(e.Value)
		if !ok {
			continue
		}
		p := Price{Model: model}
		found = append(found, d.price(v, &p)...)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Price) int { return cmp.Compare(a.Model, b.Model) })
	*into = all
	return found
}

func (d *decoder) price(node ast.Node, p *Price) []located {
	const next = "write input, output, cache_read or cache_write"
	parts, ok := mapping(node)
	if !ok {
		return at(node, wrong("write it like {input: 3, output: 15}", "want a price, got %s", describe(node)))
	}
	into := map[string]*money.USD{"input": &p.Input, "output": &p.Output, "cache_read": &p.CacheRead, "cache_write": &p.CacheWrite}
	var found []located
	for _, e := range parts {
		name, _ := text(e.Key)
		field := into[name]
		if field == nil {
			found = append(found, at(e.Key, wrong(next, "unknown part of a price %q", name))...)
			continue
		}
		delete(into, name)
		if v, ok := d.resolve(e.Value); ok {
			// A local model is free: here zero means something.
			if raw, isNumber := number(v); !isNumber || raw != "0" {
				found = append(found, at(v, readMoney(v, field))...)
			}
		}
	}
	if into["input"] != nil || into["output"] != nil {
		found = append(found, at(node, wrong("write both input and output", "half a price"))...)
	}
	return found
}
