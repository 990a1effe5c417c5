// Package trigger owns the Trigger, the one form in which every door asks for a run, and the
// parsers that make it. It must never decide who may ask (package policy) nor call a forge.
package trigger

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// Forge names the kind of forge a trigger came from.
type Forge string

// The forges. Local is a run that no forge asked for.
const (
	GitHub Forge = "github"
	GitLab Forge = "gitlab"
	Local  Forge = "local"
)

// Kind is what happened, in the product's words.
type Kind string

// Kinds that may start or steer a run.
const (
	KindLabel    Kind = "label"    // the trigger label was added to an issue
	KindDispatch Kind = "dispatch" // workflow_dispatch or a GitLab pipeline trigger: ids only
	KindComment  Kind = "comment"  // a command in a new comment
	KindReview   Kind = "review"   // changes requested on a pull or merge request
	KindClosed   Kind = "closed"   // an issue or a pull/merge request was closed or merged
	KindCheck    Kind = "check"    // people's own CI failed on a branch of the repository
	KindInstall  Kind = "install"  // the App's installation or its repositories changed
	KindRun      Kind = "run"      // a CI run of ours started or ended
	KindPing     Kind = "ping"
	KindManual   Kind = "manual" // a person at a terminal
)

// Trigger is one request for a run, however it arrived. Text fields are exactly what the forge
// sent: hostile until package prompt has read them.
type Trigger struct {
	Forge    Forge
	Kind     Kind
	Event    string // the forge's own event name: "issues", "Issue Hook"
	Action   string // the forge's own action: "labeled", "update"
	Delivery string // delivery id; unsigned on GitHub, so never authority
	Repo     Repo
	Issue    Issue      // zero Number for a free goal
	Change   *ChangeRef // the pull or merge request, where the event is about one
	Goal     string     // free text goal, instead of an issue
	Actor    Actor      // who did it: the event's sender, not the issue's author
	Label    string     // for KindLabel: the label just added
	Command  *Command   // for KindComment
	Review   *ReviewRef // for KindReview
	Check    *CheckRef  // for KindCheck; Change then has the branch and its commit, and no number
	Snapshot string     // hash of what was approved, as carried by a dispatch; else Issue.Snapshot()
	Install  int64      // GitHub App installation id, 0 when unknown

	ID    string  // correlation id of the run ("proctor_id"), from a dispatch
	Asked Asked   // the label event that asked, where it is known
	Run   *RunRef // for KindRun, and for a workflow run's KindCheck
}

// Asked is the forge's own record of the trigger label being added. Zero when nobody looked it up.
type Asked struct {
	ID int64
	At time.Time
}

// ReviewRef is a review that asks for changes. What it says stays with the forge, where the run reads it.
type ReviewRef struct {
	ID int64 // of the review; on GitLab, which has none, of the reviewer's account
	// At is when the event says that changes were requested, on GitLab only: it tells one request of a reviewer from the next.
	At time.Time
}

// Key names the request.
func (r ReviewRef) Key() string {
	if r.At.IsZero() {
		return strconv.FormatInt(r.ID, 10)
	}
	return strconv.FormatInt(r.ID, 10) + "@" + r.At.UTC().Format(time.RFC3339)
}

// RunRef is a dispatched CI run whose state changed. Title is the run's name, which carries the correlation id and proves nothing.
type RunRef struct {
	ID         int64
	Title      string
	Path       string // of the workflow's file in the repository; GitHub may add "@" and a ref; "" on GitLab, which has one
	Branch     string // that the file and the commit are of
	Status     string // "queued", "in_progress" or "completed"
	Conclusion string // "success", "failure", "cancelled", "startup_failure", …; empty until completed
}

// Repo names a repository. Owner is the whole namespace on GitLab ("group/subgroup").
type Repo struct {
	Owner, Name   string
	ID            int64
	DefaultBranch string
	Archived      bool
	Private       bool
}

// FullName is "owner/name".
func (r Repo) FullName() string { return r.Owner + "/" + r.Name }

// Issue is an issue as the event described it. Number is GitHub's number or GitLab's iid, never
// a database id.
type Issue struct {
	Number       int
	ID           int64
	Title, Body  string
	Author       Actor
	State        string // "open" or "closed"
	Locked       bool
	Confidential bool // GitLab
	IsPull       bool // GitHub serves pull requests as issues too
	URL          string
	Labels       []string
}

// Snapshot is the hash of what a person saw when they approved: hex SHA-256 over title and body
// with line ends normalised to LF, lengths in front so that text cannot move between the two.
func (i Issue) Snapshot() string { return SnapshotOf(i.Title, i.Body) }

// SnapshotOf is Issue.Snapshot for a title and a body.
func SnapshotOf(title, body string) string {
	h := sha256.New()
	for _, s := range []string{title, body} {
		s = normaliseLines(s)
		h.Write([]byte(strconv.Itoa(len(s))))
		h.Write([]byte{0})
		h.Write([]byte(s))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ChangeRef is a pull request (GitHub) or merge request (GitLab).
type ChangeRef struct {
	Number     int
	Head, Base string // branch names
	HeadSHA    string
	Draft      bool
	Merged     bool
	FromFork   bool // the head lives in another repository
}

// Actor is an account. Only ID identifies; Login is for people and for API calls that want it.
type Actor struct {
	Login string
	ID    int64
	Bot   bool
}

// Command is a comment command, already lower-cased and stripped of its prefix.
type Command struct {
	Name string
	Args []string
	// CommentID is the comment that carried it, for the reaction.
	CommentID int64
}
