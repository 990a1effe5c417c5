package forge

import (
	"errors"
	"fmt"
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
)

// Error is a failed call: what was tried, what the forge said (its message, cut to 300 characters, without
// control characters), and what a person can do about it.
type Error struct {
	Op     string // "create pull request in octo/shop"
	Status int    // HTTP status, 0 when there was no answer
	Said   string
	Next   string
	Kind   error
}

func (e *Error) Error() string {
	s := e.Op + ": " + e.Kind.Error()
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Said != "" {
		s += ": " + e.Said
	}
	if e.Next != "" {
		s += ". Next: " + e.Next
	}
	return s
}

func (e *Error) Unwrap() error { return e.Kind }
