package guard

// Rule names one kind of finding. The words are stable: records and docs use them.
type Rule string

// The rules.
const (
	Protected  Rule = "protected-path"
	Sealed     Rule = "sealed-path"
	NotAllowed Rule = "outside-allow"
	Denied     Rule = "denied-path"
	Gitlink    Rule = "gitlink"
	NestedRepo Rule = "nested-repository"
	Symlink    Rule = "escaping-symlink"
	BadName    Rule = "bad-name" // a name that git or a forge refuses, or that folds onto another
	FileSize   Rule = "file-size"
	DiffSize   Rule = "diff-size"
	Secret     Rule = "secret"
	Tampering  Rule = "test-tampering"
	Dependency Rule = "dependency"
	HighRisk   Rule = "high-risk-path"
	Unreadable Rule = "unreadable" // the harness may not read it, so the commit would not be what the agent made
	Odd        Rule = "odd-file"   // a fifo, a socket, an ignore file without effect
)

// Level says what a finding does.
type Level string

// Levels: Halt ends the run as safety_halt; Block is fed back and bars done; Flag is shown only.
const (
	Halt  Level = "halt"
	Block Level = "block"
	Flag  Level = "flag"
)

// Finding is one reason.
type Finding struct {
	Rule   Rule
	Level  Level
	Path   string // as git has it; printed quoted
	Line   int    // 0: none
	Detail string // one line, never the secret itself
	Next   string
}

// Risk of the whole change, from the actual diff.
type Risk string

// Risks.
const (
	Low    Risk = "low"
	Medium Risk = "medium"
	High   Risk = "high"
)

// Verdict over base tree → candidate tree, every reason listed, ordered by level then path.
type Verdict struct {
	Findings []Finding
	Risk     Risk
	Why      []string // what made the risk what it is
	Files    int
	Added    int // lines
	Removed  int
	// Lines counts per path; a path that is not there changed its mode, is binary or was not read.
	Lines map[string]Lines
}

// Lines of one file.
type Lines struct{ Added, Removed int }

// Worst is the strongest level found, "" when there is none.
func (v Verdict) Worst() Level {
	worst := Level("")
	for _, f := range v.Findings {
		switch {
		case f.Level == Halt:
			return Halt
		case f.Level == Block, worst == "":
			worst = f.Level
		}
	}
	return worst
}
