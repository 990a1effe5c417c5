package inert

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean removes what no reader can see: controls, bidi overrides, tag characters, zero-width
// characters and variation selectors, except where a script or an emoji needs them to look as it
// does. Invalid UTF-8 becomes U+FFFD. The result is valid UTF-8 with LF line ends. removed, which may be
// nil, hears of each with its kind and what it said.
func Clean(s string, removed func(kind, what string)) string {
	if plainASCII(s) {
		return s
	}
	if removed == nil {
		removed = func(string, string) {}
	}
	if !utf8.ValidString(s) {
		removed("invalid UTF-8", "")
	}
	rs := []rune(LF(strings.ToValidUTF8(s, "\uFFFD")))
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(rs); i++ {
		r := rs[i]
		if plain(r) {
			b.WriteRune(r)
			continue
		}
		if n := flagSequence(rs[i:]); n > 0 {
			b.WriteString(string(rs[i : i+n]))
			i += n - 1
			continue
		}
		if r == '\u2028' || r == '\u2029' {
			b.WriteByte('\n')
			continue
		}
		kind := hidden(rs, i)
		if kind == "" {
			b.WriteRune(r)
			continue
		}
		if kind == tagKind {
			n := tagRun(rs[i:])
			removed(kind, decodeTags(rs[i:i+n]))
			i += n - 1
			continue
		}
		removed(kind, fmt.Sprintf("U+%04X", r))
	}
	return b.String()
}

// LF makes line ends LF: browsers send CRLF, APIs return either.
func LF(s string) string {
	if strings.ContainsRune(s, '\r') {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	}
	return s
}

// plain is the bulk of the world's letters, in which no invisible character lies: ASCII, Latin, Greek,
// Cyrillic, kana, ideographs and Hangul syllables. It only spares the tables.
func plain(r rune) bool {
	switch {
	case r < 0xA0:
		return r >= ' ' && r < 0x7F || r == '\n' || r == '\t'
	case r < 0x0530:
		return r != 0xAD && r != 0x34F
	}
	return r >= 0x3041 && r <= 0x30FF || r >= 0x4E00 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7A3
}

func plainASCII(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf || c == 0x7f || (c < ' ' && c != '\n' && c != '\t') {
			return false
		}
	}
	return true
}

const (
	tagKind       = "tag character"
	bidiKind      = "bidi control"
	controlKind   = "control character"
	invisibleKind = "invisible character"
	selectorKind  = "variation selector"
)

// hidden names what rs[i] is when it has to go, "" when it stays.
func hidden(rs []rune, i int) string {
	r := rs[i]
	before, after := neighbour(rs, i-1), neighbour(rs, i+1)
	switch {
	case r == '\n' || r == '\t':
		return ""
	case unicode.IsControl(r):
		return controlKind
	case r >= 0xE0000 && r <= 0xE007F:
		return tagKind
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
		return bidiKind
	case r == 0x200E, r == 0x200F, r == 0x061C: // marks that order neighbours; ordinary in right-to-left text
		return unless(rightToLeft(before) || rightToLeft(after), bidiKind)
	case r == 0x200C, r == 0x200D:
		return unless(joins(r, before, after), invisibleKind)
	case r == 0x200B: // marks where a line may break in scripts without blanks
		return unless(unicode.In(before, unbroken...) && unicode.In(after, unbroken...), invisibleKind)
	case unicode.Is(unicode.Variation_Selector, r):
		return unless(selects(r, before), selectorKind)
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return "" // a format character by class, and yet drawn
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), unicode.Is(unicode.Noncharacter_Code_Point, r):
		return invisibleKind
	}
	return ""
}

func unless(needed bool, kind string) string {
	if needed {
		return ""
	}
	return kind
}

func neighbour(rs []rune, i int) rune {
	if i < 0 || i >= len(rs) {
		return -1
	}
	return rs[i]
}

var (
	rightToLeftScripts = []*unicode.RangeTable{unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Samaritan, unicode.Mandaic, unicode.Adlam}
	unbroken           = []*unicode.RangeTable{unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan}
	// joining are scripts whose spelling uses U+200C and U+200D.
	joining = []*unicode.RangeTable{
		unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Mandaic, unicode.Adlam, unicode.Phags_Pa,
		unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu,
		unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan, unicode.Balinese, unicode.Javanese,
	}
)

func rightToLeft(r rune) bool { return r >= 0 && unicode.In(r, rightToLeftScripts...) }

// joins tells whether U+200C or U+200D between two runes belongs to how they are written.
func joins(r, before, after rune) bool {
	if before < 0 {
		return false
	}
	if unicode.In(before, joining...) {
		// At a word's end too: "ه‍" is a letter shown in its joining form.
		return after != 0x200C && after != 0x200D
	}
	return r == 0x200D && emojiPart(before) && emoji(after)
}

// emoji is what can begin an element of a joined sequence.
func emoji(r rune) bool {
	return r >= 0x2190 && unicode.Is(unicode.So, r) || r == 0x2640 || r == 0x2642 || r >= 0x1F000 && r <= 0x1FAFF
}

// emojiPart is what can end one: a picture, a skin tone, or the selector that asks for the picture.
func emojiPart(r rune) bool { return emoji(r) || r == 0xFE0F || r >= 0x1F3FB && r <= 0x1F3FF }

// selects tells whether a variation selector after this base chooses a look: text or picture for
// symbols and keycaps, a registered form for ideographs and a few scripts. A second one never does.
func selects(selector, base rune) bool {
	switch {
	case selector == 0xFE0E || selector == 0xFE0F:
		return emoji(base) || unicode.Is(unicode.S, base) || strings.ContainsRune("0123456789#*©®‼⁉〰〽㊗㊙ℹ", base)
	case selector >= 0xE0100:
		return unicode.Is(unicode.Han, base)
	case selector >= 0xFE00 && selector <= 0xFE0D:
		return unicode.Is(unicode.Han, base) || unicode.Is(unicode.Myanmar, base) || unicode.Is(unicode.Phags_Pa, base) || unicode.Is(unicode.Sm, base)
	}
	return unicode.Is(unicode.Mongolian, base)
}

// flagSequence is the length of one of the three flags that are spelt with tag characters (England,
// Scotland, Wales), 0 when rs does not begin with one.
func flagSequence(rs []rune) int {
	const black = 0x1F3F4
	if len(rs) < 7 || rs[0] != black || rs[6] != 0xE007F {
		return 0
	}
	if slices.Contains([]string{"gbeng", "gbsct", "gbwls"}, decodeTags(rs[1:6])) {
		return 7
	}
	return 0
}

func tagRun(rs []rune) int {
	n := 0
	for n < len(rs) && rs[n] >= 0xE0000 && rs[n] <= 0xE007F {
		n++
	}
	return n
}

// decodeTags spells what the tag characters say.
func decodeTags(rs []rune) string {
	var b strings.Builder
	for _, r := range rs {
		if r >= 0xE0020 && r <= 0xE007E {
			b.WriteRune(r - 0xE0000)
		}
	}
	return b.String()
}
