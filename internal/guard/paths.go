package guard

import "fmt"

// checkPath holds one changed path against the lists. Every list that it is on is reported.
func (r Rules) checkPath(c Change) []Finding {
	var out []Finding
	add := func(rule Rule, level Level, next, format string, args ...any) {
		out = append(out, Finding{Rule: rule, Level: level, Path: c.Path, Detail: fmt.Sprintf(format, args...), Next: next})
	}
	did := describe(c)
	if p, ok := matchFolded(r.Sealed, c.Path); ok {
		add(Sealed, Halt, "leave held-out files alone", "%s a sealed file (%s)", did, p)
	}
	if p, ok := matchFolded(r.Always, c.Path); ok {
		add(Protected, Halt, "a maintainer changes such files by hand", "%s a file that is always protected (%s)", did, p)
	} else if p, ok := matchFolded(r.Protected, c.Path); ok {
		add(Protected, Halt, "a maintainer changes such files by hand, or takes the pattern out of policy.protected", "%s a protected file (%s)", did, p)
	}
	if p, ok := matchFolded(r.Deny, c.Path); ok {
		add(Denied, Halt, "a maintainer changes such files by hand, or takes the pattern out of policy.deny", "%s a file under policy.deny (%s)", did, p)
	}
	if r.Allow != nil {
		if _, ok := r.Allow.Match(c.Path); !ok {
			add(NotAllowed, Block, "undo the change to this file", "%s a file that policy.allow does not list", did)
		}
	}
	if p, ok := matchFolded(r.HighRisk, c.Path); ok {
		add(HighRisk, Flag, "", "%s a file under policy.high_risk (%s)", did, p)
	}
	return out
}

// matchFolded matches the name itself and the name a sloppy file system would take it for. It is for
// lists that forbid; a list that permits only ever sees the name itself.
func matchFolded(g Globs, path string) (string, bool) {
	if g == nil {
		return "", false
	}
	if p, ok := g.Match(path); ok {
		return p, true
	}
	if folded := fold(path); folded != path {
		return g.Match(folded)
	}
	return "", false
}

func describe(c Change) string {
	switch {
	case !present(c.Old):
		return "adds"
	case !present(c.New):
		return "deletes or moves away"
	case c.Old.ID == c.New.ID:
		return fmt.Sprintf("changes the mode (%s to %s) of", c.Old.Mode, c.New.Mode)
	case c.Old.Mode != c.New.Mode:
		return fmt.Sprintf("replaces (mode %s to %s)", c.Old.Mode, c.New.Mode)
	default:
		return "changes"
	}
}
