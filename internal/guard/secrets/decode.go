package secrets

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

func sortPieces(ps []piece) {
	slices.SortStableFunc(ps, func(a, b piece) int { return cmp.Compare(a.from, b.from) })
}

// decodeRuns reads long runs of base64 and hex.
func decodeRuns(v view) []view {
	var out []view
	runs(v.text, func(from, to int) {
		run := v.text[from:to]
		if strings.ContainsAny(run, " \t\r\n") {
			run = strings.Map(func(r rune) rune {
				if r == '\n' || r == '\r' || r == ' ' || r == '\t' {
					return -1
				}
				return r
			}, run)
		}
		plain, via := decodeHex(run), "hex"
		if plain == "" {
			plain, via = decodeBase64(run), "base64"
		}
		if plain != "" {
			out = append(out, view{text: plain, via: join(v.via, via), marks: []mark{{0, v.line(from)}}})
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
			next := blanks(text, i, 1)
			if i-lineFrom < 48 || !strings.Contains(text[i:next], "\n") || next == len(text) || !inBase64(text[next]) {
				break
			}
			i, lineFrom = next, next
		}
		if i-from >= minEncoded {
			found(from, i)
		}
	}
}

func inBase64(c byte) bool { return isWord(c) || c == '+' || c == '/' || c == '-' || c == '=' }

func decodeHex(run string) string {
	if len(run)%2 != 0 || strings.Trim(run[:2], "0123456789abcdefABCDEF") != "" {
		return ""
	}
	b, err := hex.DecodeString(run)
	if err != nil {
		return ""
	}
	return printable(b)
}

func decodeBase64(run string) string {
	// NAME=value and --data=value: what stands before an inner `=` is not part of the run.
	run = strings.TrimRight(run, "=")
	run = run[strings.LastIndexByte(run, '=')+1:]
	if len(run) < minEncoded {
		return ""
	}
	enc := base64.RawStdEncoding
	if strings.ContainsAny(run, "-_") {
		enc = base64.RawURLEncoding
	}
	if len(run)%4 == 1 {
		run = run[:len(run)-1]
	}
	// Most runs are words and paths: the first bytes tell.
	if b, err := enc.DecodeString(run[:min(len(run)/4*4, 32)]); err != nil || printable(b) == "" {
		return ""
	}
	b, err := enc.DecodeString(run)
	if err != nil {
		return ""
	}
	return printable(b)
}

// printable takes decoded bytes that are a text; anything else was no encoding of one.
func printable(b []byte) string {
	if s, via := decodeUTF16(b); via != "" {
		b = []byte(s)
	}
	odd := 0
	for _, c := range b {
		if (c < ' ' || c > '~') && c != '\n' && c != '\r' && c != '\t' {
			odd++
		}
	}
	if odd*10 > len(b) {
		return ""
	}
	return string(b)
}
