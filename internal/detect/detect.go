// Package detect owns what can be told about a repository from its files alone: its stacks, and the
// gates and setup to propose. It must never run anything, nor call a guess a fact.
package detect

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/config"
)

// Confidence says how much evidence there is.
type Confidence string

// Confidences, strongest first. Sure: the repository says so itself. Likely: it is what the stack's
// tools do by default. Guess: something has to be there, and this is the usual form of it.
const (
	Sure   Confidence = "sure"
	Likely Confidence = "likely"
	Guess  Confidence = "guess"
)

// What a fact is about: keys of the configuration, and two words of this package.
const (
	Iteration  = "gates.iteration"
	Acceptance = "gates.acceptance.run"
	Sealed     = "gates.acceptance.sealed"
	Regression = "gates.regression"
	Setup      = "setup"
	Carry      = "workspace.carry"
	Protected  = "policy.protected"
	HighRisk   = "policy.high_risk"
	Stack      = "stack"    // a stack that is there
	Monorepo   = "monorepo" // several projects in one repository
)

// Fact is one thing that was found, with the files that show it.
type Fact struct {
	About      string // one of the constants above
	Value      string // a command, a pattern, a name
	Stack      string // "go", "node", …; empty for facts about the whole
	Dir        string // "" at the root
	Evidence   []string
	Confidence Confidence
}

// Proposal is what a configuration could say. Unknown is what was looked for and not found, one
// sentence each.
type Proposal struct {
	Facts   []Fact
	Unknown []string
}

// Detect reads the names of the tree's files, and the few that say how the project is built. It
// fails in no case: what cannot be read is not there, or is named in Unknown.
func Detect(fsys fs.FS) Proposal {
	t := list(fsys)
	var p Proposal
	found := t.stacks("")
	nested := t.nested(found)
	if len(found) == 0 {
		found = nested
	}
	tested := withTests(found)
	for _, s := range found {
		// What only a stack without tests needs is not waited for at every proof.
		p.add(s, len(tested) == 0 || slices.ContainsFunc(tested, func(x stack) bool { return x.name == s.name && x.dir == s.dir }))
	}
	p.chooseIteration(t, tested)
	p.layout(t, found, nested)
	p.unknown(t, found)
	return p
}

// stack is one project in one folder.
type stack struct {
	name     string
	dir      string
	evidence []string // what shows the stack
	setup    []command
	test     command // line "" when none is known
	more     []Fact  // further facts, complete
	carry    string
}

// command is a line of shell with what it rests on.
type command struct {
	line       string
	evidence   []string
	confidence Confidence
}

// withTests are the stacks whose tests are known; guesses count only where there is nothing better.
func withTests(found []stack) []stack {
	var known, guessed []stack
	for _, s := range found {
		switch {
		case s.test.line == "":
		case s.test.confidence == Guess:
			guessed = append(guessed, s)
		default:
			known = append(known, s)
		}
	}
	if len(known) == 0 {
		return guessed
	}
	return known
}

func (p *Proposal) add(s stack, setup bool) {
	p.Facts = append(p.Facts, Fact{About: Stack, Value: s.name, Stack: s.name, Dir: s.dir, Evidence: s.evidence, Confidence: Sure})
	for _, c := range s.setup {
		if !setup {
			break
		}
		p.Facts = append(p.Facts, c.fact(Setup, s))
	}
	if s.carry != "" && setup {
		p.Facts = append(p.Facts, Fact{About: Carry, Value: inDir(s.dir, s.carry), Stack: s.name, Dir: s.dir, Evidence: s.evidence, Confidence: Likely})
	}
	p.Facts = append(p.Facts, s.more...)
}

func (c command) fact(about string, s stack) Fact {
	line := c.line
	if s.dir != "" {
		line = "cd " + s.dir + " && " + line
	}
	return Fact{About: about, Value: line, Stack: s.name, Dir: s.dir, Evidence: c.evidence, Confidence: c.confidence}
}

// chooseIteration takes the one stack's tests. With several stacks the project's own word for all of
// them (a test target) is better than any list of ours.
func (p *Proposal) chooseIteration(t *tree, tested []stack) {
	var tests []Fact
	for _, s := range tested {
		tests = append(tests, s.test.fact(Iteration, s))
	}
	runner, hasRunner := t.runner()
	switch {
	case len(tests) == 1:
		p.Facts = append(p.Facts, tests[0])
	case hasRunner:
		p.Facts = append(p.Facts, runner)
	case len(tests) > 1:
		all := Fact{About: Iteration, Confidence: Guess}
		var lines []string
		for _, f := range tests {
			line := f.Value
			if f.Dir != "" {
				line = "(" + line + ")"
			}
			lines = append(lines, line)
			all.Evidence = append(all.Evidence, f.Evidence...)
		}
		all.Value = strings.Join(lines, " && ")
		p.Facts = append(p.Facts, all)
	}
}

func (p *Proposal) unknown(t *tree, found []stack) {
	if len(found) == 0 {
		if _, ok := t.runner(); !ok {
			p.Unknown = append(p.Unknown, "no stack was recognised from the files of the repository")
		}
	}
	for _, s := range found {
		if s.test.line == "" {
			p.Unknown = append(p.Unknown, fmt.Sprintf("how the %s project in %s is tested is not written in its files", s.name, where(s.dir)))
		}
	}
	if t.cut {
		p.Unknown = append(p.Unknown, fmt.Sprintf("the repository has more than %d files; the rest was not looked at", maxFiles))
	}
	if len(p.about(Acceptance)) == 0 {
		p.Unknown = append(p.Unknown, "no held-out acceptance gate was found: without one the agent sees all it is judged by")
	}
}

func where(dir string) string {
	if dir == "" {
		return "the root"
	}
	return dir
}

func (p Proposal) about(what string) []Fact {
	var list []Fact
	for _, f := range p.Facts {
		if f.About == what {
			list = append(list, f)
		}
	}
	return list
}

// Config is the default configuration with what was found, and what that assumes, one line each:
// the run says them, since nobody wrote them down. Gates stay empty where nothing was found.
func (p Proposal) Config() (config.Config, []string) {
	c := config.Default()
	var assumed []string
	take := func(about string, use func(Fact)) {
		for _, f := range p.about(about) {
			use(f)
			how := map[Confidence]string{Sure: "by ", Likely: "likely, by ", Guess: "a guess, by "}[f.Confidence]
			assumed = append(assumed, fmt.Sprintf("%s: %s (%s%s)", about, f.Value, how, strings.Join(f.Evidence, ", ")))
		}
	}
	take(Iteration, func(f Fact) { c.Gates.Iteration = config.Shell(f.Value) })
	take(Setup, func(f Fact) { c.Setup = append(c.Setup, config.Shell(f.Value)) })
	take(Regression, func(f Fact) { c.Gates.Regression = config.Shell(f.Value) })
	take(Acceptance, func(f Fact) { c.Gates.Acceptance.Run = config.Shell(f.Value) })
	if len(c.Gates.Acceptance.Run.Argv) > 0 {
		take(Sealed, func(f Fact) { c.Gates.Acceptance.Sealed = append(c.Gates.Acceptance.Sealed, f.Value) })
	}
	take(Carry, func(f Fact) { c.Workspace.Carry = append(c.Workspace.Carry, f.Value) })
	take(Protected, func(f Fact) { c.Policy.Protected = append(c.Policy.Protected, f.Value) })
	take(HighRisk, func(f Fact) { c.Policy.HighRisk = append(c.Policy.HighRisk, f.Value) })
	c.Workspace.Carry = slices.Compact(c.Workspace.Carry)
	return c, append(assumed, p.Unknown...)
}
