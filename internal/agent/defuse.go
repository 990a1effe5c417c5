package agent

import (
	"strings"
	"unicode"
)

// wordJoiner is invisible and has no width. Behind an @ it keeps a CLI from taking the word for a path.
const wordJoiner = "\u2060"

// defuse makes a prompt inert for a CLI that interprets prompts: Claude Code attaches the file behind
// an @ by itself, outside the work tree and inside code fences too, and takes a leading slash for a
// command. The text a person reads stays the same. The result is valid UTF-8 without NUL.
func defuse(prompt string) string {
	prompt = clean(prompt)
	var b strings.Builder
	b.Grow(len(prompt) + 64)
	before := ' '
	for _, r := range prompt {
		b.WriteRune(r)
		// Within a word (an address, user@host) an @ stays as it is.
		if r == '@' && !unicode.IsLetter(before) && !unicode.IsDigit(before) {
			b.WriteString(wordJoiner)
		}
		before = r
	}
	out := b.String()
	if first := strings.TrimSpace(out); first != "" && strings.ContainsRune("/-!#@", rune(first[0])) {
		out = "The task follows.\n\n" + out
	}
	return out
}

// clean makes a prompt valid UTF-8 without NUL, which is all that a CLI needs that sends prompts as they are.
func clean(prompt string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(prompt, "\uFFFD"), "\x00", "")
}
