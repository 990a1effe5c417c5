package tamper

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
)

// kind is what must be known besides the words of a mark before it is held against a change.
type kind int

const (
	plain       kind = iota // the words say it all
	condition               // an environment or a platform is asked: what the block holds decides
	slice                   // a part of a table: it may as well be the header that is left out
	replacement             // a name is given another value: it matters where it is a test's
	own                     // it acts on the tests of its own file: it matters where there were some
)

// marker is a place that skips tests or lets only some run.
type marker struct {
	dialect, path, test string
	line                int
	text                string // the trimmed line, at most 120 bytes
	focus, fileIsNew    bool
	kind                kind
	block               string   // of a condition: the code that depends on it
	owner, target       string   // of a replacement: `owner.target = …`
	peers               []string // of an own mark: the tests of the file
}

func (m marker) key() string { return fmt.Sprintf(" %q %q", m.test, m.text) }

func (d *dialect) markers(path, text, code, bare string, segments []segment, at lines) []marker {
	var out []marker
	add := func(re *regexp.Regexp, in string, m marker) {
		if re == nil {
			return
		}
		for _, i := range re.FindAllStringSubmatchIndex(in, -1) {
			// A mark is part of the code; inside a string it is a word.
			if in == code && bare[i[0]] != code[i[0]] {
				continue
			}
			mk := m
			mk.path, mk.line, mk.text = path, at.line(i[0]), cut(squeeze(lineAt(text, i[0])))
			if j := sort.Search(len(segments), func(j int) bool { return segments[j].from > i[0] }); j > 0 {
				mk.test = segments[j-1].name
			}
			d.describe(&mk, in, code, bare, i)
			out = append(out, mk)
		}
	}
	add(d.skip, code, marker{})
	add(d.doubt, code, marker{kind: slice})
	add(d.assigns, code, marker{kind: replacement})
	add(d.focus, code, marker{focus: true})
	raw := marker{}
	if d.name == "go" { // a build constraint
		raw.kind = own
	}
	add(d.skipRaw, text, raw)
	for i := range out {
		if out[i].kind == own {
			for _, s := range segments {
				out[i].peers = append(out[i].peers, s.name)
			}
		}
	}
	return out
}

// describe adds what the kind of a mark asks for. m are the offsets of the match and its groups.
func (d *dialect) describe(mk *marker, in, code, bare string, m []int) {
	switch {
	case mk.kind == replacement:
		for g := 2; g+3 < len(m); g += 4 {
			if m[g+2] >= 0 {
				mk.target = in[m[g+2]:m[g+3]]
				if m[g] >= 0 {
					mk.owner = in[m[g]:m[g+1]]
				}
			}
		}
	case mk.kind == slice && strings.HasPrefix(in[m[0]:], "if"):
		mk.kind, mk.block = condition, d.block(code, bare, m[0])
	case mk.kind == plain && !mk.focus && d.own != nil && d.own.MatchString(in[m[0]:]):
		mk.kind = own
	}
}

// block is the code that depends on the condition that begins at from.
func (d *dialect) block(code, bare string, from int) string {
	start := strings.LastIndexByte(bare[:from], '\n') + 1
	end := from + len(lineAt(bare[from:], 0))
	if d.indented {
		indent := width(bare[start:])
		for end < len(bare) {
			line := lineAt(bare[end+1:], 0)
			if strings.TrimSpace(line) != "" && width(line) <= indent {
				break
			}
			end = min(end+1+len(line), len(bare))
		}
		return code[from:end]
	}
	open := strings.IndexByte(bare[from:end], '{')
	if open < 0 { // one statement, on this line or on the next
		if rest := bare[min(end+1, len(bare)):]; strings.HasSuffix(strings.TrimSpace(bare[from:end]), ")") && rest != "" {
			end += 1 + len(lineAt(rest, 0))
		}
		return code[from:end]
	}
	depth := 0
	for i := from + open; i < len(bare); i++ {
		switch bare[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return code[from : i+1]
			}
		}
	}
	return code[from:]
}

// gives up are statements with which a test ends or a case is passed over, and those that make tests.
var givesUp = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:^|[{;:)])[ \t]*(?:(?:return(?:[ \t]+(?:None|nil|undefined|null|true))?|continue|break)[ \t]*(?:;|\}|\r?$)|(?:describe|it|test|suite)(?:\.\w+)*[ \t]*\()`)
})

// skipped lists skip and focus marks that were not there before, on the same test.
func (c *Comparison) skipped() []Sign {
	left := map[string]int{}
	for k, n := range c.skipsBefore {
		left[k] = n
	}
	// A file that was there keeps its own marks; only what is left may have moved to a new one.
	marks := slices.Clone(c.newSkips)
	slices.SortStableFunc(marks, func(a, b marker) int {
		switch {
		case a.fileIsNew == b.fileIsNew:
			return 0
		case b.fileIsNew:
			return -1
		}
		return 1
	})
	var out []Sign
	for _, m := range marks {
		key := m.dialect + m.key()
		if left[key] > 0 {
			left[key]--
			continue
		}
		if m.kind == replacement && !c.replacesTest(m) {
			continue
		}
		s := Sign{Path: m.path, Line: m.line, Next: "let the test run", Weak: !c.had(m, m.test) && (m.test != "" || m.fileIsNew) || c.mayBeHonest(m)}
		switch {
		case m.focus:
			s.Weak = false // it silences every other test of the file or of the run
			s.Detail = "only some tests run now: " + m.text
		case m.kind == replacement:
			s.Weak = false // whichever test it stands behind
			s.Detail = fmt.Sprintf("test %q is replaced: %s", m.target, m.text)
		case m.test != "":
			s.Detail = fmt.Sprintf("test %q is skipped: %s", m.test, m.text)
		default:
			s.Detail = "tests are skipped: " + m.text
		}
		out = append(out, s)
	}
	return out
}

// had tells whether a test was there before, in whichever file.
func (c *Comparison) had(m marker, name string) bool {
	_, ok := c.before[m.dialect+" "+name]
	return ok
}

// mayBeHonest looks behind marks that everyday code of tests has too.
func (c *Comparison) mayBeHonest(m marker) bool {
	switch m.kind {
	case slice:
		return true
	case condition:
		return !givesUp().MatchString(m.block) && !c.holdsAssertions(m)
	case own:
		return !slices.ContainsFunc(m.peers, func(name string) bool { return c.had(m, name) })
	}
	return false
}

// holdsAssertions tells whether a condition now stands before what the test asserted without one.
func (c *Comparison) holdsAssertions(m marker) bool {
	for _, line := range strings.Split(m.block, "\n")[1:] {
		for _, t := range c.before[m.dialect+" "+m.test] {
			if slices.Contains(t.expects, squeeze(line)) {
				return true
			}
		}
	}
	return false
}

// replacesTest tells a test's name from that of a variable or a field: it is a test's of the change, or an attribute
// of a module or class of tests.
func (c *Comparison) replacesTest(m marker) bool {
	key := m.dialect + " " + m.target
	if m.owner != "self" && m.owner != "cls" && len(c.before[key])+len(c.after[key]) > 0 {
		return true
	}
	return testClass.MatchString(m.owner) || slices.ContainsFunc(c.paths, func(p string) bool {
		return m.owner != "" && isTestPath(p) && strings.TrimSuffix(path.Base(p), path.Ext(p)) == m.owner
	})
}
