// Package doctor owns what can be told to be wrong with a set-up before anything is paid for, and how each fault is mended. It must
// never change a repository, nor call a thing right that it did not look at.
package doctor

import (
	"fmt"
	"strings"
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
	if failed == 0 {
		b.WriteString("\nNothing is wrong.\n")
	} else {
		fmt.Fprintf(&b, "\n%d to mend: do what stands behind each →, then run this again.\n", failed)
	}
	return b.String()
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
