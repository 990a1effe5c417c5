package forge

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Kinds of failure that a caller decides on. An *Error wraps exactly one of them.
var (
	ErrNotFound     = errors.New("not found")
	ErrUnauthorized = errors.New("the token was not accepted")
	ErrForbidden    = errors.New("the token is not allowed to do this")
	ErrInvalid      = errors.New("the forge refused the request")
	ErrConflict     = errors.New("it exists already or has changed")
	ErrRateLimited  = errors.New("rate limited")
	ErrUnavailable  = errors.New("the forge could not be reached or did not answer")
	// ErrPullRequestsForbidden: "GitHub Actions is not permitted to create or approve pull requests".
	ErrPullRequestsForbidden = errors.New("opening pull requests is not permitted to this token")
	// ErrDraftUnsupported: drafts need another plan.
	ErrDraftUnsupported = errors.New("draft pull requests are not supported in this repository")
	// ErrTooLarge: a body or an input is over the forge's limit; nothing was sent.
	ErrTooLarge = errors.New("over the forge's size limit")
	// ErrArchived: the repository is read-only.
	ErrArchived = errors.New("the repository is archived")
	// ErrMoved: the issue or repository lives elsewhere now; Said names where.
	ErrMoved = errors.New("it was moved")
)

// Error is a failed call: what was tried, what the forge said (its message, cut to 300 characters, without
// control characters), and what a person can do about it.
type Error struct {
	Op     string // "create pull request in octo/shop"
	Status int    // HTTP status, 0 when there was no answer
	Said   string
	Next   string
	Kind   error
	// RetryAt is when the forge will listen again, for ErrRateLimited; zero when it did not say.
	RetryAt time.Time
}

func (e *Error) Error() string {
	s := e.Op + ": " + e.Kind.Error()
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Said != "" {
		s += ": " + strings.TrimRight(e.Said, ".")
	}
	if e.Next != "" {
		s += ". Next: " + e.Next
	}
	return s
}

func (e *Error) Unwrap() error { return e.Kind }

// Said makes what a forge answered safe to show: one line, no control characters, at most 300
// characters. It is still foreign text: a Markdown view must escape it.
func Said(parts ...string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.Join(parts, "; ") {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar {
			r = ' '
		}
		if n++; n > maxSaid {
			b.WriteString("…")
			break
		}
		b.WriteRune(r)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

const maxSaid = 300

// TellingLine picks what a person can use from git's stderr: it prefers the server's own error, then the rejected ref, then the last line.
func TellingLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for _, mark := range []string{"remote: error:", "[remote rejected]", "[rejected]", "remote: ", "fatal:"} {
		for _, l := range lines {
			if _, after, ok := strings.Cut(l, mark); ok && strings.TrimSpace(after) != "" {
				return strings.TrimSpace(strings.TrimPrefix(mark, "remote: ") + after)
			}
		}
	}
	return lines[len(lines)-1]
}
