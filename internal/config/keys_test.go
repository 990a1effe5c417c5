package config

import (
	"fmt"
	"strings"
	"testing"
)

// nested writes the YAML in which path has value, block style.
func nested(path, value string) (yaml string, line, column int) {
	var b strings.Builder
	parts := strings.Split(path, ".")
	for i, p := range parts {
		b.WriteString(strings.Repeat("  ", i) + p + ":")
		if i == len(parts)-1 {
			b.WriteString(" " + value)
		}
		b.WriteString("\n")
	}
	return b.String(), len(parts), 2*(len(parts)-1) + 1
}

// companion is what a key needs beside it to mean something.
func companion(path string) string {
	if path == "gates.acceptance.feedback" {
		return "    run: make acceptance\n    parts: [make limits]\n"
	}
	if strings.HasPrefix(path, "gates.acceptance.") && path != "gates.acceptance.run" {
		return "    run: make acceptance\n"
	}
	return ""
}

func wrongValue(k key) string {
	switch k.kind() {
	case "text":
		return "[a]"
	case "true or false":
		return "maybe"
	case "whole number", "size in bytes", "duration", "US dollars":
		return "a lot"
	case "list of texts", "list of account ids":
		return "7"
	default:
		return "true"
	}
}

// INV-55: every key, used rightly, with a wrong type, at a wrong place and misspelt.
func TestEveryKey(t *testing.T) {
	t.Parallel()
	for _, k := range keys() {
		t.Run(k.path, func(t *testing.T) {
			t.Parallel()
			if k.doc == "" || !strings.HasSuffix(k.doc, ".") || k.example == "" {
				t.Error("has no description that is a sentence, or no example")
			}

			yaml, _, _ := nested(k.path, k.example)
			if c, err := Load(file, []byte(yaml+companion(k.path))); err != nil {
				t.Errorf("right use:\n%v", err)
			} else if d := Default(); k.path != "version" && k.path != "trigger.label" && k.path != "trigger.commands" && render(k.field(&c)) == render(k.field(&d)) {
				t.Errorf("right use: the example %q changes nothing", k.example)
			}

			yaml, line, column := nested(k.path, wrongValue(k))
			expect(t, "wrong type", yaml, k.path, line, column+len(base(k.path))+2, "", "")

			where := "fix."
			if above(k.path) == "fix" {
				where = "prove."
			}
			yaml, line, column = nested(where+base(k.path), k.example)
			home := fmt.Sprintf("%q", above(k.path))
			if above(k.path) == "" {
				home = "the top of the file"
			}
			expect(t, "misplaced", yaml, where+base(k.path), line, column, "unknown key", home)

			slip := base(k.path) + "x"
			yaml, line, column = nested(join(above(k.path), slip), k.example)
			expect(t, "misspelt", yaml, join(above(k.path), slip), line, column, "unknown key", fmt.Sprintf("did you mean %q?", base(k.path)))
			for what, slip := range slips(base(k.path)) {
				yaml, line, column = nested(join(above(k.path), slip), k.example)
				expect(t, what, yaml, join(above(k.path), slip), line, column, "unknown key", fmt.Sprintf("%q", base(k.path)))
			}
		})
	}
}

// slips are the ways in which people write a name wrongly. A short name that has lost a letter may be another's.
func slips(name string) map[string]string {
	out := map[string]string{"in capitals": strings.ToUpper(name)}
	if strings.Contains(name, "_") {
		out["with hyphens"] = strings.ReplaceAll(name, "_", "-")
		first, rest, _ := strings.Cut(name, "_")
		for _, w := range strings.Split(rest, "_") {
			first += strings.ToUpper(w[:1]) + w[1:]
		}
		out["in camel case"] = first
	}
	if n := len(name); n >= 6 {
		out["a letter short"] = name[:2] + name[3:]
		out["two letters swapped"] = name[:n-3] + name[n-2:n-1] + name[n-3:n-2] + name[n-1:]
	}
	for what, slip := range out {
		if slip == name {
			delete(out, what)
		}
	}
	return out
}

func expect(t *testing.T, use, yaml, path string, line, column int, msg, next string) {
	t.Helper()
	_, err := Load(file, []byte(yaml))
	all := All(err)
	if len(all) != 1 {
		t.Errorf("%s: want one error, got %v\n%s", use, err, yaml)
		return
	}
	e := all[0]
	if e.Key != path || e.Line != line || e.Column != column || !strings.Contains(e.Msg, msg) || !strings.Contains(e.Next, next) {
		t.Errorf("%s: got %v\nwant %s at %d:%d with %q and %q", use, e, path, line, column, msg, next)
	}
}

func TestEverySectionHasKeysAndADescription(t *testing.T) {
	t.Parallel()
	table := schema()
	for _, s := range table.sections {
		if s.doc == "" || len(table.children(s.path)) == 0 {
			t.Errorf("section %q has no description or no keys", s.path)
		}
		if s.short == "" {
			continue
		}
		if _, ok := table.key(join(s.path, s.short)); !ok {
			t.Errorf("section %q: short key %q does not exist", s.path, s.short)
		}
	}
	for _, k := range table.keys {
		if _, ok := table.section(above(k.path)); !ok {
			t.Errorf("key %q has no section", k.path)
		}
	}
}

func TestADefaultWrittenOutLoadsAsItself(t *testing.T) {
	t.Parallel()
	for _, k := range keys() {
		if strings.HasPrefix(k.path, "gates.acceptance.") {
			continue
		}
		yaml, _, _ := nested(k.path, k.fallback())
		c, err := Load(file, []byte(yaml))
		if err != nil {
			t.Errorf("%s: %v", k.path, err)
			continue
		}
		if got := render(k.field(&c)); got != k.fallback() {
			t.Errorf("%s: %s became %s", k.path, k.fallback(), got)
		}
	}
}
