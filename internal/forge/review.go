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
}

// ThreadTalker reads the threads of a pull/merge request and answers in them.
type ThreadTalker interface {
	// Threads are all of them, oldest first; at most the newest 500, and of each the first comment and the newest 50.
	Threads(ctx context.Context, number int) ([]Thread, error)
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
	// Reviews are all of them, oldest first; at most the newest 1,000.
	Reviews(ctx context.Context, number int) ([]Review, error)
	// Review is one of them as it is now, ErrNotFound when there is none of that id on that pull request.
	Review(ctx context.Context, number int, id int64) (Review, error)
}
