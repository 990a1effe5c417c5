package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
)

// Target is the branch that a run will push, as it was when the run began.
type Target struct {
	Branch string
	Tip    string // what it pointed at; "" when it did not exist
	// Open is the pull request that is open from it, 0 when there is none.
	Open int
	// Note says why Branch is not the name that was asked for, "" when it is.
	Note string
}

// maxSuffix bounds the names that Aim tries: "name", "name-2", … "name-9".
const maxSuffix = 9

// Aim chooses the branch before any money is spent. ours are the commits that earlier runs of this
// issue pushed, as their kept state tells; none is fine.
//
// A branch that does not exist is taken. One whose tip is a commit of ours is taken again: its open
// pull request is updated, and when a person closed or merged that one, the next gets the same
// branch. A branch with an open pull request of ours whose tip is not ours holds a person's work:
// that is a *Failure, and nothing is pushed. A branch that nobody can say is ours is left alone, and
// the run takes the next free name.
func (p *Publisher) Aim(ctx context.Context, branch, base string, ours []string) (Target, error) {
	refuse := func(err error, next string) (Target, error) {
		return Target{}, &Failure{Step: StepAim, Branch: branch, Err: p.Redact.Error(err), Next: next}
	}
	repo, err := p.Forge.Repository(ctx)
	if err != nil {
		return refuse(err, nextOf(err))
	}
	if err := allowed(branch, base, repo.DefaultBranch); err != nil {
		return refuse(err, "set publish.branch to a name of its own, such as proctor/issue-{number}")
	}
	self, err := Self(ctx, p.Forge)
	if err != nil {
		return refuse(err, nextOf(err))
	}
	for n := 1; n <= maxSuffix; n++ {
		t := Target{Branch: branch}
		if n > 1 {
			t.Branch = fmt.Sprintf("%s-%d", branch, n)
			t.Note = fmt.Sprintf("branch %s has commits that no run is known to have pushed; it was left alone and %s is used", branch, t.Branch)
		}
		t.Tip, err = p.Forge.Branch(ctx, t.Branch)
		if errors.Is(err, forge.ErrNotFound) {
			return t, nil
		}
		if err != nil {
			return refuse(err, nextOf(err))
		}
		pr, err := p.Forge.FindPullRequest(ctx, t.Branch)
		if err != nil && !errors.Is(err, forge.ErrNotFound) {
			return refuse(err, nextOf(err))
		}
		mine := err == nil && self.wrote(pr.Author) && evidence.PullRequestHead(pr.Body) != ""
		if err == nil {
			t.Open = pr.Number
		}
		switch {
		case slices.Contains(ours, t.Tip), mine && evidence.PullRequestHead(pr.Body) == t.Tip:
			return t, nil
		case mine:
			moved := &movedError{branch: t.Branch, from: evidence.PullRequestHead(pr.Body), to: t.Tip}
			return refuse(moved, moved.next(t.Branch)+fmt.Sprintf("; or close pull request %d and delete the branch", pr.Number))
		}
	}
	return refuse(fmt.Errorf("branches %s to %s-%d all exist and none is known to be ours", branch, branch, maxSuffix),
		"delete the branches that are not needed any more, or set publish.branch to another name")
}

// Ours tells whether a run opened pr: our account wrote it, and its body carries our marker.
func Ours(ctx context.Context, f forge.Forge, pr forge.PullRequest) (bool, error) {
	self, err := Self(ctx, f)
	if err != nil {
		return false, err
	}
	return self.wrote(pr.Author) && evidence.PullRequestHead(pr.Body) != "", nil
}

// Account is who we are, as far as the token can tell.
type Account struct {
	user  forge.User
	known bool
}

// Self asks who we are. A token that cannot tell is no error.
func Self(ctx context.Context, f forge.Forge) (Account, error) {
	u, err := f.Self(ctx)
	if errors.Is(err, forge.ErrNotFound) {
		return Account{}, nil
	}
	return Account{user: u, known: err == nil}, err
}

// Is tells whether u is known to be our own account; false where the token cannot tell.
func (a Account) Is(u forge.User) bool { return a.known && a.user.ID == u.ID }

// Said tells whether the harness wrote c: our account did, and it begins with a marker of ours. The account alone says too little:
// the token may be a person's, or one that cannot tell whose it is. The marker alone says nothing: anybody can type it.
func (a Account) Said(c forge.Comment) bool {
	return a.wrote(c.Author) && (strings.HasPrefix(c.Body, evidence.StatusMarker) || strings.HasPrefix(c.Body, evidence.AnswerMarker))
}

// wrote tells whether u is our own account. A job's own token cannot tell who it is, nor one that was lent to a run; it is always a
// bot then, and people are not.
func (a Account) wrote(u forge.User) bool {
	if a.known {
		return a.user.ID == u.ID
	}
	return u.Bot
}
