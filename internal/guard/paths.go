package guard

import "fmt"

// checkPath holds one changed path against the lists. Every list that it is on is reported.
func (r Rules) checkPath(c Change) []Finding {
	var out []Finding
	add := func(rule Rule, level Level, next, format string, args ...any) {
		out = append(out, Finding{Rule: rule, Level: level, Path: c.Path, Detail: fmt.Sprintf(format, args...), Next: next})
	}
	did := describe(c)
	if p, ok := match(r.Sealed, c.Path); ok {
		add(Sealed, Halt, "leave held-out files alone", "%s a sealed file (%s)", did, p)
	}
	if p, ok := match(r.Always, c.Path); ok {
		add(Protected, Halt, "a maintainer changes such files by hand", "%s a file that is always protected (%s)", did, p)
	} else if p, ok := match(r.Protected, c.Path); ok {
		add(Protected, Halt, "a maintainer changes such files by hand, or takes the pattern out of policy.protected", "%s a protected file (%s)", did, p)
	}
	if p, ok := match(r.Deny, c.Path); ok {
		add(Denied, Halt, "a maintainer changes such files by hand, or takes the pattern out of policy.deny", "%s a file under policy.deny (%s)", did, p)
	}
	if r.Allow != nil {
		if _, ok := r.Allow.Match(c.Path); !ok {
			add(NotAllowed, Block, "undo the change to this file", "%s a file that policy.allow does not list", did)
		}
	}
	if p, ok := match(r.HighRisk, c.Path); ok {
		add(HighRisk, Flag, "", "%s a file under policy.high_risk (%s)", did, p)
	}
	return out
}

func match(g Globs, path string) (string, bool) {
	if g == nil {
		return "", false
	}
	return g.Match(path)
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
