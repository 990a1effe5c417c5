package evidence

// Keys of events and of log lines about a run. There are no others: an event with another key is
// written without it. None of them ever carries a prompt, a payload or what a program printed.
const (
	KeyRun       = "run"
	KeyRunURL    = "run_url"
	KeyRepo      = "repository"
	KeyIssue     = "issue"
	KeyActor     = "actor"
	KeyCause     = "cause"
	KeyAgent     = "agent"
	KeyModel     = "model"
	KeyAhead     = "ahead" // its process waited for it already
	KeyMaxTicks  = "max_ticks"
	KeyMaxCost   = "max_cost_usd"
	KeyBase      = "base"
	KeyEvent     = "event" // the agent's own word: "tool", "message"
	KeyTool      = "tool"
	KeyOutcome   = "outcome"
	KeyExit      = "exit"
	KeyMillis    = "ms"
	KeyTurns     = "turns"
	KeyCommit    = "commit"
	KeyTree      = "tree"
	KeyFiles     = "files"
	KeyAdded     = "added"
	KeyRemoved   = "removed"
	KeyLevel     = "level"
	KeyRule      = "rule"
	KeyPath      = "path"
	KeyFindings  = "findings"
	KeyClass     = "class"
	KeyGate      = "gate"
	KeyWhere     = "where"
	KeyStatus    = "status"
	KeyApproved  = "approved"
	KeyCached    = "cached"
	KeyPurpose   = "purpose"
	KeyInput     = "input_tokens"
	KeyOutput    = "output_tokens"
	KeyCost      = "cost_usd"
	KeyRef       = "ref"
	KeyVerdict   = "verdict"
	KeyTerminal  = "terminal"
	KeyExitCode  = "exit_code"
	KeyReason    = "reason"
	KeyNext      = "next"
	KeyBranch    = "branch"
	KeyNumber    = "number"
	KeyURL       = "url"
	KeyDraft     = "draft"
	KeyUpdated   = "updated"
	KeyNote      = "note"
	KeyBy        = "by"
	KeyHost      = "host"
	KeyPort      = "port"
	KeySent      = "sent_bytes"
	KeyReceived  = "received_bytes"
	keyTime      = "time"
	keySeq       = "seq"
	keyKind      = "kind"
	keyTick      = "tick"
	maxEventText = 500 // bytes of one text value
)

// Tokens of a model call beside KeyInput and KeyOutput: what came from the provider's cache, and what was written to it.
const (
	KeyCacheRead  = "cache_read_tokens"
	KeyCacheWrite = "cache_write_tokens"
)

func knownKey(k string) bool {
	switch k {
	case KeyRun, KeyRunURL, KeyRepo, KeyIssue, KeyActor, KeyCause, KeyAgent, KeyModel, KeyAhead, KeyMaxTicks, KeyMaxCost, KeyBase,
		KeyEvent, KeyTool, KeyOutcome, KeyExit, KeyMillis, KeyTurns, KeyCommit, KeyTree, KeyFiles, KeyAdded,
		KeyRemoved, KeyLevel, KeyRule, KeyPath, KeyFindings, KeyClass, KeyGate, KeyWhere, KeyStatus, KeyApproved,
		KeyCached, KeyPurpose, KeyInput, KeyOutput, KeyCacheRead, KeyCacheWrite, KeyCost, KeyRef, KeyVerdict, KeyTerminal, KeyExitCode,
		KeyReason, KeyNext, KeyBranch, KeyNumber, KeyURL, KeyDraft, KeyUpdated, KeyNote, KeyBy, KeyHost, KeyPort, KeySent, KeyReceived:
		return true
	}
	return false
}

// Kind of an event.
type Kind string

// The kinds, with the keys that each carries where they are known.
const (
	RunStarted   Kind = "run.started"   // run, run_url, repository, issue, actor, cause, agent, model, base, max_ticks, max_cost_usd
	TickStarted  Kind = "tick.started"  //
	AgentStarted Kind = "agent.started" // agent, model, ahead
	AgentEvent   Kind = "agent.event"   // event, tool: a summary, never text
	AgentEnded   Kind = "agent.ended"   // outcome, exit, ms, turns
	Snapshot     Kind = "snapshot"      // commit, tree, files, added, removed
	Guard        Kind = "guard"         // level, findings, rule and path of the first
	GateStarted  Kind = "gate.started"  // class, gate, where
	GateEnded    Kind = "gate.ended"    // class, gate, where, status; exit and ms unless held out
	ReviewEvent  Kind = "review"        // approved, cached, findings, model
	PlanProgress Kind = "plan.item"     // number, status: "approved" or "rejected" with findings and model; "done"
	ProofStarted Kind = "proof.started" // commit
	ProofEnded   Kind = "proof.ended"   // commit, status
	ModelCall    Kind = "model.call"    // purpose, model, status, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, ms
	EgressEvent  Kind = "egress"        // by, host, port, verdict, reason, sent_bytes, received_bytes, ms
	Checkpoint   Kind = "checkpoint"    // ref, commit
	TickEnded    Kind = "tick.ended"    // verdict, cost_usd, ms
	Ended        Kind = "terminal"      // terminal, exit_code, reason, next
	PublishedPR  Kind = "published"     // branch, commit, number, url, draft, updated
	Note         Kind = "note"          // note
	RunEnded     Kind = "run.ended"     // the last event of every run that ended by itself
)
