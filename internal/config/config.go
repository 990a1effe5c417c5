// Package config owns the one file a user writes: its schema, strict loading, defaults and
// descriptions. It must never read a working tree, the network or the environment: bytes come in.
package config

import (
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// Config is .github/proctor.yml with every default filled in. Version is 1.
type Config struct {
	Version   int
	Agent     Agent
	Prompt    Prompt
	Setup     []Command
	Workspace Workspace
	Gates     Gates
	Plan      Plan
	Prove     Prove
	Review    Review
	Stops     Stops
	Budget    Budget
	Trigger   Trigger
	Policy    Policy
	Sandbox   Sandbox
	Publish   Publish
	Fix       Fix
}

// Command is a line of shell ("npm test") or an argv list ([npm, test]) in the file; Argv always
// holds what is executed: ["sh", "-c", line] for a line.
type Command struct {
	Line string // as written, for a line of shell
	Argv []string
}

// Agent says which coding agent and how.
type Agent struct {
	Name     string
	Model    string
	Args     []string
	Timeout  time.Duration
	Prestart bool
	Choices  []string // agents that an input may choose instead of Name
	Models   []string // models that an input may choose instead of Model
}

// Prompt says what else the agent reads.
type Prompt struct {
	Anchors  []string // repository instruction files, read from the base commit
	Comments string   // "writers" or "none"
}

// Workspace says what a worktree holds besides tracked files.
type Workspace struct {
	Carry      []string
	Submodules bool
	LFS        bool
}

// Gates are the commands whose exit codes decide.
type Gates struct {
	Iteration  Command
	Acceptance Acceptance
	Regression Command
	Probes     []Probe
	Timeout    time.Duration
	Stability  int
}

// HeldOut tells how many held-out gates there are; 0 means that nothing is held out.
func (g Gates) HeldOut() int {
	n := len(g.Acceptance.Parts)
	if len(g.Acceptance.Run.Argv) > 0 {
		n++
	}
	for _, p := range g.Probes {
		if p.As == "acceptance" {
			n++
		}
	}
	return n
}

// Acceptance is the held-out gate. With neither Run nor Parts nor a probe of its class there is none.
type Acceptance struct {
	Run            Command
	Parts          []Command // further held-out commands, each a gate that counts for itself
	Sealed         []string  // globs of files the agent never sees
	Source         Source    // held-out files of another repository or ref
	Dir            string    // "input", or an absolute path: held-out files that the job provides; empty: none
	Overwrite      bool      // files of Source or Dir may stand where the base commit has one
	Attempts       int
	Feedback       string // "none" or "count"
	MustFailOnBase string // "auto", "always" or "never"
}

// Source is where held-out files come from: a commit of this repository or another one of the same forge.
// All empty: nowhere.
type Source struct {
	Repo string // owner/name; empty: this repository
	Ref  string // branch, tag, full ref or commit id; empty: the default branch
	Path string // folder whose files are laid over the root of the checkout; empty: all files, at their own paths
}

// Plan is where a run finds the items that it works through one at a time.
type Plan struct {
	From string // "off", "issue", "file" or "auto"
	File string // checklist, read from the base commit
}

// Prove are extra proofs.
type Prove struct {
	TestsFailFirst string // "off", "warn" or "require"
}

// Review is the judge.
type Review struct {
	Enabled  bool
	Model    string
	API      string
	Criteria []string
	Command  Command
}

// Stops end a run.
type Stops struct {
	MaxTicks         int
	MaxCost          money.USD
	MaxDuration      time.Duration
	NoProgressAfter  int
	ReviewStallAfter int
	PlanStallAfter   int
}

// Budget bounds money beyond one run.
type Budget struct {
	PerIssue    money.USD
	PerDay      money.USD
	PerActorDay money.USD
	Unpriced    string // "refuse" or "allow"
	Price       []Price
}

// Price is what a model costs, in US dollars per million tokens, where the built-in table does not
// know it. Sorted by Model in a Config.
type Price struct {
	Model                                string
	Input, Output, CacheRead, CacheWrite money.USD
}

// Trigger says who may ask.
type Trigger struct {
	Label    string
	Roles    []string
	Bots     []int64 // account ids
	Commands string  // prefix of comment commands
	MaxOpen  int
}

// Policy is the patch policy.
type Policy struct {
	Protected     []string
	Allow         []string
	Deny          []string
	HighRisk      []string
	Max           Max
	Secrets       string // "block" or "flag"
	TestTampering string // "block", "flag" or "off"
}

// Max bounds a change.
type Max struct {
	Files     int
	Lines     int
	FileBytes int64
}

// Sandbox is the confinement asked for.
type Sandbox struct {
	Mode   string // "auto", "strict" or "off"
	Egress []string
}

// Publish says what the result looks like on the forge.
type Publish struct {
	Branch    string // "proctor/issue-{number}"
	Base      string // empty: the default branch
	History   string // "ticks" or "squash"
	Signing   string // "auto", "required" or "off"
	Reviewers []string
	Assignees []string
	Labels    []string
}

// Fix bounds what the loop does about its own pull request.
type Fix struct {
	MaxRounds      int
	StaleBase      string // "merge" or "off"
	OnCheckFailure bool
}
