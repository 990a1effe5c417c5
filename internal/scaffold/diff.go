package scaffold

import (
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/linediff"
)

// around is how many unchanged lines a hunk shows on each side.
const around = 3

// Diff is the change of one file as `patch` and `git apply` read it.
func Diff(path string, was, now []byte) string {
	a, b := linediff.Split(was), linediff.Split(now)
	var out strings.Builder
	fmt.Fprintf(&out, "--- a/%s\n+++ b/%s\n", path, path)
	for _, h := range linediff.Hunks(linediff.Edits(a, b), around) {
		hunk(&out, a, b, h)
	}
	return out.String()
}

func hunk(out *strings.Builder, a, b [][]byte, edits []linediff.Edit) {
	first, last := edits[0], edits[len(edits)-1]
	lead := min(around, first.A)
	tail := min(around, len(a)-last.AEnd)
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(first.A-lead, last.AEnd+tail), span(first.B-lead, last.BEnd+tail))
	at := first.A - lead
	for _, e := range edits {
		lines(out, ' ', a[at:e.A])
		lines(out, '-', a[e.A:e.AEnd])
		lines(out, '+', b[e.B:e.BEnd])
		at = e.AEnd
	}
	lines(out, ' ', a[at:last.AEnd+tail])
}

// span is where a hunk lies: an empty one is named by the line before it.
func span(from, to int) string {
	if from == to {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func lines(out *strings.Builder, mark byte, all [][]byte) {
	for _, l := range all {
		out.WriteByte(mark)
		out.Write(l)
		if len(l) == 0 || l[len(l)-1] != '\n' {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
