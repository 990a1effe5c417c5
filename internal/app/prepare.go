package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/guard"
	"github.com/proctor-ci/proctor/internal/guard/secrets"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// prepare makes everything the loop works with, so that whatever is missing shows before the first
// paid call.
func (s *session) prepare(ctx context.Context) error {
	if err := s.confine(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.trySigning, s.enterSubmodules, s.holdOut, s.openMeter, s.chooseAgent, s.makeGuard, s.layRound, s.makeTrees} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	s.announce(ctx)
	return nil
}

// confine finds out what this machine enforces. Under strict a gap ends the run here.
func (s *session) confine(ctx context.Context) error {
	box, err := sandbox.New(sandbox.Config{Mode: sandbox.Mode(s.cfg.Sandbox.Mode), Exe: s.env.Exe, Log: s.log})
	if err != nil {
		return err
	}
	s.box = box
	lines, err := box.Probe(ctx)
	on := s.cfg.Sandbox.Mode != string(sandbox.Off)
	for _, l := range lines {
		// Where nothing holds, nothing holds what an optional line would.
		s.rec.Confinement = append(s.rec.Confinement, evidence.Enforced{Name: l.Name, Active: l.Active, Detail: l.Detail, Optional: l.Optional && on})
	}
	if err != nil {
		return err
	}
	for _, l := range lines {
		switch {
		case l.Active || !on:
		case l.Optional:
			s.tell("held less tightly here: " + l.Name + " (" + l.Detail + ")")
		default:
			s.tell("not enforced here: " + l.Name + " (" + l.Detail + ")")
		}
	}
	s.toolDirs = sandbox.ToolDirs(s.req.toolPath, s.req.home, s.req.checkout, s.dir, s.req.reports, s.heldPlace())
	if err := s.openEgress(ctx); err != nil {
		return err
	}
	s.gates = &gate.Runner{Box: s.box, ConnectPorts: s.egress.Ports()}
	return s.confineProofs()
}

// proofUser is who the gates of a proof run as, where the harness may choose: another than the agent's, whose
// files the proof's code could otherwise mark (modes, times, attributes) for the next tick to read.
const proofUser = 65533

func (s *session) confineProofs() error {
	box, err := sandbox.New(sandbox.Config{Mode: sandbox.Mode(s.cfg.Sandbox.Mode), Exe: s.env.Exe, Log: s.log, User: sandbox.Identity{UID: proofUser, GID: proofUser}})
	if err != nil {
		return err
	}
	s.proofBox, s.proofGates, s.proofSetup = box, &gate.Runner{Box: box}, &gate.Runner{Box: box, ConnectPorts: s.egress.Ports()}
	return nil
}

// ceiling is what this run may still spend and which limit that is.
func (s *session) ceiling(st loop.State) (limit money.USD, name string) {
	limit, name = s.cfg.Stops.MaxCost, "stops.max_cost_usd"
	if left := s.cfg.Budget.PerIssue.Add(s.saved.raised()) - st.IssueBefore; left < limit {
		limit, name = max(left, 0), "budget.per_issue_usd"
	}
	if today := st.Spent.Add(s.day.granted); s.day.bounds && today < limit {
		limit, name = today, s.day.cut
	}
	return limit, name
}

// openMeter starts the proxy that holds the model key, where a model is used at all.
func (s *session) openMeter(ctx context.Context) error { return s.openMeterFor(ctx, s.begun0) }

// openMeterFor is openMeter for the state of whoever spends.
func (s *session) openMeterFor(ctx context.Context, spender func() loop.State) error {
	providers, err := s.providers()
	if err != nil {
		return usage(err)
	}
	if len(providers) == 0 {
		return nil
	}
	st := spender()
	if err := s.reserve(ctx, st); err != nil {
		return err
	}
	limit, _ := s.ceiling(st)
	cfg := meter.Config{
		API: providers[0].API, Upstream: providers[0].Upstream, Key: providers[0].Key, Beside: providers[1:], Prices: priceTable(s.cfg.Budget.Price, s.env.Now()), AllowUnpriced: s.unpriced(),
		Ceiling: max(limit-st.Spent, 0), Now: s.env.Now, Rand: s.env.Random, Log: s.log, OnCall: s.called,
	}
	if s.req.forge != nil && s.req.stage != stageAgent { // nothing else outlives this machine
		cfg.Cover = s.cover
	}
	m, err := meter.Start(ctx, cfg)
	if err != nil {
		return usage(err)
	}
	s.meter = purse{m}
	s.meter.SetTick(0, meter.Nobody)
	return nil
}

// chooseAgent makes the adapter and asks it whether it could start.
func (s *session) chooseAgent(ctx context.Context) error {
	opts := agent.Options{
		Runner: s.box, Sandbox: sandbox.Policy{Mode: sandbox.Mode(s.cfg.Sandbox.Mode), ReadOnly: s.toolDirs, ConnectPorts: s.egress.Ports()},
		Path: s.programDirs(), Env: s.egress.Env(), Rand: s.env.Random, Log: s.log,
	}
	switch s.cfg.Agent.Name {
	case "command":
		opts.Command = s.cfg.Agent.Args
	case "script":
		plan, err := s.plan(ctx)
		if err != nil {
			return err
		}
		opts.Plan = plan
	}
	a, err := agent.New(s.cfg.Agent.Name, opts)
	if err != nil {
		place := s.configName()
		if s.req.override.Agent != "" {
			place = s.req.override.From + " agent" // the configuration is not to blame
		}
		return usage(fmt.Errorf("%s: %w", place, err))
	}
	if err := a.Check(ctx); err != nil {
		return &ended{terminal: evidence.AgentUnavailable, reason: err.Error(), err: err}
	}
	s.coder = a
	s.rec.Agent = evidence.AgentRef{Name: a.Name(), Model: s.cfg.Agent.Model}
	if name := s.cfg.Agent.Name; (name == "openai" || name == "opencode" || name == "copilot") && s.cfg.Agent.Model == "" {
		return usage(fmt.Errorf("%s: agent.model: the agent %s has no model of its own. Next: name one, as its server calls it", s.configName(), name))
	}
	if needsModel(s.cfg.Agent.Name) && s.cfg.Agent.Model != "" {
		if err := s.priced(s.cfg.Agent.Model); err != nil {
			return usage(fmt.Errorf("agent.model: %w", err))
		}
	}
	return s.chooseReviewer()
}

// priced says whether the meter would let calls to a model through.
func (s *session) priced(model string) error {
	if s.meter.Meter == nil {
		return nil // a rehearsal without a key makes no call
	}
	return s.meter.Check(model)
}

// plan reads the script agent's plan, from the base commit like everything that steers a run.
func (s *session) plan(ctx context.Context) ([]byte, error) {
	if len(s.cfg.Agent.Args) != 1 {
		return nil, usage(fmt.Errorf("%s: agent.args: the script agent wants one argument, the path of its plan in the repository", s.configName()))
	}
	b, err := s.store.ReadFile(ctx, s.store.Base(), s.cfg.Agent.Args[0], maxRead)
	if err != nil {
		return nil, usage(fmt.Errorf("%s: agent.args: read the plan at the base commit: %w", s.configName(), err))
	}
	return b, nil
}

// programDirs are the absolute directories of the job's PATH, without those that the repository or an agent can
// write to.
func (s *session) programDirs() []string {
	var out []string
	for _, d := range filepath.SplitList(s.req.toolPath) {
		if filepath.IsAbs(d) && !within(d, s.req.checkout) && !within(d, s.dir) {
			out = append(out, d)
		}
	}
	return out
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// makeGuard compiles the patch policy of the base commit.
func (s *session) makeGuard(ctx context.Context) error {
	p := s.cfg.Policy
	var errs []error
	compile := func(key string, patterns []string, fold bool) guard.Globs {
		if len(patterns) == 0 {
			return nil
		}
		g, err := policy.Compile(patterns, fold)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", s.configName(), key, err))
		}
		return g
	}
	always, _, err := policy.ProtectedGlobs(nil)
	if err != nil {
		return err
	}
	rules := guard.Rules{
		Always:    always,
		Protected: compile("policy.protected", append(s.steering(), p.Protected...), true),
		Sealed:    compile("gates.acceptance.sealed", s.cfg.Gates.Acceptance.Sealed, true),
		Allow:     compile("policy.allow", p.Allow, false),
		Deny:      compile("policy.deny", p.Deny, true),
		HighRisk:  compile("policy.high_risk", p.HighRisk, true),
		MaxFiles:  p.Max.Files, MaxLines: p.Max.Lines, MaxFileBytes: p.Max.FileBytes,
		Secrets: p.Secrets, TestTampering: p.TestTampering, Exam: s.readExam(ctx),
	}
	for i, v := range s.req.secrets {
		rules.Known = append(rules.Known, secrets.Known{Name: fmt.Sprintf("secret %d of this job", i+1), Value: v})
	}
	if len(errs) > 0 {
		return usage(errors.Join(errs...))
	}
	s.guard, err = guard.New(rules)
	return err
}

// steering are the files that the configuration itself makes part of the exam: the rubric, the anchors, and the
// plan of a scripted agent.
func (s *session) steering() []string {
	var out []string
	out = append(out, s.cfg.Review.Criteria...)
	out = append(out, s.cfg.Prompt.Anchors...)
	if s.cfg.Plan.From == "file" || s.cfg.Plan.From == "auto" {
		out = append(out, s.cfg.Plan.File)
	}
	if s.cfg.Agent.Name == "script" {
		out = append(out, s.cfg.Agent.Args...)
	}
	return out
}

// makeTrees makes the agent's directory and the gates', both without the sealed files.
func (s *session) makeTrees(ctx context.Context) error {
	sealed, err := s.sealedOrNone()
	if err != nil {
		return usage(err)
	}
	var opts []git.WorktreeOption
	if id, other := s.box.User(); other {
		opts = append(opts, git.OwnedBy(git.Owner{UID: id.UID, GID: id.GID}))
	}
	if s.agentTree, err = s.store.NewAgent(ctx, s.place("agent"), sealed, opts...); err != nil {
		return err
	}
	if good, err := s.takenUp(ctx); err != nil {
		return err
	} else if good.ID != s.rec.Base.ID {
		// A resumed run goes on from what the one before kept, a round from the pull request's branch.
		if err := s.Restore(ctx, good); err != nil {
			return err
		}
	}
	if s.gateTree, err = s.store.NewGate(ctx, s.place("gate"), sealed, opts...); err != nil {
		return err
	}
	for _, w := range []*git.Worktree{s.agentTree, s.gateTree} {
		if err := s.carry(ctx, w); err != nil {
			return err
		}
	}
	s.agentHome, s.agentTmp = s.place("agent-home"), s.place("agent-tmp")
	dirs := []string{s.agentTree.Dir(), s.agentHome, s.agentTmp, s.gateTree.Dir(), s.place("gate-home"), s.place("gate-tmp")}
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("make %s: %w", filepath.Base(d), err)
		}
	}
	return s.box.Own(dirs...)
}

// carrier is a worktree or a proof.
type carrier interface {
	Carry(ctx context.Context, from string, paths []string) ([]string, error)
}

// carry brings ignored directories of the job's checkout along, from nowhere else: what a gate or an agent made
// of them would let one tick speak to the next.
func (s *session) carry(ctx context.Context, to carrier) error {
	paths := s.cfg.Workspace.Carry
	if len(paths) == 0 {
		return nil
	}
	found, err := to.Carry(ctx, s.req.checkout, paths)
	if err != nil {
		return usage(fmt.Errorf("%s: workspace.carry: %w", s.configName(), err))
	}
	for _, p := range paths {
		if !slices.Contains(found, p) {
			s.note("workspace.carry: there is no " + p + " in the checkout; make it in an earlier step of the job")
		}
	}
	return nil
}

func (s *session) place(name string) string { return filepath.Join(s.dir, name) }

// sealed says which paths the agent never sees; nil when nothing is held out.
func (s *session) sealed() (func(string) bool, error) {
	patterns := s.cfg.Gates.Acceptance.Sealed
	if len(patterns) == 0 {
		return nil, nil
	}
	globs, err := policy.Compile(patterns, true)
	if err != nil {
		return nil, fmt.Errorf("%s: gates.acceptance.sealed: %w", s.configName(), err)
	}
	return func(path string) bool { _, ok := globs.Match(path); return ok }, nil
}
