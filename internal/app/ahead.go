package app

import (
	"context"
	"fmt"

	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/internal/meter"
)

// startAhead starts the process of the agent's next call while gates run, where the configuration wants that and the agent can
// wait for its prompt. Nothing changes the agent's directory from here to the prompt: what would (Restore) ends the
// process first. The meter serves it nothing before its turn.
func (s *session) startAhead(ctx context.Context) error {
	starter, ok := s.coder.(agent.Starter)
	if !ok || !s.cfg.Agent.Prestart || s.ahead != nil || s.req.dryRun || !s.another {
		return nil
	}
	w, err := starter.Start(ctx, s.task())
	if err != nil {
		return fmt.Errorf("start the agent ahead: %w", err)
	}
	s.ahead = w
	return nil
}

// standDown ends a process that waits and is not needed, or may not be there: no process of the agent's lives while
// held-out files lie anywhere, since it could time what is done with them.
func (s *session) standDown() error {
	w := s.ahead
	if w == nil {
		return nil
	}
	s.ahead = nil
	if err := w.End(); err != nil {
		return fmt.Errorf("end the agent that was started ahead: %w", err)
	}
	return nil
}

// callAgent makes one call, by the process that waits for it where there is one.
func (s *session) callAgent(ctx context.Context, t agent.Task, on func(agent.Event)) (agent.Outcome, error) {
	s.meter.SetTick(t.Tick, "agent")
	defer s.meter.SetTick(t.Tick, meter.Nobody)
	if w := s.ahead; w != nil {
		s.ahead = nil
		if out, told, err := w.Run(ctx, t, on); told || err != nil {
			return out, err
		}
	}
	return s.coder.Run(ctx, t, on)
}

// task is the agent's next call, but for what only its tick knows.
func (s *session) task() agent.Task {
	return agent.Task{
		Run: s.id, Dir: s.agentTree.Dir(), Home: s.agentHome, Tmp: s.agentTmp, Model: s.cfg.Agent.Model, Args: s.cfg.Agent.Args,
		Gateway: s.meter.gateway(),
	}
}
