package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/guard"
	"github.com/proctor-ci/proctor/internal/prompt"
)

// compareIDs holds the claim to the objects: a record that lies about a tree, a base that is on no branch of
// the repository, another configuration.
func (v *verification) compareIDs(ctx context.Context) error {
	c := v.of.claim
	head := git.ID(c.OnBranch())
	tree, err := v.store.Tree(ctx, head)
	if err != nil {
		return fmt.Errorf("read the proved commit: %w", err)
	}
	v.tree = string(tree)
	v.compare("tree of the head", c.Head.Tree, string(tree))
	if err := v.compareSigned(ctx, c); err != nil {
		return err
	}
	if v.of.claimed {
		v.compare("tree of the base", c.Base.Tree, string(v.store.BaseTree()))
		v.compareConfig(c)
	}
	const yes, no = "descends from the base", "does not descend from the base"
	if ok, err := v.store.Contains(ctx, head, v.store.Base()); err != nil {
		return err
	} else if ok {
		v.compare("head", yes, yes)
	} else {
		v.compare("head", yes, no)
	}
	return v.compareTrunk(ctx)
}

// compareSigned looks at what the forge signed in the place of the proved commit, and at that one where it is still to be had. Whose
// signature it is, whoever has the forge's key can tell.
func (v *verification) compareSigned(ctx context.Context, c evidence.Claim) error {
	if c.Pushed == "" {
		return nil
	}
	const yes, no = "on the commit", "none"
	pushed, err := v.store.ReadCommit(ctx, git.ID(c.Pushed))
	if err != nil {
		return fmt.Errorf("read the signed commit: %w", err)
	}
	now := no
	if pushed.Signed {
		now = yes
	}
	v.compare("signature", yes, now)
	v.note(fmt.Sprintf("the forge signed what was proved as %s: it has the same tree", short(c.Head.ID)))
	proved, err := v.store.ReadCommit(ctx, git.ID(c.Head.ID))
	var missing *git.MissingObjectError
	if errors.As(err, &missing) {
		return nil // its ref has gone on since
	}
	if err == nil {
		v.compare("tree of the proved commit", string(pushed.Tree), string(proved.Tree))
	}
	return err
}

func (v *verification) compareConfig(c evidence.Claim) {
	if c.Config != v.rec.Config.Digest && c.Tool != version {
		v.note(fmt.Sprintf("the claim was written by version %q and this is %q: a new default changes the digest of the same file", c.Tool, version))
	}
	v.compare("configuration", c.Config, v.rec.Config.Digest)
}

// compareTrunk wants the base on the branch that people merge into: whoever can write a claim could else name
// a base commit of their own, with gates that pass everything.
func (v *verification) compareTrunk(ctx context.Context) error {
	if len(v.of.trunk) == 0 {
		v.note("no forge was asked, so it was not checked that the base commit is on the default branch")
		return nil
	}
	var names []string
	for _, ref := range v.of.trunk {
		name := strings.TrimPrefix(ref, "refs/heads/")
		names = append(names, name)
		tip, err := v.store.Ref(ref)
		if err != nil {
			continue
		}
		ok, err := v.store.Contains(ctx, tip, v.store.Base())
		if err != nil {
			return err
		}
		if ok {
			v.compare("base", "on "+name, "on "+name)
			return nil
		}
	}
	v.compare("base", "on "+strings.Join(names, " or "), "on neither")
	v.astray = true
	return nil
}

// comparePolicy looks at the change as the run's guard did: a commit that was pushed by other hands could
// have changed the exam itself.
func (v *verification) comparePolicy(ctx context.Context) error {
	if err := v.makeGuard(ctx); err != nil {
		return err
	}
	tree, err := v.store.Tree(ctx, git.ID(v.of.claim.OnBranch()))
	if err != nil {
		return err
	}
	in := guard.Input{Blobs: v.store}
	if in.Changes, err = v.store.Diff(ctx, v.store.BaseTree(), tree); err != nil {
		return fmt.Errorf("compare head and base: %w", err)
	}
	in.Tick = in.Changes
	if err := v.store.Walk(ctx, tree, func(p string, _ git.Entry) error {
		in.Paths = append(in.Paths, p)
		return nil
	}); err != nil {
		return fmt.Errorf("list the head: %w", err)
	}
	verdict, err := v.guard.Check(ctx, in)
	if err != nil {
		return fmt.Errorf("check the patch policy: %w", err)
	}
	now := "nothing broken"
	if worst := verdict.Worst(); worst == guard.Halt || worst == guard.Block {
		f := verdict.At(worst)[0]
		now = fmt.Sprintf("%s %s: %s", f.Rule, prompt.Inline(f.Path, 200), prompt.Inline(f.Detail, 200))
	}
	v.compare("patch policy", "nothing broken", now)
	return nil
}

// reprove runs the proof's gates as the run did: in the same order, in pristine checkouts, as the same user,
// up to the first that does not pass.
func (v *verification) reprove(ctx context.Context) error {
	v.emit(evidence.ProofStarted, 1, slog.String(evidence.KeyCommit, v.of.claim.OnBranch()))
	stop := spinning(v.view)
	defer stop()
	if err := v.bringHeldOut(ctx); err != nil {
		return err
	}
	var last *gate.Result
	var failed error
	n := 0
	// What runs is for the maintainer's own terminal; nothing of it is stored.
	w := proofWalk{commit: git.ID(v.of.claim.OnBranch()), tick: 1, where: "proof", open: func(at *place) { at.Sealed, at.KeepOutput = v.told, !v.told }}
	err := v.walkProof(ctx, w, func(spec gate.Spec, r gate.Result) bool {
		n++
		if failed = v.keepLog(r, n); failed != nil {
			return false
		}
		if spec.Class == gate.Acceptance || r.Status != gate.Passed {
			v.show(r)
		}
		if r.Status == gate.Stopped {
			failed = &ended{terminal: evidence.Cancelled, reason: "stopped on request"}
			return false
		}
		if r.Status != gate.Passed {
			if r.Status == gate.Failed && r.Detail != "" {
				v.note("the " + spec.Name + " gate: " + r.Detail)
			}
			last = &r
			return spec.Class == gate.Acceptance && r.Status == gate.Failed && v.counting()
		}
		return true
	})
	var unready *unreadyError
	switch {
	case errors.As(err, &unready):
		if ctx.Err() != nil {
			return &ended{terminal: evidence.Cancelled, reason: "stopped on request"}
		}
		if !v.claimedStatus("setup") {
			return err
		}
		v.note("setup fails here as it did then: " + v.red.String(err.Error()))
	case err != nil:
		return err
	case failed != nil:
		return failed
	}
	return v.compareGates(last)
}

// bringHeldOut brings the held-out files that the claim was proved with: of the same commit, from the same forge.
func (v *verification) bringHeldOut(ctx context.Context) error {
	commit := ""
	if h := v.of.claim.HeldOut; h != nil {
		commit = h.Commit
	}
	if (v.heldFromSource() || v.cfg.Workspace.Submodules) && v.of.forge != nil {
		repo, err := v.of.forge.Repository(ctx)
		if err != nil {
			return err
		}
		r := v.of.forge.Remote()
		v.remote = git.Remote{URL: r.URL, Username: r.Username, Token: r.Token}
		v.trigger.Repo.Owner, v.trigger.Repo.Name = repo.Owner, repo.Name
	}
	if err := v.enterSubmodules(ctx); err != nil {
		return err
	}
	if err := v.fetchHeldOut(ctx, commit); err != nil {
		return err
	}
	v.compareHeldOut()
	return nil
}

// compareHeldOut holds the held-out files to those that the claim was proved with.
func (v *verification) compareHeldOut() {
	was, is := v.of.claim.HeldOut, v.rec.HeldOut
	if was == nil && is == nil || !v.of.claimed {
		return
	}
	tree := func(h *evidence.HeldOut) string {
		if h == nil {
			return "none"
		}
		return h.Tree
	}
	v.compare("held-out files", tree(was), tree(is))
}

// show keeps what a gate printed for the end of the account. A CI job's log is no place for it.
func (v *verification) show(r gate.Result) {
	if v.told {
		return
	}
	if v.inCI() {
		v.note(fmt.Sprintf("what the %s gate printed is not shown in a CI job, whose log an agent could read: run this on your own machine, or give --logs DIR", r.Name))
		return
	}
	v.held = append(v.held, r)
}

// claimedStatus says whether the claim has a gate of that class that did not pass.
func (v *verification) claimedStatus(class string) bool {
	for _, g := range v.of.claim.Gates {
		if g.Class == class && g.Status != string(gate.Passed) {
			return true
		}
	}
	return false
}

// compareGates puts each gate beside its claim. A gate that could not run says nothing about the change,
// unless that is the claim. last is the gate that did not pass, if any.
func (v *verification) compareGates(last *gate.Result) error {
	claimed := v.of.claim.Gates
	all := len(claimed) == 0 // an earlier run proved it, or only the commits are known: all passed
	seen := map[string]bool{}
	for _, t := range v.rec.Ticks {
		for _, g := range t.Proof {
			key := g.Class + "\x00" + g.Name
			seen[key] = true
			want := "no such gate"
			if all {
				want = string(gate.Passed)
			}
			for _, c := range claimed {
				if c.Class == g.Class && c.Name == g.Name {
					want = v.ending(c.Class, c.Status, c.Exit)
				}
			}
			now := v.ending(g.Class, g.Status, g.ExitCode)
			if g.Status == string(gate.Broken) && want != now {
				return &ended{terminal: evidence.GateBroken, reason: fmt.Sprintf("the %s gate could not run here: %s", g.Name, detailOf(last)), next: "bring what its command needs (the toolchain, a service), then verify again"}
			}
			v.compare("gate "+g.Name, want, now)
		}
	}
	for _, c := range claimed {
		if !seen[c.Class+"\x00"+c.Name] {
			v.compare("gate "+prompt.Inline(c.Name, 60), v.ending(c.Class, c.Status, c.Exit), "did not run")
		}
	}
	if len(seen) == 0 {
		return errors.New("no gate ran, so nothing was repeated")
	}
	return nil
}

func detailOf(r *gate.Result) string {
	if r == nil || r.Detail == "" {
		return "no reason given"
	}
	return r.Detail
}

// ending is a gate's status and exit in words. Its own code chooses a held-out gate's exit code, beside the sealed files: where others
// read the answer it is left out (INV-27).
func (v *verification) ending(class, status string, exit int) string {
	switch {
	case v.told && class == string(gate.Acceptance) && status != string(gate.Passed):
		return "did not pass"
	case status == string(gate.Failed):
		return fmt.Sprintf("failed (exit %d)", exit)
	}
	return strings.ReplaceAll(prompt.Inline(status, 40), "_", " ")
}
