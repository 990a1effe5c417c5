package guard

import (
	"context"
	"fmt"
	"slices"

	"github.com/proctor-ci/proctor/internal/guard/tamper"
)

// share looks for tests that a round took power from and that the base does not know: people's on the branch, and our own of earlier rounds.
func (c *check) share(ctx context.Context) error {
	if c.rules.TestTampering == "off" || len(c.in.Share) == 0 {
		return nil
	}
	cmp := tamper.New()
	cmp.Tree(c.in.Paths)
	for _, ch := range c.in.Share {
		if ch.Old.ID == ch.New.ID && present(ch.Old) == present(ch.New) {
			continue
		}
		before, longBefore, err := c.text(ctx, ch.Old)
		if err != nil {
			return fmt.Errorf("read %q as the round found it: %w", ch.Path, err)
		}
		after, longAfter, err := c.text(ctx, ch.New)
		if err != nil {
			return fmt.Errorf("read %q: %w", ch.Path, err)
		}
		if longBefore || longAfter {
			continue
		}
		cmp.Add(tamper.File{Path: ch.Path, Before: before, After: after, Was: isBlob(ch.Old), Is: isBlob(ch.New), BeforeID: string(ch.Old.ID), AfterID: string(ch.New.ID)})
	}
	found := slices.Clone(c.verdict.Findings)
	for _, s := range cmp.Signs() {
		f := Finding{Rule: Tampering, Level: Block, Path: s.Path, Line: s.Line, Detail: s.Detail + ", since the round began", Next: s.Next}
		settles := !s.Lost && slices.Contains(c.in.Conflicts, s.Path)
		if s.Weak || settles || c.rules.TestTampering == "flag" || c.in.Theirs == nil || !c.in.Theirs(s.Path) {
			f.Level, f.Next = Flag, "see whether the review asks for it"
		}
		told := func(o Finding) bool { // the base had it too
			return o.Rule == f.Rule && o.Path == f.Path && o.Detail == s.Detail && (o.Level == f.Level || o.Level == Block)
		}
		if !slices.ContainsFunc(found, told) {
			c.add(f)
		}
	}
	return nil
}
