package scaffold

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/detect"
)

// Setting is one key of the configuration with its value, as YAML in flow style, and where it comes from.
type Setting struct {
	Key, Value, From string
}

// Detected are the settings that detect proposes, and what it assumes or did not find, one line each.
func Detected(p detect.Proposal) (settings []Setting, assumed []string) {
	cfg, assumed := p.Config()
	_, defaults, err := config.Origins("", nil)
	if err != nil {
		panic(err) // no file is no fault
	}
	for _, o := range config.Renew(defaults, cfg, "detected") {
		if o.From == "detected" {
			settings = append(settings, Setting{Key: o.Key, Value: o.Value, From: o.From})
		}
	}
	return settings, assumed
}

// Merge lets the later settings count more where both name a key.
func Merge(all ...[]Setting) []Setting {
	var out []Setting
	for _, list := range all {
		for _, s := range list {
			out = slices.DeleteFunc(out, func(was Setting) bool { return was.Key == s.Key })
			out = append(out, s)
		}
	}
	order := map[string]int{}
	for i, k := range config.Keys() {
		order[k] = i
	}
	slices.SortStableFunc(out, func(a, b Setting) int { return cmp.Compare(order[a.Key], order[b.Key]) })
	return out
}

// Starter is a configuration file with those settings, as text that a person goes on from. comments become its head.
func Starter(settings []Setting, comments []string) []byte {
	var b strings.Builder
	b.WriteString("# yaml-language-server: $schema=" + config.SchemaID + "\n")
	b.WriteString("# Everything not written here has a default: proctor config explain lists the keys.\n")
	for _, c := range comments {
		b.WriteString("# " + strings.Join(strings.Fields(c), " ") + "\n")
	}
	b.WriteString("version: 1\n")
	if !slices.ContainsFunc(settings, named("gates.iteration")) {
		settings = Merge(settings, []Setting{{Key: "gates.iteration", Value: `"" # the command that tests this repository; without one nothing can be proved`}})
	}
	writeSection(&b, "", settings)
	if !slices.ContainsFunc(settings, named("gates.acceptance.run")) {
		b.WriteString(heldOutHint)
	}
	return []byte(b.String())
}

const heldOutHint = `# Tests that the agent never sees, run in a pristine checkout before anything is published. Below gates:
#   acceptance: {run: "make acceptance", sealed: ["tests/acceptance/**"]}
`

func named(key string) func(Setting) bool { return func(s Setting) bool { return s.Key == key } }

// writeSection writes the settings below a dotted path, sections in the order of their first key.
func writeSection(b *strings.Builder, path string, settings []Setting) {
	indent, prefix := "", ""
	if path != "" {
		indent, prefix = strings.Repeat("  ", strings.Count(path, ".")+1), path+"."
	}
	done := map[string]bool{}
	for _, s := range settings {
		rest, below := strings.CutPrefix(s.Key, prefix)
		if !below {
			continue
		}
		name, _, deeper := strings.Cut(rest, ".")
		switch {
		case done[name]:
		case deeper:
			done[name] = true
			fmt.Fprintf(b, "%s%s:\n", indent, name)
			writeSection(b, prefix+name, settings)
		default:
			done[name] = true
			fmt.Fprintf(b, "%s%s: %s\n", indent, name, s.Value)
		}
	}
}
