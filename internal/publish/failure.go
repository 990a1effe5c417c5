package publish

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
)

// ErrMoved: the branch holds commits that are not ours, or is gone. Nothing was overwritten.
var ErrMoved = errors.New("the branch is not where the run left it")

// Step is where publishing stopped.
type Step string

// The steps.
const (
	StepAim         Step = "choose the branch"
	StepCheck       Step = "check the request"
	StepSign        Step = "sign the branch"
	StepPush        Step = "push the branch"
	StepPullRequest Step = "open the pull request"
)

// PushError is a push that failed, as a Pusher tells it.
type PushError struct {
	// Output is what git and the server printed, line by line; empty when nothing was sent.
	Output string
	Next   string // what to do where Output is empty
	Err    error
}

func (e *PushError) Error() string { return e.Err.Error() }
func (e *PushError) Unwrap() error { return e.Err }

// Failure is why a proved commit is not published: exit code 6, terminal publish_failed. It wraps
// ErrMoved or one of forge's kinds where the cause is one.
type Failure struct {
	Step   Step
	Branch string
	Commit string // the proved commit, which is kept
	Kept   string // the ref it is kept on, "" when the record names none
	Pushed string // the branch that holds it all the same, "" when it was not pushed
	// Signing is whether it was signed, nil where that was not asked for or not come to.
	Signing *evidence.Signing
	Next    string // what a person clicks or runs
	Err     error
}

// Reason is the failure in one sentence, for the record.
func (f *Failure) Reason() string {
	s := fmt.Sprintf("%s: %s", f.Step, f.cause())
	if f.Branch != "" && !strings.Contains(s, f.Branch) {
		s = fmt.Sprintf("%s %s: %s", f.Step, f.Branch, f.cause())
	}
	return s
}

// cause is the error without the next step that forge's own text ends with: Next holds it.
func (f *Failure) cause() string {
	var fe *forge.Error
	if errors.As(f.Err, &fe) && fe.Next != "" {
		return strings.TrimSuffix(f.Err.Error(), ". Next: "+fe.Next)
	}
	return f.Err.Error()
}

func (f *Failure) Error() string {
	s := f.Reason()
	switch {
	case f.Pushed != "":
		s += fmt.Sprintf(". The proved commit %s is on branch %s", f.onBranch(), f.Pushed)
	case f.Kept != "" && f.Commit != "":
		s += fmt.Sprintf(". The proved commit %s is kept on %s", f.Commit, f.Kept)
	}
	if f.Next != "" {
		s += ". Next: " + f.Next
	}
	return s
}

func (f *Failure) Unwrap() error { return f.Err }

// Settle writes the failure into a record: its terminal, reason, next step, and the branch that was
// pushed all the same.
func (f *Failure) Settle(r *evidence.Record) {
	r.Finish(evidence.PublishFailed, f.Reason(), f.Next)
	r.Published, r.Signing = nil, nil
	switch {
	case f.Pushed != "":
		r.Published, r.Signing = &evidence.Published{Branch: f.Pushed, Commit: f.onBranch()}, f.Signing
	case f.Signing != nil && !f.Signing.Signed: // what was signed and not pushed is nowhere
		r.Signing = f.Signing
	}
}

// onBranch is the proved commit as it was pushed.
func (f *Failure) onBranch() string {
	if f.Signing != nil && f.Signing.Signed {
		return f.Signing.Pushed.ID
	}
	return f.Commit
}

func (p *Publisher) failure(step Step, q Request, err error, next string) *Failure {
	f := &Failure{Step: step, Branch: q.Target.Branch, Kept: q.Record.Kept, Err: p.Redact.Error(err), Next: next}
	if q.Record.Head != nil {
		f.Commit = q.Record.Head.ID
	}
	if f.Next == "" {
		f.Next = nextOf(err)
	}
	f.Next = p.Redact.String(f.Next)
	return f
}

// nextOf is what the forge client says to do, or a general answer by kind.
func nextOf(err error) string {
	var fe *forge.Error
	if errors.As(err, &fe) && fe.Next != "" {
		return fe.Next
	}
	switch {
	case errors.Is(err, forge.ErrUnauthorized):
		return "the token has expired or was revoked: make a new one, store it as the job's secret, then add the label again"
	case errors.Is(err, forge.ErrForbidden):
		return "give the token write access to contents, issues and pull requests, then add the label again"
	case errors.Is(err, forge.ErrNotFound):
		return "check that the repository still exists under this name and that the token may see it, then add the label again"
	case errors.Is(err, forge.ErrRateLimited):
		return "wait until the forge's rate limit resets, then add the label again"
	case errors.Is(err, forge.ErrUnavailable):
		return "wait until the forge answers again, then add the label again"
	}
	return "mend what the message names, then add the label again"
}

// explainPush lets the forge's client say what a refused push means and what to click: git has no
// error codes for it, and each forge words its refusals in its own way.
func (p *Publisher) explainPush(branch string, err error) (next string, explained error) {
	var fe *forge.Error
	if errors.As(err, &fe) {
		return "", err
	}
	said := err.Error()
	var refused *PushError
	if errors.As(err, &refused) {
		if said = refused.Output; said == "" {
			return refused.Next, err
		}
	}
	explainer, ok := p.Forge.(forge.PushExplainer)
	if !ok {
		return "mend what git's message names, then add the label again", err
	}
	return "", explainer.ExplainPush(branch, said)
}

// pullAdvice says what to click after the branch was pushed and the pull request was refused. The
// page where a person opens it by hand is always among it.
func pullAdvice(err error, kind, web, base, branch string) string {
	byHand := "open it by hand: " + comparePage(kind, web, base, branch)
	switch {
	case errors.Is(err, forge.ErrPullRequestsForbidden) && kind == "gitlab":
		return "the job's own token cannot open merge requests: use a project access token with the api scope, or " + byHand
	case errors.Is(err, forge.ErrPullRequestsForbidden):
		return "tick \"Allow GitHub Actions to create and approve pull requests\" at " + web + "/settings/actions, or " + byHand
	case errors.Is(err, forge.ErrDraftUnsupported):
		return "this repository's plan has no draft pull requests, and a run opens nothing else; " + byHand
	}
	return strings.TrimSuffix(nextOf(err), ".") + "; or " + byHand
}

// comparePage is where a person opens the pull request from branch.
func comparePage(kind, web, base, branch string) string {
	if kind == "gitlab" {
		q := url.Values{"merge_request[source_branch]": {branch}, "merge_request[target_branch]": {base}}
		return web + "/-/merge_requests/new?" + q.Encode()
	}
	return web + "/compare/" + escapePath(base) + "..." + escapePath(branch) + "?expand=1"
}

// escapePath escapes a branch name for an address and keeps its slashes.
func escapePath(branch string) string {
	parts := strings.Split(branch, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
