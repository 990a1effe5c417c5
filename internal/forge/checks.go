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

// JobReader reads how CI went for a commit.
type JobReader interface {
	// FailedJobs are those of the newest runs or pipelines that a push or a pull request started for the commit; at most
	// MaxFailedJobs. What other services report beside the forge's own CI is not among them.
	FailedJobs(ctx context.Context, commit string) ([]FailedJob, error)
}
