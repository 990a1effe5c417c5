package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/guard"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/prompt"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// feedbackBytes is how much of a failing gate's output the agent is shown.
const feedbackBytes = 16 << 10

// Baseline is tick 0: every gate on the base commit, the sealed one in a proof of its own.
func (s *session) Baseline(ctx context.Context) (loop.Baseline, error) {
	var b loop.Baseline
	if err := s.setup(ctx, s.gatePlace("base"), 0); err != nil {
		b.Iteration = loop.GateSeen{Status: loop.GateWasted, Detail: err.Error()}
		return b, nil
	}
	for _, spec := range s.gateSpecs() {
		var err error
		switch spec.Class {
		case gate.Iteration:
			b.Iteration, err = s.stable(ctx, spec)
		case gate.Regression:
			b.Regression, err = s.stable(ctx, spec)
		case gate.Acceptance:
			if s.cfg.Gates.Acceptance.MustFailOnBase != "never" {
				b.Acceptance, err = s.sealedBaseline(ctx, spec)
			}
		}
		if err != nil {
			return b, err
		}
	}
	if _, err := s.gateTree.Check(ctx); err != nil {
		return b, fmt.Errorf("look at what the gates left: %w", err)
	}
	return b, nil
}

// stable runs a gate on the base commit as often as configured; disagreement is flaky.
func (s *session) stable(ctx context.Context, spec gate.Spec) (loop.GateSeen, error) {
	at := s.gatePlace("base")
	s.started(spec, at, 0)
	r, err := s.gates.Stable(ctx, spec, at.Place, s.cfg.Gates.Stability, func(ctx context.Context) error {
		_, err := s.gateTree.Check(ctx)
		return err
	})
	var flaky *gate.FlakyError
	if errors.As(err, &flaky) {
		s.ended(flaky.Second, at, 0)
		return loop.GateSeen{Status: loop.GateFlaked, Detail: flaky.Error()}, nil
	}
	if err != nil {
		return loop.GateSeen{}, err
	}
	s.ended(r, at, 0)
	return s.seen(r), nil
}

func (s *session) sealedBaseline(ctx context.Context, spec gate.Spec) (loop.GateSeen, error) {
	proof, err := s.newProof(ctx, s.store.Base())
	if err != nil {
		return loop.GateSeen{}, err
	}
	defer s.wipe(proof)
	place := s.proofPlace(proof, "base")
	if err := s.setup(ctx, place, 0); err != nil {
		return loop.GateSeen{Status: loop.GateWasted, Detail: err.Error()}, nil
	}
	r, err := s.runGate(ctx, spec, place, 0)
	if err != nil {
		return loop.GateSeen{}, err
	}
	return s.seen(r), nil
}

// place is where gates run.
type place struct {
	gate.Place
	where string // "base", "gate" or "proof", for the record
}

func (s *session) gatePlace(where string) place {
	home, tmp := s.place("gate-home"), s.place("gate-tmp")
	return place{where: where, Place: gate.Place{Dir: s.gateTree.Dir(), Home: home, Tmp: tmp, ReadOnly: s.toolDirs, Env: s.gateEnv(home, tmp), KeepOutput: true}}
}

// proofPlace is sealed whole: the agent's own code runs there beside the sealed files.
func (s *session) proofPlace(p *git.Proof, where string) place {
	return place{where: where, Place: gate.Place{Dir: p.Dir, Home: p.Home, Tmp: p.Tmp, ReadOnly: s.toolDirs, Env: s.gateEnv(p.Home, p.Tmp), Sealed: true}}
}

// gateEnv puts the job's toolchains into a gate's PATH.
func (s *session) gateEnv(home, tmp string) []string {
	for _, kv := range sandbox.WithPath(sandbox.BaseEnv(home, tmp), s.programDirs()...) {
		if strings.HasPrefix(kv, "PATH=") {
			return []string{kv}
		}
	}
	return nil
}

// runGate runs one gate and puts it into the record, its output beside it unless it is sealed.
func (s *session) runGate(ctx context.Context, spec gate.Spec, at place, tick int) (gate.Result, error) {
	s.started(spec, at, tick)
	gates := s.gates
	if at.Sealed {
		gates = s.proofGates
	}
	r, err := gates.Run(ctx, spec, at.Place)
	if err != nil {
		return r, err
	}
	s.ended(r, at, tick)
	return r, nil
}

func (s *session) started(spec gate.Spec, at place, tick int) {
	s.emit(evidence.GateStarted, tick, slog.String(evidence.KeyClass, string(spec.Class)), slog.String(evidence.KeyGate, spec.Name), slog.String(evidence.KeyWhere, at.where))
}

func (s *session) ended(r gate.Result, at place, tick int) {
	g := evidence.Gate{
		Class: string(r.Class), Name: r.Name, Command: commandLine(r.Argv), Where: at.where, Status: string(r.Status), ExitCode: r.ExitCode,
		Millis: r.Duration.Milliseconds(), Digest: r.Digest, Bytes: r.Bytes, Detail: r.Detail,
	}
	attrs := []slog.Attr{slog.String(evidence.KeyClass, string(r.Class)), slog.String(evidence.KeyGate, r.Name), slog.String(evidence.KeyWhere, at.where), slog.String(evidence.KeyStatus, string(r.Status))}
	if !at.Sealed {
		attrs = append(attrs, slog.Int(evidence.KeyExit, r.ExitCode), slog.Duration(evidence.KeyMillis, r.Duration))
		var err error
		if g.Log, err = evidence.SaveGateLog(s.req.reports, tick, g, r.Output, s.red); err != nil {
			s.note("the output of the " + r.Name + " gate could not be kept: " + err.Error())
		}
	}
	s.emit(evidence.GateEnded, tick, attrs...)
	s.keepGate(g, tick)
}

func (s *session) keepGate(g evidence.Gate, n int) {
	switch {
	case n == 0:
		s.rec.Baseline = append(s.rec.Baseline, g)
	case g.Where == "proof":
		t := s.tick(n)
		t.Proof = append(t.Proof, g)
	default:
		t := s.tick(n)
		t.Gates = append(t.Gates, g)
	}
}

// seen is a gate's result as the loop needs it. Of a sealed one there is a status and nothing else.
func (s *session) seen(r gate.Result) loop.GateSeen {
	seen := loop.GateSeen{Exit: r.ExitCode, TimedOut: r.Status == gate.TimedOut, Detail: r.Detail}
	switch r.Status {
	case gate.Passed:
		seen.Status = loop.GatePassed
	case gate.Failed, gate.TimedOut:
		seen.Status = loop.GateFailed
	case gate.Stopped:
		seen.Status = loop.GateStopped
	default:
		seen.Status = loop.GateWasted
		return seen
	}
	if r.Output != nil {
		seen.Fingerprint = gate.Fingerprint(r)
		seen.Feedback = gate.Feedback(r, feedbackBytes)
	}
	return seen
}

// setup runs the configured preparation in a fresh place. Its failure is the gate's: nothing can be tested.
func (s *session) setup(ctx context.Context, at place, tick int) error {
	for i, c := range s.cfg.Setup {
		spec := gate.Spec{Class: gate.Setup, Name: fmt.Sprintf("setup %d", i+1), Argv: c.Argv, Timeout: s.cfg.Gates.Timeout}
		r, err := s.runGate(ctx, spec, at, tick)
		if err != nil {
			return err
		}
		if r.Status != gate.Passed {
			return fmt.Errorf("setup %q %s with exit code %d. Next: run it on a clean checkout; it has no network but what sandbox.egress lists", commandLine(c.Argv), strings.ReplaceAll(string(r.Status), "_", " "), r.ExitCode)
		}
	}
	return nil
}

// Guard judges the candidate against the base tree.
func (s *session) Guard(ctx context.Context, n int, parent, candidate loop.Commit) (loop.GuardSeen, error) {
	tick := s.tick(n)
	in := guard.Input{Changes: s.snap.Changes, Problems: s.snap.Problems, Blobs: s.store}
	var err error
	if in.Tick, err = s.store.Diff(ctx, git.ID(parent.Tree), git.ID(candidate.Tree)); err != nil {
		return loop.GuardSeen{}, fmt.Errorf("compare with the last good commit: %w", err)
	}
	if err := s.store.Walk(ctx, git.ID(candidate.Tree), func(p string, _ git.Entry) error {
		in.Paths = append(in.Paths, p)
		return nil
	}); err != nil {
		return loop.GuardSeen{}, fmt.Errorf("list the candidate: %w", err)
	}
	v, err := s.guard.Check(ctx, in)
	if err != nil {
		return loop.GuardSeen{}, fmt.Errorf("check the patch policy: %w", err)
	}
	s.verdict = v
	s.keepVerdict(tick, v)
	seen := loop.GuardSeen{Level: loop.GuardPass, Feedback: v.Feedback()}
	if worst := v.At(v.Worst()); len(worst) > 0 {
		seen.Detail = string(worst[0].Rule) + " " + prompt.Inline(worst[0].Path, 200) + ": " + prompt.Inline(worst[0].Detail, 200)
	}
	switch v.Worst() {
	case guard.Halt:
		seen.Level = loop.GuardHalt
	case guard.Block:
		seen.Level = loop.GuardBlock
	}
	return seen, nil
}

func (s *session) keepVerdict(t *evidence.Tick, v guard.Verdict) {
	s.keepFiles(t, v)
	s.emit(evidence.Snapshot, t.N, slog.String(evidence.KeyCommit, t.Commit.ID), slog.String(evidence.KeyTree, t.Commit.Tree),
		slog.Int(evidence.KeyFiles, v.Files), slog.Int(evidence.KeyAdded, v.Added), slog.Int(evidence.KeyRemoved, v.Removed))
	attrs := []slog.Attr{slog.String(evidence.KeyLevel, string(v.Worst())), slog.Int(evidence.KeyFindings, len(v.Findings))}
	for i, f := range v.Findings {
		path := prompt.Inline(f.Path, 300)
		t.Guard = append(t.Guard, evidence.Finding{Rule: string(f.Rule), Level: string(f.Level), Path: path, Line: f.Line, Detail: prompt.Inline(f.Detail, 300)})
		if i == 0 {
			attrs = append(attrs, slog.String(evidence.KeyRule, string(f.Rule)), slog.String(evidence.KeyPath, path))
		}
	}
	s.emit(evidence.Guard, t.N, attrs...)
}

// maxFiles is how many changed files a record lists for one tick.
const maxFiles = 300

func (s *session) keepFiles(t *evidence.Tick, v guard.Verdict) {
	for i, c := range s.snap.Changes {
		if i == maxFiles {
			t.FilesCut = len(s.snap.Changes) - maxFiles
			break
		}
		d := evidence.FileDelta{Path: prompt.Inline(c.Path, 300), Status: c.Status(), Added: v.Lines[c.Path].Added, Removed: v.Lines[c.Path].Removed}
		if c.Old.Mode != 0 && c.Old.Mode != c.New.Mode {
			d.OldMode = c.Old.Mode.String()
		}
		if c.New.Mode != 0 && c.Old.Mode != c.New.Mode {
			d.NewMode = c.New.Mode.String()
		}
		t.Files = append(t.Files, d)
	}
}

// Gate runs the iteration or the regression gate on a clean checkout of the candidate.
func (s *session) Gate(ctx context.Context, p loop.Phase, candidate loop.Commit) (loop.GateSeen, error) {
	if err := s.gateTree.Sync(ctx, git.ID(candidate.ID)); err != nil {
		return loop.GateSeen{}, fmt.Errorf("check out the candidate for its gates: %w", err)
	}
	n := s.now()
	for _, spec := range s.gateSpecs() {
		if string(spec.Class) != string(p) {
			continue
		}
		r, err := s.runGate(ctx, spec, s.gatePlace("gate"), n)
		if err != nil {
			return loop.GateSeen{}, err
		}
		drift, err := s.gateTree.Check(ctx)
		if err != nil {
			return loop.GateSeen{}, fmt.Errorf("look at what the gate left: %w", err)
		}
		if len(drift.Changed) > 0 {
			s.note(fmt.Sprintf("tick %d: the %s gate changed %s, which was put back; what is pushed is the commit", n, spec.Name, files(drift.Changed)))
		}
		return s.seen(r), nil
	}
	return loop.GateSeen{Detail: "no such gate"}, nil
}

func files(paths []string) string {
	shown := paths[:min(len(paths), 3)]
	for i, p := range shown {
		shown[i] = prompt.Inline(p, 80)
	}
	if more := len(paths) - len(shown); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), more)
	}
	return strings.Join(shown, ", ")
}

// Prove runs every gate in a pristine checkout of exactly the commit that will be pushed.
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
		if id, err = s.store.Squash(ctx, id, s.meta(n)); err != nil {
			return loop.ProofSeen{}, fmt.Errorf("squash before the proof: %w", err)
		}
	}
	s.emit(evidence.ProofStarted, n, slog.String(evidence.KeyCommit, string(id)))
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
	proof, err := s.newProof(ctx, id)
	if err != nil {
		return loop.ProofSeen{}, err
	}
	defer s.wipe(proof)
	at := s.proofPlace(proof, "proof")
	if err := s.setup(ctx, at, n); err != nil {
		var e *ended
		if errors.As(err, &e) {
			return loop.ProofSeen{}, err
		}
		return loop.ProofSeen{Broken: ctx.Err() == nil, Stopped: ctx.Err() != nil, Gate: "setup"}, nil
	}
	for _, spec := range s.gateSpecs() {
		r, err := s.runGate(ctx, spec, at, n)
		if err != nil {
			return loop.ProofSeen{}, err
		}
		switch r.Status {
		case gate.Passed:
		case gate.Failed, gate.TimedOut:
			return loop.ProofSeen{Gate: spec.Name, Acceptance: spec.Class == gate.Acceptance}, nil
		case gate.Stopped:
			return loop.ProofSeen{Stopped: true}, nil
		default:
			return loop.ProofSeen{Broken: true, Gate: spec.Name}, nil
		}
	}
	return loop.ProofSeen{Passed: true}, nil
}

func (s *session) newProof(ctx context.Context, id git.ID) (*git.Proof, error) {
	dir, err := os.MkdirTemp(s.dir, "proof-")
	if err != nil {
		return nil, fmt.Errorf("make the proof's directory: %w", err)
	}
	var opts []git.WorktreeOption
	user, other := s.proofBox.User()
	if other {
		opts = append(opts, git.OwnedBy(git.Owner{UID: user.UID, GID: user.GID}))
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
