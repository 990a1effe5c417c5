package config

import (
	"fmt"
	"slices"
	"strings"
)

// Origin says where a value in force comes from.
type Origin struct {
	Key   string `json:"key"`   // dotted path
	Value string `json:"value"` // as one would write it
	From  string `json:"from"`  // "default", "file .github/proctor.yml:12", or what Narrow's Override named
}

// Origins loads a file as Load does and says of every key where its value comes from, in the file's own
// order. No file at all (nil data) gives the defaults. The error is Load's.
func Origins(name string, data []byte) (Config, []Origin, error) {
	c, d, err := load(name, data)
	if err != nil {
		return c, nil, err
	}
	var all []Origin
	for _, k := range d.table.keys {
		o := Origin{Key: k.path, Value: render(k.field(&c)), From: "default"}
		if node, ok := d.places[k.path]; ok {
			line, _ := place(node)
			o.From = fmt.Sprintf("file %s:%d", name, line)
		}
		all = append(all, o)
	}
	return c, all, nil
}

// Renew gives origins for a Config that was narrowed since: a value that differs comes from the door.
func Renew(origins []Origin, c Config, from string) []Origin {
	out := slices.Clone(origins)
	for i, k := range schema().keys {
		if now := render(k.field(&c)); now != out[i].Value {
			out[i].Value, out[i].From = now, from
		}
	}
	return out
}

// ShowText lists origins in columns, those that are not defaults first.
func ShowText(origins []Origin) string {
	var b strings.Builder
	width := 0
	for _, o := range origins {
		width = max(width, len(o.Key))
	}
	for _, defaults := range []bool{false, true} {
		for _, o := range origins {
			if (o.From == "default") == defaults {
				fmt.Fprintf(&b, "%-*s  %s  (%s)\n", width, o.Key, o.Value, o.From)
			}
		}
	}
	return b.String()
}
