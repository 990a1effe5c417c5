package secrets

import (
	"sort"
	"strings"
	"unicode/utf16"
)

// Bounds on what is undone: how often, and how much text all undoing may bring forth.
const (
	maxDepth   = 3
	minEncoded = 20
)

// view is one reading of a file, or of parts of it.
type view struct {
	text  string
	via   string
	marks []mark // offset → line, rising; nil: the text has the file's own lines
	loose bool   // the pieces of a list were joined: what an assignment means is no longer certain
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
	budget := 4*len(data) + 1<<16
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
	if p := hidden(v.text); len(p) > 0 {
		out = append(out, v.replace("hidden characters removed", p))
	}
	if p := seams(v.text); len(p) > 0 {
		out = append(out, v.replace("literals joined", p))
	}
	if p := listSeams(v.text); len(p) > 0 {
		next := v.replace("list joined", p)
		next.loose = true
		out = append(out, next)
	}
	if p := escapes(v.text); len(p) > 0 {
		out = append(out, v.replace("escapes decoded", p))
	}
	return append(out, decodeRuns(v)...)
}

// piece is a part of a text that is read as something else.
type piece struct {
	from, to int
	as       string
}

// around is how much of the text beside a piece its new reading takes in: more than a credential is long.
const around = 300

// replace reads pieces anew. What lies far from every piece is left out: it has been read already.
func (v view) replace(via string, pieces []piece) view {
	next := view{via: join(v.via, via), loose: v.loose}
	var b strings.Builder
	counted, line := 0, 1
	put := func(from, to int) {
		if v.marks != nil {
			line = v.line(from)
		} else {
			line += strings.Count(v.text[counted:from], "\n")
			counted = from
		}
		next.marks = append(next.marks, mark{b.Len(), line})
		b.WriteString(v.text[from:to])
	}
	at := 0
	for _, p := range pieces {
		switch gap := p.from - at; {
		case at == 0 && gap > around:
			put(p.from-around, p.from)
		case gap > 2*around:
			put(at, at+around)
			b.WriteString("\n\n") // an end for what stands before it
			put(p.from-around, p.from)
		default:
			put(at, p.from)
		}
		b.WriteString(p.as)
		at = p.to
	}
	put(at, min(len(v.text), at+around))
	next.text = b.String()
	return next
}

func join(a, b string) string {
	if a == "" || a == b {
		return b
	}
	return a + ", " + b
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
