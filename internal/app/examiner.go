package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/prompt"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// feedbackBytes is how much of a failing gate's output the agent is shown.
const feedbackBytes = 16 << 10

// Baseline is tick 0: every gate on the base commit, the held-out ones in a proof of their own.
func (s *session) Baseline(ctx context.Context) (loop.Baseline, error) {
	var b loop.Baseline
	s.gateCommit = s.store.Base()
	err := s.setup(ctx, s.gatePlace("base"), 0)
	var unready *unreadyError
	if errors.As(err, &unready) {
		b.Iteration = unready.seen()
		return b, nil
	}
	if err != nil {
		return b, err
	}
	if s.readyFor, err = s.dependencies(ctx, s.store.Base()); err != nil {
		return b, err
	}
	heldOut := len(s.specsOf(gate.Acceptance)) > 0 && s.cfg.Gates.Acceptance.MustFailOnBase != "never"
	if s.another = len(s.cfg.Setup) == 0 && !heldOut; s.another { // the setup comes first, in the agent's directory too
		if err := s.startAhead(ctx); err != nil {
			return b, err
		}
	}
	for _, c := range []struct {
		class gate.Class
		into  *loop.GateSeen
	}{{gate.Iteration, &b.Iteration}, {gate.Regression, &b.Regression}} {
		for _, spec := range s.specsOf(c.class) {
			seen, err := s.stable(ctx, spec)
			if err != nil {
				return b, err
			}
			drift, err := s.gateTree.Check(ctx)
			if err != nil {
				return b, fmt.Errorf("look at what the gates left: %w", err)
			}
			s.tellDrift(0, spec, drift)
			*c.into = worst(*c.into, seen)
		}
	}
	if heldOut {
		if b.Acceptance, err = s.heldOutBaseline(ctx); err != nil {
			return b, err
		}
	}
	return b, nil
}

// stable runs a gate on the base commit as often as configured; disagreement is flaky.
func (s *session) stable(ctx context.Context, spec gate.Spec) (loop.GateSeen, error) {
	at := s.gatePlace("base")
	if isImage(spec) {
		r, err := s.runGate(ctx, spec, at, 0)
		return s.seen(r), err
	}
	s.started(spec, at, 0)
	runner, where := s.outward(spec, at)
	r, err := runner.Stable(ctx, spec, where, s.cfg.Gates.Stability, func(ctx context.Context) error {
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

// heldOutBaseline runs the held-out gates on the base commit as often as configured. They pass there only if all do.
func (s *session) heldOutBaseline(ctx context.Context) (loop.GateSeen, error) {
	seen := loop.GateSeen{Status: loop.GatePassed}
	before := map[string]gate.Status{}
	w := proofWalk{commit: s.store.Base(), where: "base", classes: []gate.Class{gate.Acceptance}, repeat: s.cfg.Gates.Stability}
	err := s.walkProof(ctx, w, func(spec gate.Spec, r gate.Result) bool {
		was, again := before[spec.Name]
		before[spec.Name] = r.Status
		if again && was != r.Status {
			// Not a word of how: it ran beside the held-out files.
			seen = loop.GateSeen{Status: loop.GateFlaked, Detail: fmt.Sprintf("%s gave two answers on the same tree", spec.Name)}
			return false
		}
		seen = worst(seen, s.seen(r))
		return seen.Status == loop.GatePassed || seen.Status == loop.GateFailed
	})
	var unready *unreadyError
	if errors.As(err, &unready) {
		return unready.seen(), nil
	}
	return seen, err
}

// place is where gates run.
type place struct {
	gate.Place
	where  string // "base", "gate", "proof", "agent" or "fail-first", for the record
	proof  bool   // a pristine checkout that is thrown away, whose gates have no egress; the held-out files lie only in such a one
	commit git.ID // what lies there
}

func (s *session) gatePlace(where string) place {
	home, tmp := s.place("gate-home"), s.place("gate-tmp")
	return place{where: where, commit: s.gateCommit, Place: gate.Place{Dir: s.gateTree.Dir(), Home: home, Tmp: tmp, ReadOnly: s.readable(), Env: s.gateEnv(home, tmp), KeepOutput: true}}
}

// proofPlace is sealed whole: the agent's own code runs there beside the sealed files.
func (s *session) proofPlace(p *git.Proof, where string) place {
	return place{where: where, proof: true, Place: gate.Place{Dir: p.Dir, Home: p.Home, Tmp: p.Tmp, ReadOnly: s.readable(), Env: s.gateEnv(p.Home, p.Tmp), Sealed: true}}
}

// readable are the directories that gates read besides their own: toolchains, and this program, which is what a
// probe is made of.
func (s *session) readable() []string { return append(slices.Clone(s.toolDirs), s.env.Exe) }

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
	r, _, err := s.runKept(ctx, spec, at, tick)
	return r, err
}

// runKept is runGate for those who need to know how the record has it.
func (s *session) runKept(ctx context.Context, spec gate.Spec, at place, tick int) (gate.Result, evidence.Gate, error) {
	s.started(spec, at, tick)
	var r gate.Result
	var err error
	if isImage(spec) {
		r, err = s.buildImage(ctx, spec, at)
	} else {
		r, err = s.examine(ctx, spec, at)
	}
	if err != nil {
		return r, evidence.Gate{}, err
	}
	return r, s.ended(r, at, tick), nil
}

func (s *session) started(spec gate.Spec, at place, tick int) {
	s.egress.For(spec.Name, tick)
	s.emit(evidence.GateStarted, tick, slog.String(evidence.KeyClass, string(spec.Class)), slog.String(evidence.KeyGate, spec.Name), slog.String(evidence.KeyWhere, at.where))
}

func (s *session) ended(r gate.Result, at place, tick int) evidence.Gate {
	if !r.Sealed {
		s.noteExcess(tick, "the "+r.Name+" gate", r.Excess)
		s.noteSurvivors(tick, "the "+r.Name+" gate", r.Survivors)
	}
	g := gateOf(r, at)
	if !at.Sealed && !g.Sealed() {
		g.At = s.since(s.env.Now().Add(-r.Duration))
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
	return g
}

// since is a moment of the run in milliseconds from its start.
func (s *session) since(t time.Time) int64 { return max(t.Sub(s.rec.Started).Milliseconds(), 0) }

func gateOf(r gate.Result, at place) evidence.Gate {
	return evidence.Gate{
		Class: string(r.Class), Name: r.Name, Command: commandOf(gate.Spec{Argv: r.Argv, Shown: r.Shown}), Where: at.where, Status: string(r.Status), ExitCode: r.ExitCode,
		Millis: r.Duration.Milliseconds(), Digest: r.Digest, Bytes: r.Bytes, Detail: r.Detail,
	}
}

func (s *session) keepGate(g evidence.Gate, n int) {
	switch {
	case n == 0:
		s.rec.Baseline = append(s.rec.Baseline, g)
	case g.Where == "proof":
		t := s.tick(n)
		t.Proof = append(t.Proof, g)
	case g.Where == agentPlace:
		// It says nothing about a tick: the run is being made ready.
		s.rec.Baseline = append(s.rec.Baseline, g)
	case g.Where == failFirst:
		// It stands with the verdict on the added tests.
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

// Gate runs the iteration or the regression gates on a clean checkout of the candidate, up to the first that does not
// pass. Behind green iteration gates the added tests are tried on the base code.
func (s *session) Gate(ctx context.Context, p loop.Phase, candidate loop.Commit) (loop.GateSeen, error) {
	s.gateCommit = git.ID(candidate.ID)
	if err := s.gateTree.Sync(ctx, s.gateCommit); err != nil {
		return loop.GateSeen{}, fmt.Errorf("check out the candidate for its gates: %w", err)
	}
	n := s.now()
	if err := s.startAhead(ctx); err != nil {
		return loop.GateSeen{}, err
	}
	seen, err := s.refresh(ctx, s.gateCommit, n)
	if err != nil || !passedAll(seen) {
		return seen, err
	}
	seen = loop.GateSeen{Detail: "no such gate"}
	for _, spec := range s.specsOf(gate.Class(p)) {
		r, err := s.runGate(ctx, spec, s.gatePlace("gate"), n)
		if err != nil {
			return loop.GateSeen{}, err
		}
		drift, err := s.gateTree.Check(ctx)
		if err != nil {
			return loop.GateSeen{}, fmt.Errorf("look at what the gate left: %w", err)
		}
		s.tellDrift(n, spec, drift)
		if seen = s.seen(r); !passedAll(seen) {
			return seen, nil
		}
	}
	if p == loop.AtIteration && seen.Status == loop.GatePassed {
		return s.tryFirst(ctx, seen)
	}
	return seen, nil
}

// tellDrift says that a gate changed tracked files. It is told once a tick, however often the gate ran.
func (s *session) tellDrift(tick int, spec gate.Spec, drift git.Drift) {
	if len(drift.Changed) > 0 {
		s.note(fmt.Sprintf("tick %d: the %s gate changed %s, which was put back; what is pushed is the commit", tick, spec.Name, files(drift.Changed)))
	}
}

func files(paths []string) string {
	shown := slices.Clone(paths[:min(len(paths), 3)])
	for i, p := range shown {
		shown[i] = prompt.Inline(p, 80)
	}
	if more := len(paths) - len(shown); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), more)
	}
	return strings.Join(shown, ", ")
}
