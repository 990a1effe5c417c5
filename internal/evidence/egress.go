package evidence

import (
	"fmt"
	"slices"
	"strings"
)

// maxNamed is how many hosts of a kind a sentence names.
const maxNamed = 5

// summary is one sentence about what went out and what was kept in: "3 hosts allowed (a:443, …), 2 refused (b:80)".
// code marks up a host.
func (e *Egress) summary(code func(string) string) string {
	kinds := []struct{ verdict, word string }{{"allowed", "allowed"}, {"refused", "refused"}, {"failed", "allowed and not reached"}}
	var said []string
	for _, k := range kinds {
		var names []string
		for _, h := range e.Hosts {
			name := h.Host
			if h.Port != 0 {
				name = fmt.Sprintf("%s:%d", h.Host, h.Port)
			}
			if h.Verdict == k.verdict && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			continue
		}
		for i := range names[:min(len(names), maxNamed)] {
			names[i] = code(names[i])
		}
		named := strings.Join(names[:min(len(names), maxNamed)], ", ")
		if more := len(names) - maxNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		if len(said) == 0 {
			said = append(said, fmt.Sprintf("%s %s (%s)", count(len(names), "host"), k.word, named))
			continue
		}
		said = append(said, fmt.Sprintf("%d %s (%s)", len(names), k.word, named))
	}
	if len(said) == 0 {
		return fmt.Sprintf("nothing was asked for; %s listed", count(len(e.Allow), "host"))
	}
	s := strings.Join(said, ", ")
	if e.Cut > 0 {
		s += fmt.Sprintf("; %s to further hosts are not counted", count(e.Cut, "request"))
	}
	return s
}
