package tamper

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"
)

// test is what one test looks like on one side.
type test struct {
	name, path string
	line       int
	asserts    int            // that can fail
	weak       int            // of these, how many check little (not null, truthy)
	rows       int            // table cases, one a line
	cells      map[string]int // values of its tables, see cells
	hidden     bool           // it stands where the runner does not collect it
	swallows   int            // places that catch a failed assertion
	returns    bool           // the first statement leaves it
	expects    []string       // the assertions' own lines, sorted
	body       string         // digest of everything but the name and layout
}

func sum(ts []test) test {
	out := ts[0]
	out.cells = maps.Clone(out.cells)
	for _, t := range ts[1:] {
		out.asserts += t.asserts
		out.weak += t.weak
		out.rows += t.rows
		for words, n := range t.cells {
			out.cells[words] += n
		}
		out.hidden = out.hidden || t.hidden
		out.swallows += t.swallows
		out.returns = out.returns || t.returns
		out.expects = append(slices.Clone(out.expects), t.expects...)
		out.body += t.body
	}
	slices.Sort(out.expects)
	return out
}

// facts of one file on one side.
type facts struct {
	tests   []test
	markers []marker
	outside test // what stands before the first test: shared tables and helpers
	code    string
	again   []test // tests that another one of the same name stands in for
}

// segment is a stretch of a file that belongs to one test.
type segment struct {
	name     string
	from, to int
	def      int // where the definition itself begins, after annotations
}

func (d *dialect) read(path, text string) facts {
	code, bare := d.syntax.mask(text)
	f := facts{code: code}
	at := newlines(text)
	segments := d.segments(code, bare)
	end := len(text)
	if len(segments) > 0 {
		end = segments[0].from
	}
	f.outside = d.measure(segment{from: 0, to: end}, path, code, bare, at)
	for _, s := range segments {
		f.tests = append(f.tests, d.measure(s, path, code, bare, at))
	}
	if d.last {
		f.again = again(f.tests, bare, segments)
	}
	f.markers = d.markers(path, text, code, bare, segments, at)
	return f
}

// again lists the tests behind one of the same name at the same depth: the runner knows the last one only.
func again(tests []test, bare string, segments []segment) []test {
	seen := map[string]bool{}
	var out []test
	scope := ""
	for i, t := range tests {
		if t.hidden { // in a function, of which each has names of its own
			continue
		}
		start := strings.LastIndexByte(bare[:segments[i].def], '\n') + 1
		if j := strings.LastIndex(bare[:start], "\nclass "); j >= 0 && width(bare[start:segments[i].def]) > 0 {
			scope = lineAt(bare, j+1)
		} else {
			scope = ""
		}
		key := scope + " " + t.name
		if seen[key] {
			out = append(out, t)
		}
		seen[key] = true
	}
	return out
}

// segments cuts the file at each test's definition, annotations and decorators included.
func (d *dialect) segments(code, bare string) []segment {
	var out []segment
	for _, def := range d.defs {
		in := bare
		if def.inStrings {
			in = code
		}
		for _, m := range def.re.FindAllStringSubmatchIndex(in, -1) {
			name := ""
			for g := 4; g+1 < len(m) && name == ""; g += 2 {
				if m[g] >= 0 {
					name = in[m[g]:m[g+1]]
				}
			}
			// A definition inside a string or a comment is none.
			if m[2] < 0 || bare[m[2]:m[3]] != in[m[2]:m[3]] {
				continue
			}
			s := segment{name: name, from: annotated(bare, m[2]), def: m[2]}
			if def.head != nil && !def.head.MatchString(code[s.from:m[1]]) {
				continue
			}
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b segment) int { return a.from - b.from })
	out = slices.CompactFunc(out, func(a, b segment) bool { return a.def == b.def })
	for i := range out {
		out[i].to = len(code)
		if i+1 < len(out) {
			out[i].to = out[i+1].from
		}
	}
	return out
}

// maxAnnotation is how many lines above a definition may belong to it.
const maxAnnotation = 300

// annotated walks up from a definition over the annotations that belong to it. An annotation may
// run over several lines inside its brackets.
func annotated(bare string, at int) int {
	start := strings.LastIndexByte(bare[:at], '\n') + 1
	depth := 0
	for end, n := start, 0; end > 0 && n < maxAnnotation; n++ {
		from := strings.LastIndexByte(bare[:end-1], '\n') + 1
		line := strings.TrimSpace(bare[from : end-1])
		for _, c := range line {
			switch c {
			case ')', ']', '}':
				depth++
			case '(', '[', '{':
				depth--
			}
		}
		mark := strings.HasPrefix(line, "@") || strings.HasPrefix(line, "#[") || strings.HasPrefix(line, "[")
		if depth <= 0 && mark {
			start, depth = from, 0
		} else if depth <= 0 && line != "" {
			break
		}
		end = from
	}
	return start
}

func (d *dialect) measure(s segment, path, code, bare string, at lines) test {
	c, b := code[s.from:s.to], bare[s.from:s.to]
	t := test{name: s.name, path: path, line: at.line(s.def), rows: rows(b)}
	t.asserts = count(d.asserts, b) - count(d.vacuous, c)
	t.weak = count(d.loose, c)
	t.swallows = count(d.swallow, b)
	t.cells = cells(b)
	t.hidden = s.name != "" && d.hides != nil && d.hides(bare, s.def)
	t.returns = leavesAtOnce.MatchString(bare[s.def:s.to])
	for _, m := range find(d.asserts, b) {
		t.expects = append(t.expects, squeeze(lineAt(c, m[0])))
	}
	slices.Sort(t.expects)
	t.body = fmt.Sprintf("%x", sha256.Sum256([]byte(squeeze(strings.Replace(c, s.name, "", 1)))))
	return t
}

// row is a line that is one element of a table: bracketed from its first to its last character.
var row = regexp.MustCompile(`(?m)^[ \t]*(?:[\w"'` + "`" + `.]+[ \t]*(?:\(|:|=>)?[ \t]*)?[\[({].*[\])}][ \t]*,[ \t]*\r?$`)

func rows(bare string) int { return count(row, bare) }

// leavesAtOnce: the first statement of a body is a return.
var leavesAtOnce = regexp.MustCompile(`^[^\n{]*(?:\{|:|\bdo\b)\s*(?:(?:"""|'''|")\s*(?:"""|'''|")\s*)?(?:return|next)[ \t]*(?:;|\r?\n|\}|None\b|true\b|Ok\(\(\)\))`)

func count(re *regexp.Regexp, s string) int { return len(find(re, s)) }

func find(re *regexp.Regexp, s string) [][]int {
	if re == nil {
		return nil
	}
	return re.FindAllStringIndex(s, -1)
}

func lineAt(s string, at int) string {
	from := strings.LastIndexByte(s[:at], '\n') + 1
	to := len(s)
	if i := strings.IndexByte(s[at:], '\n'); i >= 0 {
		to = at + i
	}
	return s[from:to]
}

// squeeze makes layout irrelevant.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

func cut(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if len(s) > 120 {
		s = strings.ToValidUTF8(s[:120], "") + "…"
	}
	return s
}

// compareOutside looks at tables and helpers that stand before the first test.
func compareOutside(path string, before, after facts) []Sign {
	b, a := before.outside, after.outside
	total := func(f facts) (rows, asserts int) {
		rows, asserts = f.outside.rows, f.outside.asserts
		for _, t := range f.tests {
			rows += t.rows
			asserts += t.asserts
		}
		return rows, asserts
	}
	rowsBefore, assertsBefore := total(before)
	rowsAfter, assertsAfter := total(after)
	var out []Sign
	// What left this place may have gone into a test of the same file.
	if a.rows < b.rows && rowsAfter < rowsBefore {
		out = append(out, Sign{Path: path, Detail: fmt.Sprintf("%d table cases are gone", b.rows-a.rows), Next: putBack})
	}
	if a.asserts < b.asserts && assertsAfter < assertsBefore {
		out = append(out, Sign{Path: path, Detail: fmt.Sprintf("%d assertions of a helper are gone", b.asserts-a.asserts), Next: putBack})
	}
	return out
}

// lines are the offsets of a text's line ends.
type lines []int

func newlines(text string) lines {
	var out lines
	for i := range len(text) {
		if text[i] == '\n' {
			out = append(out, i)
		}
	}
	return out
}

// line is the number, from 1, of the line that holds an offset.
func (l lines) line(at int) int { return 1 + sort.SearchInts(l, at) }
