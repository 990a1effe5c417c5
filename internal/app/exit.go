package app

import (
	"context"
	"errors"
	"strings"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// Exit codes that are needed before there is a record; the rest come from evidence's table.
const (
	exitUsage          = 1
	exitInfrastructure = 5
	exitCancelled      = 130
)

// ended is an error that knows its terminal.
type ended struct {
	terminal string
	reason   string
	next     string
	err      error
}

func (e *ended) Error() string { return e.reason }
func (e *ended) Unwrap() error { return e.err }

// usage is a mistake of the user's. Its next step, where the text has one, is told as such and once.
func usage(err error) error {
	reason, next, _ := strings.Cut(err.Error(), ". Next: ")
	return &ended{terminal: evidence.UsageError, reason: reason, next: next, err: err}
}

func refused(reason, next string) error {
	return &ended{terminal: evidence.Refused, reason: reason, next: next}
}

// terminalOf is the one place that maps an error to how the run ended.
func terminalOf(ctx context.Context, err error) *ended {
	var e *ended
	if errors.As(err, &e) {
		return e
	}
	if ctx.Err() != nil {
		return &ended{terminal: evidence.Cancelled, reason: "stopped on request before the loop began", err: err}
	}
	var held *git.HeldError
	if errors.As(err, &held) {
		return &ended{terminal: evidence.Refused, reason: err.Error(), next: "wait for that run to end; it holds the issue's lease", err: err}
	}
	var unenforced *sandbox.UnenforcedError
	if errors.As(err, &unenforced) {
		return &ended{terminal: evidence.Refused, reason: err.Error(), next: "use a runner that can enforce it, or set sandbox.mode to auto and read what is missing in the report", err: err}
	}
	var wrong config.Errors
	if errors.As(err, &wrong) {
		return &ended{terminal: evidence.UsageError, reason: err.Error(), err: err}
	}
	var call *forge.Error
	if errors.As(err, &call) {
		return &ended{terminal: evidence.InternalError, reason: err.Error(), next: call.Next, err: err}
	}
	return &ended{terminal: evidence.InternalError, reason: err.Error(), err: err}
}
