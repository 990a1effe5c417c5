package evidence

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

var began = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)

func hexid(c string, n int) string { return strings.Repeat(c, n) }

func commit(c string) *Commit { return &Commit{ID: hexid(c, 40), Tree: hexid(c, 39) + "0"} }

func gateRun(class, where, command, status string, ms int64) Gate {
	g := Gate{
		Class: class, Name: class, Command: command, Where: where, Status: status, Millis: ms,
		Digest: "sha256:" + hexid("d", 64), Bytes: 1200,
	}
	if status == "failed" {
		g.ExitCode = 1
	}
	if !g.Sealed() {
		g.Log = fmt.Sprintf("gate-01-%s-%s.log.gz", class, class)
	}
	return g
}

// sample is a run of two ticks: the first satisfied what it could see and not what was held out.
func sample() Record {
	file := FileDelta{Path: "cart/total.go", Status: "M", OldMode: "100644", NewMode: "100644", Added: 9, Removed: 4}
	test := FileDelta{Path: "cart/total_test.go", Status: "A", NewMode: "100644", Added: 31}
	r := Record{
		Schema: SchemaVersion,
		Tool:   Tool{Version: "v0.1.0", Commit: hexid("7", 40)},
		Run:    "run-42-1", RunURL: "https://git.example/octo/shop/actions/runs/77",
		Started: began, Ended: began.Add(94 * time.Second),
		Trigger: Trigger{
			Forge: "github", Kind: "label", Event: "issues", Delivery: "d-1", Repo: "octo/shop", Issue: 42,
			IssueURL: "https://git.example/octo/shop/issues/42", Title: "Discount is applied twice for members",
			Snapshot: hexid("a", 64), Actor: "maria", ActorID: 7, Role: "maintain", Verified: true,
		},
		Config: ConfigRef{Path: ".github/proctor.yml", Digest: "sha256:" + hexid("c", 64)},
		Base:   *commit("b"), Head: commit("2"), Branch: "proctor/issue-42", Kept: "refs/proctor/42/run-42-1",
		Agent: AgentRef{Name: "claude-code", Model: "model-large", Version: "2.1.0"},
		Baseline: []Gate{
			gateRun("iteration", "base", "go test ./...", "passed", 800),
			gateRun("acceptance", "base", "go test -tags acceptance ./...", "failed", 900),
		},
		Ticks: []Tick{
			{
				N: 1, Started: began.Add(2 * time.Second), Millis: 41000, Agent: AgentCall{Outcome: "ok", Millis: 30000, Turns: 5},
				Commit: commit("1"), Files: []FileDelta{file},
				Gates:  []Gate{gateRun("iteration", "gate", "go test ./...", "passed", 810)},
				Review: &Review{Approved: true, Model: "model-small"},
				Proof: []Gate{
					gateRun("iteration", "proof", "go test ./...", "passed", 1800),
					gateRun("acceptance", "proof", "go test -tags acceptance ./...", "failed", 1700),
				},
				Verdict: "not_accepted", Note: "the held-out gate did not pass",
			},
			{
				N: 2, Started: began.Add(44 * time.Second), Millis: 48000, Agent: AgentCall{Outcome: "ok", Millis: 33000, Turns: 7},
				Commit: commit("2"), Files: []FileDelta{file, test},
				Guard:  []Finding{{Rule: "dependency", Level: "flag", Path: "go.mod", Line: 3, Detail: "a new module"}},
				Gates:  []Gate{gateRun("iteration", "gate", "go test ./...", "passed", 815), gateRun("regression", "gate", "go test -run Old ./...", "passed", 412)},
				Review: &Review{Approved: true, Model: "model-small", Findings: []Finding{{Rule: "clarity", Level: "note", Path: "cart/total.go", Line: 12, Detail: "the name could say more"}}},
				Proof: []Gate{
					gateRun("iteration", "proof", "go test ./...", "passed", 1811),
					gateRun("regression", "proof", "go test -run Old ./...", "passed", 500),
					gateRun("acceptance", "proof", "go test -tags acceptance ./...", "passed", 1765),
				},
				Verdict: "proved",
			},
		},
		Calls: []Call{
			{Tick: 1, Purpose: "agent", Model: "model-large", Status: 200, Input: 12000, Output: 800, CacheRead: 9000, CostUSD: 31_000_000, Priced: "usage", Millis: 4000},
			{Tick: 1, Purpose: "review", Model: "model-small", Status: 200, Input: 3000, Output: 120, CostUSD: 2_000_000, Priced: "usage", Millis: 900},
			{Tick: 2, Purpose: "agent", Model: "model-large", Status: 200, Input: 15000, Output: 1100, CacheRead: 12000, CacheWrite: 300, CostUSD: 42_500_000, Priced: "usage", Millis: 5000},
			{Tick: 2, Purpose: "review", Model: "model-small", Status: 200, Input: 3100, Output: 90, CostUSD: 2_100_000, Priced: "reserved", Millis: 800},
		},
		Confinement: []Enforced{
			{Name: "filesystem", Active: true, Detail: "Landlock ABI 7"},
			{Name: "network-tcp", Active: true, Detail: "Landlock ABI 7, the meter's port only"},
			{Name: "user", Active: false, Detail: "the harness does not run as root"},
		},
		Egress: &Egress{
			Allow: []string{"registry.example.com:443", "*.cdn.example.com:443"},
			Hosts: []EgressHost{
				{Host: "registry.example.com", Port: 443, Verdict: "allowed", By: []string{"setup 1"}, Requests: 12, Sent: 4200, Received: 1_900_000},
				{Host: "a.cdn.example.com", Port: 443, Verdict: "failed", Why: "it did not answer in time", By: []string{"setup 1"}, Requests: 1},
				{Host: "evil.example.net", Port: 80, Verdict: "refused", Why: "it is not in sandbox.egress", By: []string{"agent", "iteration"}, Requests: 3},
			},
		},
		Removed:  []Removal{{Kind: "HTML comment", Count: 2, Where: "body"}},
		Risk:     Risk{Level: "medium", Why: []string{"a price calculation changed"}},
		Ceilings: Ceilings{Ticks: 10, CostUSD: 5 * money.Dollar, Millis: 45 * 60 * 1000},
		Published: &Published{
			Branch: "proctor/issue-42", Commit: hexid("2", 40), Number: 7, URL: "https://git.example/octo/shop/pull/7", Draft: true,
		},
		Notes: []string{"labels of the pull request were not set: the token may not"},
	}
	r.Finish(Done, "every gate passed in the pristine checkout", "")
	r.Settle(120_000_000)
	nameLogs(&r)
	begin(&r)
	return normal(r)
}

// begin says when things began, of those that a record says it of.
func begin(r *Record) {
	r.Baseline[0].At = 600
	for i, at := range []int64{32500, 78500, 79400} {
		switch i {
		case 0:
			r.Ticks[0].Gates[0].At = at
		default:
			r.Ticks[1].Gates[i-1].At = at
		}
	}
	for i, at := range []int64{5000, 34000, 50000, 80000} {
		r.Calls[i].At = at
	}
}

// change is what sample's head changes, as text.
func change() Change {
	r := sample()
	return Change{
		Schema: ChangeSchema, Run: r.Run, Base: r.Base, Head: *r.Head,
		Files: []ChangedFile{
			{FileDelta: r.Ticks[1].Files[0], Hunks: []Hunk{
				{Old: 8, New: 8, Lines: []string{" func Total(c Cart) int {", "-\treturn sum(c) - c.Discount - c.Discount", "+\tn := sum(c)", "+\tif c.Member {", "+\t\tn -= c.Discount", "+\t}", "+\treturn n", " }"}},
			}},
			{FileDelta: r.Ticks[1].Files[1], Hunks: []Hunk{{Old: 1, New: 1, Lines: []string{"+package cart", "+", "+func TestDiscountOnce(t *testing.T) {}", "\\ no newline at the end of the file"}}}},
			{FileDelta: FileDelta{Path: "run.sh", Status: "M", OldMode: "100644", NewMode: "100755", Risk: "becomes executable"}, Words: []string{"it becomes executable (mode 100644 → 100755)"}},
		},
	}
}

// nameLogs gives each log the number of its tick.
func nameLogs(r *Record) {
	name := func(tick int, gates []Gate) []Gate {
		gates = slices.Clone(gates)
		for i, g := range gates {
			if g.Log != "" {
				gates[i].Log = fmt.Sprintf("gate-%02d-%s-%s.log.gz", tick, g.Class, g.Name)
			}
		}
		return gates
	}
	r.Baseline = name(0, r.Baseline)
	for i, t := range r.Ticks {
		r.Ticks[i].Gates = name(t.N, t.Gates)
	}
}

// ended is sample cut down to how a run with that terminal looks.
func ended(t testing.TB, name string) Record {
	t.Helper()
	r := sample()
	reasons := map[string]string{
		AlreadySatisfied: "the acceptance gate passes on the base commit",
		Answered:         "the command status was answered",
		Reproduced:       "every id and every gate is what was claimed",
		Differs:          "1 of 3 things compared is not what was claimed: gate acceptance",
		NotRepeated:      "the iteration gate could not run here: npm: command not found",
		Approved:         "model-small approves the whole change",
		Rejected:         "model-small rejects the whole change",
		StoppedBudget:    "the next call could cost $0.9000 and $0.1000 of $5.0000 is left",
		StoppedTime:      "45 min are over",
		NoProgress:       "ticks 1 and 2 gave the same tree and the same failure",
		ReviewStall:      "the reviewer rejected 4 changes with green gates",
		PlanStall:        "3 ticks in a row without an item of the plan getting done; 2 of 4 are, and item 3 is not",
		NotReproduced:    "the iteration gate fails on the second machine",
		Overfit:          "the held-out gate did not pass after 2 attempts",
		TickCap:          "10 of 10 ticks are used",
		SafetyHalt:       "tick 2 changed the protected path .github/workflows/ci.yml",
		GateBroken:       "gate iteration cannot start: npm: command not found",
		GateFlaky:        "gate iteration passed and failed on the unchanged base commit",
		JudgeUnavailable: "the reviewer's model answered HTTP 529 three times",
		AgentUnavailable: "claude: command not found",
		InternalError:    "write snapshot: no space left on device",
		PublishFailed:    "create pull request in octo/shop: opening pull requests is not permitted to this token",
		Refused:          "maria has the role triage and this repository asks for write",
		Cancelled:        "the job was cancelled in tick 2",
		UsageError:       "proctor.yml:3:5: unknown key gatez",
	}
	r.Published = nil
	last := &r.Ticks[1]
	switch name {
	case AlreadySatisfied, GateBroken, GateFlaky:
		r.Ticks, r.Calls, r.Head, r.Notes = nil, nil, nil, nil
		status := map[string]string{AlreadySatisfied: "passed", GateBroken: "broken", GateFlaky: "failed"}[name]
		r.Baseline = []Gate{gateRun("iteration", "base", "npm test", status, 100)}
	case Answered, Refused, UsageError:
		r.Ticks, r.Calls, r.Head, r.Notes, r.Baseline, r.Base, r.Confinement, r.Egress, r.Risk, r.Removed = nil, nil, nil, nil, nil, Commit{}, nil, nil, Risk{}, nil
	case Reproduced, Differs, NotRepeated, Approved, Rejected:
		inspected(&r, name)
	case PublishFailed:
		r.Next = "open https://git.example/octo/shop/settings/actions and allow Actions to create pull requests, or open the pull request yourself: https://git.example/octo/shop/compare/main...proctor/issue-42"
	case SafetyHalt:
		last.Guard = []Finding{{Rule: "protected-path", Level: "halt", Path: ".github/workflows/ci.yml", Detail: "changed from the base commit"}}
		last.Commit, last.Gates, last.Proof, last.Review, last.Verdict = nil, nil, nil, nil, "halted"
		r.Head = commit("1")
	case PlanStall:
		r.Plan = &Plan{From: "issue", Items: []PlanItem{
			{Text: "Discounts apply once", Status: "passed", Tick: 1, By: "gates and reviewer"}, {Text: "The receipt names them", Status: "before"},
			{Text: "Refunds give them back", Status: "claimed", Tick: 2}, {Text: "The report lists them", Status: "open"},
		}}
		last.Review, last.Proof, last.Item, last.Verdict = nil, nil, 3, "rejected"
		last.Share = &Review{Model: "model-small", Findings: []Finding{{Rule: "incomplete", Level: "block", Path: "cart/total.go", Line: 30, Detail: "refunds are not handled"}}}
	case Cancelled, StoppedTime, InternalError, AgentUnavailable:
		last.Agent.Outcome, last.Commit, last.Gates, last.Proof, last.Review, last.Guard, last.Verdict = "timeout", nil, nil, nil, nil, nil, "cut_short"
		r.Head = commit("1")
	default:
		last.Proof[2].Status, last.Proof[2].ExitCode, last.Verdict = "failed", 1, "not_accepted"
	}
	next := r.Next
	if name != PublishFailed {
		next = ""
	}
	r.Finish(name, reasons[name], next)
	r.Settle(0)
	return normal(r)
}

// inspected makes the record one of a command that looked at the pull request.
func inspected(r *Record, name string) {
	proof, review := r.Ticks[1].Proof, r.Ticks[1].Review
	r.Ticks = []Tick{{N: 1, Started: r.Ticks[0].Started, Commit: commit("2"), Proof: proof}}
	r.Baseline, r.Head = nil, commit("2")
	r.Inspection = &Inspection{Number: 7, URL: "https://git.example/octo/shop/pull/7", Branch: "proctor/issue-42", Head: commit("2").ID}
	if name == Approved || name == Rejected {
		review.Approved = name == Approved
		r.Ticks[0].Proof, r.Ticks[0].Review = nil, review
		for i := range r.Calls {
			r.Calls[i].Tick, r.Calls[i].Purpose = 1, "review"
		}
		return
	}
	r.Calls = nil
	v := r.Inspection
	v.Proved, v.Stands, v.Run, r.Head = v.Head, true, "run-41-1", nil
	v.Compared = []Compared{{"head of the branch", v.Head, v.Head, true}, {"gate iteration", "passed", "passed", true}, {"gate acceptance", "passed", "passed", true}}
	switch name {
	case Differs:
		v.Compared[2] = Compared{"gate acceptance", "passed", "failed", false}
		proof[2].Status, proof[2].ExitCode = "failed", 1
	case NotRepeated:
		v.Compared = v.Compared[:1]
		r.Ticks[0].Proof = []Gate{proof[0]}
		r.Ticks[0].Proof[0].Status = "broken"
	}
}

// huge is a record whose every list is far longer than a body may be, in hostile words.
func huge() Record {
	r := sample()
	evil := "@maria fixes #12 ![x](https://evil.example/p.png) <img src=x> <!-- proctor:status --> | `code` ::error::x\n## [link](https://evil.example) \u202e"
	last := &r.Ticks[1]
	for i := range 300 {
		last.Files = append(last.Files, FileDelta{Path: fmt.Sprintf("dir/%03d-%s", i, strings.Repeat(evil, 3)), Status: "M", Added: i})
		last.Guard = append(last.Guard, Finding{Rule: "dependency", Level: "flag", Path: evil, Detail: evil})
		r.Notes = append(r.Notes, evil)
	}
	last.FilesCut = 4700
	for i := 3; i <= 400; i++ {
		t := Tick{N: i, Agent: AgentCall{Outcome: "ok"}, Commit: commit("2"), Files: last.Files[:1], Verdict: evil, Note: evil}
		r.Ticks = append(r.Ticks, t)
	}
	tail := &r.Ticks[len(r.Ticks)-1]
	tail.Files, tail.FilesCut, tail.Guard, tail.Gates, tail.Proof, tail.Review = last.Files, last.FilesCut, last.Guard, last.Gates, last.Proof, last.Review
	nameLogs(&r)
	r.Trigger.Title = strings.Repeat(evil, 1200)
	r.Reason, r.Next = strings.Repeat(evil, 100), strings.Repeat(evil, 100)
	r.Settle(0)
	return normal(r)
}
