package gate

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Feedback is what an agent is told about a gate, at most most bytes (at least 200 are used). The first
// and the last failure, the head and the tail of the output stay, and what was left out between them is
// said. It is text the agent's own code printed: data, to be fenced in a prompt.
//
// Of a sealed result, and of one whose output was not kept, it tells name and status, nothing else: no
// exit code, no duration, no detail.
func Feedback(r Result, most int) string {
	name := r.Name
	if name == "" {
		name = string(r.Class)
	}
	if r.Sealed || r.Output == nil {
		return fmt.Sprintf("The gate %q %s.", name, word1(r.Status))
	}
	command := r.Shown
	if command == "" {
		command = typed(r.Argv)
	}
	head := fmt.Sprintf("The gate %q (%s) %s%s after %s.", name, command, word1(r.Status), ending(r), r.Duration.Round(10*time.Millisecond))
	if r.Detail != "" {
		head += " " + strings.ReplaceAll(clean([]byte(r.Detail)), "\n", " ") + "."
	}
	most = max(most, 200)
	if len(head) > most/2 {
		head = cutBytes(head, most/2)
	}
	text := strings.Trim(clean(r.Output), "\n")
	if text == "" {
		return head + " It printed nothing."
	}
	return head + "\n" + excerpt(text, most-len(head)-1)
}

func word1(s Status) string {
	switch s {
	case Passed, Failed:
		return string(s)
	case Broken:
		return "could not run"
	case TimedOut:
		return "did not finish in time"
	case Stopped:
		return "was stopped"
	}
	return string(s)
}

func ending(r Result) string {
	switch {
	case r.Signal != "":
		return " by signal (" + r.Signal + ")"
	case r.Status == Failed:
		return fmt.Sprintf(" with exit code %d", r.ExitCode)
	}
	return ""
}

// failing finds lines that tell of a failure, in the words that test runners and compilers use.
var failing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(\bfail(ed|ure|ures|ing)?\b|\berrors?\b|\bpanic\b|exception|traceback|assert|\bfatal\b|not ok\b|undefined|unexpected|expected|✗|✘|✕|×|❌|^\s*E\s)`)
})

// excerpt chooses lines: head, around the first failure, around the last one, tail.
func excerpt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	lines := strings.Split(text, "\n")
	widest := max(most/6, 80)
	for i, l := range lines {
		if len(l) > widest {
			lines[i] = fmt.Sprintf("%s … [%d bytes of this line left out]", cutBytes(l, widest-60), len(l)-widest+60)
		}
	}
	firstFail, lastFail := -1, -1
	for i, l := range lines {
		if failing().MatchString(l) {
			if firstFail < 0 {
				firstFail = i
			}
			lastFail = i
		}
	}
	const marks = 4 * 60 // room for what says that lines are missing
	room := max(most-marks, most/2)
	keep := make([]bool, len(lines))
	left := room
	// Each part may use its share and what the parts before it did not need.
	left -= mark(lines, keep, 0, 1, room*15/100)
	if firstFail >= 0 {
		left -= mark(lines, keep, max(firstFail-2, 0), 1, room*30/100)
		left -= mark(lines, keep, min(lastFail+2, len(lines)-1), -1, room*25/100)
	}
	mark(lines, keep, len(lines)-1, -1, left)
	return cutBytes(join(lines, keep), most)
}

// mark keeps lines from start in one direction while they fit, and says how many bytes that took.
func mark(lines []string, keep []bool, start, step, budget int) (used int) {
	for i := start; i >= 0 && i < len(lines); i += step {
		if keep[i] {
			continue
		}
		if used+len(lines[i])+1 > budget {
			break
		}
		keep[i] = true
		used += len(lines[i]) + 1
	}
	return used
}

func join(lines []string, keep []bool) string {
	var b strings.Builder
	for i := 0; i < len(lines); {
		if keep[i] {
			b.WriteString(lines[i] + "\n")
			i++
			continue
		}
		from, size := i, 0
		for ; i < len(lines) && !keep[i]; i++ {
			size += len(lines[i]) + 1
		}
		fmt.Fprintf(&b, "[… %d lines, %d bytes left out …]\n", i-from, size)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// cutBytes cuts without tearing a character.
func cutBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:max(most, 0)]
}
