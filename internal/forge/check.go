package forge

import (
	"context"
	"time"
)

// CheckName is what a run's check is called on every forge, so that a branch rule can require it.
const CheckName = "Proctor"

// Conclusion is what a check says of its commit.
type Conclusion string

// Conclusions, of GitHub's those that a run has. Neutral and skipped are none of them: where a branch rule requires the check, GitHub takes those for a pass.
// GitLab has no word for unproved: its status is cancelled then, which makes its pipeline a cancelled one. Where "Pipelines must succeed" is set, the merge
// waits until somebody runs the pipeline or another round is proved.
const (
	ConclusionSuccess   Conclusion = "success"
	ConclusionFailure   Conclusion = "failure"
	ConclusionUnproved  Conclusion = "action_required"
	ConclusionCancelled Conclusion = "cancelled"
)

// Bounds of a check's texts, in characters: GitLab's of a description, GitHub's of a summary.
// https://docs.gitlab.com/api/commits/#set-commit-pipeline-status https://docs.github.com/rest/checks/runs#create-a-check-run
const (
	MaxCheckTitle   = 255
	MaxCheckSummary = 65535
)

// Check is how a run ended for a commit.
type Check struct {
	Run            string // its id
	Commit, Branch string // the branch that points at it
	Conclusion     Conclusion
	Title          string // one line of plain text
	Summary        string // Markdown; GitLab shows the title alone
	URL            string // of the job, "" where there is none
	Started, Ended time.Time
}

// Checker writes checks.
type Checker interface {
	// SetCheck writes the check of a commit that the forge has; the newest counts. A lost answer does not make two. ErrForbidden where the
	// token may not: on GitHub only Apps and jobs write checks, and those with `checks: write`.
	SetCheck(ctx context.Context, c Check) error
}
