package exam

import (
	"maps"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/guard/tamper"
	"github.com/proctor-ci/proctor/internal/pattern"
)

// makeNames are the files that GNU make looks for, first wins
// (www.gnu.org/software/make/manual, "What Name to Give Your Makefile").
var makeNames = []string{"GNUmakefile", "makefile", "Makefile"}

func (e *Exam) make(gateName string, c gate.Call, depth int) {
	dir, file := c.Dir, ""
	var targets []string
	for i := 1; i < len(c.Words); i++ {
		w := c.Words[i]
		value := func() string {
			if i++; i < len(c.Words) {
				return c.Words[i]
			}
			return ""
		}
		switch {
		case w == "-C" || w == "--directory":
			dir = within(dir, value())
		case w == "-f" || w == "--file" || w == "--makefile":
			file = value()
		case w == "-j" || w == "-l" || w == "-o" || w == "-W" || w == "-I":
			if v := value(); w == "-j" && strings.Trim(v, "0123456789") != "" {
				i--
			}
		case strings.HasPrefix(w, "-"), strings.Contains(w, "="), w == "":
		default:
			targets = append(targets, w)
		}
	}
	use := e.makes[dir]
	if use == nil {
		use = &makeUse{gate: gateName}
		for _, n := range makeNames {
			if _, ok := e.files(within(dir, n)); ok && file == "" {
				file = n
			}
		}
		if use.file = within(dir, file); use.file == "" {
			return
		}
		e.makes[dir] = use
	}
	text, ok := e.files(use.file)
	if !ok {
		return
	}
	m := readMakefile(text)
	if len(targets) == 0 && len(m.rules) > 0 {
		targets = []string{m.first()}
	}
	for _, t := range targets {
		if !slices.Contains(use.targets, t) {
			use.targets = append(use.targets, t)
			e.recipes(gateName, m, t, dir, depth)
		}
	}
}

var (
	submake  = pattern.Of(`\$[({]MAKE[)}]`)
	variable = pattern.Of(`\$(?:[({]([\w.]+)[)}]|(\w))`)
)

// recipes follows what the reachable rules run.
func (e *Exam) recipes(gateName string, m makefile, target, dir string, depth int) {
	for _, i := range m.reachable([]string{target}) {
		for _, line := range m.rules[i].recipe {
			line = submake.ReplaceAllString(strings.TrimLeft(line, "\t @+-"), "make")
			line = m.expand(line, 0)
			e.follow(gateName, []string{"sh", "-c", line}, dir, depth+1)
		}
	}
}

// expand puts in what plain assignments say; what it cannot know becomes a variable of the shell, which nobody knows either.
func (m makefile) expand(line string, depth int) string {
	return variable.ReplaceAllStringFunc(line, func(use string) string {
		v := variable.FindStringSubmatch(use)
		name := v[1] + v[2]
		if all := m.values[name]; len(all) == 1 && depth < maxDepth {
			_, value, _ := strings.Cut(all[0], "=")
			return m.expand(strings.TrimSpace(value), depth+1)
		}
		return "$" + name
	})
}

type rule struct {
	targets, needs []string
	head           string
	recipe         []string
	line           int
}

func (r rule) text() string { return squeeze(r.head) + "\n" + strings.Join(r.recipe, "\n") }

// makefile is as much of one as is needed to tell what a target runs.
type makefile struct {
	rules    []rule
	values   map[string][]string // assignments of a variable, in order
	settings []string            // include, define, export, conditionals: what may change anything
}

var (
	assignment = pattern.Of(`^\s*(?:(?:override|export|private)\s+)*([\w.\-%]+)\s*(?:\?|\+|!|:{1,3})?=`)
	ruleHead   = pattern.Of(`^([^\t#=][^=#]*?)\s*&?::?(?:\s|$|[^=])`)
	directive  = pattern.Of(`^\s*(?:-?include|sinclude|define|endef|export|unexport|vpath|ifeq|ifneq|ifdef|ifndef|else|endif|undefine|load|-load|\$\()`)
)

func readMakefile(text []byte) makefile {
	m := makefile{values: map[string][]string{}}
	all := lines(text)
	open := -1
	for i := 0; i < len(all); i++ {
		line, number := all[i], i+1
		for strings.HasSuffix(line, `\`) && i+1 < len(all) {
			i++
			line = strings.TrimSuffix(line, `\`) + " " + strings.TrimLeft(all[i], "\t ")
		}
		switch {
		case strings.HasPrefix(line, "\t") && open >= 0:
			m.rules[open].recipe = append(m.rules[open].recipe, strings.TrimRight(line, " \t"))
		case strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#"):
		case directive.MatchString(line):
			m.settings = append(m.settings, squeeze(line))
		case assignment.MatchString(line):
			name := assignment.FindStringSubmatch(line)[1]
			m.values[name] = append(m.values[name], squeeze(line))
		case ruleHead.MatchString(line):
			m.rules = append(m.rules, readRule(line, number))
			open = len(m.rules) - 1
		default:
			m.settings = append(m.settings, squeeze(line))
		}
	}
	return m
}

func readRule(line string, number int) rule {
	head, inline, hasInline := strings.Cut(line, ";")
	left, right, _ := strings.Cut(head, ":")
	r := rule{targets: strings.Fields(strings.TrimSuffix(left, "&")), needs: strings.Fields(strings.TrimLeft(right, ": ")), head: head, line: number}
	if hasInline {
		r.recipe = append(r.recipe, "\t"+strings.TrimSpace(inline))
	}
	return r
}

// first is the default goal: the first target that does not begin with a dot.
func (m makefile) first() string {
	for _, r := range m.rules {
		for _, t := range r.targets {
			if !strings.HasPrefix(t, ".") && !strings.Contains(t, "%") {
				return t
			}
		}
	}
	return ""
}

// reachable lists the rules that targets need, pattern rules and those that hold for every target included.
func (m makefile) reachable(targets []string) []int {
	by := map[string][]int{} // target → rules
	var always []int         // rules that hold for any target
	for n, r := range m.rules {
		if r.makesAny() {
			always = append(always, n)
		}
		for _, t := range r.targets {
			by[t] = append(by[t], n)
		}
	}
	seen, asked := map[int]bool{}, map[string]bool{}
	var want []string
	take := func(rules []int) {
		for _, n := range rules {
			if !seen[n] {
				seen[n] = true
				want = append(want, m.rules[n].needs...)
			}
		}
	}
	take(always)
	for want = append(want, targets...); len(want) > 0; {
		t := want[len(want)-1]
		if want = want[:len(want)-1]; !asked[t] {
			asked[t] = true
			take(by[t])
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// makesAny: pattern rules, special targets, and names that only make knows.
func (r rule) makesAny() bool {
	for _, t := range r.targets {
		if strings.Contains(t, "%") || strings.HasPrefix(t, ".") && t != ".PHONY" || strings.Contains(t, "$") {
			return true
		}
	}
	return false
}

// steersMake are variables that change how every recipe runs.
var steersMake = []string{"SHELL", ".SHELLFLAGS", "MAKEFLAGS", "MFLAGS", "MAKE", "PATH", ".RECIPEPREFIX", ".DEFAULT_GOAL", "MAKEFILES", "BASH_ENV", "ENV"}

// compareMake holds what the gates' targets run to what it was: rules, the variables in them, and settings that
// could change either. What other targets do is free.
func compareMake(f tamper.File, use *makeUse) []tamper.Sign {
	if !f.Is {
		return []tamper.Sign{sign(f.Path, use.gate, "the Makefile is gone")}
	}
	before, after := readMakefile(f.Before), readMakefile(f.After)
	var out []tamper.Sign
	was, is := before.texts(use.targets), after.texts(use.targets)
	for _, t := range missing(was, is) {
		head, _, _ := strings.Cut(t, "\n")
		out = append(out, sign(f.Path, use.gate, "rule %s that it needs was changed or is gone", short(head)))
	}
	for _, t := range missing(is, was) {
		head, _, _ := strings.Cut(t, "\n")
		out = append(out, sign(f.Path, use.gate, "rule %s would now run for it", short(head)))
	}
	for _, s := range missing(after.settings, before.settings) {
		out = append(out, sign(f.Path, use.gate, "a setting was added that can change any rule: %s", short(s)))
	}
	names := append(slices.Clone(steersMake), before.variables(use.targets)...)
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		if !slices.Equal(before.values[n], after.values[n]) {
			out = append(out, sign(f.Path, use.gate, "variable %s, which its rules use, was changed", n))
		}
	}
	return out
}

// missing lists what is in a and not in b, at most a few: more say no more.
func missing(a, b []string) []string {
	known := map[string]bool{}
	for _, s := range b {
		known[s] = true
	}
	var out []string
	for _, s := range a {
		if !known[s] && len(out) < 5 {
			out = append(out, s)
		}
	}
	return out
}

func (m makefile) texts(targets []string) []string {
	var out []string
	for _, i := range m.reachable(targets) {
		out = append(out, m.rules[i].text())
	}
	return out
}

// variables are the names that reachable rules expand, directly or through others.
func (m makefile) variables(targets []string) []string {
	names := map[string]bool{}
	texts := m.texts(targets)
	for i := 0; i < len(texts); i++ {
		for _, v := range variable.FindAllStringSubmatch(texts[i], -1) {
			if n := v[1] + v[2]; !names[n] {
				names[n] = true
				texts = append(texts, m.values[n]...)
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
