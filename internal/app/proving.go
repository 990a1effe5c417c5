package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
)

// Prove runs every gate in pristine checkouts of exactly the commit that will be pushed.
func (s *session) Prove(ctx context.Context, candidate loop.Commit) (loop.ProofSeen, error) {
	n := s.now()
	if err := s.recollect(ctx, n, candidate); err != nil {
		return loop.ProofSeen{}, err
	}
	if err := s.recallReview(ctx, n); err != nil {
		return loop.ProofSeen{}, err
	}
	id := git.ID(candidate.ID)
	if s.cfg.Publish.History == "squash" {
		// The one commit is made before the proof, so that the proved id is the pushed id.
		var err error
		if id, err = s.store.Squash(ctx, id, s.meta(n), s.round.parents(s.store.Base())...); err != nil {
			return loop.ProofSeen{}, fmt.Errorf("squash before the proof: %w", err)
		}
	}
	s.emit(evidence.ProofStarted, n, slog.String(evidence.KeyCommit, string(id)))
	began := s.env.Now()
	seen, err := s.prove(ctx, id, n)
	if err != nil {
		return seen, err
	}
	status := "failed"
	if seen.Passed {
		s.proved, status = id, "passed"
		s.tick(n).Commit = &evidence.Commit{ID: string(id), Tree: candidate.Tree} // squashed, it has another id
	}
	s.emit(evidence.ProofEnded, n, slog.String(evidence.KeyCommit, string(id)), slog.String(evidence.KeyStatus, status))
	s.remark(began, seen)
	return seen, nil
}

// recollect fills the record's tick where an earlier run made the candidate and this one only proves it: what is
// published is shown and guarded here too.
func (s *session) recollect(ctx context.Context, n int, candidate loop.Commit) error {
	t := s.tick(n)
	if t.Commit != nil {
		return nil
	}
	changes, err := s.store.Diff(ctx, s.store.BaseTree(), git.ID(candidate.Tree))
	if err != nil {
		return fmt.Errorf("compare what an earlier run kept with the base: %w", err)
	}
	s.snap = git.Snapshot{Commit: git.ID(candidate.ID), Tree: git.ID(candidate.Tree), Changes: changes}
	t.Commit = &evidence.Commit{ID: candidate.ID, Tree: candidate.Tree}
	t.Note = "made by an earlier run and proved again; the agent was not called"
	seen, err := s.Guard(ctx, n, loop.Commit{ID: s.rec.Base.ID, Tree: s.rec.Base.Tree}, candidate)
	if err == nil && seen.Level != loop.GuardPass {
		err = &ended{terminal: evidence.SafetyHalt, reason: "what an earlier run kept breaks a rule now: " + seen.Detail}
	}
	return err
}

func (s *session) prove(ctx context.Context, id git.ID, n int) (loop.ProofSeen, error) {
	seen := loop.ProofSeen{Passed: true}
	held, failed := len(s.specsOf(gate.Acceptance)), 0
	err := s.walkProof(ctx, proofWalk{commit: id, tick: n, where: "proof"}, func(spec gate.Spec, r gate.Result) bool {
		switch {
		case r.Status == gate.Passed:
		case r.Status == gate.Stopped:
			seen = loop.ProofSeen{Stopped: true}
			return false
		case r.Status == gate.Broken:
			seen = loop.ProofSeen{Broken: true, Gate: spec.Name}
			return false
		case spec.Class == gate.Acceptance:
			// Which of several it was would tell more than was promised.
			failed++
			seen = loop.ProofSeen{Gate: string(gate.Acceptance), Acceptance: true}
			return s.counting()
		default:
			s.missedEgress(spec)
			seen = loop.ProofSeen{Gate: spec.Name}
			return false
		}
		return true
	})
	var unready *unreadyError
	if errors.As(err, &unready) {
		// The same commands passed on the base commit, so this is the candidate's, and no word of the exam.
		return loop.ProofSeen{Stopped: unready.status == gate.Stopped, Gate: string(gate.Setup)}, nil
	}
	if failed > 0 && seen.Acceptance && s.counting() {
		seen.Count = fmt.Sprintf("%d of %d failed", failed, held)
	}
	return seen, err
}

// counting tells whether the agent is told how many held-out gates failed.
func (s *session) counting() bool {
	return s.cfg.Gates.Acceptance.Feedback == "count" && s.cfg.Gates.HeldOut() > 1
}

// proofWalk is one way through the gates of a proof.
type proofWalk struct {
	commit  git.ID
	tick    int
	where   string // "proof", or "base" for tick 0
	classes []gate.Class
	repeat  int          // how often each gate runs
	open    func(*place) // changes where the gates run; nil: nothing
}

// walkProof runs the gates of a proof until seen says to stop. The visible ones run in a pristine checkout without the
// held-out files, as they do at every tick. The held-out ones run in another one: no code of the candidate has run there
// before them but the setup, which does not meet the exam, and between two of them all is put back.
// An *unreadyError means that a checkout could not be set up.
func (s *session) walkProof(ctx context.Context, w proofWalk, seen func(gate.Spec, gate.Result) bool) error {
	var visible, held []gate.Spec
	for _, spec := range s.gateSpecs() {
		switch {
		case len(w.classes) > 0 && !slices.Contains(w.classes, spec.Class):
		case spec.Class == gate.Acceptance:
			held = append(held, spec)
		default:
			visible = append(visible, spec)
		}
	}
	for _, part := range []struct {
		specs []gate.Spec
		held  bool
	}{{visible, false}, {held, true}} {
		if len(part.specs) == 0 {
			continue
		}
		if more, err := s.walkPart(ctx, w, part.specs, part.held, seen); err != nil || !more {
			return err
		}
	}
	return nil
}

// walkPart runs gates in one checkout of their own.
func (s *session) walkPart(ctx context.Context, w proofWalk, specs []gate.Spec, held bool, seen func(gate.Spec, gate.Result) bool) (more bool, err error) {
	if held {
		if err := s.standDown(); err != nil {
			return false, err
		}
	}
	proof, err := s.newProof(ctx, w.commit, held)
	if err != nil {
		return false, err
	}
	defer s.wipe(proof)
	at := s.proofPlace(proof, w.where)
	at.commit = w.commit
	if w.open != nil {
		w.open(&at)
	}
	if err := s.setup(ctx, at, w.tick); err != nil {
		return false, err
	}
	fresh := true
	for i, spec := range specs {
		if i > 0 && !held {
			drift, err := proof.Reset(ctx)
			if err != nil {
				return false, fmt.Errorf("put the proof back before its next gate: %w", err)
			}
			s.tellDrift(w.tick, specs[i-1], drift)
		}
		for again := range max(w.repeat, 1) {
			if again > 0 && isImage(spec) {
				break // a builder's caches would make it the same question
			}
			if held {
				if err := s.layHeldOut(ctx, proof, w, !fresh); err != nil {
					return false, err
				}
			}
			fresh = false
			run := s.runGate
			if again > 0 {
				run = s.runQuietly
			}
			r, err := run(ctx, spec, at, w.tick)
			if err != nil {
				return false, err
			}
			if !seen(spec, r) {
				return false, nil
			}
		}
	}
	return true, nil
}

// runQuietly repeats a gate of a proof without a line of its own in the record: it only has to say the same again.
func (s *session) runQuietly(ctx context.Context, spec gate.Spec, at place, _ int) (gate.Result, error) {
	return s.examine(ctx, spec, at)
}

// newProof makes a pristine checkout. Only the one for the held-out gates has the sealed files, behind a setup where there is
// one: see layHeldOut.
func (s *session) newProof(ctx context.Context, id git.ID, held bool) (*git.Proof, error) {
	dir, err := os.MkdirTemp(s.dir, "proof-")
	if err != nil {
		return nil, fmt.Errorf("make the proof's directory: %w", err)
	}
	var opts []git.WorktreeOption
	user, other := s.proofBox.User()
	if other {
		opts = append(opts, git.OwnedBy(git.Owner{UID: user.UID, GID: user.GID}))
	}
	if !held || len(s.cfg.Setup) > 0 {
		// The setup may run code of the candidate, which is not to meet them either.
		sealed, err := s.sealed()
		if err != nil {
			return nil, usage(err)
		}
		opts = append(opts, git.Without(sealed))
	}
	p, err := s.store.NewProof(ctx, filepath.Join(dir, "proof"), id, opts...)
	if err != nil {
		return nil, fmt.Errorf("make the pristine checkout: %w", err)
	}
	if err := s.carry(ctx, p); err != nil {
		return nil, err
	}
	if err := s.proofBox.Own(p.Dir, p.Home, p.Tmp); err != nil {
		return nil, err
	}
	return p, nil
}

// wipe removes a proof whole: what the agent's code left there beside the sealed files must be gone before
// anything of the agent runs again.
func (s *session) wipe(p *git.Proof) {
	if err := p.Remove(); err != nil {
		s.unwiped = err
	}
}
