package evidence

import (
	"fmt"

	"github.com/proctor-ci/proctor/internal/inert"
)

// Refusal is the answer to a command that became no run: why, and what to do next.
func Refusal(r Record) string {
	t := r.terminal()
	return fmt.Sprintf("**%s.** %s\n\n**Next:** %s\n", t.Title, inert.Text(r.Reason, maxDetail), inert.Text(nextOr(r.Next, t), maxDetail))
}

// Explanation tells why a run ended, from what was saved of its end.
func Explanation(run, terminal, reason, next string, tick int) string {
	t, ok := FindTerminal(terminal)
	if !ok {
		t = Terminal{Title: terminal, Meaning: "This ending is unknown to this version."}
	}
	return fmt.Sprintf("Run %s ended %s after %s: **%s**\n\n%s\n\n**Why:** %s\n\n**Next:** %s\n",
		inert.Code(run, 100), inert.Code(terminal, 40), count(tick, "tick"), t.Title, t.Meaning, inert.Text(reason, maxDetail), inert.Text(nextOr(next, t), maxDetail))
}

func nextOr(next string, t Terminal) string {
	if next != "" {
		return next
	}
	return t.Next
}
