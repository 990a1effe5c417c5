package git

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const (
	botLine   = "shop[bot] <7+shop[bot]@users.noreply.github.com> 1772366400 +0000"
	forgeLine = "GitHub <noreply@github.com> 1772366400 +0000"
	armour    = "-----BEGIN PGP SIGNATURE-----\n\nwsBcBAABCAAQBQJ\n=MC9b\n-----END PGP SIGNATURE-----\n"
)

// forged is what a forge makes of a commit with other parents: the answer, and the whole object.
func forged(f format, c Commit, parents []ID, author, committer, signature string) Signed {
	head := headerOf(c.Tree, parents) + "author " + author + "\ncommitter " + committer
	text := head + "\ngpgsig " + strings.ReplaceAll(signature, "\n", "\n ") + "\n\n" + c.Message
	return Signed{ID: f.hash("commit", []byte(text)), Payload: head + "\n\n" + c.Message, Signature: signature}
}

// signable is a store with two commits of ours in a row.
func signable(t *testing.T) (*forge, space, Commit, Commit) {
	t.Helper()
	f, sp, first := candidate(t)
	put(t, sp.agent.Dir(), "pkg/sum.go", "second\n")
	second := sp.snapshot(t, first.Commit)
	list, err := sp.store.Unsigned(t.Context(), second.Commit)
	if err != nil || len(list) != 2 || list[0].ID != first.Commit || list[1].ID != second.Commit {
		t.Fatalf("to be signed are %+v, %v", list, err)
	}
	return f, sp, list[0], list[1]
}

// keep signs c on parents and gives the id it has then.
func keep(t *testing.T, s *Store, c Commit, parents ...ID) ID {
	t.Helper()
	made := forged(s.fmt, c, parents, botLine, forgeLine, armour)
	if err := s.KeepSigned(c, parents, made); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// INV-15: what is kept under a forge's id has the tree, the parents and the message that were asked for, and is that id.
func TestASignedCommitIsTheOneThatWasAskedForOrNone(t *testing.T) {
	t.Parallel()
	_, sp, c, other := signable(t)
	s, parents := sp.store, []ID{sp.store.Base()}
	good := forged(s.fmt, c, parents, botLine, forgeLine, armour)
	change := func(f func(*Signed)) Signed { m := good; f(&m); return m }
	renamed, longer := c, c
	renamed.Message = strings.Replace(c.Message, "Proctor-Run: r1", "Proctor-Run: r2", 1)
	longer.Message += "\n"
	moved := c
	moved.Tree = other.Tree
	encoded := good
	encoded.Payload = strings.Replace(good.Payload, "\n\n", "\nencoding latin1\n\n", 1)
	encoded.ID = s.fmt.hash("commit", []byte(strings.Replace(encoded.Payload, "\n\n", "\ngpgsig "+strings.ReplaceAll(armour, "\n", "\n ")+"\n\n", 1)))
	for name, m := range map[string]struct {
		made Signed
		want string // "" for kept
	}{
		"control: as asked":              {good, ""},
		"control: no line end behind it": {forged(s.fmt, c, parents, botLine, forgeLine, strings.TrimSpace(armour)), ""},
		"control: answered with a line end more": {change(func(m *Signed) {
			*m = forged(s.fmt, c, parents, botLine, forgeLine, strings.TrimSpace(armour))
			m.Signature += "\n"
		}), ""},
		"control: a line end more": {forged(s.fmt, longer, parents, botLine, forgeLine, armour), ""},
		"another tree":             {forged(s.fmt, moved, parents, botLine, forgeLine, armour), "another tree"},
		"another parent":           {forged(s.fmt, c, []ID{other.ID}, botLine, forgeLine, armour), "other parents"},
		"one parent more":          {forged(s.fmt, c, append(slices.Clone(parents), other.ID), botLine, forgeLine, armour), "more than tree"},
		"no parent":                {forged(s.fmt, c, nil, botLine, forgeLine, armour), "other parents"},
		"another message":          {forged(s.fmt, renamed, parents, botLine, forgeLine, armour), "another message"},
		"an encoding":              {encoded, "more than tree"},
		"another id":               {change(func(m *Signed) { m.ID = other.ID }), "has the id"},
		"another signature":        {change(func(m *Signed) { m.Signature = strings.Replace(armour, "MC9b", "MC9c", 1) }), "has the id"},
		"no signature":             {change(func(m *Signed) { m.Signature = "" }), "no signature"},
		"no payload":               {change(func(m *Signed) { m.Payload = "" }), "another tree"},
	} {
		err := s.KeepSigned(c, parents, m.made)
		_, missing := s.ReadCommit(t.Context(), m.made.ID)
		if m.want == "" {
			if err != nil || missing != nil {
				t.Errorf("%s: %v, %v", name, err, missing)
			}
			continue
		}
		if !errors.Is(err, ErrSigned) || !strings.Contains(err.Error(), m.want) {
			t.Errorf("INV-15 %s: %v, want %q", name, err, m.want)
		}
		if missing == nil && m.made.ID != other.ID && m.made.ID != good.ID {
			t.Errorf("INV-15 %s: it is kept as %s", name, m.made.ID)
		}
	}
	if out := plain(t, s.Dir(), "fsck", "--strict", "--no-dangling"); strings.Contains(out, "error") {
		t.Errorf("git finds fault with what was kept: %s", out)
	}
}

// INV-20: signed commits are ours, to build upon and to replace, and what people make of them is not.
func TestSignedCommitsAreOursAndPeoplesAreNot(t *testing.T) {
	t.Parallel()
	f, sp, c, d := signable(t)
	ctx, s := t.Context(), sp.store
	tip := keep(t, s, d, keep(t, s, c, s.Base()))
	if issue, ours, err := s.Wrote(ctx, tip); err != nil || !ours || issue != "7" {
		t.Errorf("INV-20 a signed commit is of issue %q, ours %v, %v", issue, ours, err)
	}
	if left, err := s.Unsigned(ctx, tip); err != nil || len(left) != 0 {
		t.Errorf("signed commits would be signed again: %+v, %v", left, err)
	}
	if err := s.Push(ctx, f.remote(), []RefUpdate{{branch, tip, ""}}); err != nil {
		t.Fatalf("push the signed commits: %v", err)
	}
	if err := s.Push(ctx, f.remote(), []RefUpdate{{branch, d.ID, tip}}); err != nil {
		t.Errorf("INV-20 a later run may not replace what was signed for an earlier one: %v", err)
	}
	tick := func(parent ID, text string) ID {
		put(t, sp.agent.Dir(), "pkg/sum.go", text)
		return sp.snapshot(t, parent).Commit
	}
	next := tick(tip, "a round\n")
	if list, err := s.Unsigned(ctx, next); err != nil || len(list) != 1 || list[0].ID != next {
		t.Errorf("of a round on a signed branch are to be signed %+v, %v", list, err)
	}
	for name, text := range map[string]Signed{
		"a person's amendment, signed by them":      forged(s.fmt, d, []ID{c.ID}, botLine, "Maya <maya@example.com> 1772366400 +0000", armour),
		"a person's, made on the forge's pages":     forged(s.fmt, d, []ID{c.ID}, "Maya <7+maya@users.noreply.github.com> 1772366400 +0000", forgeLine, armour),
		"a person's privacy address as committer":   forged(s.fmt, d, []ID{c.ID}, botLine, "Maya <7+maya@users.noreply.github.com> 1772366400 +0000", armour),
		"another program's, which has no run of us": forged(s.fmt, Commit{Tree: d.Tree, Message: "Bump\n"}, []ID{c.ID}, botLine, forgeLine, armour),
	} {
		theirs := Commit{ID: "x", Tree: d.Tree, Message: d.Message}
		if strings.HasSuffix(text.Payload, "\n\nBump\n") {
			theirs.Message = "Bump\n"
		}
		if err := s.KeepSigned(theirs, []ID{c.ID}, text); err != nil {
			t.Fatal(err)
		}
		if _, ours, err := s.Wrote(ctx, text.ID); err != nil || ours {
			t.Errorf("INV-20 %s counts as ours, %v", name, err)
		}
		if err := s.Replaceable(ctx, "b", text.ID, s.Base()); err == nil {
			t.Errorf("INV-20 %s may be replaced", name)
		}
		if list, err := s.Unsigned(ctx, tick(text.ID, name)); err != nil || len(list) != 1 {
			t.Errorf("below %s would be signed %+v, %v", name, list, err)
		}
	}
}
