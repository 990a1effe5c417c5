package inert

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Source is one line of code as it runs: blanks and tabs stay, and what prints as nothing, reorders text or is no
// text is shown by its code wherever it stands, so that what is read is what runs.
func Source(s string) string {
	if plainASCII(s) && !strings.ContainsRune(s, '\n') {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\t':
			b.WriteRune(r)
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point), r == 0x034f:
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}
