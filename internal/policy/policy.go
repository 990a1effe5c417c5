// Package policy owns the rules: who may ask for a run, which label an issue carries, which paths a
// change may touch. It must never call a forge, read a file or run anything: facts come in, a decision goes out.
package policy

import (
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// Reason is one stable word for a decision. It goes into logs, records and answers.
type Reason string

// Reasons of a Decision.
const (
	ReasonAllowed      Reason = "allowed"
	ReasonSelf         Reason = "own_account"
	ReasonBot          Reason = "bot"
	ReasonRole         Reason = "role"
	ReasonUnknownRole  Reason = "unknown_role"
	ReasonPull         Reason = "pull_request"
	ReasonFork         Reason = "fork"
	ReasonArchived     Reason = "archived"
	ReasonConfidential Reason = "confidential"
	ReasonClosed       Reason = "closed"
	ReasonLocked       Reason = "locked"
	ReasonLabelGone    Reason = "label_gone"
	ReasonStale        Reason = "stale_event"
	ReasonEdited       Reason = "edited"
	ReasonMaxOpen      Reason = "max_open"
	ReasonCommand      Reason = "unknown_command"
	ReasonKind         Reason = "not_a_request"
)

// Decision says whether a run may go on. Text is one sentence for people, with the next step; it
// holds names of accounts and labels, never a title, a body or a comment, and mentions nobody.
type Decision struct {
	Allow  bool
	Reason Reason
	Text   string
}

// Rules are the maintainers' choices. The zero value with a Label lets nobody in: list roles.
type Rules struct {
	Label             string        // the trigger label, "proctor" when empty
	Roles             []forge.Role  // exactly these may ask
	Bots              []int64       // account ids of bots that may ask; their role is checked too
	Self              trigger.Actor // our own account, which never may
	MaxOpen           int           // open agent pull requests allowed at once, 0 for no limit
	AllowConfidential bool          // GitLab confidential issues
	AllowLocked       bool          // GitHub issues whose conversation is locked
}

// DefaultRoles are those that may push.
func DefaultRoles() []forge.Role {
	return []forge.Role{forge.RoleAdmin, forge.RoleMaintain, forge.RoleWrite}
}

// Facts are what the forge's API said just now. A nil pointer was not asked: the rules that need it
// are left to whoever asks later. Role is never optional: the zero Role lets nobody in.
type Facts struct {
	Role       forge.Role
	Issue      *forge.Issue      // the issue as it is now
	LabelEvent *forge.LabelEvent // newest addition of the trigger label
	Archived   bool
	OpenPulls  int // open pull requests of ours in the repository
	// Started is set where the run itself asks: by then the harness has put one of its own labels
	// in the trigger label's place, and a re-run of the job is no new request.
	Started bool
}

// Precheck applies the rules that the event alone can answer, before any API call is paid for. It
// only ever refuses: an allowing answer is not permission, Authorise gives that.
func Precheck(t trigger.Trigger, c Rules) Decision {
	issue := forge.Issue{
		State: t.Issue.State, Locked: t.Issue.Locked, Confidential: t.Issue.Confidential, IsPull: t.Issue.IsPull,
	}
	return first(
		kind(t),
		actor(t, c),
		subject(t, issue, t.Repo.Archived, c),
	)
}

// Authorise decides on a request for a run from what the API says now. The same function decides
// in the webhook and again in the run, which trusts no earlier answer.
func Authorise(t trigger.Trigger, f Facts, c Rules) Decision {
	if d := Precheck(t, c); !d.Allow {
		return d
	}
	issue := forge.Issue{}
	if f.Issue != nil {
		issue = *f.Issue
	}
	return first(
		role(t, f, c),
		subject(t, issue, f.Archived, c),
		label(t, f, c),
		approval(t, f, c),
		room(t, f, c),
	)
}

func first(ds ...Decision) Decision {
	for _, d := range ds {
		if !d.Allow {
			return d
		}
	}
	return allowed
}

var allowed = Decision{Allow: true, Reason: ReasonAllowed, Text: "The request is allowed."}

func refuse(r Reason, format string, args ...any) Decision {
	return Decision{Reason: r, Text: fmt.Sprintf(format, args...)}
}

func (c Rules) label() string {
	if c.Label == "" {
		return trigger.DefaultLabel
	}
	return c.Label
}

// person names an account without mentioning it.
func person(a trigger.Actor) string {
	if a.Login == "" {
		return "The account"
	}
	clean := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r == '[' || r == ']' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' {
			return r
		}
		return '?'
	}, a.Login)
	if len(clean) > 100 {
		clean = clean[:100]
	}
	return "`" + clean + "`"
}
