package forge

import (
	"context"
	"time"
)

// What follows are capabilities beyond Forge. Both clients have all of them; a consumer that needs one
// declares it by asserting the interface, so that a small fake stays small.

// Reaction is an emoji answer to a comment or an issue, by GitHub's name.
type Reaction string

// The reactions the harness gives.
const (
	ReactionSeen     Reaction = "eyes"
	ReactionAccepted Reaction = "rocket"
	ReactionRefused  Reaction = "confused"
)

// Reactor acknowledges a command. Reacting twice is no error.
type Reactor interface {
	// React to a comment on issue or pull request number; commentID 0 means the issue itself.
	React(ctx context.Context, number int, commentID int64, r Reaction) error
}

// Requester asks people to look at a pull/merge request. Unknown names fail the call (ErrInvalid
// with the name), never the pull request.
type Requester interface {
	RequestReviewers(ctx context.Context, number int, logins []string) error
	Assign(ctx context.Context, number int, logins []string) error
}

// Run is one execution of the CI workflow or pipeline.
type Run struct {
	ID         int64
	Title      string // the run's name, which carries the correlation id on GitHub
	Status     string // "queued", "running" or "completed"
	Conclusion string // "success", "failure", "cancelled" or "" while it is not completed
	Ref, SHA   string
	URL        string
	CreatedAt  time.Time
}

// RunFinder answers "did that dispatch arrive?" after an ErrUnavailable.
type RunFinder interface {
	// FindRun is the run of workflow file that was dispatched on branch and carries the correlation id, ErrNotFound when there is
	// none. On GitHub the workflow must print the id in its run-name; on GitLab it is a pipeline variable. A run that something
	// else started, or of another branch, is none, whatever it is called. Only runs created at or after since are looked at, so
	// that the look-up stays one or two pages.
	FindRun(ctx context.Context, file, branch, correlation string, since time.Time) (Run, error)
}

// RunReader looks at one run that somebody names. GitLab's client alone: there FindRun costs a call for each pipeline, and GitHub's lists tell it all.
type RunReader interface {
	// DispatchedRun is the run of that id, ErrNotFound where FindRun could not give it for the same branch, id and time.
	DispatchedRun(ctx context.Context, id int64, branch, correlation string, since time.Time) (Run, error)
}

// PushExplainer turns what a refused `git push` printed into an *Error that says what to click. It
// never runs git: the caller has the output.
type PushExplainer interface {
	// ExplainPush reads output, git's stderr, for a push of branch. It always gives an *Error.
	ExplainPush(branch, output string) error
}

// PullReader reads one pull/merge request, open or not.
type PullReader interface {
	// PullRequest of that number (GitLab's iid), ErrNotFound when there is none.
	PullRequest(ctx context.Context, number int) (PullRequest, error)
}

// Place is where people talk: an issue, or a pull/merge request, which GitLab numbers apart from issues.
type Place struct {
	Number int
	Change bool // a pull or merge request
}

// Talker reads and answers comments where they were written. On GitHub a pull request's conversation is its issue's.
type Talker interface {
	// CommentAt is one comment as it is now, ErrNotFound when it was deleted or stands elsewhere.
	CommentAt(ctx context.Context, at Place, id int64) (Comment, error)
	// Answer writes one comment there; a lost answer does not make it say so twice.
	Answer(ctx context.Context, at Place, body string) (Comment, error)
	// Acknowledge reacts to a comment. Reacting twice is no error.
	Acknowledge(ctx context.Context, at Place, id int64, r Reaction) error
}

// PullCounter counts open work.
type PullCounter interface {
	// OpenPulls are the head branches of the open pull/merge requests whose head is a branch of this repository that begins
	// with prefix. At most the 1,000 newest requests are looked at.
	OpenPulls(ctx context.Context, prefix string) ([]string, error)
}

// LabelLister finds issues by label.
type LabelLister interface {
	// Labelled are the open issues that carry the label, pull requests left out, the oldest first; at most 100.
	Labelled(ctx context.Context, label string) ([]Issue, error)
}
