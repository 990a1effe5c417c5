package trigger

import (
	"errors"
	"fmt"
	"strconv"
)

// Reason is one stable word for why an event is no trigger. It may be logged and answered.
type Reason string

// Reasons of an Ignored event.
const (
	ReasonEvent      Reason = "event"       // this kind of event is no door of ours
	ReasonAction     Reason = "action"      // right event, other action
	ReasonLabel      Reason = "other_label" // another label than the trigger label was added
	ReasonNoCommand  Reason = "no_command"  // a comment without a command
	ReasonReview     Reason = "no_request"  // a review that asks for no changes
	ReasonSubject    Reason = "subject"     // a note on a commit or a snippet
	ReasonSystemNote Reason = "system_note" // GitLab's own protocol notes
	ReasonSelf       Reason = "own_account" // our own comment or label: never, or two bots talk for ever
	ReasonOtherRun   Reason = "other_run"   // a CI run that carries no correlation id of ours
	ReasonNoIssue    Reason = "no_issue"    // nothing the event points at
)

// Ignored is the answer for an event that was understood and asks for nothing. Detail is for a
// log line: it holds names of labels and actions, quoted and cut, never a title, body or comment.
type Ignored struct {
	Reason Reason
	Detail string
}

func (i *Ignored) Error() string {
	if i.Detail == "" {
		return "nothing to do: " + string(i.Reason)
	}
	return "nothing to do: " + string(i.Reason) + ": " + i.Detail
}

// ErrMalformed marks a body that is not the event it claims to be: no JSON object, wrong types, or
// an event that lacks what every such event has.
var ErrMalformed = errors.New("malformed event")

func ignored(r Reason, format string, args ...any) error {
	return &Ignored{Reason: r, Detail: fmt.Sprintf(format, args...)}
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

// name quotes a forge-side name for a log line: one line, at most 60 bytes of it.
func name(s string) string {
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return strconv.QuoteToASCII(s)
}
