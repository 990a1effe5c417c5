// Package tamper owns the question whether a change made the tests weaker. It must never run them, nor
// judge whether they are right: it compares the texts of before and after.
package tamper

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// File is one changed path with both sides. IDs tell that a file was only moved.
type File struct {
	Path              string
	Before, After     []byte
	Was, Is           bool // the path exists on that side, with content
	BeforeID, AfterID string
}

// Sign is one thing that makes the tests weaker. A weak sign may be honest: it is shown, not held against the change.
type Sign struct {
	Path   string
	Line   int // in the new text, or in the old one of what is gone; 0: none
	Detail string
	Next   string
	Weak   bool
	Lost   bool // a test, or a whole file of tests, is not there any more
	placed bool // it says where tests are, which is honest where there were none
}

// maxText bounds the texts that are read; a longer one is data.
const maxText = 2 << 20

// Comparison gathers the changed files of one candidate. Tests that were moved to another file are
// recognised, so it can only speak when it has seen all files. It is not safe for concurrent use.
type Comparison struct {
	before, after map[string][]test // dialect and name → tests
	skipsBefore   map[string]int
	newSkips      []marker
	gone          []File          // test files without a recognised test, snapshots
	blobs         map[string]bool // new blob ids at test paths
	signs         []Sign
	modules       []string        // folders that got a go.mod
	added         map[string]bool // files that were not there before
	paths         []string        // see Tree
	configs       []File          // new files that a runner takes up
	gradle        []string        // new files in which only Gradle finds tests
	tables        int             // the most cases that a new file beside tests has
}

// New starts a comparison.
func New() *Comparison {
	return &Comparison{before: map[string][]test{}, after: map[string][]test{}, skipsBefore: map[string]int{}, blobs: map[string]bool{}, added: map[string]bool{}}
}

// Tree gives all paths of the candidate, for what one changed file does to others.
func (c *Comparison) Tree(paths []string) { c.paths = paths }

// Add takes in one changed file.
func (c *Comparison) Add(f File) {
	if !f.Was {
		c.added[f.Path] = true
		if path.Base(f.Path) == "go.mod" && path.Dir(f.Path) != "." {
			c.modules = append(c.modules, path.Dir(f.Path)+"/")
		}
	}
	if len(f.Before) > maxText || len(f.After) > maxText {
		f.Before, f.After = nil, nil
	}
	if isTestPath(f.Path) || isSnapshot(f.Path) {
		if f.Is {
			c.blobs[f.AfterID] = true
		}
		c.wholeFile(f)
	}
	if isRunnerConfig(f.Path) {
		c.signs = append(c.signs, compareConfig(f)...)
		if !f.Was {
			c.configs = append(c.configs, f)
		}
	}
	for _, d := range dialects() {
		if d.speaks(f.Path) {
			c.compareFile(d, f)
			if f.Is && (isTestPath(f.Path) || isRunnerConfig(f.Path)) {
				before, bareBefore := d.syntax.mask(string(f.Before))
				after, bareAfter := d.syntax.mask(string(f.After))
				c.signs = append(c.signs, compareLeaves(f, before, after, bareAfter)...)
				c.signs = append(c.signs, compareHooks(f, bareBefore, bareAfter)...)
			}
			return
		}
	}
}

func (c *Comparison) compareFile(d *dialect, f File) {
	var before, after facts
	if f.Was && d.collects(f.Path, true) {
		before = d.read(f.Path, string(f.Before))
	}
	if f.Is && (d.collects(f.Path, f.Was) || c.gradleFinds(d, f)) {
		after = d.read(f.Path, string(f.After))
	}
	for _, t := range before.tests {
		c.before[d.name+" "+t.name] = append(c.before[d.name+" "+t.name], t)
	}
	for _, t := range after.tests {
		c.after[d.name+" "+t.name] = append(c.after[d.name+" "+t.name], t)
	}
	for _, m := range before.markers {
		c.skipsBefore[d.name+m.key()]++
	}
	for _, m := range after.markers {
		m.dialect, m.fileIsNew = d.name, !f.Was
		c.newSkips = append(c.newSkips, m)
	}
	for _, t := range after.again[min(len(before.again), len(after.again)):] {
		c.signs = append(c.signs, Sign{Path: t.path, Line: t.line, Detail: fmt.Sprintf("test %q is defined again, and only the last one runs", t.name), Next: "give it another name"})
	}
	if len(before.tests) > 0 && f.Was && f.Is {
		c.signs = append(c.signs, compareNumbers(f.Path, before.code, after.code)...)
		c.signs = append(c.signs, compareOutside(f.Path, before, after)...)
	}
}

// Signs are all findings, ordered by path and line.
func (c *Comparison) Signs() []Sign {
	out := slices.Clone(c.signs)
	out = append(out, c.missing()...)
	out = append(out, c.weakened()...)
	out = append(out, c.skipped()...)
	out = append(out, c.split()...)
	out = append(out, c.newConfigs()...)
	out = append(out, c.named()...)
	for _, f := range c.gone {
		if !c.blobs[f.BeforeID] {
			out = append(out, c.goneSign(f))
		}
	}
	slices.SortStableFunc(out, func(a, b Sign) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Detail, b.Detail))
	})
	return slices.Compact(out)
}

// split lists folders that became modules of their own: the tests that were there before are no longer part of ./...
func (c *Comparison) split() []Sign {
	var out []Sign
	for _, folder := range c.modules {
		for _, p := range c.paths {
			if strings.HasPrefix(p, folder) && strings.HasSuffix(p, "_test.go") && !c.added[p] {
				out = append(out, Sign{Path: folder + "go.mod", Detail: "a module of its own takes the tests below " + cut(folder) + " out of the run", Next: "take it out"})
				break
			}
		}
	}
	return out
}

const putBack = "put it back and change the code instead"

// missing lists tests that are nowhere any more. A new test of another name never stands for one, unless
// its body is the same.
func (c *Comparison) missing() []Sign {
	fresh := map[string]int{} // bodies of tests whose name is new
	for key, tests := range c.after {
		for _, t := range tests[min(len(tests), len(c.before[key])):] {
			fresh[t.body]++
		}
	}
	var out []Sign
	for _, key := range sorted(c.before) {
		tests := c.before[key]
		for _, t := range tests[min(len(tests), len(c.after[key])):] {
			if fresh[t.body] > 0 {
				fresh[t.body]--
				continue
			}
			out = append(out, Sign{Path: t.path, Line: t.line, Detail: fmt.Sprintf("test %q is gone", t.name), Next: putBack, Lost: true})
		}
	}
	return out
}

// weakened compares tests that are there before and after, in whichever file.
func (c *Comparison) weakened() []Sign {
	var out []Sign
	for _, key := range sorted(c.before) {
		before, after := c.before[key], c.after[key]
		if len(before) == len(after) {
			for i := range before {
				out = append(out, compareTest(before[i], after[i])...)
			}
			continue
		}
		if len(after) > 0 {
			out = append(out, compareTest(sum(before[:min(len(before), len(after))]), sum(after))...)
		}
	}
	return out
}

func compareTest(before, after test) []Sign {
	if before.body == after.body && before.hidden == after.hidden {
		return nil
	}
	sign := func(weak bool, format string, args ...any) []Sign {
		return []Sign{{Path: after.path, Line: after.line, Detail: fmt.Sprintf("test %q: ", after.name) + fmt.Sprintf(format, args...), Next: putBack, Weak: weak}}
	}
	var out []Sign
	if after.asserts < before.asserts {
		out = append(out, sign(false, "%d of %d assertions are gone", before.asserts-after.asserts, before.asserts)...)
	} else if after.asserts-after.weak < before.asserts-before.weak {
		out = append(out, sign(false, "an exact assertion became a loose one")...)
	}
	if after.rows < before.rows {
		out = append(out, sign(false, "%d of %d table cases are gone", before.rows-after.rows, before.rows)...)
	}
	if total(after.cells) < total(before.cells) && after.rows <= before.rows {
		out = append(out, sign(!shrank(before.cells, after.cells), "values of a table are gone")...)
	}
	if after.hidden && !before.hidden {
		out = append(out, sign(false, "it stands where the runner does not collect it")...)
	}
	if after.swallows > before.swallows {
		out = append(out, sign(false, "a failure is caught and ignored")...)
	}
	if after.returns && !before.returns {
		out = append(out, sign(false, "it returns before it checks anything")...)
	}
	if len(out) == 0 && !slices.Equal(before.expects, after.expects) {
		out = append(out, sign(true, "what it expects was changed")...)
	}
	return out
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
