package exam

import (
	"strings"
	"testing"
)

func TestATextMadeToBringTheReaderDownIsHeldAgainstTheChange(t *testing.T) {
	t.Parallel()
	// The control is the last case: many commands side by side are no depth. Without the bound the first case ends the
	// process: its recursion needs more than the gigabyte of stack that Go allows.
	for name, c := range map[string]struct{ unit, want string }{
		"arithmetic":    {"$((", "too deeply nested"},
		"substitutions": {"$(", "too deeply nested"},
		"subshells":     {"(", "too deeply nested"},
		"braces":        {"{ ", "too deeply nested"},
		"conditions":    {"if ", "too deeply nested"},
		"cases":         {"case a in a) ", "too deeply nested"},
		"documents":     {"<<a ", "too deeply nested"},
		"quotes":        {"\"$(", "too deeply nested"},
		"expansions":    {"${a:-", "too deeply nested"},
		"negations":     {"! ", "too deeply nested"},
		"signs":         {"-", "too deeply nested"},
		"backquotes":    {"`", "too deeply nested"},
		"lists":         {"a && ", "too deeply nested"},
		"commands":      {"echo a\n", ""},
	} {
		for _, n := range []int{90, maxOpeners / 3, 100_000} {
			text := strings.Repeat(c.unit, n)
			if strings.Contains(c.unit, "-") {
				text = "$((" + text
			}
			if len(text) > 1<<20 {
				text = text[:1<<20]
			}
			signs := compare(repo{"tests/run.sh": "set -e\nrun a\n"}, shell("sh tests/run.sh"), "tests/run.sh", "set -e\nrun a\n"+text)
			if len(signs) == 0 || n == 100_000 && c.want != "" && !strings.Contains(signs[0].Detail, c.want) {
				t.Errorf("%s × %d: %v", name, n, signs)
			}
		}
	}
	huge := strings.Repeat("a: b c\nb: a\n", 60_000)
	if signs := compare(repo{"Makefile": makeText}, shell("make test"), "Makefile", makeText+huge); len(signs) != 0 {
		t.Errorf("rules beside the gate's: %v", signs)
	}
	if signs := compare(repo{"Makefile": makeText}, shell("make test"), "Makefile", makeText+strings.ReplaceAll(huge, "a:", "test:")); len(signs) == 0 || len(signs) > 20 {
		t.Errorf("%d signs", len(signs))
	}
}
