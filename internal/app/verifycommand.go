package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/inert"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// verifyHead repeats, for the command verify, the proof that the pull request claims. It reads and asks no model, so that it takes no
// lease: a run that works on the issue neither waits for it nor is waited for, and where the branch moves meanwhile the answer says so.
func (s *session) verifyHead(ctx context.Context) error {
	claim, ok := evidence.PullRequestClaim(s.change.Body)
	if !ok {
		return usage(fmt.Errorf("the text of pull request %d holds no claim of a proof any more: somebody changed its first lines. Next: write %s fix on it for a new proof, or give `proctor verify` the run record on a machine of your own", s.change.Number, s.prefix()))
	}
	s.beginInspection(ctx, evidence.Inspection{Head: s.change.HeadSHA, Proved: claim.OnBranch(), Stands: claim.Proves(s.change.HeadSHA), Run: claim.Run})
	s.rec.Ceilings = evidence.Ceilings{}
	s.noteWorker(ctx)
	v, err := s.verifier(claim)
	if err != nil {
		return err
	}
	v.compareHead(claim, *s.change)
	err = v.compareAll(ctx)
	v.clear()
	s.keepVerification(v)
	s.noteMoved(ctx)
	return s.verified(ctx, err)
}

// verifier is a verification in a directory of its own below the run's, on the base commit that was claimed. What gates it has, that commit
// says; how they are confined, the default branch of today says too.
func (s *session) verifier(claim evidence.Claim) (*verification, error) {
	dir := s.place("verify")
	if err := os.Mkdir(dir, 0o711); err != nil {
		return nil, fmt.Errorf("make a directory for the proof: %w", err)
	}
	req := s.req
	req.override = config.Override{} // inputs narrow a run's money and time, of which this takes none
	inner := &session{env: s.env, req: req, log: s.log, id: s.id, dir: dir, red: s.red, events: s.events, status: &statusKeeper{}, git: s.git, trigger: s.trigger}
	inner.rec.Started = s.rec.Started
	v := &verification{session: inner, told: true, strictest: s.cfg.Sandbox.Mode, view: newAccount(io.Discard, false, s.env.Now)}
	v.out = comparison{Checks: []check{}, Notes: []string{}}
	v.of = subject{what: fmt.Sprintf("pull request %d", s.change.Number), claim: claim, claimed: true, forge: s.req.forge}
	// Whoever may push can ask for a merge into a branch of their own: only the branches that the configuration names rule.
	v.of.aim(s.trigger.Repo.DefaultBranch, s.cfg.Publish.Base, s.change.Head)
	v.of.refs = append(v.of.refs, pullRef(s.req.forge, s.change.Number))
	return v, nil
}

// pullRef is where a forge keeps the head of a pull request.
func pullRef(f forge.Forge, number int) string {
	if f.Name() == "gitlab" {
		return fmt.Sprintf("refs/merge-requests/%d/head", number)
	}
	return fmt.Sprintf("refs/pull/%d/head", number)
}

// stricter is the mode that confines more.
func stricter(a, b string) string {
	order := []string{string(sandbox.Off), string(sandbox.Auto), string(sandbox.Strict)}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// noteWorker says that a run works on the issue: what it pushes later is not what was verified.
func (s *session) noteWorker(ctx context.Context) {
	h, err := s.store.Holder(ctx, s.remote, s.leaseRef())
	if err == nil && h.Holder != "" {
		s.note(fmt.Sprintf("run %s works on this issue meanwhile; what it pushes is not what was verified here", inert.Visible(h.Holder, 60)))
	}
}

// noteMoved looks where the branch is at the end.
func (s *session) noteMoved(ctx context.Context) {
	now, err := s.req.forge.Branch(ctx, s.change.Head)
	switch {
	case err != nil:
		s.note("where the branch is at the end could not be asked: " + err.Error())
		s.rec.Inspection.Moved = "unknown"
	case now != s.rec.Inspection.Head:
		s.note("the branch has moved to commit " + inert.Visible(now, 80) + " meanwhile: what is told here is of the commits above")
		s.rec.Inspection.Moved = now
	}
}

// keepVerification makes the record that of what was repeated.
func (s *session) keepVerification(v *verification) {
	if v.store != nil {
		s.rec.Base, s.rec.Config = v.rec.Base, v.rec.Config
	}
	s.rec.Confinement, s.rec.Egress, s.rec.HeldOut, s.rec.Baseline, s.rec.Ticks = v.rec.Confinement, v.rec.Egress, v.rec.HeldOut, v.rec.Baseline, v.rec.Ticks
	for i := range s.rec.Ticks {
		t := &s.rec.Ticks[i]
		t.Note = "a proof that was repeated; no agent and no reviewer was called"
		if v.tree != "" {
			t.Commit = &evidence.Commit{ID: v.of.claim.OnBranch(), Tree: v.tree}
		}
	}
	for _, c := range v.out.Checks {
		s.rec.Inspection.Compared = append(s.rec.Inspection.Compared, evidence.Compared{Name: c.Name, Claimed: inert.Visible(c.Claimed, 400), Now: inert.Visible(c.Now, 400), Same: c.Same})
	}
	for _, n := range v.rec.Notes {
		if !slices.Contains(s.rec.Notes, n) {
			s.rec.Notes = append(s.rec.Notes, n)
		}
	}
}

// verified is how a verification ended, as `proctor verify` maps it.
func (s *session) verified(ctx context.Context, err error) error {
	if err != nil {
		e := terminalOf(ctx, err)
		if e.terminal != evidence.UsageError && e.terminal != evidence.Cancelled {
			e = &ended{terminal: evidence.NotRepeated, reason: e.reason, next: e.next, err: err}
		}
		return e
	}
	var names []string
	for _, c := range s.rec.Inspection.Compared {
		if !c.Same {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return &ended{terminal: evidence.Reproduced, reason: "every id and every gate is what run " + inert.Visible(s.rec.Inspection.Run, 100) + " claims"}
	}
	return &ended{
		terminal: evidence.Differs, reason: fmt.Sprintf("%d of %d things compared are not what was claimed: %s", len(names), len(s.rec.Inspection.Compared), strings.Join(names, ", ")),
		next: fmt.Sprintf("do not merge on the strength of the claim; write %s fix on pull request %d to have what stands on its branch proved anew", s.prefix(), s.change.Number),
	}
}

// tellProof writes the check of a commit whose proof was repeated, where that commit is the head of the pull request. A proof that
// differs fails it. One that is reproduced passes it only where the checkpoint knows of it: the claim stands in a text that people can
// edit, and the check may be one that a branch rule requires (INV-15). What could not be repeated leaves the check as it is.
func (s *session) tellProof(ctx context.Context) {
	checker, ok := s.req.forge.(forge.Checker)
	if !ok || s.req.dryRun {
		return
	}
	known := false
	if s.rec.Terminal == evidence.Reproduced {
		if err := s.recall(ctx); err != nil {
			s.note("the checkpoint could not be read, so the check of the head stays as it is: " + err.Error())
		}
		s.rec.Resumed = nil
		known = s.saved.proved(s.rec)
	}
	c, ok := repeatConclusion(s.rec, known)
	if !ok {
		return
	}
	v := s.rec.Inspection
	s.setCheck(ctx, checker, c, v.Head, v.Branch)
}

// repeatConclusion is what the check of the head says after a repeated proof; false: nothing new.
func repeatConclusion(r evidence.Record, known bool) (forge.Conclusion, bool) {
	v := r.Inspection
	switch {
	case v == nil || v.Proved == "" || !v.Stands || v.Moved != "":
		return "", false
	case r.Terminal == evidence.Differs:
		return forge.ConclusionFailure, true
	case r.Terminal == evidence.Reproduced && known:
		return forge.ConclusionSuccess, true
	}
	return "", false
}

// proved tells whether the runs left that very proof: a run of theirs pushed the commit, on that base.
func (c checkpoint) proved(r evidence.Record) bool {
	v := r.Inspection
	return c.State.Version != 0 && c.Base == r.Base.ID && slices.Contains(c.Pushed, v.Proved) && slices.Contains(c.Runs, v.Run)
}
