package forge

import (
	"context"
	"time"
)

// Thread is one conversation of reviewers on a pull/merge request, mostly below lines of its diff.
type Thread struct {
	ID       string // the forge's own: a node id, a discussion id
	Path     string // of the new file, "" where it is about the request as a whole
	Line     int    // of the new file; 0 where the forge does not say, as for lines that are gone
	Hunk     string // the lines of the diff above it, "" where the forge gives none
	Resolved bool
	First    int64     // the id of the comment that began it, which an answer names
	Comments []Comment // oldest first, never none
	Cut      bool      // behind the first comment some are left out
}

// Bounds of what is read of one pull/merge request. They lie far above what people write, since whoever may comment can reach them.
const (
	MaxThreads        = 5000 // that nobody has resolved
	MaxThreadComments = 1000 // of one thread, beside its first
	MaxReviews        = 5000
)

// Newest is a list, oldest first.
type Newest[T any] struct {
	All []T
	Cut bool // it is too long: older ones are left out
}

// ThreadTalker reads the threads of a pull/merge request and answers in them.
type ThreadTalker interface {
	// Threads are all of them. Of each that nobody has resolved there are the first comment and the newest, at the least back to the one that
	// answers: who counts as answering, only the caller knows. Where none does they reach back to the beginning, or the thread is Cut.
	Threads(ctx context.Context, number int, answers func(Comment) bool) (Newest[Thread], error)
	// AnswerThread writes one comment into a thread of Threads; a lost answer does not make it say so twice.
	AnswerThread(ctx context.Context, number int, thread Thread, body string) error
}

// ChangesRequested is Review.State where the reviewer asks for another round.
const ChangesRequested = "changes_requested"

// Review is what one person said about the whole of a pull request at one time.
type Review struct {
	ID     int64
	State  string // ChangesRequested, "approved", "commented", "dismissed" or "pending"
	Body   string
	Author User
	At     time.Time // zero while it is pending
}

// ReviewReader reads reviews. GitLab keeps each reviewer's newest decision and nothing beside it: there a review has the account's id, no
// text (that is a thread) and no time.
type ReviewReader interface {
	// Reviews are all of them.
	Reviews(ctx context.Context, number int) (Newest[Review], error)
	// Review is one of them as it is now, ErrNotFound when there is none of that id on that pull request.
	Review(ctx context.Context, number int, id int64) (Review, error)
}
