package config

import (
	"fmt"
	"strings"
)

// Keys are all dotted paths of the file that Explain knows, in the file's own order.
func Keys() []string { return schema().paths() }

// Explain describes a key or a section for a person at a terminal: what it does, what it may hold, its
// default, an example. An unknown key is an *Error that names the nearest ones.
func Explain(path string) (string, error) {
	t := schema()
	path = strings.Trim(strings.TrimSpace(path), ".")
	if k, ok := t.key(path); ok {
		return k.explain(), nil
	}
	if s, ok := t.section(path); ok {
		return t.explainSection(s), nil
	}
	return "", &Error{File: "config explain", Key: path, Msg: "unknown key", Next: t.suggest(above(path), base(path))}
}

func (k key) explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n%s\n\n", k.path, k.kind(), k.doc)
	if k.allowed != nil {
		fmt.Fprintf(&b, "allowed  %s\n", strings.Join(k.allowed, ", "))
	}
	if r := k.bounds(); r != "" {
		fmt.Fprintf(&b, "range    %s\n", r)
	}
	fmt.Fprintf(&b, "default  %s\n", k.fallback())
	fmt.Fprintf(&b, "example  %s: %s\n", base(k.path), k.example)
	fmt.Fprintf(&b, "since    version %d\n", max(k.since, 1))
	if _, ok := k.field(new(Config)).(*[]Probe); ok {
		for _, kind := range probeKinds() {
			fmt.Fprintf(&b, "\n%s: %s\n  %s: %s\n", kind.name, kind.doc, kind.name, kind.example)
			for _, f := range kind.fields {
				fmt.Fprintf(&b, "  %-9s %s\n", f.name, f.doc)
			}
		}
	}
	return b.String()
}

func (t table) explainSection(s section) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: section\n\n%s\n\n", s.path, s.doc)
	if s.path == "" {
		b.Reset()
		fmt.Fprintf(&b, "%s\n\n", s.doc)
	}
	if s.short != "" {
		fmt.Fprintf(&b, "A single value here stands for %s.\n\n", join(s.path, s.short))
	}
	for _, name := range t.children(s.path) {
		p := join(s.path, name)
		if k, ok := t.key(p); ok {
			fmt.Fprintf(&b, "  %-20s %s, default %s\n", name, k.kind(), k.fallback())
			continue
		}
		fmt.Fprintf(&b, "  %-20s section\n", name)
	}
	return b.String()
}

// fallback is the default as one would write it.
func (k key) fallback() string {
	c := Default()
	return render(k.field(&c))
}

func (k key) bounds() string {
	c := new(Config)
	switch k.field(c).(type) {
	case *int, *int64:
	default:
		return ""
	}
	if k.max == 0 {
		return fmt.Sprintf("%d or more", k.min)
	}
	return fmt.Sprintf("%d to %d", k.min, k.max)
}
