// Package ci owns what a CI system gives to a job and takes back from it: facts, inputs, outputs,
// summary, log commands. It must never print foreign text where the system would read a command.
package ci

import "errors"

// Job is where this process runs, as the CI system tells it.
type Job struct {
	System    string // "github" or "gitlab"
	Repo      string // "owner/name", or GitLab's full path
	RepoID    int64
	Event     string // GitHub's event name, GitLab's CI_PIPELINE_SOURCE
	EventPath string // GitHub: file of the event's payload
	Workspace string // the checkout
	SHA       string
	Ref       string // "refs/heads/main"
	Actor     string
	ActorID   int64
	RunURL    string
	Temp      string // scratch space of the job
	Home      string // a place that later steps can read
	APIURL    string
	ServerURL string
}

// Input names are the ones of action.yml. GitLab and a shell give them as PROCTOR_ variables:
// "max-cost-usd" is PROCTOR_MAX_COST_USD.

// Host is the CI system to speak to. Text handed to it may be hostile: one call is one line, and no
// line is a command of its own.
type Host interface {
	Job() Job
	Input(name string) string
	// Mask asks the system to hide values in the log of this job, line by line.
	Mask(values ...string)
	Line(text string)
	Group(title string)
	EndGroup()
	Notice(title, text string)
	Error(title, text string)
	// Output sets outputs of the step; the values may have several lines.
	Output(values map[string]string) error
	// Summary appends Markdown to the job's summary page, where the system has one.
	Summary(markdown string) error
}

// ErrNoJob says that no CI system is around this process.
var ErrNoJob = errors.New("this is no CI job: neither GITHUB_ACTIONS nor GITLAB_CI is set. To run on your own machine use: proctor run --issue N")

// Detect is the host that getenv describes; it writes log lines to out. random fills a slice and backs
// the delimiters that keep foreign text from ending a value.
func Detect(getenv func(string) string, out Writer, random func([]byte)) (Host, error) {
	switch {
	case getenv("GITHUB_ACTIONS") == "true":
		return newGitHub(getenv, out, random)
	case getenv("GITLAB_CI") == "true":
		return newGitLab(getenv, out)
	}
	return nil, ErrNoJob
}

// Writer is where log lines go.
type Writer interface{ Write(p []byte) (int, error) }
