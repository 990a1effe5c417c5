// Package doctor owns what can be told to be wrong with a set-up before anything is paid for, and how each fault is mended. It must
// never change a repository, nor call a thing right that it did not look at.
package doctor

import (
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/inert"
)

// Status is how a check came out.
type Status string

// Statuses. Noted: nothing stops a run, and somebody should know. Unproved: it could not be looked at here.
const (
	OK       Status = "ok"
	Noted    Status = "noted"
	Unproved Status = "unproved"
	Failed   Status = "failed"
)

// Finding is the outcome of one check.
type Finding struct {
	Check  string `json:"check"` // a name that stays the same: "workflow.permissions"
	Status Status `json:"status"`
	Text   string `json:"text"`          // what was found
	Fix    string `json:"fix,omitempty"` // the click, the line or the command that mends it
}

// Report is what was found, in the order of the checks.
type Report struct {
	Findings []Finding `json:"findings"`
	Right    bool      `json:"right"` // nothing failed
}

// Add keeps findings.
func (r *Report) Add(all ...Finding) {
	r.Findings = append(r.Findings, all...)
	r.Right = true
	for _, f := range r.Findings {
		r.Right = r.Right && f.Status != Failed
	}
}

// Text is the report for people, one finding a line and its fix below it.
func (r Report) Text() string {
	var b strings.Builder
	failed := 0
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-8s %-22s %s\n", f.Status, f.Check, oneLine(f.Text))
		if f.Fix != "" && f.Status != OK {
			fmt.Fprintf(&b, "%-8s %-22s → %s\n", "", "", oneLine(f.Fix))
		}
		if f.Status == Failed {
			failed++
		}
	}
	verdict := r.verdict()
	if b.WriteString("\n" + strings.ToUpper(verdict[:1]) + verdict[1:]); failed > 0 {
		b.WriteString(": do what stands behind each → of a failed line, then run this again")
	}
	b.WriteString(".\n")
	return b.String()
}

// Markdown is the report as a job's summary: what failed first, then what is only known here, then the rest.
func (r Report) Markdown() string {
	var b strings.Builder
	b.WriteString("### Proctor doctor: " + r.verdict() + "\n\n| | check | found | what mends it |\n|---|---|---|---|\n")
	for _, s := range []Status{Failed, Noted, Unproved, OK} {
		for _, f := range r.Findings {
			if f.Status == s {
				fix := f.Fix
				if s == OK {
					fix = ""
				}
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Status, inert.Cell(f.Check, maxCell), inert.Cell(f.Text, maxCell), inert.Cell(fix, maxCell))
			}
		}
	}
	return b.String()
}

// maxCell bounds what one finding takes of a summary, in characters.
const maxCell = 1000

// verdict is one sentence without its stop.
func (r Report) verdict() string {
	n := map[Status]int{}
	for _, f := range r.Findings {
		n[f.Status]++
	}
	switch {
	case n[Failed] > 0:
		return fmt.Sprintf("%d to mend", n[Failed])
	case n[Unproved] > 0:
		return fmt.Sprintf("nothing is wrong; %d could not be looked at", n[Unproved])
	}
	return "nothing is wrong"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func ok(check, text string) Finding { return Finding{Check: check, Status: OK, Text: text} }

func failed(check, fix, format string, args ...any) Finding {
	return Finding{Check: check, Status: Failed, Text: fmt.Sprintf(format, args...), Fix: fix}
}

func noted(check, fix, format string, args ...any) Finding {
	return Finding{Check: check, Status: Noted, Text: fmt.Sprintf(format, args...), Fix: fix}
}

// whole gives one finding that all is well where a check found nothing.
func whole(check, text string, found []Finding) []Finding {
	if len(found) == 0 {
		return []Finding{ok(check, text)}
	}
	return found
}
