package git

import (
	"strings"
)

// Ignore rules are read from the tree's own .gitignore files and nowhere else: not from info/exclude,
// not from a user's file. They are matched here rather than by a git process because the directory is
// hostile: a fifo named .gitignore makes git wait for ever, a directory it may not read makes it leave
// files out and exit 0, and git's own stat cache has seconds where the harness needs nanoseconds. Tests
// compare every decision with git's.

// maxIgnoreFile is the largest .gitignore that has an effect.
const maxIgnoreFile = 1 << 20

// ignoreRule is one line of a .gitignore.
type ignoreRule struct {
	pattern  string
	literal  int // length of the prefix without wildcards
	negated  bool
	dirOnly  bool
	baseName bool // no slash: matched against the last component
}

// ignoreFile is a .gitignore in effect for its directory and below. The chain goes to the root.
type ignoreFile struct {
	up    *ignoreFile
	base  string // "" or "dir/"
	rules []ignoreRule
}

// parseIgnore reads the lines of a .gitignore.
func parseIgnore(content string) []ignoreRule {
	var rules []ignoreRule
	content = strings.TrimPrefix(content, "\uFEFF")
	for line := range strings.SplitSeq(content, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		line = strings.TrimSuffix(line, "\r")
		// Git handles lines as C strings.
		line, _, _ = strings.Cut(line, "\x00")
		if rule, ok := parseIgnoreLine(trimTrailingSpaces(line)); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}

func parseIgnoreLine(p string) (ignoreRule, bool) {
	var r ignoreRule
	if strings.HasPrefix(p, "!") {
		r.negated = true
		p = p[1:]
	}
	if strings.HasSuffix(p, "/") {
		r.dirOnly = true
		p = p[:len(p)-1]
	}
	if p == "" {
		return r, false
	}
	r.baseName = !strings.Contains(p, "/")
	if !r.baseName {
		p = strings.TrimPrefix(p, "/")
	}
	r.pattern = p
	r.literal = len(p)
	if i := strings.IndexAny(p, `*?[\`); i >= 0 {
		r.literal = i
	}
	return r, true
}

// trimTrailingSpaces drops unescaped spaces at the end; tabs stay.
func trimTrailingSpaces(line string) string {
	end := len(line)
	spaces := false
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			if !spaces {
				spaces, end = true, i
			}
		case '\\':
			i++
			if i >= len(line) {
				return line
			}
			spaces, end = false, len(line)
		default:
			spaces, end = false, len(line)
		}
	}
	return line[:end]
}

func (r *ignoreRule) matches(path, base string, dir bool) bool {
	if r.dirOnly && !dir {
		return false
	}
	if r.baseName {
		name := path[strings.LastIndexByte(path, '/')+1:]
		switch {
		case r.literal == len(r.pattern):
			return name == r.pattern
		case r.literal == 0 && r.pattern[0] == '*' && !strings.ContainsAny(r.pattern[1:], `*?[\`):
			return strings.HasSuffix(name, r.pattern[1:])
		}
		return wildmatch(r.pattern, name, false)
	}
	name := path[len(base):]
	// Git compares the literal prefix first and starts the matcher behind it, which makes "a**/b"
	// match across slashes. Users' files rely on what git does.
	if !strings.HasPrefix(name, r.pattern[:r.literal]) {
		return false
	}
	return wildmatch(r.pattern[r.literal:], name[r.literal:], true)
}

// ignores decides for a path whose parent directory is not ignored: the deepest file's last matching
// rule wins.
func (f *ignoreFile) ignores(path string, dir bool) bool {
	for ; f != nil; f = f.up {
		for i := len(f.rules) - 1; i >= 0; i-- {
			if f.rules[i].matches(path, f.base, dir) {
				return !f.rules[i].negated
			}
		}
	}
	return false
}
