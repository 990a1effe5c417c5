package loop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

func TestEveryPairOfTerminalsEndsUnderTheStronger(t *testing.T) {
	t.Parallel()
	// INV-6: the order of DESIGN §5, written out once more so that a slip in the table shows.
	order := []Terminal{
		Cancelled, SafetyHalt, AgentUnavailable, JudgeUnavailable, GateBroken, GateFlaky, Done, AlreadySatisfied,
		StoppedBudget, StoppedTime, Overfit, NoProgress, ReviewStall, PlanStall, TickCap,
	}
	for i, strong := range order {
		for _, weak := range order[i+1:] {
			for _, pending := range [][]Stop{{{Terminal: weak}, {Terminal: strong}}, {{Terminal: strong}, {Terminal: weak}}} {
				if got, _ := strongest(pending); got.Terminal != strong {
					t.Errorf("%s and %s: got %s", strong, weak, got.Terminal)
				}
			}
		}
	}
}

// generated is a random history: each tick does anything at all, in any combination.
func generated(r *rand.Rand) (Limits, []tickScript) {
	l := limits()
	l.MaxTicks = 1 + r.IntN(8)
	l.MaxCost = money.USD(1+r.IntN(6)) * money.Dollar
	l.Regression, l.Review = r.IntN(2) == 0, r.IntN(3) > 0
	l.NoProgressAfter, l.ReviewStallAfter, l.Attempts = 1+r.IntN(4), 1+r.IntN(4), 1+r.IntN(3)
	pick := func(n int) bool { return r.IntN(n) == 0 }
	ticks := make([]tickScript, 10)
	for i := range ticks {
		s := &ticks[i]
		s.tree = []string{baseTree, "a", "b", fmt.Sprint("t", i)}[r.IntN(4)]
		s.cost = money.USD(r.IntN(3)) * money.Dollar / 2
		s.takes = time.Duration(r.IntN(15)) * time.Minute
		if pick(4) {
			s.agent = AgentSeen{Health: AgentUnhealthy, Kind: "agent_error", Sticky: true}
		}
		if pick(15) {
			s.agent = AgentSeen{Health: AgentGone, Kind: "auth"}
		}
		if pick(8) {
			s.guard = GuardSeen{Level: []GuardLevel{GuardBlock, GuardHalt, "?"}[r.IntN(3)]}
		}
		if pick(3) {
			s.iteration = red(fmt.Sprint(r.IntN(4)))
		}
		if pick(12) {
			s.iteration = GateSeen{Status: []GateStatus{GateWasted, GateStopped, "?"}[r.IntN(3)]}
		}
		if pick(4) {
			s.regression = red("r")
		}
		if pick(3) {
			s.review = ReviewSeen{Rejected: true, Fingerprint: fmt.Sprint(r.IntN(3))}
		}
		if pick(10) {
			s.review = ReviewSeen{Detail: "none"}
		}
		if pick(2) {
			s.proof = []ProofSeen{{Acceptance: true}, {Gate: "iteration"}, {Broken: true}, {Stopped: true}}[r.IntN(4)]
		}
		if pick(20) {
			s.cancelAfter = []Phase{AtAgent, AtSnapshot, AtIteration, AtProof}[r.IntN(4)]
		}
	}
	return l, ticks
}

func TestGeneratedHistoriesKeepThePromises(t *testing.T) {
	t.Parallel()
	// INV-1, INV-2, INV-4, INV-5, INV-6 over histories nobody thought of. The control is the tally at the
	// end: a generator that never reaches a terminal would prove nothing about it.
	seen := map[Terminal]int{}
	for seed := range uint64(4000) {
		l, ticks := generated(rand.New(rand.NewPCG(seed, 1)))
		end, st := play(t, l, ticks...)
		seen[end.End.Terminal]++
		if msg := broken(end, st, l); msg != "" {
			t.Fatalf("seed %d: %s\nend %+v", seed, msg, *end.End)
		}
	}
	for _, want := range []Terminal{Done, Cancelled, SafetyHalt, AgentUnavailable, JudgeUnavailable, GateBroken, StoppedBudget, StoppedTime, Overfit, NoProgress, ReviewStall, TickCap} {
		if seen[want] == 0 {
			t.Errorf("no history ended %s: %v", want, seen)
		}
	}
}

// broken names the promise a finished run breaks, "" when it keeps them all.
func broken(end State, st *stage, l Limits) string {
	last := st.ticks[min(max(st.at, 1), len(st.ticks))-1]
	switch {
	case end.Tick > l.MaxTicks:
		return "more ticks than the cap"
	case st.calls[AtAgent] != end.Tick:
		return "ticks and agent calls differ"
	case end.Tick > 1 && st.saved[len(st.saved)-3].Spent >= l.MaxCost:
		return "a tick began behind a reached ceiling"
	}
	if end.End.Terminal == Done {
		switch {
		case last.agent.Health == AgentGone, last.agent.Health == AgentUnhealthy:
			return "done after an unhealthy call"
		case end.Good.Tree == baseTree:
			return "done over an empty diff"
		case last.proof != (ProofSeen{}):
			return "done without a passed proof"
		case l.Review && !end.Verdicts[end.Good.Tree]:
			return "done without an approval"
		case end.Good != end.Current:
			return "done on a commit that is not the candidate"
		}
	}
	if i := slices.IndexFunc(end.Pending, func(s Stop) bool { return s.Terminal == end.End.Terminal }); i < 0 {
		return "ended under a terminal that did not hold"
	}
	for _, s := range end.Pending {
		if slices.Index(precedence[:], s.Terminal) < slices.Index(precedence[:], end.End.Terminal) {
			return "a stronger terminal held: " + string(s.Terminal)
		}
	}
	return ""
}

func TestStepIsPure(t *testing.T) {
	t.Parallel()
	s := Begin(base)
	s.Phase, s.Tick = AtReview, 1
	s.Current = Commit{ID: "c", Tree: "t"}
	o := Observation{Review: ReviewSeen{Rejected: true, Fingerprint: "x", Feedback: "no"}}
	one, _ := Step(s, limits(), o)
	two, _ := Step(s, limits(), o)
	if len(s.Verdicts) != 0 || len(s.Feedback) != 0 || fmt.Sprint(one) != fmt.Sprint(two) {
		t.Errorf("Step changed its argument or gave two answers:\n%v\n%v", one, two)
	}
}
