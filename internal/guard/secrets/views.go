package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/url"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds on what is undone: how often, and how much text all undoing may bring forth.
const (
	maxDepth   = 3
	minEncoded = 20
)

// view is one reading of a file.
type view struct {
	text  string
	via   string
	marks []mark // offset → line, rising; nil: the text has the file's own lines
}

type mark struct{ offset, line int }

func (v view) line(at int) int {
	from, line := 0, 1
	if i := sort.Search(len(v.marks), func(i int) bool { return v.marks[i].offset > at }); i > 0 {
		from, line = v.marks[i-1].offset, v.marks[i-1].line
	}
	return line + strings.Count(v.text[from:at], "\n")
}

// views are the file as it is and everything that undoing simple encodings makes of it.
func views(data []byte) []view {
	text, via := decodeUTF16(data)
	out := []view{{text: text, via: via}}
	if via != "" {
		out = append(out, view{text: string(data)})
	}
	budget := 8*len(data) + 1<<16
	from := 0
	for range maxDepth {
		upTo := len(out)
		for _, v := range out[from:upTo] {
			for _, next := range undo(v) {
				if budget -= len(next.text); budget < 0 {
					return out
				}
				out = append(out, next)
			}
		}
		if from = upTo; from == len(out) {
			break
		}
	}
	return out
}

// undo makes every reading that is one step away from v.
func undo(v view) []view {
	var out []view
	for _, step := range []struct {
		name string
		find func(string) []piece
	}{
		{"hidden characters removed", hidden},
		{"literals joined", joins},
		{"escapes decoded", escapes},
	} {
		if pieces := step.find(v.text); len(pieces) > 0 {
			out = append(out, v.replace(step.name, pieces))
		}
	}
	return append(out, decodeRuns(v)...)
}

// piece is a part of a text that is read as something else.
type piece struct {
	from, to int
	as       string
}

func (v view) replace(via string, pieces []piece) view {
	next := view{via: join(v.via, via)}
	var b strings.Builder
	at, line, counted := 0, 1, 0
	lineAt := func(offset int) int {
		if v.marks != nil {
			return v.line(offset)
		}
		line += strings.Count(v.text[counted:offset], "\n")
		counted = offset
		return line
	}
	for _, p := range pieces {
		next.marks = append(next.marks, mark{b.Len(), lineAt(at)})
		b.WriteString(v.text[at:p.from])
		next.marks = append(next.marks, mark{b.Len(), lineAt(p.from)})
		b.WriteString(p.as)
		at = p.to
	}
	next.marks = append(next.marks, mark{b.Len(), lineAt(at)})
	b.WriteString(v.text[at:])
	next.text = b.String()
	return next
}

func join(a, b string) string {
	if a == "" || a == b {
		return b
	}
	return a + ", " + b
}

// hidden are characters that print as nothing between the letters of a value.
func hidden(text string) []piece {
	var out []piece
	for i, r := range text {
		if r == 0 || r >= 0xAD && (unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r)) {
			out = append(out, piece{i, i + utf8.RuneLen(r), ""})
		}
	}
	return out
}

// A value cut into literals: "a" + "b", 'a' . 'b', "a" "b", a backslash at the end of a line, a list that is joined.
var (
	seam     = regexp.MustCompile("[\"'`][ \\t]*(?:\\r?\\n[ \\t]*)?(?:[+.&~]|\\.\\.|<>|\\|\\||\\\\)?[ \\t]*(?:\\r?\\n[ \\t]*)?[frbu]?[\"'`]|\\\\\\r?\\n[ \\t]*")
	listSeam = regexp.MustCompile("[\"'`][ \\t\\r\\n]*,[ \\t\\r\\n]*[\"'`]")
)

func joins(text string) []piece {
	var out []piece
	for _, m := range seam.FindAllStringIndex(text, -1) {
		out = append(out, piece{m[0], m[1], ""})
	}
	if strings.Contains(text, "join") || strings.Contains(text, "Join") || strings.Contains(text, "concat") {
		for _, m := range listSeam.FindAllStringIndex(text, -1) {
			out = append(out, piece{m[0], m[1], ""})
		}
		sort.Slice(out, func(i, j int) bool { return out[i].from < out[j].from })
		out = apart(out)
	}
	return out
}

// apart drops pieces that overlap an earlier one.
func apart(ps []piece) []piece {
	out, end := ps[:0], 0
	for _, p := range ps {
		if p.from >= end {
			out = append(out, p)
			end = p.to
		}
	}
	return out
}

var (
	escape    = regexp.MustCompile(`(?i)\\x[0-9a-f]{2}|\\u00[0-9a-f]{2}|\\u\{[0-9a-f]{2}\}|%[0-9a-f]{2}|&#x?[0-9a-f]{2,4};|\\[0-3][0-7]{2}`)
	byteArray = regexp.MustCompile(`(?i)(?:0x[0-9a-f]{2}|\b(?:[3-9][0-9]|1[01][0-9]|12[0-6]))(?:\s*,\s*(?:0x[0-9a-f]{2}|(?:[3-9][0-9]|1[01][0-9]|12[0-6])\b)){15,}`)
	oneByte   = regexp.MustCompile(`(?i)0x[0-9a-f]{2}|[0-9]+`)
)

func escapes(text string) []piece {
	var out []piece
	if strings.ContainsAny(text, `\%&`) {
		for _, m := range escape.FindAllStringIndex(text, -1) {
			if r, ok := unescape(text[m[0]:m[1]]); ok {
				out = append(out, piece{m[0], m[1], r})
			}
		}
	}
	if strings.Contains(text, ",") {
		for _, m := range byteArray.FindAllStringIndex(text, -1) {
			var b []byte
			for _, n := range oneByte.FindAllString(text[m[0]:m[1]], -1) {
				v, err := strconv.ParseUint(n, 0, 8)
				if err != nil {
					continue
				}
				b = append(b, byte(v))
			}
			out = append(out, piece{m[0], m[1], `"` + string(b) + `"`})
		}
		sort.Slice(out, func(i, j int) bool { return out[i].from < out[j].from })
		out = apart(out)
	}
	return out
}

// unescape reads one escape; only printable ASCII is of interest.
func unescape(s string) (string, bool) {
	switch {
	case s[0] == '&':
		s = html.UnescapeString(s)
	case s[0] == '%':
		s, _ = url.PathUnescape(s)
	case s[1] >= '0' && s[1] <= '3':
		n, err := strconv.ParseUint(s[1:], 8, 8)
		if err != nil {
			return "", false
		}
		s = string(rune(n))
	default:
		n, err := strconv.ParseUint(strings.Trim(s[2:], "{}"), 16, 16)
		if err != nil {
			return "", false
		}
		s = string(rune(n))
	}
	return s, len(s) == 1 && s[0] >= ' ' && s[0] <= '~'
}

// decodeRuns reads long runs of base64 and hex.
func decodeRuns(v view) []view {
	var out []view
	runs(v.text, func(from, to int) {
		run := strings.Map(func(r rune) rune {
			if r == '\n' || r == '\r' || r == ' ' || r == '\t' {
				return -1
			}
			return r
		}, v.text[from:to])
		for _, d := range []struct {
			via    string
			decode func(string) (string, bool)
		}{{"hex", decodeHex}, {"base64", decodeBase64}} {
			if plain, ok := d.decode(run); ok {
				out = append(out, view{text: plain, via: join(v.via, d.via), marks: []mark{{0, v.line(from)}}})
				break
			}
		}
	})
	return out
}

// runs finds stretches of base64's alphabet, over line ends too when the lines are long.
func runs(text string, found func(from, to int)) {
	for i := 0; i < len(text); {
		if !inBase64(text[i]) {
			i++
			continue
		}
		from, lineFrom := i, i
		for i < len(text) {
			if inBase64(text[i]) {
				i++
				continue
			}
			next := i
			for next < len(text) && (text[next] == '\n' || text[next] == '\r' || text[next] == ' ' || text[next] == '\t') {
				next++
			}
			if i-lineFrom < 48 || next == i || !strings.ContainsRune(text[i:next], '\n') || next == len(text) || !inBase64(text[next]) {
				break
			}
			i, lineFrom = next, next
		}
		if i-from >= minEncoded {
			found(from, i)
		}
	}
}

func inBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '_' || c == '-' || c == '='
}

func decodeHex(run string) (string, bool) {
	if len(run)%2 != 0 {
		return "", false
	}
	b, err := hex.DecodeString(run)
	if err != nil {
		return "", false
	}
	return printable(b)
}

func decodeBase64(run string) (string, bool) {
	// NAME=value and --data=value: what stands before an inner `=` is not part of the run.
	run = strings.TrimRight(run, "=")
	run = run[strings.LastIndexByte(run, '=')+1:]
	if len(run) < minEncoded {
		return "", false
	}
	enc := base64.RawStdEncoding
	if strings.ContainsAny(run, "-_") {
		enc = base64.RawURLEncoding
	}
	b, err := enc.DecodeString(run[:len(run)-boolInt(len(run)%4 == 1)])
	if err != nil {
		return "", false
	}
	return printable(b)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// printable takes decoded bytes that are a text; anything else was no encoding of one.
func printable(b []byte) (string, bool) {
	if s, via := decodeUTF16(b); via != "" {
		b = []byte(s)
	}
	odd := 0
	for _, c := range b {
		if (c < ' ' || c > '~') && c != '\n' && c != '\r' && c != '\t' {
			odd++
		}
	}
	return string(b), len(b) > 0 && odd*10 <= len(b)
}

// decodeUTF16 reads text in UTF-16 with or without a byte-order mark; via is "" when it is none.
func decodeUTF16(data []byte) (text, via string) {
	big, ok := utf16Order(data)
	if !ok {
		return string(data), ""
	}
	units := make([]uint16, 0, len(data)/2)
	for i := 0; i+1 < len(data); i += 2 {
		lo, hi := data[i], data[i+1]
		if big {
			lo, hi = hi, lo
		}
		units = append(units, uint16(hi)<<8|uint16(lo))
	}
	return strings.TrimPrefix(string(utf16.Decode(units)), "\ufeff"), "utf-16"
}

func utf16Order(data []byte) (big, ok bool) {
	if len(data) >= 2 && data[0] == 0xFE && data[1] == 0xFF {
		return true, true
	}
	if len(data) >= 2 && data[0] == 0xFF && data[1] == 0xFE {
		return false, true
	}
	var zeros [2]int
	head := data[:min(len(data), 4096)]
	for i, c := range head {
		if c == 0 {
			zeros[i%2]++
		}
	}
	half := len(head) / 2
	return zeros[0] > zeros[1], half >= 8 && max(zeros[0], zeros[1]) > half*3/4 && min(zeros[0], zeros[1]) < half/4
}
