package forge

import "context"

// FailedJob is a CI job that failed, with the end of what it printed: text of programs, of any kind.
type FailedJob struct {
	Name string
	Log  []byte // at most MaxJobLog, the end; empty where the forge keeps none any more
}

// Bounds of what is read of a commit's CI.
const (
	MaxFailedJobs = 5
	MaxJobLog     = 16 << 10
)

// Tip is a commit at the end of a pull/merge request's branch, which is one of this repository.
type Tip struct {
	Pull           int // its number
	Branch, Commit string
}

// JobReader reads how CI went for a commit.
type JobReader interface {
	// FailedJobs are those of the newest runs or pipelines that a push of the branch or the pull request itself started for the
	// commit; at most MaxFailedJobs. Anybody can push the same commit to a fork or have another branch point at it: what CI says
	// there, in words of theirs, is not among them, nor what other services report beside the forge's own CI.
	FailedJobs(ctx context.Context, of Tip) ([]FailedJob, error)
}
