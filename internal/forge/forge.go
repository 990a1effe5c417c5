// Package forge owns the words in which the rest of the program speaks with GitHub and GitLab.
// It must never hold a client library's types, nor be asked to run git.
package forge

import (
	"context"
	"time"
)

// Role is what an account may do in the repository, from the forge's permission API. GitLab's
// levels map on the same words: Guest→read, Reporter→triage, Developer→write, Maintainer→maintain, Owner→admin.
type Role string

// Roles in rising order. RoleNone also stands for "the API did not say": no answer means no.
const (
	RoleNone     Role = "none"
	RoleRead     Role = "read"
	RoleTriage   Role = "triage"
	RoleWrite    Role = "write"
	RoleMaintain Role = "maintain"
	RoleAdmin    Role = "admin"
)

// Repository is the one repository a Forge is bound to.
type Repository struct {
	Owner, Name   string
	ID            int64
	DefaultBranch string
	Private       bool
	Archived      bool
	WebURL        string
	CloneURL      string // without credentials
}

// User is an account.
type User struct {
	Login string
	ID    int64
	Bot   bool
}

// Issue as it is now. Number is GitHub's number or GitLab's iid.
type Issue struct {
	Number       int
	ID           int64
	Title, Body  string
	State        string // "open" or "closed"
	Locked       bool
	Confidential bool
	IsPull       bool
	Labels       []string
	Author       User
	URL          string
	UpdatedAt    time.Time
}

// LabelEvent is the newest time a label was added to an issue.
type LabelEvent struct {
	ID    int64
	Actor User
	At    time.Time
}

// Comment on an issue or a pull/merge request's conversation.
type Comment struct {
	ID        int64
	Body      string
	Author    User
	CreatedAt time.Time
	URL       string
}

// PullRequest is a pull request or a merge request (Number is the iid there).
type PullRequest struct {
	Number      int
	URL         string
	State       string // "open", "closed" or "merged"
	Draft       bool
	Head, Base  string // branch names
	HeadSHA     string
	HeadRepoID  int64
	Title, Body string
	Author      User
}

// NewPullRequest is what publish asks for. It is always opened as a draft.
type NewPullRequest struct {
	Head, Base, Title, Body string
}

// PullRequestEdit changes what is not nil.
type PullRequestEdit struct {
	Title, Body *string
}

// Limits of bodies, in characters as the forge counts them.
type Limits struct {
	CommentBody, PullRequestBody int
}

// Remote is where git pushes and fetches. Token only ever goes to URL's host.
type Remote struct {
	URL      string // https://host/owner/name.git, no credentials
	Username string // "x-access-token" on GitHub, "oauth2" on GitLab
	Token    string
}

// Forge is one repository on one forge, as one token sees it. Every call may fail with *Error;
// creation calls look first, so that a retry after a lost answer does not create twice.
type Forge interface {
	Repository(ctx context.Context) (Repository, error)
	Issue(ctx context.Context, number int) (Issue, error)
	// Role of an account. An account without access is RoleNone and no error; any other failure is an error.
	Role(ctx context.Context, login string) (Role, error)
	// LabelEvent is the newest addition of label to the issue, ErrNotFound when there is none.
	LabelEvent(ctx context.Context, number int, label string) (LabelEvent, error)
	// SetLabels adds and removes; a label that is not there to remove is no error; a missing label is created.
	SetLabels(ctx context.Context, number int, add, remove []string) error
	Comments(ctx context.Context, number int) ([]Comment, error)
	CreateComment(ctx context.Context, number int, body string) (Comment, error)
	UpdateComment(ctx context.Context, number int, id int64, body string) error
	// Branch is the commit a branch points at, ErrNotFound when there is none.
	Branch(ctx context.Context, name string) (string, error)
	// FindPullRequest is the open pull request from head (a branch of this repository), ErrNotFound when there is none.
	FindPullRequest(ctx context.Context, head string) (PullRequest, error)
	CreatePullRequest(ctx context.Context, pr NewPullRequest) (PullRequest, error)
	UpdatePullRequest(ctx context.Context, number int, edit PullRequestEdit) (PullRequest, error)
	// AddLabelsToPullRequest labels a pull/merge request.
	AddLabelsToPullRequest(ctx context.Context, number int, labels []string) error
	// Self is the account the token acts as; ErrNotFound where the token cannot tell.
	Self(ctx context.Context) (User, error)
	Remote() Remote
	Limits() Limits
	// Name is "github" or "gitlab", for records and messages.
	Name() string
}

// Dispatcher starts a run of the CI workflow. Inputs are ids and hashes, never text of a person.
type Dispatcher interface {
	// Dispatch starts file (".github/workflows/proctor.yml" or its base name) on ref. It is not
	// idempotent at the forge: after an ambiguous failure (ErrUnavailable) look for the run before trying again.
	Dispatch(ctx context.Context, file, ref string, inputs map[string]string) error
}
