package prompt

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// newMarker draws what stands around data. It is drawn anew for each prompt, since the agent has
// seen the last one, and it occurs in none of the texts.
func newMarker(random io.Reader, parts []*part) (string, error) {
	if random == nil {
		return "", errors.New("no source of random bytes for the markers")
	}
	for range 3 {
		var b [16]byte
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return "", fmt.Errorf("draw a marker: %w", err)
		}
		mark := hex.EncodeToString(b[:])
		if !occurs(parts, mark) {
			return mark, nil
		}
	}
	return "", errors.New("three markers in a row occur in the data; the source of random bytes is broken")
}

func occurs(parts []*part, mark string) bool {
	for _, p := range parts {
		for _, s := range p.sections {
			if strings.Contains(s.text, mark) || strings.Contains(s.label, mark) || strings.Contains(s.intro, mark) {
				return true
			}
		}
	}
	return false
}

// renderParts writes all data, each text between its markers.
func renderParts(parts []*part, mark string) string {
	var b strings.Builder
	for _, p := range parts {
		if len(p.sections) == 0 {
			continue
		}
		b.WriteString(p.heading + "\n\n")
		for _, s := range p.sections {
			if s.intro != "" {
				b.WriteString(s.intro + "\n\n")
			}
			if s.text == "" {
				continue
			}
			fmt.Fprintf(&b, "----- %s begin: %s -----\n%s\n----- %s end -----\n", mark, s.label, s.text, mark)
			if s.total > 0 {
				fmt.Fprintf(&b, "(Cut to size: %d of %d bytes are shown.)\n", len(s.text), s.total)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// wordJoiner is drawn as nothing and joins what stands around it.
const wordJoiner = "\u2060"

// defuse puts a word joiner behind every @ that something follows. Agents' command lines take
// "@path" for "read this file into the prompt", in quotes and code too and outside the work tree;
// none does with U+2060 in between. Visible text has no such character of its own, so that it means
// one thing only, and the prompt says what.
func defuse(s string) string {
	if !strings.ContainsRune(s, '@') {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(s[i])
		if s[i] == '@' && i+1 < len(s) && !strings.ContainsRune(" \t\n", rune(s[i+1])) {
			b.WriteString(wordJoiner)
		}
	}
	return b.String()
}

// defuseParts defuses all that others wrote, and tells whether there was anything to defuse.
func defuseParts(parts []*part) bool {
	found := false
	for _, p := range parts {
		for i := range p.sections {
			s := &p.sections[i]
			found = found || strings.Contains(s.text+s.intro+s.label, "@")
			s.text, s.intro, s.label = defuse(s.text), defuse(s.intro), defuse(s.label)
		}
	}
	return found
}

// shrink cuts parts until all fit, the least needed first; each keeps its share. What was cut is named.
func (p *Prompt) shrink(parts []*part, room int) {
	const overhead = 200 // markers, and what is said about a cut
	for _, pt := range parts {
		if len(pt.sections) > 0 {
			room -= len(pt.heading) + 60
		}
	}
	size := func(pt *part) int {
		n := 0
		for _, s := range pt.sections {
			n += len(s.text) + len(s.intro) + len(s.label) + overhead
		}
		return n
	}
	excess := -room
	for _, pt := range parts {
		excess += size(pt)
	}
	for _, i := range []int{1, 2, 4, 3, 5, 0} { // comments, instructions, plan, feedback, requests, goal
		if excess <= 0 {
			return
		}
		pt := parts[i]
		have := size(pt)
		target := max(have-excess, room*pt.share/100)
		if target >= have {
			continue
		}
		p.fit(pt, target, overhead)
		excess -= have - size(pt)
	}
}

// fit brings one part to about target bytes.
func (p *Prompt) fit(pt *part, target, overhead int) {
	order := make([]int, len(pt.sections))
	for i := range order {
		order[i] = i
		if pt.newest {
			order[i] = len(order) - 1 - i
		}
	}
	kept := map[int]bool{}
	for _, i := range order {
		s := &pt.sections[i]
		fixed := len(s.intro) + len(s.label) + overhead
		total := len(s.text)
		allowed := target - fixed
		if total > 0 && allowed < min(total, 200) {
			p.Cut = append(p.Cut, Cut{Part: cutName(pt, s), Shown: 0, Total: total})
			continue
		}
		kept[i] = true
		if total > allowed {
			s.text, s.total = cutText(s.text, allowed, s.ends), total
			p.Cut = append(p.Cut, Cut{Part: cutName(pt, s), Shown: len(s.text), Total: total})
		}
		target -= len(s.text) + fixed
	}
	var left []section
	for i, s := range pt.sections {
		if kept[i] {
			left = append(left, s)
		}
	}
	if n := len(pt.sections) - len(left); n > 0 {
		pt.heading += fmt.Sprintf(" %d of %d are left out for their length.", n, len(pt.sections))
	}
	pt.sections = left
}

func cutName(pt *part, s *section) string {
	if s.label == "" {
		return pt.name
	}
	return s.label
}

// cutText keeps n bytes of s: its beginning, or its beginning and its end, where test runners print
// the first and the last failure.
func cutText(s string, n int, ends bool) string {
	if len(s) <= n {
		return s
	}
	if !ends {
		return head(s, n)
	}
	const note = "\n[… %d bytes cut here by the harness …]\n"
	half := max((n-len(note)-10)/2, 0)
	first, last := head(s, half), tail(s, half)
	return first + fmt.Sprintf(note, len(s)-len(first)-len(last)) + last
}
