package evidence

import (
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/inert"
	"github.com/proctor-ci/proctor/internal/pattern"
)

// The parts that the pull request's body and the job summary share.

// gates is the table of what decided.
func (p *page) gates(r Record) {
	gates := r.deciding()
	if len(gates) == 0 {
		if r.Terminal == Approved || r.Terminal == Rejected {
			return // a review asks for none
		}
		p.linef("\nNone has run on the last state of the change.")
		return
	}
	p.table("gate run", len(gates), func(i int) []string {
		g := gates[i]
		command, time := inert.Cell(g.Command, maxCmd), took(g.Millis)
		if g.HeldOut() {
			command = "held out"
		}
		if g.Where == "proof" {
			time = "" // how long code took beside the sealed files is theirs to know
		}
		return []string{inert.Text(g.label(), maxTitle), place(g.Where), command, mark(g.Status) + " " + g.result(), time}
	}, "Gate", "Ran in", "Command", "Result", "Time")
	if h := r.heldOut(func(s string) string { return inert.Code(s, maxTitle) }); h != "" {
		p.linef("\n**Held out:** %s", h)
	}
	if a := r.addedTests(); a != "" {
		p.linef("\n**Added tests:** %s", inert.Text(a, maxDetail))
	}
}

// heldOut says what the held-out gates prove here, and what they do not; "" when there is nothing to say. code
// marks up a gate's name.
func (r Record) heldOut(code func(string) string) string {
	var held []Gate
	for _, g := range r.deciding() {
		if g.HeldOut() {
			held = append(held, g)
		}
	}
	if len(held) == 0 {
		if r.Terminal == Done && !r.rehearsal() {
			return "nothing. No acceptance gate is configured, so the proof rests on gates that the agent could see."
		}
		return ""
	}
	var said []string
	for _, g := range held {
		said = append(said, code(g.Name)+" "+g.result())
	}
	s := strings.Join(said, ", ") + "."
	if h := r.HeldOut; h != nil {
		s += " " + h.from(code)
	}
	if !r.enforced("filesystem") {
		return s + " Its files were left out of the agent's directory, but nothing kept the agent from looking elsewhere: " +
			"the filesystem was not confined, so they were hidden, not sealed."
	}
	return s + " The agent never had its files or its output, so only its name and result are shown here."
}

// from says where the files came from.
func (h *HeldOut) from(code func(string) string) string {
	if h.Form == "dir" {
		return fmt.Sprintf("The job provided %s (tree %s).", count(h.Files, "file"), inert.Visible(short(h.Tree), 20))
	}
	return fmt.Sprintf("%s came from %s at %s.", count(h.Files, "file"), code(h.Repo), inert.Visible(short(h.Commit), 20))
}

// addedTests says what the tests that the change adds do on the base code; "" when there is nothing to say.
func (r Record) addedTests() string {
	t := r.last()
	if t == nil || t.First == nil || t.First.Verdict == "none" {
		return ""
	}
	return inert.Visible(t.First.Detail, maxDetail) + "."
}

// ticks is the way to the ending.
func (p *page) ticks(r Record) {
	if len(r.Ticks) == 0 {
		return
	}
	p.table("tick", len(r.Ticks), func(i int) []string {
		t := r.Ticks[i]
		review := "–"
		if t.Review != nil {
			review = "rejected"
			if t.Review.Approved {
				review = "approved"
			}
			if t.Review.Cached {
				review += " (same tree)"
			}
		}
		return []string{
			fmt.Sprint(t.N), inert.Text(strings.ReplaceAll(t.Agent.Outcome, "_", " "), 40), marks(t.Gates), review, marks(t.Proof),
			inert.Text(strings.ReplaceAll(t.Verdict, "_", " "), 40), inert.Words(t.CostUSD.String()), took(t.Millis),
		}
	}, "Tick", "Agent", "Gates", "Review", "Proof", "Verdict", "Cost", "Time")
	for _, t := range r.Ticks {
		if t.Note != "" && len(r.Ticks) <= p.rows {
			p.linef("\nTick %d: %s", t.N, inert.Text(t.Note, maxDetail))
		}
	}
}

// marks is a row of gates in a few characters.
func marks(gates []Gate) string {
	if len(gates) == 0 {
		return "–"
	}
	var s []string
	for _, g := range gates {
		s = append(s, mark(g.Status)+" "+inert.Text(g.Class, 20))
	}
	return strings.Join(s, "<br>")
}

// findings are the guard's and then the reviewer's.
func (t *Tick) findings() []Finding {
	all := append([]Finding{}, t.Guard...)
	if t.Review != nil {
		all = append(all, t.Review.Findings...)
	}
	if t.Share != nil {
		all = append(all, t.Share.Findings...)
	}
	return all
}

// findings are the guard's and the reviewer's remarks on the last tick.
func (p *page) findings(r Record) {
	t := r.last()
	if t == nil {
		return
	}
	all := t.findings()
	if len(all) == 0 {
		return
	}
	p.linef("\n### Findings\n")
	p.items("finding", len(all), func(i int) string {
		f := all[i]
		where := ""
		if f.Path != "" {
			where = " " + inert.Code(f.Path, maxPath)
			if f.Line > 0 {
				where += fmt.Sprintf(" line %d", f.Line)
			}
		}
		return fmt.Sprintf("**%s** (%s)%s: %s", inert.Text(f.Rule, 60), inert.Text(f.Level, 20), where, inert.Text(f.Detail, maxDetail))
	})
}

// change is what the last tick changed, with its risk.
func (p *page) change(r Record) {
	t := r.last()
	if t == nil || len(t.Files) == 0 {
		return
	}
	added, removed := 0, 0
	for _, f := range t.Files {
		added += f.Added
		removed += f.Removed
	}
	risk := ""
	if r.Risk.Level != "" {
		risk = " · risk: " + inert.Text(r.Risk.Level, 20)
	}
	p.linef("\n### What changed: %s, +%d −%d%s\n", count(len(t.Files)+t.FilesCut, "file"), added, removed, risk)
	p.items("reason of the risk", len(r.Risk.Why), func(i int) string { return inert.Text(r.Risk.Why[i], maxDetail) })
	p.table("changed file", len(t.Files), func(i int) []string {
		f := t.Files[i]
		return []string{inert.Cell(f.Path, maxPath), inert.Text(changeWord(f), maxPath), fmt.Sprintf("+%d −%d", f.Added, f.Removed), inert.Text(f.Risk, 60)}
	}, "File", "Change", "Lines", "Risk")
	if t.FilesCut > 0 {
		p.linef("\n%s more are not in the record; `git diff` of base and head shows them.", count(t.FilesCut, "file"))
	}
}

// changeWord says in words how a file changed; modes and unknown letters are shown as they are.
func changeWord(f FileDelta) string {
	s := map[string]string{"A": "added", "M": "changed", "D": "deleted", "T": "type changed"}[f.Status]
	if s == "" {
		s = inert.Visible(f.Status, 10)
	}
	if f.OldMode != "" && f.NewMode != "" && f.OldMode != f.NewMode {
		s += fmt.Sprintf(", mode %s → %s", inert.Visible(f.OldMode, 8), inert.Visible(f.NewMode, 8))
	}
	return s
}

// costs is who spent what.
func (p *page) costs(r Record) {
	p.linef("\n### Cost: %s", inert.Words(r.cost()))
	if len(r.Calls) == 0 {
		p.linef("\nNo model was called through the meter.")
	}
	s := r.spends()
	p.table("model", len(s), func(i int) []string {
		calls := fmt.Sprint(s[i].calls)
		if s[i].reserved > 0 {
			calls += fmt.Sprintf(" (%d priced at the reserve)", s[i].reserved)
		}
		return []string{
			inert.Text(s[i].purpose, 20), inert.Cell(s[i].model, 80), calls, fmt.Sprint(s[i].input), fmt.Sprint(s[i].output),
			fmt.Sprintf("%d read, %d written", s[i].cacheRead, s[i].write), inert.Words(s[i].cost.String()),
		}
	}, "For", "Model", "Calls", "Tokens in", "Tokens out", "Cache", "Cost")
}

// confinement is what held, and above all what did not.
func (p *page) confinement(r Record) {
	p.linef("\n### Confinement\n")
	if len(r.Confinement) == 0 {
		p.linef("**Nothing was enforced**: the record names no confinement of the agent or the gates.")
		return
	}
	var on, off, looser []Enforced
	for _, e := range r.Confinement {
		switch {
		case e.Active:
			on = append(on, e)
		case e.missing():
			off = append(off, e)
		default:
			looser = append(looser, e)
		}
	}
	say := func(e Enforced) string {
		s := inert.Text(e.Name, 40)
		if e.Detail != "" {
			s += ": " + inert.Text(e.Detail, maxDetail)
		}
		return s
	}
	if len(off) > 0 {
		p.linef("**Not enforced on this machine:**\n")
		p.items("part that was not enforced", len(off), func(i int) string { return say(off[i]) })
		p.linef("")
	}
	if len(looser) > 0 {
		p.linef("Held by the other parts, less tightly:\n")
		p.items("part that is held less tightly", len(looser), func(i int) string { return say(looser[i]) })
		p.linef("")
	}
	if len(on) > 0 {
		p.linef("Enforced:\n")
		p.items("enforced part", len(on), func(i int) string { return say(on[i]) })
	}
	if r.Egress != nil {
		p.linef("\n**Egress:** %s", r.Egress.summary(func(s string) string { return inert.Code(s, 80) }))
	}
}

// removed is what the requester did not see and the agent therefore did not either.
func (p *page) removed(r Record) {
	if len(r.Removed) == 0 {
		return
	}
	p.linef("\n### Taken out of the issue\n\nText that nobody sees on the forge's page was not given to the agent:\n")
	p.items("kind of hidden text", len(r.Removed), func(i int) string {
		v := r.Removed[i]
		return fmt.Sprintf("%s ×%d in the %s", inert.Text(v.Kind, 80), v.Count, inert.Text(v.Where, 80))
	})
}

func (p *page) notes(r Record) {
	if len(r.Notes) == 0 {
		return
	}
	p.linef("\n### Notes\n")
	p.items("note", len(r.Notes), func(i int) string { return inert.Text(r.Notes[i], maxDetail) })
}

// fact is one line of provenance: words of ours, then a value of anybody's.
type fact struct{ Name, Before, Value string }

// provenance binds the account to its objects.
func (r Record) provenance() []fact {
	var facts []fact
	add := func(name, before, value string) {
		if value != "" {
			facts = append(facts, fact{name, before, value})
		}
	}
	add("Run", "", r.Run)
	add("Continues", "", strings.Join(r.Resumed, ", "))
	if add("Started since", "", r.Trigger.Cause); r.Trigger.Cause != "" {
		add("On the account of", "", r.Trigger.Actor)
	} else {
		add("Asked by", "", r.Trigger.Actor)
	}
	add("Role of the asker", "", r.Trigger.Role)
	add("Issue as approved", "", r.Trigger.Snapshot)
	add("Base", "", r.Base.ID)
	if r.Head != nil {
		add("Head", "", r.Head.ID)
		add("Tree", "", r.Head.Tree)
	}
	if s := r.Signing; s != nil {
		if s.Signed {
			add("Pushed as", "", s.Pushed.ID)
		}
		add("Signature", "", s.Said())
	}
	if r.Config.Path == "" {
		add("Configuration", "none in the repository, proposed from its stack:", r.Config.Digest)
	} else {
		add("Configuration", "", r.Config.Path)
		add("Its digest", "", r.Config.Digest)
	}
	add("Agent", "", strings.Join(strings.Fields(r.Agent.Name+" "+r.Agent.Version+" "+r.Agent.Model), " "))
	add("Proctor", "", strings.Join(strings.Fields(r.Tool.Version+" "+short(r.Tool.Commit)), " "))
	return facts
}

func (p *page) provenance(r Record) {
	facts := r.provenance()
	p.table("line of provenance", len(facts), func(i int) []string {
		f := facts[i]
		return []string{f.Name, strings.TrimSpace(f.Before + " " + inert.Cell(f.Value, maxPath))}
	}, "", "")
}

// plainRef are names that mean nothing to a shell, to Markdown or to git's options.
var plainRef = pattern.Of(`^[A-Za-z0-9][A-Za-z0-9._/#@+,()-]*$`)

// verify says how to see for oneself.
func (p *page) verify(r Record) {
	from := r.Branch
	if r.Published != nil {
		from = r.Published.Branch
	}
	if from == "" || r.Terminal != Done && r.Kept != "" {
		from = r.Kept
	}
	if r.Head == nil || !plainRef.MatchString(from) || !idShape.MatchString(r.Head.ID) {
		return
	}
	p.linef("\n### Verify it yourself\n\n```sh")
	if r.Trigger.Forge != "local" {
		p.linef("git fetch origin '%s'", from)
	}
	p.linef("git checkout --detach %s   # tree %s", r.pushedID(), short(r.Head.Tree))
	alone := "the proof ran on this commit alone"
	if r.pushedID() != r.Head.ID {
		alone = "the proof ran on this tree alone, and the forge has signed it since, which gave it another id"
	}
	p.linef("```\n\nThen run the commands of the table above. Nothing the agent left behind is needed: %s. "+
		"`proctor verify` with the number of the pull request, or with the run record, does it for you: it repeats the whole proof, the held-out gate too, and compares.", alone)
}
