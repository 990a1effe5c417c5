package forge

import "context"

// Sight is what a token could see of a setting.
type Sight string

// Sights. Doubtful: it depends on what the forge does not say. Unseen: the token may not look, which is never a "right".
const (
	Right    Sight = "right"
	Wrong    Sight = "wrong"
	Doubtful Sight = "doubtful"
	Unseen   Sight = "unseen"
)

// Setting is one thing among a repository's settings that runs depend on.
type Setting struct {
	Name  string // stays the same: "issues", "branch-rules"
	Sight Sight
	Said  string // what was seen, or why it was not
	Next  string // the click that mends it or, of an unseen one, where a person looks
}

// Needs are what runs want of the settings.
type Needs struct {
	Branch   string // one that a run would push; it need not exist
	Workflow string // GitHub's file that starts runs
	JobToken bool   // runs open pull requests with the job's own token
	// Secrets are names any one of which is enough. Nil: none is needed.
	Secrets []string
	// Variables are GitLab's names of the secrets that a job reads.
	Variables []string
}

// SettingsReader looks at settings. Both clients have it.
type SettingsReader interface {
	// Settings tells of each one, unseen ones too, in an order that stays. The error is of the repository itself.
	Settings(ctx context.Context, n Needs) ([]Setting, error)
}

// Withdrawer takes back what was opened to see that it may be opened.
type Withdrawer interface {
	// ClosePullRequest closes one without merging it. One that is closed is no error.
	ClosePullRequest(ctx context.Context, number int) error
	// DeleteBranch deletes a branch that points at commit. One that is gone is no error; one that has moved is ErrConflict and stays.
	DeleteBranch(ctx context.Context, name, commit string) error
}

// Starter tells whether CI can be started. Both clients have it.
type Starter interface {
	// Startable asks for it on a branch that is not there, of which nothing can come. Nil: the token may.
	Startable(ctx context.Context, file, branch string) error
}
