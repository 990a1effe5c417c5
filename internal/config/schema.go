package config

import (
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// section is a mapping of the file. With a short key, a single value in its place stands for that
// key: "sandbox: strict" is "sandbox: {mode: strict}".
type section struct {
	path, doc string
	short     string
}

// key is a value of the file. Loading, Explain, the JSON Schema and the reference all read this one
// table, so that none of them can know of a key that another does not.
type key struct {
	path    string
	doc     string
	example string // a right value, as YAML in flow style
	allowed []string
	min     int64 // of a number, inclusive
	max     int64 // of a number, inclusive; 0: none
	since   int   // version of the file that brought it; 0: 1
	check   func(string) error
	field   func(*Config) any // pointer into the Config; its type is the key's type
}

// kind is the shape of a value in words for people.
func (k key) kind() string {
	switch k.field(new(Config)).(type) {
	case *string:
		return "text"
	case *bool:
		return "true or false"
	case *int:
		return "whole number"
	case *int64:
		return "size in bytes"
	case *time.Duration:
		return "duration"
	case *money.USD:
		return "US dollars"
	case *[]string:
		return "list of texts"
	case *[]int64:
		return "list of account ids"
	case *Command:
		return "command"
	case *[]Command:
		return "list of commands"
	case *[]Probe:
		return "list of probes"
	case *[]Price:
		return "prices by model"
	default:
		panic("config: key " + k.path + " has a type without a kind")
	}
}

// table is the schema, indexed.
type table struct {
	sections []section
	keys     []key
}

func schema() table { return table{sections: sections(), keys: keys()} }

func (t table) section(path string) (section, bool) {
	for _, s := range t.sections {
		if s.path == path {
			return s, true
		}
	}
	return section{}, false
}

func (t table) key(path string) (key, bool) {
	for _, k := range t.keys {
		if k.path == path {
			return k, true
		}
	}
	return key{}, false
}

// paths are all sections and keys, as dotted paths.
func (t table) paths() []string {
	var all []string
	for _, s := range t.sections {
		if s.path != "" {
			all = append(all, s.path)
		}
	}
	for _, k := range t.keys {
		all = append(all, k.path)
	}
	return all
}

// children are the names that may stand directly under a section.
func (t table) children(parent string) []string {
	var names []string
	for _, p := range t.paths() {
		if above(p) == parent {
			names = append(names, base(p))
		}
	}
	return names
}

func base(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func above(path string) string {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return ""
	}
	return path[:i]
}

func join(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}
