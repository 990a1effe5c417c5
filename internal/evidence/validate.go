package evidence

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/pattern"
)

// ErrInvalid marks a record that contradicts itself.
var ErrInvalid = errors.New("the run record contradicts itself")

var (
	idShape     = pattern.Of(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
	digestShape = pattern.Of(`^(?:sha256:)?[0-9a-f]{64}$`)
	runShape    = pattern.Of(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	logShape    = pattern.Of(`^[A-Za-z0-9][A-Za-z0-9._-]{0,120}\.log\.gz$`)
)

// Validate says everything that is wrong with a record, wrapped in ErrInvalid, or nil: the totals
// reconcile with ticks and calls (INV-54), terminal and exit code are a pair of the table, ids have
// the shape of ids, no held-out gate has a log, no two gates share one, what is said of held-out files and of added tests
// can be so, and a done run shows its proof.
func Validate(r Record) error {
	c := &checker{}
	c.identity(r)
	c.ending(r)
	c.ticks(r)
	c.plan(r)
	c.heldOut(r)
	c.logs(r)
	c.totals(r)
	return c.err()
}

type checker struct{ found []error }

func (c *checker) err() error {
	if len(c.found) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalid, errors.Join(c.found...))
}

func (c *checker) need(ok bool, format string, args ...any) {
	if !ok {
		c.found = append(c.found, fmt.Errorf(format, args...))
	}
}

func (c *checker) identity(r Record) {
	c.need(r.Schema == SchemaVersion, "schema is %d, want %d", r.Schema, SchemaVersion)
	c.need(runShape.MatchString(r.Run), "run id %q: want letters, digits, dots, dashes", r.Run)
	// A refused run ends before it has read anything: ids may be missing then, never wrong.
	began := len(r.Ticks) > 0 || len(r.Baseline) > 0
	c.id("base", r.Base, began)
	if r.Head != nil {
		c.id("head", *r.Head, true)
	}
	c.need(r.Config.Digest == "" && !began || digestShape.MatchString(r.Config.Digest), "config digest %q: want SHA-256", r.Config.Digest)
	c.need(r.Trigger.Snapshot == "" && !began || digestShape.MatchString(r.Trigger.Snapshot), "snapshot %q: want SHA-256", r.Trigger.Snapshot)
	c.need(!r.Started.IsZero() && !r.Ended.Before(r.Started), "started %v, ended %v: want two times in order", r.Started, r.Ended)
	c.gates("baseline", r.Baseline)
}

func (c *checker) id(what string, v Commit, required bool) {
	if v == (Commit{}) && !required {
		return
	}
	c.need(idShape.MatchString(v.ID), "%s commit %q: want 40 or 64 hex digits", what, v.ID)
	c.need(idShape.MatchString(v.Tree), "%s tree %q: want 40 or 64 hex digits", what, v.Tree)
}

func (c *checker) ending(r Record) {
	t, ok := FindTerminal(r.Terminal)
	c.need(ok, "terminal %q is not one of the table", r.Terminal)
	if ok {
		c.need(r.ExitCode == t.Exit, "terminal %s has exit code %d, want %d", r.Terminal, r.ExitCode, t.Exit)
	}
	// A green job without a proof must not hide that something ran.
	c.need(r.Terminal != Answered || len(r.Ticks)+len(r.Calls) == 0 && r.Head == nil, "an answered comment has ticks, calls or a head commit")
	c.inspection(r)
	c.need(r.Reason != "", "reason is empty: every ending is told")
	if p := r.Published; p != nil {
		c.need(r.Head != nil && p.Commit == r.pushedID(), "published commit %q is not the head", p.Commit)
		c.need(!r.DryRun, "a dry run published %q", p.Branch)
	}
	c.signing(r)
	if (r.Terminal == Done || r.Terminal == PublishFailed) && !r.rehearsal() {
		c.proved(r)
	}
}

// inspection holds the ending of a command that looked at a pull request to what it saw there.
func (c *checker) inspection(r Record) {
	var compared []Compared
	if r.Inspection != nil {
		compared = r.Inspection.Compared
		c.need(r.Published == nil, "a command that looks at a pull request published %v", r.Published)
	}
	differs := slices.ContainsFunc(compared, func(k Compared) bool { return !k.Same })
	review := (*Review)(nil)
	if t := r.last(); t != nil {
		review = t.Review
	}
	switch r.Terminal {
	case Reproduced:
		c.need(len(compared) > 0 && !differs, "%s, and what was compared is %+v", r.Terminal, compared)
	case Differs:
		c.need(differs, "%s, and nothing that was compared does: %+v", r.Terminal, compared)
	case NotRepeated:
		c.need(r.Inspection != nil, "%s, and no pull request is named", r.Terminal)
	case Approved, Rejected:
		c.need(r.Inspection != nil && review != nil && review.Approved == (r.Terminal == Approved), "%s, and the review is %+v", r.Terminal, review)
	}
}

// proved holds a done run to what done means. A resumed run may publish what an earlier one proved.
func (c *checker) proved(r Record) {
	c.need(r.Head != nil, "%s without a head commit", r.Terminal)
	if len(r.Ticks) == 0 {
		c.need(len(r.Resumed) > 0, "%s without a tick", r.Terminal)
		return
	}
	last := r.Ticks[len(r.Ticks)-1]
	c.need(r.Head == nil || last.Commit != nil && *last.Commit == *r.Head, "%s: the head is not the last tick's commit", r.Terminal)
	c.need(len(last.Files)+last.FilesCut > 0, "%s with an empty change", r.Terminal)
	c.need(len(last.Proof) > 0, "%s without a proof", r.Terminal)
	for _, g := range last.Proof {
		c.need(g.Status == "passed", "%s, and %s gate %q of the proof is %s", r.Terminal, g.Class, g.Name, g.Status)
	}
	c.need(r.HeldOut == nil || slices.ContainsFunc(last.Proof, Gate.HeldOut), "%s with held-out files, and no held-out gate in its proof", r.Terminal)
	if f := last.First; f != nil && f.Mode == "require" {
		c.need(f.Verdict == "assertion" || f.Verdict == "none", "%s, added tests have to fail first, and what they did is %q", r.Terminal, f.Verdict)
	}
}

func (c *checker) ticks(r Record) {
	for i, t := range r.Ticks {
		where := fmt.Sprintf("tick %d", t.N)
		if i == 0 {
			c.need(t.N == 1 || t.N > 1 && len(r.Resumed) > 0, "first tick is %d, want 1", t.N)
		} else {
			c.need(t.N == r.Ticks[i-1].N+1, "tick %d follows tick %d", t.N, r.Ticks[i-1].N)
		}
		if t.Commit != nil {
			c.id(where, *t.Commit, true)
		}
		c.gates(where, t.Gates)
		c.gates(where+" proof", t.Proof)
		c.first(where, t.First)
		c.need(t.Share == nil || r.Plan != nil && t.Item > 0 && t.Item <= len(r.Plan.Items), "%s: the reviewer judged an item's share, and there is no item %d", where, t.Item)
		for _, g := range t.Proof {
			c.need(g.Where == "proof", "%s proof: gate %q ran in %q", where, g.Name, g.Where)
		}
	}
}

func (c *checker) gates(where string, gates []Gate) {
	for _, g := range gates {
		c.need(g.Digest == "" || digestShape.MatchString(g.Digest), "%s gate %q: output digest %q: want SHA-256", where, g.Name, g.Digest)
		c.need(g.Log == "" || logShape.MatchString(g.Log), "%s gate %q: log %q is not a file beside the record", where, g.Name, g.Log)
		c.need(g.Log == "" || !g.Sealed(), "%s gate %q is held out and has a log", where, g.Name)
		c.need(g.At == 0 || !g.Sealed(), "%s gate %q is held out and says when it began", where, g.Name)
		c.need(g.Status != "passed" || g.ExitCode == 0, "%s gate %q passed with exit code %d", where, g.Name, g.ExitCode)
	}
}

func (c *checker) totals(r Record) {
	numbers := map[int]bool{0: true}
	ms := int64(0)
	for _, t := range r.Ticks {
		numbers[t.N] = true
		ms += t.Millis
	}
	spent := map[int]money.USD{}
	total := money.USD(0)
	for i, call := range r.Calls {
		c.need(call.Purpose != "item_review" || r.Plan != nil, "call %d is the review of an item, and there is no plan", i+1)
		c.need(numbers[call.Tick], "call %d belongs to tick %d, which is not in the record", i+1, call.Tick)
		c.need(call.CostUSD >= 0, "call %d costs %s", i+1, call.CostUSD)
		spent[call.Tick] = spent[call.Tick].Add(call.CostUSD)
		total = total.Add(call.CostUSD)
	}
	for _, t := range r.Ticks {
		c.need(t.CostUSD == spent[t.N], "tick %d says it cost %s, its calls %s", t.N, t.CostUSD.Decimal(), spent[t.N].Decimal())
	}
	wall := r.Ended.Sub(r.Started).Milliseconds()
	c.need(r.Totals.Ticks == len(r.Ticks), "totals say %d ticks, the record has %d", r.Totals.Ticks, len(r.Ticks))
	c.need(r.Totals.Calls == len(r.Calls), "totals say %d calls, the record has %d", r.Totals.Calls, len(r.Calls))
	c.need(r.Totals.CostUSD == total, "totals say %s, the calls %s", r.Totals.CostUSD.Decimal(), total.Decimal())
	c.need(r.Totals.IssueUSD >= total, "the issue cost %s in all and this run %s", r.Totals.IssueUSD.Decimal(), total.Decimal())
	c.need(r.Totals.Millis == wall, "totals say %d ms, the times %d ms", r.Totals.Millis, wall)
	c.need(ms <= wall, "the ticks took %d ms, the whole run %d ms", ms, wall)
}

// Sealed tells whether what the gate printed may be kept: nothing that ran beside the held-out files
// leaves anything but its name, its result and a digest.
func (g Gate) Sealed() bool {
	return g.Where == "proof" || g.Class == "acceptance" || g.Where == "base" && g.Class == "setup"
}

// HeldOut tells whether the gate is the acceptance gate.
func (g Gate) HeldOut() bool { return strings.EqualFold(g.Class, "acceptance") }
