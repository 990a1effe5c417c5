// Package evidence owns the run record and everything that is rendered from it. It must never
// hold a prompt, a payload, sealed content or a secret, and no view may say more than the record, but
// for the report page: it shows the text of the change, which lies beside the record in a file of its own.
package evidence

import (
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// SchemaVersion of Record; a reader refuses a newer one by name.
const SchemaVersion = 1

// Record is proctor-run.json. Durations are in milliseconds, money in dollars, times in UTC RFC 3339.
type Record struct {
	Schema  int       `json:"schema"`
	Tool    Tool      `json:"tool"`
	Run     string    `json:"run"`
	RunURL  string    `json:"run_url,omitempty"` // the CI job's own page
	Resumed []string  `json:"resumed,omitempty"` // earlier run ids, oldest first
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Trigger Trigger   `json:"trigger"`
	Config  ConfigRef `json:"config"`
	Base    Commit    `json:"base"`
	Head    *Commit   `json:"head,omitempty"`     // the last good commit; on done the proved one
	HeldOut *HeldOut  `json:"held_out,omitempty"` // held-out files that are not the repository's own
	Branch  string    `json:"branch,omitempty"`
	Kept    string    `json:"kept_ref,omitempty"` // the ref where the work is kept: on the forge, or in the checkout of a run without one
	Agent   AgentRef  `json:"agent"`
	// What a command verified or reviewed; absent in the record of a run.
	Inspection  *Inspection `json:"inspection,omitempty"`
	Baseline    []Gate      `json:"baseline"` // tick 0
	Ticks       []Tick      `json:"ticks"`    // of this run only; earlier runs have their own records
	Calls       []Call      `json:"calls"`
	Confinement []Enforced  `json:"confinement"`
	Egress      *Egress     `json:"egress,omitempty"` // where sandbox.egress lists hosts
	Removed     []Removal   `json:"removed"`          // what the sanitiser took out of the issue
	Plan        *Plan       `json:"plan,omitempty"`
	Risk        Risk        `json:"risk"`
	Totals      Totals      `json:"totals"`
	Ceilings    Ceilings    `json:"ceilings"`
	Terminal    string      `json:"terminal"`
	ExitCode    int         `json:"exit_code"`
	Reason      string      `json:"reason"` // one sentence
	Next        string      `json:"next"`   // what a person does now
	Published   *Published  `json:"published,omitempty"`
	Signing     *Signing    `json:"signing,omitempty"` // of what was pushed, or was to be; absent where publish.signing is off
	Staged      *Staged     `json:"staged,omitempty"`  // of a run split into jobs
	Notes       []string    `json:"notes,omitempty"`   // what was assumed or could not be done
	DryRun      bool        `json:"dry_run,omitempty"`
}

// Inspection is the open pull request that a command verified or reviewed.
type Inspection struct {
	Number   int        `json:"number"`
	URL      string     `json:"url"`
	Branch   string     `json:"branch"`
	Head     string     `json:"head"`               // what the branch pointed at
	Proved   string     `json:"proved,omitempty"`   // the commit whose proof was repeated
	Stands   bool       `json:"stands,omitempty"`   // and the head is that commit
	Moved    string     `json:"moved,omitempty"`    // where the branch pointed at the end, if elsewhere; "unknown" where nobody could say
	Run      string     `json:"run,omitempty"`      // that claims to have proved it
	Compared []Compared `json:"compared,omitempty"` // of a verification
}

// Compared is one thing of a proof that was repeated. Of a held-out gate there is passed or not, and no exit code.
type Compared struct {
	Name    string `json:"name"`
	Claimed string `json:"claimed"`
	Now     string `json:"now"`
	Same    bool   `json:"same"`
}

// Staged says which job of a split run vouches for what. What it does not name is as the agent's job says.
type Staged struct {
	Stage string `json:"stage"` // that wrote this record: "agent", "verify", "publish" or "tell"
	Agent string `json:"agent"` // id of the run in the agent's job
	// Verified says that the verify job took nothing from the agent's job but the commit's bytes, and that patch policy and proof held: then
	// the head commit, its gates in the proof and the configuration are its findings.
	Verified bool `json:"verified"`
}

// Tool is the program that wrote the record.
type Tool struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// Trigger is who asked for what.
type Trigger struct {
	Forge    string `json:"forge"`
	Kind     string `json:"kind"`
	Event    string `json:"event,omitempty"`
	Delivery string `json:"delivery,omitempty"`
	Repo     string `json:"repository"`
	Issue    int    `json:"issue,omitempty"`
	IssueURL string `json:"issue_url,omitempty"`
	Title    string `json:"title,omitempty"` // visible text only
	Goal     string `json:"goal,omitempty"`
	Snapshot string `json:"snapshot"` // hash of what was approved
	Actor    string `json:"actor"`
	ActorID  int64  `json:"actor_id,omitempty"`
	Role     string `json:"role,omitempty"`
	Verified bool   `json:"verified"`         // the run itself read this issue from the forge, and it is what was approved
	Revise   bool   `json:"revise,omitempty"` // the run continues an open pull request
	Cause    string `json:"cause,omitempty"`  // what started the run where no account did: then the actor is the one who had asked for the work before
}

// ConfigRef says which configuration ruled.
type ConfigRef struct {
	Path   string `json:"path"` // empty: none in the repository, proposed by detect
	Digest string `json:"digest"`
}

// Commit binds a commit and its tree.
type Commit struct {
	ID   string `json:"commit"`
	Tree string `json:"tree"`
}

// HeldOut says where held-out files came from that are not the base commit's sealed ones. No path of
// them is named: the paths tell what is examined.
type HeldOut struct {
	Form   string `json:"form"`                 // "source" or "dir"
	Repo   string `json:"repository,omitempty"` // source: owner/name
	Ref    string `json:"ref,omitempty"`        // source: as configured
	Commit string `json:"commit,omitempty"`     // source: what the ref stood on
	Tree   string `json:"tree"`                 // of what was laid over, for dir too
	Files  int    `json:"files"`
}

// FailFirst says what the tests that a change adds do on the base code.
type FailFirst struct {
	Mode    string   `json:"mode"`             // "warn" or "require"
	Verdict string   `json:"verdict"`          // "assertion", "error", "collection", "passed", "unknown" or "none" (no test was added)
	Runner  string   `json:"runner,omitempty"` // whose output was recognised
	Tests   []string `json:"tests,omitempty"`  // names of added tests, at most 50
	Detail  string   `json:"detail,omitempty"`
	Same    bool     `json:"same,omitempty"` // an earlier tick asked with the same tests
	Gate    *Gate    `json:"gate,omitempty"` // the gate run on the base code
}

// AgentRef is the agent that ran.
type AgentRef struct {
	Name    string `json:"name"`
	Model   string `json:"model,omitempty"`
	Version string `json:"version,omitempty"`
}

// Tick is one turn of the loop.
type Tick struct {
	N        int         `json:"tick"`
	Started  time.Time   `json:"started"`
	Millis   int64       `json:"ms"`
	Agent    AgentCall   `json:"agent"`
	Commit   *Commit     `json:"commit,omitempty"`
	Files    []FileDelta `json:"files"` // base → this tick, at most 300
	FilesCut int         `json:"files_cut,omitempty"`
	Guard    []Finding   `json:"guard"`
	Gates    []Gate      `json:"gates"`                 // iteration and regression in gate/
	Item     int         `json:"plan_item,omitempty"`   // the item of the plan it worked on, from 1
	Share    *Review     `json:"item_review,omitempty"` // of that item's share of the change
	Review   *Review     `json:"review,omitempty"`
	Proof    []Gate      `json:"proof"` // of the pristine checkout
	First    *FailFirst  `json:"fail_first,omitempty"`
	CostUSD  money.USD   `json:"cost_usd"`
	Verdict  string      `json:"verdict"` // one word, also the Proctor-Verdict trailer
	Note     string      `json:"note,omitempty"`
}

// AgentCall is how the agent's call ended.
type AgentCall struct {
	Outcome   string    `json:"outcome"`
	Detail    string    `json:"detail,omitempty"`
	ExitCode  int       `json:"exit"`
	Millis    int64     `json:"ms"`
	Turns     int       `json:"turns,omitempty"`
	Claimed   money.USD `json:"claimed_usd,omitempty"`
	Survivors int       `json:"survivors,omitempty"`
}

// FileDelta is one changed path. Path is as git has it, made valid UTF-8 by quoting.
type FileDelta struct {
	Path    string `json:"path"`
	Status  string `json:"status"` // A, M, D, T
	OldMode string `json:"old_mode,omitempty"`
	NewMode string `json:"new_mode,omitempty"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Risk    string `json:"risk,omitempty"` // what a reviewer should look at it for
}

// Finding of the guard or the judge.
type Finding struct {
	Rule   string `json:"rule"`
	Level  string `json:"level"`
	Path   string `json:"path,omitempty"`
	Line   int    `json:"line,omitempty"`
	Detail string `json:"detail"`
}

// Gate is one gate run. Sealed gates have no Log.
type Gate struct {
	Class    string `json:"class"`
	Name     string `json:"name"`
	Command  string `json:"command"`
	Where    string `json:"where"`           // "base", "gate", "proof", "agent" (setup only), "fail-first"
	At       int64  `json:"at_ms,omitempty"` // when it began, from the run's start; absent in a proof and where it is not known
	Status   string `json:"status"`
	ExitCode int    `json:"exit"`
	Millis   int64  `json:"ms"`
	Digest   string `json:"output_digest"`
	Bytes    int64  `json:"output_bytes"`
	Log      string `json:"log,omitempty"` // file name beside the record, gzip
	Detail   string `json:"detail,omitempty"`
}

// Review is the judge's verdict.
type Review struct {
	Approved bool      `json:"approved"`
	Model    string    `json:"model"`
	Cached   bool      `json:"cached"`
	Findings []Finding `json:"findings"`
}

// Call is one model call, payload-free.
type Call struct {
	Tick       int       `json:"tick"`
	Purpose    string    `json:"purpose"` // "agent", "review" (of the whole) or "item_review" (of an item's share)
	Model      string    `json:"model"`
	Status     int       `json:"status"`
	Input      int64     `json:"input_tokens"`
	Output     int64     `json:"output_tokens"`
	CacheRead  int64     `json:"cache_read_tokens"`
	CacheWrite int64     `json:"cache_write_tokens"`
	CostUSD    money.USD `json:"cost_usd"`
	Priced     string    `json:"priced"`          // "usage", "reserved" (no usage came), "free" or "unpriced"
	At         int64     `json:"at_ms,omitempty"` // when it began, from the run's start; absent where it is not known
	Millis     int64     `json:"ms"`
}

// Enforced is a line of what confinement did.
type Enforced struct {
	Name     string `json:"name"`
	Active   bool   `json:"active"`
	Detail   string `json:"detail"`
	Optional bool   `json:"optional,omitempty"` // where it is missing the other lines hold what it holds, less tightly
}

// missing tells whether something is open for want of it.
func (e Enforced) missing() bool { return !e.Active && !e.Optional }

// Egress is what agents, gates and setup asked of the hosts that sandbox.egress lists, and of others.
type Egress struct {
	Allow []string     `json:"allow"` // the list
	Hosts []EgressHost `json:"hosts"` // at most 200
	Cut   int          `json:"requests_cut,omitempty"`
}

// EgressHost sums requests to one host. It has no path, query, header or body of any.
type EgressHost struct {
	Host     string   `json:"host"`
	Port     int      `json:"port"`
	Verdict  string   `json:"verdict"` // "allowed", "refused" or "failed" (allowed, and not reached)
	Why      string   `json:"why,omitempty"`
	By       []string `json:"by"` // "agent", or a gate's name
	Requests int      `json:"requests"`
	Sent     int64    `json:"sent_bytes"`
	Received int64    `json:"received_bytes"`
}

// Removal is a kind of hidden text that was taken out of the issue.
type Removal struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	Where string `json:"where"` // "title", "body", "comment 12"
}

// Plan is the checklist that the run worked through.
type Plan struct {
	From  string     `json:"from"` // "issue", or the file's path at the base commit
	Items []PlanItem `json:"items"`
}

// PlanItem is one line of it.
type PlanItem struct {
	Text string `json:"text"`
	// Status is "proved" (ticked off, and the whole was proved), "passed" (ticked off, and the whole was not proved),
	// "claimed" (the agent calls it done and nobody else does), "open" or "before" (ticked off on the base commit).
	Status string `json:"status"`
	Tick   int    `json:"tick,omitempty"` // that ticked it off, or that first claimed it
	By     string `json:"by,omitempty"`   // who let it pass: "gates", or "gates and reviewer"
}

// Risk of the whole change.
type Risk struct {
	Level string   `json:"level"`
	Why   []string `json:"why"`
}

// Totals reconcile with the ticks and calls (INV-54).
type Totals struct {
	Ticks   int       `json:"ticks"`
	Calls   int       `json:"calls"`
	CostUSD money.USD `json:"cost_usd"`
	Millis  int64     `json:"ms"`
	// IssueUSD is what this issue has cost over all its runs.
	IssueUSD money.USD `json:"issue_usd"`
}

// Ceilings the run was under; zero means none.
type Ceilings struct {
	Ticks   int       `json:"ticks"`
	CostUSD money.USD `json:"cost_usd"`
	Millis  int64     `json:"ms"`
}

// Signing says whether the forge signed what was pushed. It signs what it makes itself, so that a signed commit has another id than the proved one:
// its tree is the proved commit's, and so are those of all commits below it that the run made, one for one.
type Signing struct {
	Mode    string  `json:"mode"` // "auto" or "required"
	Signed  bool    `json:"signed"`
	Proved  Commit  `json:"proved"`
	Pushed  *Commit `json:"pushed,omitempty"`  // the signed commit, where signed
	Commits int     `json:"commits,omitempty"` // how many were signed, the pushed one among them
	Reason  string  `json:"reason,omitempty"`  // why not signed
}

// Published is what stands on the forge. Number is 0 when the branch was pushed but no pull request opened.
type Published struct {
	Branch  string `json:"branch"`
	Commit  string `json:"commit"`
	Number  int    `json:"number"`
	URL     string `json:"url"`
	Draft   bool   `json:"draft"`
	Updated bool   `json:"updated"` // an open one was updated instead of a new one opened
}
