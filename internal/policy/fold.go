package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold gives the one spelling under which all names are compared that some file system, some tool or a
// reader takes for the same: Unicode's NFKC_Casefold (case and normal forms as on APFS, what HFS+ ignores,
// wide and compatibility forms, which Windows maps onto ASCII where a program asks for its code page) and,
// per name, without NTFS's stream suffix and trailing dots and blanks. It is only ever used to compare.
func Fold(path string) string {
	if isPlain(path) {
		return strings.ToLower(path)
	}
	parts := strings.Split(casefold(path), "/")
	for i, part := range parts {
		parts[i] = trim(part)
	}
	return strings.Join(parts, "/")
}

// trim drops what NTFS drops of a name.
func trim(name string) string {
	if i := strings.IndexByte(name, ':'); i > 0 {
		name = name[:i]
	}
	if t := strings.TrimRight(name, ". "); t != "" {
		return t
	}
	return name
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

// foldPattern folds a pattern name by name and leaves names with wildcards as long as they are: a dot at the
// end of one is meant. What would become a wildcard or a bracket by folding matches any one character.
func foldPattern(p string) string {
	p = casefold(strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf && strings.ContainsAny(norm.NFKC.String(string(r)), "*?[]{}") {
			return '?'
		}
		return r
	}, p))
	if strings.Contains(p, "{") { // alternatives may hold slashes
		return p
	}
	parts := strings.Split(p, "/")
	for i, part := range parts {
		if !hasMeta(part) {
			parts[i] = trim(part)
		}
	}
	return strings.Join(parts, "/")
}

func casefold(s string) string {
	s = norm.NFKC.String(strings.Map(dropIgnorable, s))
	return norm.NFKC.String(cases.Fold().String(s))
}

// dropIgnorable drops what prints as nothing. The code points that HFS+ ignores are among it.
func dropIgnorable(r rune) rune {
	if r >= utf8.RuneSelf && unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
		return -1
	}
	return r
}
