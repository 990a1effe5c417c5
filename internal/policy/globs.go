package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
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
//   - Folded sets compare as [Fold] does, so that no other spelling of a protected name passes. A wide
//     form of *, ?, [, ], { or } in a pattern of theirs stands for any one character.
type Globs struct {
	fold     bool
	exact    *Globs            // of a folded set: the same patterns as they stand
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
	if fold {
		g.exact = &Globs{literals: map[string]string{}, names: map[string]string{}}
	}
	for i, p := range patterns {
		if problem := check(p); problem != "" {
			return Globs{}, &PatternError{Index: i, Pattern: p, Problem: problem}
		}
		g.add(p)
		if fold {
			g.exact.add(p)
		}
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
	if !g.fold {
		return g.match(path)
	}
	folded := Fold(path)
	if pattern, ok := g.match(folded); ok || folded == path {
		return pattern, ok
	}
	// Folding joins and splits characters, so that "?" or a class may miss what it matched as written.
	return g.exact.match(path)
}

func (g Globs) match(path string) (pattern string, ok bool) {
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
