package evidence

import (
	"slices"
	"strings"
)

// heldOut wants held-out files from elsewhere to be named by ids, and by nothing that tells what they examine.
func (c *checker) heldOut(r Record) {
	h := r.HeldOut
	if h == nil {
		return
	}
	c.need(idShape.MatchString(h.Tree), "held-out tree %q: want 40 or 64 hex digits", h.Tree)
	c.need(h.Files > 0, "held out are %d files", h.Files)
	switch h.Form {
	case "source":
		c.need(h.Repo != "", "held-out files of a source without a repository")
		c.need(idShape.MatchString(h.Commit), "held-out commit %q: want 40 or 64 hex digits", h.Commit)
	case "dir":
		c.need(h.Repo == "" && h.Ref == "" && h.Commit == "", "held-out files of a directory and of %s %s %s at once", h.Repo, h.Ref, h.Commit)
	default:
		c.need(false, "held-out files have the form %q", h.Form)
	}
}

// saidBy is what a gate has to have said for a verdict on added tests: "" for a verdict that no gate gives, "any" for one
// that a gate may have given. known tells whether there is such a verdict.
func saidBy(verdict string) (status string, known bool) {
	switch verdict {
	case "assertion", "error", "collection":
		return "failed", true
	case "passed":
		return "passed", true
	case "unknown":
		return "any", true
	case "none":
		return "", true
	}
	return "", false
}

// first holds a verdict on added tests to the gate run that it was read from.
func (c *checker) first(where string, f *FailFirst) {
	if f == nil {
		return
	}
	c.need(f.Mode == "warn" || f.Mode == "require", "%s: added tests were tried in the mode %q", where, f.Mode)
	status, known := saidBy(f.Verdict)
	c.need(known, "%s: the verdict on added tests is %q", where, f.Verdict)
	c.need((f.Verdict == "none") == (len(f.Tests) == 0), "%s: %d added tests, and the verdict on them is %q", where, len(f.Tests), f.Verdict)
	c.need(!f.Same || f.Gate == nil, "%s: added tests of an earlier tick were run again", where)
	if f.Gate == nil {
		c.need(f.Same || status == "" || status == "any", "%s: the verdict on added tests is %q, and no gate ran", where, f.Verdict)
		return
	}
	g := *f.Gate
	c.need(status == "any" || g.Status == status, "%s: the verdict on added tests is %q, and the gate %s", where, f.Verdict, g.Status)
	c.need(g.Where == "fail-first" && !g.Sealed(), "%s: %s gate %q tried added tests in %q", where, g.Class, g.Name, g.Where)
	c.gates(where+" fail-first", []Gate{g})
}

// logs wants each log to be that of one gate run: a second run that wrote over the first would be taken for it.
func (c *checker) logs(r Record) {
	all := slices.Clone(r.Baseline)
	for _, t := range r.Ticks {
		all = append(append(all, t.Gates...), t.Proof...)
		if t.First != nil && t.First.Gate != nil {
			all = append(all, *t.First.Gate)
		}
	}
	seen := map[string]bool{}
	for _, g := range all {
		name := strings.ToLower(g.Log)
		c.need(g.Log == "" || !seen[name], "%s gate %q in %q shares the log %s with another run", g.Class, g.Name, g.Where, g.Log)
		seen[name] = true
	}
}
