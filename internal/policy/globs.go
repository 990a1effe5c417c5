package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Globs is a compiled list of path patterns. The zero value matches nothing. It is safe for
// concurrent use.
//
// The rules, which are our own so that no library's version changes them:
//
//   - Paths are as in a git tree: from the root, with slashes, without a leading one.
//   - A pattern is anchored at the root: "*.go" is the root's Go files, "**/*.go" all of them.
//   - "*" and "?" match within one name, names that begin with a dot too; "[a-z]" and "{a,b}" work.
//   - "**" stands alone between slashes and matches any number of names, none included.
//   - "x/" is x and everything below it, "x/**" likewise, and so is a pattern whose last name has
//     no wildcard: a list that names a directory means what is in it.
//   - A backslash is an ordinary character; "[*]" is a literal star.
//   - Folded sets compare without case and unicode form, and without the characters and endings that
//     some file systems drop, so that no other spelling of a protected name passes.
type Globs struct {
	fold     bool
	literals map[string]string // whole path or directory → pattern as written
	names    map[string]string // "**/name" → pattern as written
	rest     []glob
}

type glob struct {
	match   string // in doublestar's syntax
	below   string // the same for everything below, "" where it is not wanted
	written string
}

// PatternError is a pattern that cannot be used. Index is its place in the list, from 0.
type PatternError struct {
	Index   int
	Pattern string
	Problem string
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("pattern %d (%q): %s", e.Index+1, e.Pattern, e.Problem)
}

// maxPattern bounds the length of a pattern in bytes.
const maxPattern = 1000

// invalidPath is what Match names for a path that no git tree can hold.
const invalidPath = "(not a path of a git tree)"

// Compile checks and compiles patterns. fold is for sets that forbid; sets that allow compare exactly.
// The error is a *PatternError.
func Compile(patterns []string, fold bool) (Globs, error) {
	g := Globs{fold: fold, literals: map[string]string{}, names: map[string]string{}}
	for i, p := range patterns {
		if problem := check(p); problem != "" {
			return Globs{}, &PatternError{Index: i, Pattern: p, Problem: problem}
		}
		g.add(p)
	}
	return g, nil
}

func check(p string) string {
	switch {
	case p == "" || p == "/":
		return "it is empty: write ** for everything"
	case len(p) > maxPattern:
		return fmt.Sprintf("it is longer than %d bytes", maxPattern)
	case !utf8.ValidString(p) || strings.ContainsRune(p, 0):
		return "it is not valid UTF-8 text"
	case strings.HasPrefix(p, "!"):
		return "a leading ! does not negate: use the allow and deny lists"
	case strings.HasPrefix(p, "/"):
		return "drop the leading slash: patterns start at the root of the repository"
	}
	for _, part := range strings.Split(strings.TrimSuffix(p, "/"), "/") {
		switch {
		case part == "" || part == ".":
			return "it has an empty or . part: write the path as git shows it"
		case part == "..":
			return "it has a .. part: write the path as git shows it"
		case strings.Contains(part, "**") && part != "**":
			return "** must stand alone between slashes: write **/*.go, not **.go"
		}
	}
	if !doublestar.ValidatePattern(escape(p)) {
		return "a [ or { is not closed"
	}
	return ""
}

// escape makes a backslash an ordinary character in doublestar's syntax.
func escape(p string) string { return strings.ReplaceAll(p, `\`, `\\`) }

func (g *Globs) add(written string) {
	p := strings.TrimSuffix(written, "/")
	dir := p != written
	for rest, ok := strings.CutSuffix(p, "/**"); ok && rest != "" && rest != "**"; rest, ok = strings.CutSuffix(p, "/**") {
		p, dir = rest, true
	}
	if g.fold {
		p = foldPattern(p)
	}
	last := p[strings.LastIndexByte(p, '/')+1:]
	dir = dir || !hasMeta(last)
	name, anywhere := strings.CutPrefix(p, "**/")
	switch {
	case !hasMeta(p) && dir:
		put(g.literals, p, written)
	case anywhere && !hasMeta(name) && !strings.Contains(name, "/"):
		put(g.names, name, written)
	default:
		c := glob{match: escape(p), written: written}
		if dir {
			c.below = c.match + "/**"
		}
		g.rest = append(g.rest, c)
	}
}

func put(m map[string]string, key, written string) {
	if _, ok := m[key]; !ok {
		m[key] = written
	}
}

func hasMeta(s string) bool { return strings.ContainsAny(s, "*?[{") }

// Match gives the first kind of pattern that covers path, as it was written. A path that no git tree can
// hold (empty, absolute, with an empty, "." or ".." part) is covered by every folded set and by no other.
func (g Globs) Match(path string) (pattern string, ok bool) {
	if g.empty() {
		return "", false
	}
	if !validPath(path) {
		if g.fold {
			return invalidPath, true
		}
		return "", false
	}
	if g.fold {
		path = Fold(path)
	}
	for end := 0; end <= len(path); {
		next := strings.IndexByte(path[end:], '/')
		start := end
		if next < 0 {
			end = len(path)
		} else {
			end += next
		}
		if p, ok := g.literals[path[:end]]; ok {
			return p, true
		}
		if p, ok := g.names[path[start:end]]; ok {
			return p, true
		}
		end++
	}
	for _, c := range g.rest {
		if doublestar.MatchUnvalidated(c.match, path) || c.below != "" && doublestar.MatchUnvalidated(c.below, path) {
			return c.written, true
		}
	}
	return "", false
}

func (g Globs) empty() bool { return len(g.literals)+len(g.names)+len(g.rest) == 0 }

func validPath(p string) bool {
	if p == "" || strings.ContainsRune(p, 0) {
		return false
	}
	for _, part := range strings.Split(p, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// Fold gives the one spelling under which all names are compared that some file system or tool
// takes for the same: NFC, full case folding, without the characters HFS+ ignores, and per name without
// NTFS's stream suffix and trailing dots and blanks.
func Fold(path string) string {
	if isPlain(path) {
		return strings.ToLower(path)
	}
	folded := norm.NFC.String(cases.Fold().String(norm.NFC.String(strings.Map(dropIgnored, path))))
	parts := strings.Split(folded, "/")
	for i, part := range parts {
		if j := strings.IndexByte(part, ':'); j > 0 {
			part = part[:j]
		}
		if t := strings.TrimRight(part, ". "); t != "" {
			part = t
		}
		parts[i] = part
	}
	return strings.Join(parts, "/")
}

// isPlain: ASCII that no rule of Fold but case touches. Nearly all paths are.
func isPlain(p string) bool {
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c >= utf8.RuneSelf, c == ':':
			return false
		case (c == '.' || c == ' ') && (i+1 == len(p) || p[i+1] == '/'):
			return false
		}
	}
	return true
}

// foldPattern folds a pattern and leaves its wildcards alone: a trailing dot in one is meant.
func foldPattern(p string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(strings.Map(dropIgnored, p))))
}

// dropIgnored drops the code points that HFS+ ignores when it compares names, which git's
// core.protectHFS guards against for .git alone.
func dropIgnored(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff, r == 0x200b, r == 0x2060, r == 0xad:
		return -1
	}
	return r
}
