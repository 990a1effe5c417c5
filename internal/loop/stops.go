package loop

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// hold notes that a terminal holds in this tick. The first reason for one terminal stays.
func (s *State) hold(t Terminal, reason, next string) {
	for _, p := range s.Pending {
		if p.Terminal == t {
			return
		}
	}
	s.Pending = append(s.Pending, Stop{Terminal: t, Reason: reason, Next: next})
}

// ofDay says that the ceiling is what a day's budget left this run.
func (l Limits) ofDay() bool {
	return l.CostCeiling == "budget.per_day_usd" || l.CostCeiling == "budget.per_actor_day_usd"
}

// spent tells in words how much of the ceiling is spent.
func (l Limits) spent(s money.USD) string {
	if l.ofDay() && l.MaxCost == 0 {
		return l.CostCeiling + " left this run nothing for today"
	}
	if l.ofDay() {
		return fmt.Sprintf("%s of the %s that %s left this run today is spent", s, l.MaxCost, l.CostCeiling)
	}
	return fmt.Sprintf("%s of %s is spent (%s)", s, l.MaxCost, l.CostCeiling)
}

// moreMoney is the next step when the ceiling is reached; each is lifted in another way.
func (l Limits) moreMoney() string {
	switch {
	case l.ofDay():
		return "the work is kept: wait until midnight UTC or raise " + l.CostCeiling + ", then label again to resume"
	case l.CostCeiling == "budget.per_issue_usd":
		return "the work is kept: raise budget.per_issue_usd or add to it with /proctor budget, then label again to resume"
	}
	return "the work is kept: label again to resume; " + l.CostCeiling + " then counts anew"
}

func (s *State) holdSpent(l Limits) {
	if s.Spent >= l.MaxCost {
		s.hold(StoppedBudget, l.spent(s.Spent), l.moreMoney())
	}
}

// holdReview is for a question to the reviewer that what is left could not pay.
func (s *State) holdReview(l Limits) {
	s.hold(StoppedBudget, l.spent(s.Spent)+", and the reviewer's answer could cost more than what is left", l.moreMoney())
}

func (s *State) holdTime(l Limits, o Observation) {
	if s.outOfTime(l, o) {
		s.hold(StoppedTime, fmt.Sprintf("%s of %s are over, and %s are kept back for publishing", o.Elapsed.Round(time.Second), l.MaxDuration, l.Reserve), "the work is kept: label again to resume, or raise stops.max_duration")
	}
}

func (s *State) outOfTime(l Limits, o Observation) bool {
	return o.Elapsed >= l.MaxDuration-l.Reserve
}

// ending says that this tick already ends the run, so that nothing more is run in it. Done and the
// ceilings are left out: a tick that is over its ceiling may still prove what it made.
func (s *State) ending() bool {
	for _, p := range s.Pending {
		switch p.Terminal {
		case Cancelled, SafetyHalt, AgentUnavailable, JudgeUnavailable, GateBroken, GateFlaky:
			return true
		}
	}
	return false
}

// noteAgent reads how the agent's call ended. What it did is read from the tree, whatever it says.
func (s *State) noteAgent(l Limits, a AgentSeen) {
	s.Feedback = nil
	if a.Broke {
		s.hold(StoppedBudget, l.spent(s.Spent)+", and what is left does not pay for another call", l.moreMoney())
	}
	switch a.Health {
	case AgentHealthy:
		s.Healthy, s.Failures, s.Failure = true, 0, ""
		return
	case AgentGone:
		s.Failure = a.Kind
		s.hold(AgentUnavailable, "the agent could not go on: "+a.Detail, a.Next)
		return
	}
	if s.Failure == a.Kind {
		s.Failures++
	} else {
		s.Failures, s.Failure = 1, a.Kind
	}
	s.tell("agent", fmt.Sprintf("Your last call ended as %s: %s. Go on from the files as they are.", a.Kind, a.Detail))
	if a.Sticky && s.Failures >= l.AgentFailures {
		s.hold(AgentUnavailable, fmt.Sprintf("the agent failed %d times in the same way: %s", s.Failures, a.Detail), a.Next)
	}
}

// progress counts a tick as stale unless both its tree and its failure are new to this run. Looking at the
// whole history, not at the last tick, makes A-B-A a repeat; trees are commits' trees, so what a
// gate wrote never looks like progress.
func (s *State) progress(tree, failure string) {
	fresh := !slices.Contains(s.Trees, tree)
	if fresh {
		s.Trees = append(s.Trees, tree)
	}
	if failure != "" {
		if slices.Contains(s.Fingerprints, failure) {
			fresh = false
		} else {
			s.Fingerprints = append(s.Fingerprints, failure)
		}
	}
	if fresh {
		s.Stale = 0
		return
	}
	s.Stale++
}

func (s *State) tell(from, text string) {
	if text != "" {
		s.Feedback = append(s.Feedback, Feedback{From: from, Text: text})
	}
}

func (s *State) tellProof(p ProofSeen, text string) {
	s.Feedback = append(s.Feedback, Feedback{From: "proof", Gate: p.Gate, Count: p.Count, Text: text})
}

func (s State) to(p Phase, c Commit) (State, Action) {
	s.Phase = p
	return s, Action{Do: p, Commit: c}
}

// clone makes a state that shares no memory with s, so that Step can be replayed.
func (s State) clone() State {
	s.Trees = slices.Clone(s.Trees)
	s.Fingerprints = slices.Clone(s.Fingerprints)
	s.Feedback = slices.Clone(s.Feedback)
	s.Pending = slices.Clone(s.Pending)
	s.Plan = slices.Clone(s.Plan)
	s.Verdicts, s.Shares = copied(s.Verdicts), copied(s.Shares)
	return s
}

// copied is never nil, so that it can be written to.
func copied(m map[string]bool) map[string]bool {
	out := make(map[string]bool, len(m))
	maps.Copy(out, m)
	return out
}
