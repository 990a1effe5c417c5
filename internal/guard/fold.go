package guard

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// fold maps names that some file system takes for one file onto one string: Unicode normal forms (APFS,
// HFS+), case (APFS, NTFS), code points that HFS+ ignores, and the dots, blanks and stream names that NTFS
// drops at the end of a component. It is only ever used to compare.
func fold(name string) string {
	if plainLower(name) {
		return name
	}
	name = strings.Map(foldRune, norm.NFKC.String(strings.Map(dropIgnored, name)))
	parts := strings.Split(norm.NFC.String(name), "/")
	for i, p := range parts {
		parts[i] = trimNTFS(p)
	}
	return strings.Join(parts, "/")
}

// plainLower is the fast path of nearly every name.
func plainLower(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 0x80, c >= 'A' && c <= 'Z', c == ':', c == ' ':
			return false
		case c == '.' && (i+1 == len(s) || s[i+1] == '/'):
			return false
		}
	}
	return true
}

// foldRune takes the smallest rune of the simple-folding orbit, so that the Kelvin sign, k and K are one.
func foldRune(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return unicode.ToLower(least)
}

// dropIgnored removes what HFS+ ignores in names (git's own list in utf8.c, next_hfs_char, names the same
// ones) and everything else that prints as nothing.
func dropIgnored(r rune) rune {
	if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
		return -1
	}
	return r
}

func trimNTFS(component string) string {
	if i := strings.IndexByte(component, ':'); i > 0 {
		component = component[:i]
	}
	if trimmed := strings.TrimRight(component, ". "); trimmed != "" {
		return trimmed
	}
	return component
}
