package prompt

import (
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// FeedbackKind says what a Feedback is about.
type FeedbackKind string

// Kinds of feedback. Of ProofFailed the agent hears the name only.
const (
	GateFailed     FeedbackKind = "gate"
	GuardFound     FeedbackKind = "guard"
	ReviewRejected FeedbackKind = "review"
	ProofFailed    FeedbackKind = "proof"
	AgentStopped   FeedbackKind = "agent"
	ItemOpen       FeedbackKind = "plan"
)

// Feedback is one thing that the last tick found.
type Feedback struct {
	Kind     FeedbackKind
	Name     string    // of the gate: "iteration", "acceptance"
	Command  string    // of a gate outside the proof, for people
	Exit     int       // of a gate outside the proof
	TimedOut bool      // the gate, outside the proof
	Output   []byte    // of a gate outside the proof; both ends are kept
	Findings []Finding // of the guard or the judge
	Times    int       // ProofFailed: how often by now; 0 is not told
	Count    string    // ProofFailed: "3 of 7 failed"; empty is not told
	Visible  bool      // ProofFailed: the gate is not a held-out one, so that it runs outside the proof as well
	Detail   string    // AgentStopped: how the call ended; ItemOpen: why
}

// Finding is one reason of the guard or the judge. All of it is untrusted.
type Finding struct {
	Rule   string
	Path   string
	Line   int
	Detail string
	Next   string
}

var countShape = pattern.Of(`^[0-9]{1,3} of [0-9]{1,3} failed$`)

// section writes what the agent hears. Output of the proof is an error of the caller: code of the
// agent ran there beside the sealed files, and could have printed them (INV-27).
func (f Feedback) section() (section, error) {
	name := Inline(f.Name, 60)
	switch f.Kind {
	case GateFailed:
		s := section{label: "output of " + name, text: strings.Trim(terminalText(string(f.Output)), "\n"), ends: true}
		how := fmt.Sprintf("failed with exit code %d", f.Exit)
		if f.TimedOut {
			how = "ran into its time limit and was ended"
		}
		s.intro = fmt.Sprintf("The gate %q (%s) %s.", name, Inline(f.Command, 200), how)
		if s.text == "" {
			s.intro += " It printed nothing."
		}
		return s, nil
	case GuardFound:
		return section{label: "policy findings", intro: "The change breaks rules of the repository. Put these right:", text: findings(f.Findings)}, nil
	case ReviewRejected:
		return section{label: "review findings", intro: "A reviewer of the whole change rejected it for these reasons:", text: findings(f.Findings)}, nil
	case ProofFailed:
		if len(f.Output) > 0 || len(f.Findings) > 0 || f.Detail != "" || f.Command != "" {
			return section{}, fmt.Errorf("build prompt: feedback of the proof's gate %q carries more than its name", name)
		}
		if f.Visible {
			return section{intro: fmt.Sprintf("The gate %q passes where it runs each turn and failed in a pristine checkout of the same commit, of which nothing more is told: something that it needs is ignored, was left by an earlier turn, or is made by nobody.", name)}, nil
		}
		s := section{intro: fmt.Sprintf("In a clean checkout the gate %q failed. It is held out, so nothing more is told.", name)}
		if f.Count != "" {
			// The one form it may have: no text from beside the sealed files comes this way.
			if !countShape.MatchString(f.Count) {
				return section{}, fmt.Errorf("build prompt: feedback of the proof's gate %q counts %q", name, f.Count)
			}
			s.intro += fmt.Sprintf(" Of the held-out gates, %s.", f.Count)
		}
		if f.Times > 0 {
			s.intro += fmt.Sprintf(" This was failure number %d.", f.Times)
		}
		s.intro += " The visible tests do not cover all of the task: read it again and handle the general case."
		return s, nil
	case AgentStopped:
		return section{label: "how it ended", intro: "The call before this one did not end well.", text: Inline(f.Detail, 500)}, nil
	case ItemOpen:
		return section{label: "why the item is open", intro: "The current item of the plan is not done.", text: Inline(f.Detail, 500)}, nil
	}
	return section{}, fmt.Errorf("build prompt: feedback of unknown kind %q", f.Kind)
}

func findings(list []Finding) string {
	var b strings.Builder
	for _, f := range list {
		b.WriteString("- " + Inline(f.Rule, 60))
		if f.Path != "" {
			fmt.Fprintf(&b, " in %s", Inline(f.Path, 300))
			if f.Line > 0 {
				fmt.Fprintf(&b, ":%d", f.Line)
			}
		}
		b.WriteString(": " + Inline(f.Detail, 500))
		if f.Next != "" {
			b.WriteString(" Next: " + Inline(f.Next, 300))
		}
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}
