package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/prompt"
)

// rateRetries bounds how often one tick waits for a throttled provider, and defaultWait is how long when the
// provider did not say; it doubles.
const (
	rateRetries = 3
	defaultWait = 20 * time.Second
)

// maxEvents bounds the events of one call of the agent.
const maxEvents = 1000

// Code makes one call of the agent. A short throttle is waited out within the tick, on the run's own clock.
func (s *session) Code(ctx context.Context, t loop.Turn) (loop.AgentSeen, error) {
	t = s.pace(ctx, t)
	tick := s.tick(t.Tick)
	s.another = t.Used < t.MaxTicks
	tick.Item = t.Item + 1
	s.emit(evidence.TickStarted, t.Tick)
	if s.round.idle() && t.Used == 1 {
		tick.Note = "the base was merged into the branch and the whole proved again; the agent was not called"
		return loop.AgentSeen{Health: loop.AgentHealthy}, nil
	}
	if err := s.setupAgent(ctx, t.Tick); err != nil {
		return loop.AgentSeen{}, err
	}
	p, err := s.prompt(ctx, t)
	if err != nil {
		return loop.AgentSeen{}, err
	}
	task := s.task()
	task.Tick, task.Prompt, task.Timeout = t.Tick, p.Text, min(s.cfg.Agent.Timeout, t.TimeLeft)
	wait, used := defaultWait, time.Duration(0)
	for try := 0; ; try++ {
		s.emit(evidence.AgentStarted, t.Tick, slog.String(evidence.KeyAgent, s.coder.Name()), slog.String(evidence.KeyModel, task.Model), slog.Bool(evidence.KeyAhead, s.ahead != nil))
		told := 0
		s.egress.For("agent", t.Tick)
		out, err := s.callAgent(ctx, task, func(e agent.Event) {
			// A program may print lines without end, and an event says no more than that one came.
			if told++; told <= maxEvents {
				s.emit(evidence.AgentEvent, t.Tick, slog.String(evidence.KeyEvent, e.Kind), slog.String(evidence.KeyTool, e.Tool))
			}
		})
		if told > maxEvents {
			s.note(fmt.Sprintf("tick %d: of %d events of the agent the first %d are in the log", t.Tick, told, maxEvents))
		}
		if err != nil {
			return loop.AgentSeen{}, fmt.Errorf("run the agent: %w", err)
		}
		s.bookCalls(ctx)
		if needsModel(s.cfg.Agent.Name) && out.Kind == agent.OK && !s.asked(t.Tick) {
			// Some CLIs report success when they ended before their first turn.
			out.Kind, out.Detail = agent.Incomplete, "it reported success without having asked its model anything"
		}
		s.noteExcess(t.Tick, "the agent", out.Excess)
		s.noteSurvivors(t.Tick, "the agent", out.Survivors)
		s.keepCall(tick, out)
		if out.Kind != agent.LimitRate || try == rateRetries || ctx.Err() != nil {
			return s.health(out), nil
		}
		if told := max(out.RetryIn, s.askedToWait(t.Tick)); told > 0 {
			wait = told
		}
		if used += out.Duration; used+wait >= t.TimeLeft {
			out.Detail = fmt.Sprintf("the provider asks for a wait of %s, which is longer than this run has left: %s", wait, out.Detail)
			return s.health(out), nil
		}
		used += wait
		s.note(fmt.Sprintf("tick %d: the provider is throttling, overloaded or not to be reached; waiting %s and trying again (%d of %d)", t.Tick, wait, try+1, rateRetries))
		if s.env.Sleep(ctx, wait) != nil {
			return s.health(out), nil
		}
		wait *= 2
		task.Timeout = min(task.Timeout, t.TimeLeft-used)
	}
}

// noteExcess tells in the log, the record and the draft that a limit of the sandbox ended something.
func (s *session) noteExcess(tick int, what, excess string) {
	if excess != "" {
		s.note(fmt.Sprintf("tick %d: %s was stopped: %s", tick, what, excess))
	}
}

// noteSurvivors tells of processes that went on when what started them had ended, and were killed.
func (s *session) noteSurvivors(tick int, what string, n int) {
	if n > 0 {
		s.note(fmt.Sprintf("tick %d: %s left %s running: killed", tick, what, plural(int64(n), "process")))
	}
}

// bookCalls waits until the meter has booked what the agent's processes, all gone by now, had in flight.
func (s *session) bookCalls(ctx context.Context) {
	booking, done := until(ctx, 2*time.Second)
	defer done()
	if err := s.meter.Quiet(booking); err != nil {
		s.note("the cost of a model call is not known yet: " + err.Error())
	}
}

// askedToWait is how long the provider's last answer in a tick asked to wait: not every CLI passes that on.
func (s *session) askedToWait(tick int) time.Duration {
	calls := s.meter.Calls()
	for i := len(calls) - 1; i >= 0 && calls[i].Tick == tick; i-- {
		if calls[i].Purpose == "agent" {
			return calls[i].RetryAfter
		}
	}
	return 0
}

// asked says whether the tick has made a model call.
func (s *session) asked(tick int) bool {
	for _, c := range s.meter.Calls() {
		if c.Tick == tick && c.Purpose == "agent" {
			return true
		}
	}
	return false
}

func (s *session) keepCall(tick *evidence.Tick, o agent.Outcome) {
	tick.Agent = evidence.AgentCall{
		Outcome: string(o.Kind), Detail: prompt.Inline(o.Detail, 300), ExitCode: o.ExitCode, Millis: tick.Agent.Millis + o.Duration.Milliseconds(),
		Turns: o.Usage.Turns, Claimed: o.Usage.CostUSD, Survivors: o.Survivors,
	}
	s.emit(evidence.AgentEnded, tick.N, slog.String(evidence.KeyOutcome, string(o.Kind)), slog.Int(evidence.KeyExit, o.ExitCode),
		slog.Duration(evidence.KeyMillis, o.Duration), slog.Int(evidence.KeyTurns, o.Usage.Turns))
}

// health says what an outcome means to the loop. Nothing here says that the work is right.
func (s *session) health(o agent.Outcome) loop.AgentSeen {
	seen := loop.AgentSeen{
		Kind: string(o.Kind), Detail: prompt.Inline(o.Detail, 300), Next: o.Next,
		Broke: o.Kind == agent.LimitBudget && s.meter.Exhausted(),
	}
	switch {
	case o.Kind == agent.OK:
		seen.Health = loop.AgentHealthy
	case o.Lasting:
		seen.Health = loop.AgentGone
		return seen
	}
	switch o.Kind {
	case agent.OK:
	case agent.Auth, agent.LimitUsage, agent.LimitRate, agent.RefusedStart:
		seen.Health = loop.AgentGone
	default:
		seen.Health = loop.AgentUnhealthy
		seen.Sticky = o.Kind == agent.AgentError || o.Kind == agent.Incomplete
	}
	if seen.Detail == "" {
		seen.Detail = strings.ReplaceAll(seen.Kind, "_", " ")
	}
	return seen
}

// prompt assembles what the agent reads in this tick.
func (s *session) prompt(ctx context.Context, t loop.Turn) (prompt.Prompt, error) {
	in := prompt.Input{
		Tick: t.Used, MaxTicks: t.MaxTicks, Left: prompt.Left{Cost: t.Left.String(), Time: t.TimeLeft},
		Goal:     prompt.Goal{Number: s.trigger.Issue.Number, Title: s.goal.title, Body: s.rawBody(), ApprovedBy: s.trigger.Actor.Login, Snapshot: s.rec.Trigger.Snapshot},
		Comments: s.comments, Random: s.env.Random, Plan: promptPlan(t), Round: s.round.prompt(s.store.Base()),
		Rules: prompt.Rules{
			HeldOut: s.cfg.Gates.HeldOut() > 0, Sealed: s.cfg.Gates.Acceptance.Sealed,
			Protected: s.cfg.Policy.Protected, Allow: s.cfg.Policy.Allow, Deny: s.cfg.Policy.Deny,
			MaxFiles: s.cfg.Policy.Max.Files, MaxLines: s.cfg.Policy.Max.Lines,
		},
	}
	for _, g := range s.gateSpecs() {
		if g.Class != "acceptance" {
			in.Rules.Gates = append(in.Rules.Gates, commandOf(g))
		}
	}
	for _, path := range s.cfg.Prompt.Anchors {
		b, err := s.store.ReadFile(ctx, s.store.Base(), path, maxRead)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return prompt.Prompt{}, fmt.Errorf("read %s of the base commit: %w", path, err)
		}
		in.Anchors = append(in.Anchors, prompt.Anchor{Path: path, Text: b})
	}
	for _, f := range t.Feedback {
		in.Feedback = append(in.Feedback, s.told(f))
	}
	p, err := prompt.Build(in)
	if err != nil {
		return p, err
	}
	if t.Used == 1 {
		s.removedFromParts(p.Removed)
	}
	for _, c := range p.Cut {
		s.note(fmt.Sprintf("tick %d: of %s the agent was shown %d of %d bytes", t.Tick, c.Part, c.Shown, c.Total))
	}
	return p, nil
}

// removedFromParts lists what was taken out of comments and instruction files; title and body are listed at intake.
func (s *session) removedFromParts(hidden []prompt.Removed) {
	for _, h := range hidden {
		if h.Where != "title" && h.Where != "body" {
			s.removed(h.Where, []prompt.Removal{h.Removal})
		}
	}
}

// rawBody is the text as the forge has it: package prompt takes out what nobody could see.
func (s *session) rawBody() string {
	if s.issue != nil {
		return s.issue.Body
	}
	return s.trigger.Goal
}

func (s *session) told(f loop.Feedback) prompt.Feedback {
	lines := func() (out []prompt.Finding) {
		for l := range strings.Lines(f.Text) {
			if l = strings.TrimSpace(l); l != "" {
				out = append(out, prompt.Finding{Detail: l})
			}
		}
		return out
	}
	switch f.From {
	case "guard":
		return prompt.Feedback{Kind: prompt.GuardFound, Findings: lines()}
	case "review":
		return prompt.Feedback{Kind: prompt.ReviewRejected, Findings: lines()}
	case "plan":
		return prompt.Feedback{Kind: prompt.ItemOpen, Detail: f.Text}
	case "proof":
		return prompt.Feedback{Kind: prompt.ProofFailed, Name: f.Gate, Count: f.Count, Visible: f.Gate != string(gate.Acceptance)}
	case "fail_first":
		return prompt.Feedback{Kind: prompt.GuardFound, Findings: lines()}
	case "setup":
		return prompt.Feedback{Kind: prompt.GateFailed, Name: f.From, Command: f.Gate, Exit: f.Exit, TimedOut: f.TimedOut, Output: []byte(f.Text)}
	case "iteration", "regression":
		out := prompt.Feedback{Kind: prompt.GateFailed, Name: f.From, Exit: f.Exit, TimedOut: f.TimedOut, Output: []byte(f.Text)}
		for _, g := range s.gateSpecs() {
			if string(g.Class) == f.From {
				out.Command = commandOf(g)
				break
			}
		}
		return out
	}
	return prompt.Feedback{Kind: prompt.AgentStopped, Detail: f.Text}
}

// commandLine is a gate's command as a person would type it.
func commandLine(argv []string) string {
	if len(argv) == 3 && argv[0] == "sh" && argv[1] == "-c" {
		return argv[2]
	}
	words := slices.Clone(argv)
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`;&|<>()*?[]#~") {
			words[i] = strconv.Quote(w)
		}
	}
	return strings.Join(words, " ")
}

// Snapshot commits what the agent's directory holds.
func (s *session) Snapshot(ctx context.Context, n int, parent loop.Commit) (loop.SnapshotSeen, error) {
	tick := s.tick(n)
	snap, err := s.agentTree.Snapshot(ctx, git.SnapshotOptions{
		Parent: git.ID(parent.ID), Beside: s.beside(parent), MaxFileBytes: s.cfg.Policy.Max.FileBytes, Meta: s.meta(n), Keep: s.keepsPlan(),
	})
	if err != nil {
		return loop.SnapshotSeen{}, fmt.Errorf("take the snapshot: %w", err)
	}
	s.snap = snap
	tick.Commit = &evidence.Commit{ID: string(snap.Commit), Tree: string(snap.Tree)}
	return loop.SnapshotSeen{Commit: loop.Commit{ID: string(snap.Commit), Tree: string(snap.Tree)}, Claims: s.claims(ctx, snap.Kept)}, nil
}

// meta is what a commit of the run says about itself. It cannot say that it was proved: it is made before it is.
func (s *session) meta(tick int) git.Meta {
	subject := s.goal.title
	if subject == "" {
		subject = s.goal.body
	}
	if s.round != nil {
		subject = "Work on the review: " + subject
	}
	m := git.Meta{
		Subject: prompt.CommitLine(subject, 72), Run: s.id, Tick: tick, Agent: s.coder.Name(),
		CostUSD: s.Spent().Decimal(), Verdict: "candidate",
	}
	if n := s.trigger.Issue.Number; n != 0 {
		m.Issue = s.issueName()
	}
	return m
}

// Restore puts the agent's directory back to the last good commit.
func (s *session) Restore(ctx context.Context, to loop.Commit) error {
	if err := s.standDown(); err != nil {
		return err
	}
	if err := s.agentTree.Restore(ctx, git.ID(to.ID)); err != nil {
		return fmt.Errorf("go back to the last good commit: %w", err)
	}
	return nil
}

// called is told every model call as it is settled.
func (s *session) called(c meter.Call) {
	s.emit(evidence.ModelCall, c.Tick, slog.String(evidence.KeyPurpose, c.Purpose), slog.String(evidence.KeyModel, c.Model), slog.Int(evidence.KeyStatus, c.Status),
		slog.Int64(evidence.KeyInput, c.Input), slog.Int64(evidence.KeyOutput, c.Output),
		slog.Int64(evidence.KeyCacheRead, c.CacheRead), slog.Int64(evidence.KeyCacheWrite, c.CacheWrite), evidence.Cost(evidence.KeyCost, c.CostUSD), slog.Int64(evidence.KeyMillis, c.Millis))
}
