package webhook

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/trigger"
)

// State is how far the run that a claim stands for has come. States only move forward.
type State int

// The states of a claim.
const (
	Claimed    State = iota + 1 // somebody is dispatching; nobody else may
	Dispatched                  // the forge took the dispatch
	Running                     // the run was seen
	Ended                       // the run is over; the claim stays to recognise late deliveries
)

func (s State) String() string {
	switch s {
	case Claimed:
		return "claimed"
	case Dispatched:
		return "dispatched"
	case Running:
		return "running"
	case Ended:
		return "ended"
	}
	return "unknown"
}

// Claim is the right to start the one run that a label event or a command asks for.
type Claim struct {
	ID      string   // trigger.NewID of the event; the same event has the same id
	Keys    []string // every name the event may come under: delivery, body, label event. ID is one of them without being listed
	Turn    string   // a key that is held until the run has ended, whatever the lease says: "" for none
	Attempt int      // 1, or one more than that of the expired claim it took over; set by the store
	State   State
	Created time.Time // of the first attempt
	Expires time.Time // end of the lease in this state

	To    Target // where to look the run up
	File  string // the workflow
	Issue int
	Full  int `json:",omitempty"` // of a watched repository: so many pull requests leave no room; 0 where nobody has said
	// Roomless: the run takes no room for a draft and so leaves none, and Issue may be the number of a change. Claims of before do not say.
	Roomless bool `json:",omitempty"`
}

// Held are all names but the id.
func (c Claim) Held() []string {
	if c.Turn == "" {
		return c.Keys
	}
	return append(slices.Clip(c.Keys), c.Turn)
}

// dispatchedAs: the run is of the workflow and branch that the claim's run was dispatched on. A GitLab project has one file of pipelines.
func (c Claim) dispatchedAs(r trigger.RunRef) bool {
	file := ".github/workflows/" + path.Base(c.File)
	return r.Branch == c.To.Repo.DefaultBranch && (c.To.Forge == trigger.GitLab || r.Path == file || strings.HasPrefix(r.Path, file+"@"))
}

// Errors of a Store that callers decide on. Any other error means that the store did not say.
var (
	ErrTaken   = errors.New("claimed already")
	ErrNoClaim = errors.New("no such claim")
	ErrLost    = errors.New("the claim is no longer ours")
)

// Store keeps claims. Every method is one conditional step on a few keys: nothing scans but Expired.
// An error that is not one of those above says nothing about whether the step took place, so that every
// caller of a store must be right either way. Implementations prove themselves with claimtest.Run.
type Store interface {
	// Find gives the claim that holds any of keys (or has one of them as its id), ErrNoClaim when none does. An
	// expired claim in state Claimed counts as none.
	Find(ctx context.Context, keys []string) (Claim, error)
	// Claim takes all of c's keys, or none and gives the holder with ErrTaken. A holder in state Claimed
	// whose lease is over loses them; if it has c's id, c gets its Created and the next Attempt. The claim
	// comes back in state Claimed with a lease of that length. c's turn it takes from a claim that has ended, which keeps
	// its other keys, and from nobody else but its own id: who asks for it under another id cannot know whether a lapsed one had
	// been dispatched. The holder of a key is told before the holder of the turn.
	Claim(ctx context.Context, c Claim, lease time.Duration) (Claim, error)
	// Mark moves a claim to a later state with a new lease. A claim that is there already or further keeps what
	// it has, without an error. ErrLost when it is gone or, for attempt other than 0, has another attempt.
	Mark(ctx context.Context, id string, attempt int, to State, lease time.Duration) error
	// Release gives all keys back and forgets the claim. ErrLost as for Mark, and where the claim is in
	// another state than the caller believes: a run that was seen meanwhile is not forgotten.
	Release(ctx context.Context, id string, attempt int, in State) error
	// Expired gives at most limit claims whose lease is over, the oldest first. An error may come with claims: others could not be read, and
	// hold nobody up.
	Expired(ctx context.Context, limit int) ([]Claim, error)
	// Count adds one to the counter of that name and end, and gives what it is now: 1 for the first. After its end it may be forgotten. An
	// error may have counted.
	Count(ctx context.Context, name string, end time.Time) (int, error)
}
