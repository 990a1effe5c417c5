package loop

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/money"
)

// stage is a fake of every worker: a script of what each tick leaves and what each examiner says.
// It counts calls and keeps what was saved, and its clock moves only when a script says so.
type stage struct {
	t        *testing.T
	ticks    []tickScript
	baseline Baseline
	clock    time.Time
	spent    money.USD
	saved    []State
	calls    map[Phase]int
	restored []Commit
	asked    []string // items that the reviewer was asked about
	fed      [][]Feedback
	cancel   context.CancelFunc
	at       int
}

type tickScript struct {
	agent       AgentSeen // zero: healthy
	tree        string
	cost        money.USD
	takes       time.Duration
	guard       GuardSeen // zero: pass
	iteration   GateSeen  // zero: passed
	regression  GateSeen
	review      ReviewSeen // zero: approved
	reviewCost  money.USD
	item        ReviewSeen // zero: approved
	claims      []int
	proof       ProofSeen // zero: passed
	cancelAfter Phase
}

const baseTree = "tree-base"

var base = Commit{ID: "base", Tree: baseTree}

func limits() Limits {
	return Limits{
		MaxTicks: 6, MaxCost: 5 * money.Dollar, CostCeiling: "stops.max_cost_usd",
		MaxDuration: time.Hour, Reserve: time.Minute,
		NoProgressAfter: 3, ReviewStallAfter: 4, Attempts: 2, AgentFailures: 3, PlanStallAfter: 3,
		Review: true,
	}
}

// script is the running tick's; before the first, the first.
func (s *stage) script() tickScript { return s.ticks[min(max(s.at, 1), len(s.ticks))-1] }

func (s *stage) ran(p Phase) {
	s.calls[p]++
	if s.at > 0 && s.script().cancelAfter == p {
		s.cancel()
	}
}

func (s *stage) Code(_ context.Context, t Turn) (AgentSeen, error) {
	s.at++
	s.fed = append(s.fed, t.Feedback)
	sc := s.script()
	s.spent += sc.cost
	s.clock = s.clock.Add(sc.takes)
	s.ran(AtAgent)
	if sc.agent.Health == "" {
		sc.agent.Health = AgentHealthy
	}
	return sc.agent, nil
}

func (s *stage) Snapshot(_ context.Context, tick int, _ Commit) (SnapshotSeen, error) {
	s.ran(AtSnapshot)
	return SnapshotSeen{Commit: Commit{ID: fmt.Sprintf("commit-%d", tick), Tree: s.script().tree}, Claims: s.script().claims}, nil
}

func (s *stage) Restore(_ context.Context, to Commit) error {
	s.restored = append(s.restored, to)
	return nil
}

func (s *stage) Baseline(context.Context) (Baseline, error) { return s.baseline, nil }

func (s *stage) Guard(context.Context, int, Commit, Commit) (GuardSeen, error) {
	s.ran(AtGuard)
	g := s.script().guard
	if g.Level == "" {
		g.Level = GuardPass
	}
	return g, nil
}

func (s *stage) Gate(_ context.Context, p Phase, _ Commit) (GateSeen, error) {
	s.ran(p)
	g := s.script().iteration
	if p == AtRegression {
		g = s.script().regression
	}
	if g.Status == "" {
		g.Status = GatePassed
	}
	return g, nil
}

func (s *stage) Review(context.Context, Commit) (ReviewSeen, error) {
	s.ran(AtReview)
	s.spent += s.script().reviewCost
	r := s.script().review
	if r == (ReviewSeen{}) {
		r.Approved = true
	}
	return r, nil
}

func (s *stage) ReviewItem(_ context.Context, item Item, from, _ Commit) (ReviewSeen, error) {
	s.ran(AtItem)
	s.asked = append(s.asked, item.Text+" since "+from.Tree)
	s.spent += s.script().reviewCost
	r := s.script().item
	if r == (ReviewSeen{}) {
		r.Approved = true
	}
	return r, nil
}

func (s *stage) Prove(context.Context, Commit) (ProofSeen, error) {
	s.ran(AtProof)
	p := s.script().proof
	if p == (ProofSeen{}) {
		p.Passed = true
	}
	return p, nil
}

func (s *stage) Keep(_ context.Context, st State) error {
	s.saved = append(s.saved, st)
	return nil
}

func (s *stage) Spent() money.USD { return s.spent }

func play(t *testing.T, l Limits, ticks ...tickScript) (State, *stage) {
	t.Helper()
	return playFrom(t, Begin(base), l, ticks...)
}

func playFrom(t *testing.T, from State, l Limits, ticks ...tickScript) (State, *stage) {
	t.Helper()
	st := &stage{
		t: t, ticks: ticks, clock: time.Unix(0, 0), calls: map[Phase]int{},
		baseline: Baseline{Iteration: GateSeen{Status: GatePassed}, Regression: GateSeen{Status: GatePassed}},
	}
	return st.run(t, from, l), st
}

func (s *stage) run(t *testing.T, from State, l Limits) State {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.cancel = cancel
	end, err := Run(ctx, from, l, s, s, s, func() time.Time { return s.clock })
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	if end.End == nil {
		t.Fatal("the run ended without a terminal")
	}
	return end
}

func red(fp string) GateSeen {
	return GateSeen{Status: GateFailed, Fingerprint: fp, Feedback: "red: " + fp}
}

func distinct(n int, f func(i int, s *tickScript)) []tickScript {
	out := make([]tickScript, n)
	for i := range out {
		out[i] = tickScript{tree: fmt.Sprintf("tree-%d", i+1)}
		f(i, &out[i])
	}
	return out
}

func TestARunEndsUnderTheRightTerminal(t *testing.T) {
	t.Parallel()
	hung := AgentSeen{Health: AgentUnhealthy, Kind: "timeout", Detail: "over time"}
	crash := AgentSeen{Health: AgentUnhealthy, Kind: "agent_error", Detail: "exit 3", Sticky: true}
	cases := []struct {
		name   string
		limits func(*Limits)
		ticks  []tickScript
		want   Terminal
		after  int // ticks
	}{
		{name: "INV-1 green on the first candidate is done after one tick", ticks: []tickScript{{tree: "a"}}, want: Done, after: 1},
		{name: "INV-1 never green ends at exactly the cap", ticks: distinct(9, func(i int, s *tickScript) { s.iteration = red(fmt.Sprint("f", i)) }), want: TickCap, after: 6},
		{name: "INV-2 a ceiling reached in tick 2 stops at tick 2", ticks: distinct(9, func(i int, s *tickScript) { s.cost = 3 * money.Dollar; s.iteration = red(fmt.Sprint("f", i)) }), want: StoppedBudget, after: 2},
		{name: "INV-2 the judge's spend counts in the same tick", ticks: distinct(9, func(i int, s *tickScript) {
			s.reviewCost = 5 * money.Dollar
			s.review = ReviewSeen{Rejected: true, Fingerprint: fmt.Sprint(i)}
		}), want: StoppedBudget, after: 1},
		{name: "INV-2 a call that does not fit any more ends the run", ticks: []tickScript{{tree: baseTree, cost: money.Dollar, agent: AgentSeen{Health: AgentUnhealthy, Kind: "limit_budget", Broke: true}}}, want: StoppedBudget, after: 1},
		{name: "INV-3 an idle agent", ticks: []tickScript{{tree: baseTree}}, want: NoProgress, after: 3},
		{name: "INV-3 A-B-A is a cycle", ticks: []tickScript{
			{tree: "a", iteration: red("1")},
			{tree: "b", iteration: red("2")},
			{tree: "a", iteration: red("1")},
			{tree: "b", iteration: red("2")},
			{tree: "a", iteration: red("1")},
		}, want: NoProgress, after: 5},
		{name: "INV-3 new trees with the same failure", ticks: distinct(9, func(_ int, s *tickScript) { s.iteration = red("same") }), want: NoProgress, after: 4},
		{name: "INV-4 green gates over an empty diff are never done", ticks: []tickScript{{tree: baseTree}}, want: NoProgress, after: 3},
		{name: "INV-4 green gates after an unhealthy call are not done", ticks: []tickScript{{tree: "a", agent: hung}}, want: NoProgress, after: 4},
		{name: "INV-4 the same tree is done once a call is healthy", ticks: []tickScript{{tree: "a", agent: hung}, {tree: "a"}}, want: Done, after: 2},
		{name: "INV-5 acceptance red ends overfit after the attempts", ticks: distinct(9, func(_ int, s *tickScript) { s.proof = ProofSeen{Acceptance: true, Gate: "acceptance"} }), want: Overfit, after: 2},
		{name: "INV-7 three equal crashes", ticks: distinct(9, func(_ int, s *tickScript) { s.agent = crash; s.iteration = red("x") }), want: AgentUnavailable, after: 3},
		{name: "INV-7 an agent that is gone ends at once", ticks: []tickScript{{tree: baseTree, agent: AgentSeen{Health: AgentGone, Kind: "auth", Detail: "key refused"}}}, want: AgentUnavailable, after: 1},
		{name: "INV-28 a rejected tree is not judged again", ticks: []tickScript{{tree: "a", review: ReviewSeen{Rejected: true, Fingerprint: "x"}}}, want: NoProgress, after: 4},
		{name: "rejections in a row", ticks: distinct(9, func(i int, s *tickScript) { s.review = ReviewSeen{Rejected: true, Fingerprint: fmt.Sprint(i)} }), want: ReviewStall, after: 4},
		{name: "INV-29 no verdict is unavailable, not a rejection", ticks: []tickScript{{tree: "a", review: ReviewSeen{Detail: "garbage"}}}, want: JudgeUnavailable, after: 1},
		{name: "INV-29 a question that the budget cannot hold is the budget's end, not a rejection", ticks: []tickScript{{tree: "a", review: ReviewSeen{OverBudget: true, Detail: "402"}}}, want: StoppedBudget, after: 1},
		{name: "a guard that says nothing halts", ticks: []tickScript{{tree: "a", guard: GuardSeen{Level: "unheard-of"}}}, want: SafetyHalt, after: 1},
		{name: "time is over in tick 1", ticks: distinct(9, func(_ int, s *tickScript) { s.takes = time.Hour }), want: StoppedTime, after: 1},
		{name: "a gate that cannot run", ticks: []tickScript{{tree: "a", iteration: GateSeen{Status: GateWasted}}}, want: GateBroken, after: 1},
		{name: "a gate without an answer", ticks: []tickScript{{tree: "a", iteration: GateSeen{Status: "?"}}}, want: GateBroken, after: 1},
		{name: "cancel during the agent's call", ticks: []tickScript{{tree: "a", cancelAfter: AtAgent}}, want: Cancelled, after: 1},
		{name: "cancel outranks a proof that just passed", ticks: []tickScript{{tree: "a", cancelAfter: AtProof}}, want: Cancelled, after: 1},
		{name: "proved on the last dollar is done", ticks: []tickScript{{tree: "a", cost: 5 * money.Dollar}}, limits: func(l *Limits) { l.Review = false }, want: Done, after: 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := limits()
			if c.limits != nil {
				c.limits(&l)
			}
			end, _ := play(t, l, c.ticks...)
			if end.End.Terminal != c.want || end.Tick != c.after {
				t.Errorf("ended %s after %d ticks (%s), want %s after %d", end.End.Terminal, end.Tick, end.End.Reason, c.want, c.after)
			}
		})
	}
}

func TestRealProgressResetsTheCountOfStaleTicks(t *testing.T) {
	t.Parallel()
	// INV-3: two idle ticks, one that fixes something, two idle ones: the third idle tick in a row never comes.
	end, _ := play(t, limits(),
		tickScript{tree: "a", iteration: red("1")},
		tickScript{tree: "a", iteration: red("1")},
		tickScript{tree: "a", iteration: red("1")},
		tickScript{tree: "b", iteration: red("2")},
		tickScript{tree: "b", iteration: red("2")},
		tickScript{tree: "c"},
	)
	if end.End.Terminal != Done {
		t.Errorf("ended %s: %s", end.End.Terminal, end.End.Reason)
	}
}

func TestTheJudgeIsNotCalledBehindARedGate(t *testing.T) {
	t.Parallel()
	// INV-28
	_, st := play(t, limits(), tickScript{tree: "a", iteration: red("1")}, tickScript{tree: "b"})
	want := map[Phase]int{AtAgent: 2, AtSnapshot: 2, AtGuard: 2, AtIteration: 2, AtReview: 1, AtProof: 1}
	if d := cmp.Diff(want, st.calls); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}

func TestABrokenRuleRestoresTheLastGoodCommitAndSavesNothingOfTheTick(t *testing.T) {
	t.Parallel()
	// INV-14
	end, st := play(t, limits(), tickScript{tree: "a", iteration: red("1")}, tickScript{tree: "bad", guard: GuardSeen{Level: GuardHalt, Detail: "ci.yml"}})
	if end.End.Terminal != SafetyHalt {
		t.Fatalf("ended %s", end.End.Terminal)
	}
	good := Commit{ID: "commit-1", Tree: "a"}
	if d := cmp.Diff([]Commit{good}, st.restored); d != "" {
		t.Errorf("restored (-want +got):\n%s", d)
	}
	if end.Good != good {
		t.Errorf("good = %v, want %v", end.Good, good)
	}
	if st.calls[AtIteration] != 1 {
		t.Errorf("the gate ran on a commit that broke a rule")
	}
}

func TestABlockedCommitIsNotKeptAndTheAgentHearsWhy(t *testing.T) {
	t.Parallel()
	end, st := play(t, limits(), tickScript{tree: "a", guard: GuardSeen{Level: GuardBlock, Detail: "secret", Feedback: "take it out"}}, tickScript{tree: "b"})
	if end.End.Terminal != Done {
		t.Fatalf("ended %s", end.End.Terminal)
	}
	if st.saved[0].Good != base {
		t.Errorf("the blocked commit was kept: %v", st.saved[0].Good)
	}
	if d := cmp.Diff([]Feedback{{From: "guard", Text: "take it out"}}, st.fed[1]); d != "" {
		t.Errorf("feedback (-want +got):\n%s", d)
	}
}

func TestTheHeldOutGateTellsNoMoreThanThatItFailed(t *testing.T) {
	t.Parallel()
	// INV-27: nothing of what the proof printed can be in a ProofSeen, and its words here are fixed.
	_, st := play(t, limits(), tickScript{tree: "a", proof: ProofSeen{Acceptance: true, Gate: "acceptance"}}, tickScript{tree: "b"})
	want := []Feedback{{From: "proof", Gate: "acceptance", Text: "The held-out acceptance gate failed. Its tests stay sealed: solve the issue in general, not the examples."}}
	if d := cmp.Diff(want, st.fed[1]); d != "" {
		t.Errorf("feedback (-want +got):\n%s", d)
	}
}

func TestTickZeroEndsTheRunBeforeAnythingIsSpent(t *testing.T) {
	t.Parallel()
	// INV-25
	pass := GateSeen{Status: GatePassed}
	cases := []struct {
		name string
		b    Baseline
		want Terminal
	}{
		{"flaky iteration", Baseline{Iteration: GateSeen{Status: GateFlaked}, Regression: pass}, GateFlaky},
		{"broken iteration", Baseline{Iteration: GateSeen{Status: GateWasted}}, GateBroken},
		{"no answer", Baseline{}, GateBroken},
		{"red regression", Baseline{Iteration: pass, Regression: red("x")}, GateBroken},
		{"acceptance green where red was required", Baseline{Iteration: pass, Regression: pass, Acceptance: pass}, AlreadySatisfied},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := limits()
			l.Regression, l.MustFail = true, true
			st := &stage{t: t, clock: time.Unix(0, 0), calls: map[Phase]int{}, baseline: c.b}
			end := st.run(t, Begin(base), l)
			if end.End.Terminal != c.want || st.calls[AtAgent] != 0 {
				t.Errorf("ended %s after %d agent calls, want %s after none", end.End.Terminal, st.calls[AtAgent], c.want)
			}
		})
	}
	t.Run("a stable red is fine", func(t *testing.T) {
		t.Parallel()
		st := &stage{t: t, clock: time.Unix(0, 0), calls: map[Phase]int{}, ticks: []tickScript{{tree: "a"}}, baseline: Baseline{Iteration: red("x")}}
		if end := st.run(t, Begin(base), limits()); end.End.Terminal != Done {
			t.Errorf("ended %s", end.End.Terminal)
		}
	})
}

func TestResumeRestoresSpendAttemptsAndVerdicts(t *testing.T) {
	t.Parallel()
	// INV-9, INV-10
	l := limits()
	l.MaxTicks = 1
	first, _ := play(t, l, tickScript{tree: "a", cost: money.Dollar, review: ReviewSeen{Rejected: true, Fingerprint: "x", Feedback: "no"}})
	if first.End.Terminal != TickCap {
		t.Fatalf("ended %s", first.End.Terminal)
	}
	t.Run("a run over its budget makes no call", func(t *testing.T) {
		t.Parallel()
		over := limits()
		over.MaxCost = money.Dollar
		st := &stage{t: t, clock: time.Unix(0, 0), calls: map[Phase]int{}, baseline: Baseline{Iteration: GateSeen{Status: GatePassed}}}
		end := st.run(t, Resume(first, false), over)
		if end.End.Terminal != StoppedBudget || st.calls[AtAgent] != 0 {
			t.Errorf("ended %s after %d calls", end.End.Terminal, st.calls[AtAgent])
		}
	})
	t.Run("a rejected tree stays rejected when asked again", func(t *testing.T) {
		t.Parallel()
		st := &stage{t: t, clock: time.Unix(0, 0), calls: map[Phase]int{}, ticks: []tickScript{{tree: "a"}}, baseline: Baseline{Iteration: GateSeen{Status: GatePassed}}}
		end := st.run(t, Resume(first, true), limits())
		if end.End.Terminal == Done || st.calls[AtReview] != 0 {
			t.Errorf("ended %s after %d reviews", end.End.Terminal, st.calls[AtReview])
		}
		if end.IssueBefore != money.Dollar {
			t.Errorf("issue had cost %s before, want $1", end.IssueBefore)
		}
	})
	t.Run("feedback of the last tick reaches the next process", func(t *testing.T) {
		t.Parallel()
		st := &stage{t: t, clock: time.Unix(0, 0), calls: map[Phase]int{}, ticks: []tickScript{{tree: "b"}}, baseline: Baseline{Iteration: GateSeen{Status: GatePassed}}}
		st.run(t, Resume(first, true), limits())
		if len(st.fed) == 0 || len(st.fed[0]) != 1 || st.fed[0][0].Text != "no" {
			t.Errorf("fed %v", st.fed)
		}
	})
}

func TestAProvedRunThatWasNotPublishedGoesStraightToItsProof(t *testing.T) {
	t.Parallel()
	first, _ := play(t, limits(), tickScript{tree: "a", cost: money.Dollar})
	st := &stage{t: t, clock: time.Unix(0, 0), calls: map[Phase]int{}, ticks: []tickScript{{tree: "a"}}}
	end := st.run(t, Resume(first, false), limits())
	if end.End.Terminal != Done || st.calls[AtAgent] != 0 || st.calls[AtProof] != 1 {
		t.Errorf("ended %s, calls %v", end.End.Terminal, st.calls)
	}
}

func TestAMachineLostBetweenTheProofAndTheEndProvesAgainWithoutACall(t *testing.T) {
	t.Parallel()
	// INV-11: the last tick's checkpoint knows that the proof passed; the run's own end was never saved.
	_, st := play(t, limits(), tickScript{tree: "a", cost: money.Dollar})
	saved := st.saved[0]
	if saved.End != nil || len(saved.Pending) == 0 {
		t.Fatalf("the tick's checkpoint is %+v", saved)
	}
	l := limits()
	l.MaxTicks = 1
	next := &stage{t: t, clock: time.Unix(0, 0), calls: map[Phase]int{}, ticks: []tickScript{{tree: "a"}}}
	if end := next.run(t, Resume(saved, false), l); end.End.Terminal != Done || next.calls[AtAgent] != 0 {
		t.Errorf("ended %s after %d calls", end.End.Terminal, next.calls[AtAgent])
	}
}

func TestWorkThatOthersLeftIsTakenUpWhereItStands(t *testing.T) {
	t.Parallel()
	start := Commit{ID: "tip", Tree: "tree-tip"}
	same, changed := tickScript{tree: "tree-tip"}, tickScript{tree: "tree-new"}
	// Something was asked for: the start's own tree is no result, and the agent hears it.
	end, st := playFrom(t, Begin(base).On(start, start), limits(), same, changed)
	if end.End.Terminal != Done || end.Tick != 2 || end.Good.Tree != "tree-new" || st.calls[AtIteration] != 1 {
		t.Errorf("%+v after tick %d with %d gates", end.End, end.Tick, st.calls[AtIteration])
	}
	if len(st.fed) != 2 || len(st.fed[1]) != 1 || st.fed[1][0].From != "agent" {
		t.Errorf("fed %+v", st.fed)
	}
	if end, _ := playFrom(t, Begin(base).On(start, start), limits(), same); end.End.Terminal != NoProgress || end.Good.Tree != "tree-tip" {
		t.Errorf("nothing done ends %+v on %+v", end.End, end.Good)
	}
	// Nothing was asked for but the proof: control.
	if end, _ := playFrom(t, Begin(base).On(start, Commit{}), limits(), same); end.End.Terminal != Done || end.Good.Tree != "tree-tip" {
		t.Errorf("proved again, it ends %+v on %+v", end.End, end.Good)
	}
	// The base's tree is none either way.
	if end, _ := playFrom(t, Begin(base).On(start, Commit{}), limits(), tickScript{tree: baseTree}); end.End.Terminal != NoProgress {
		t.Errorf("the base's own tree ends %+v", end.End)
	}
}
