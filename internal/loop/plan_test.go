package loop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/money"
)

func plan(texts ...string) State {
	var items []Item
	for _, text := range texts {
		done := strings.HasPrefix(text, "x ")
		items = append(items, Item{Text: strings.TrimPrefix(text, "x "), Before: done})
	}
	return Begin(base).WithPlan(items)
}

func TestAPlanIsWorkedThroughItemByItem(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		plan  State
		limit func(*Limits)
		ticks []tickScript
		want  Terminal
		after int
		done  []int // tick of each item
		asked []string
	}{
		{
			name: "one item a tick, its share judged, then the whole", plan: plan("one", "two"), ticks: []tickScript{{tree: "a"}, {tree: "b"}},
			want: Done, after: 2, done: []int{1, 2}, asked: []string{"one since tree-base", "two since a"},
		},
		{
			name: "without a reviewer green gates on a changed tree tick an item off", plan: plan("one", "two"), limit: func(l *Limits) { l.Review = false },
			ticks: []tickScript{{tree: "a"}, {tree: "b"}}, want: Done, after: 2, done: []int{1, 2},
		},
		{
			name: "what was ticked off before is not worked on", plan: plan("x one", "two"), ticks: []tickScript{{tree: "a"}},
			want: Done, after: 1, done: []int{0, 1}, asked: []string{"two since tree-base"},
		},
		{
			name: "an open item blocks done however green the gates", plan: plan("one", "two"), limit: func(l *Limits) { l.Review = false },
			ticks: []tickScript{{tree: "a"}}, want: NoProgress, after: 4, done: []int{1, 0},
		},
		{
			name: "an idle agent ticks nothing off without a reviewer", plan: plan("one", "two", "three"), limit: func(l *Limits) { l.Review, l.NoProgressAfter = false, 9 },
			ticks: []tickScript{{tree: "a"}}, want: PlanStall, after: 4, done: []int{1, 0, 0},
		},
		{
			name: "the reviewer may find an item done along with another", plan: plan("one", "two"), ticks: []tickScript{{tree: "a"}, {tree: "a"}},
			want: Done, after: 2, done: []int{1, 2}, asked: []string{"one since tree-base", "two since a"},
		},
		{
			name: "a rejected share stays rejected on the same tree", plan: plan("one"), limit: func(l *Limits) { l.NoProgressAfter, l.ReviewStallAfter = 9, 9 },
			ticks: []tickScript{{tree: "a", item: ReviewSeen{Rejected: true, Fingerprint: "x"}}, {tree: "a"}}, want: PlanStall, after: 3, done: []int{0}, asked: []string{"one since tree-base"},
		},
		{
			name: "no verdict on an item is unavailable", plan: plan("one"), ticks: []tickScript{{tree: "a", item: ReviewSeen{Detail: "?"}}},
			want: JudgeUnavailable, after: 1, done: []int{0}, asked: []string{"one since tree-base"},
		},
		{
			name: "red gates tick nothing off", plan: plan("one"), limit: func(l *Limits) { l.NoProgressAfter = 9 },
			ticks: distinct(9, func(i int, s *tickScript) { s.iteration = red(fmt.Sprint(i)) }), want: PlanStall, after: 3, done: []int{0},
		},
		{
			name: "an unhealthy call ticks nothing off", plan: plan("one"), ticks: []tickScript{{tree: "a", agent: AgentSeen{Health: AgentUnhealthy, Kind: "timeout"}}, {tree: "a"}},
			want: Done, after: 2, done: []int{2}, asked: []string{"one since tree-base"},
		},
		{
			name: "the review of the whole may reject what every share passed", plan: plan("one"), limit: func(l *Limits) { l.ReviewStallAfter = 1 },
			ticks: []tickScript{{tree: "a", review: ReviewSeen{Rejected: true, Fingerprint: "x"}}}, want: ReviewStall, after: 1, done: []int{1}, asked: []string{"one since tree-base"},
		},
		{
			name: "an item getting done starts the count anew", plan: plan("one", "two"), limit: func(l *Limits) { l.NoProgressAfter, l.Review = 9, false },
			ticks: []tickScript{{tree: "a", iteration: red("1")}, {tree: "b", iteration: red("2")}, {tree: "c"}, {tree: "d", iteration: red("3")}, {tree: "e", iteration: red("4")}, {tree: "f"}},
			want:  Done, after: 6, done: []int{3, 6},
		},
		{
			name: "money that is over is no stall", plan: plan("one"), ticks: distinct(9, func(i int, s *tickScript) { s.cost, s.iteration = 2*money.Dollar, red(fmt.Sprint(i)) }),
			limit: func(l *Limits) { l.NoProgressAfter = 9 }, want: StoppedBudget, after: 3, done: []int{0},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := limits()
			if c.limit != nil {
				c.limit(&l)
			}
			end, st := playFrom(t, c.plan, l, c.ticks...)
			if end.End.Terminal != c.want || end.Tick != c.after {
				t.Errorf("ended %s after %d ticks (%s), want %s after %d", end.End.Terminal, end.Tick, end.End.Reason, c.want, c.after)
			}
			var done []int
			for _, i := range end.Plan {
				done = append(done, i.Done)
			}
			if d := cmp.Diff(c.done, done); d != "" {
				t.Errorf("done in ticks (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.asked, st.asked); d != "" {
				t.Errorf("items judged (-want +got):\n%s", d)
			}
		})
	}
}

func TestWhatOnlyTheAgentCallsDoneIsClaimedAndOpen(t *testing.T) {
	t.Parallel()
	end, _ := playFrom(t, plan("one", "two"), limits(), tickScript{tree: "a", iteration: red("x"), claims: []int{0, 1, 7, -1}})
	want := []Item{{Text: "one", Claimed: 1}, {Text: "two", Claimed: 1}}
	if d := cmp.Diff(want, end.Plan); d != "" || end.End.Terminal == Done {
		t.Errorf("ended %s, plan (-want +got):\n%s", end.End.Terminal, d)
	}
}

func TestAResumedRunGoesOnWithItsPlan(t *testing.T) {
	t.Parallel()
	// INV-9, INV-10
	l := limits()
	l.MaxTicks = 1
	first, _ := playFrom(t, plan("one", "two"), l, tickScript{tree: "a"})
	if first.End.Terminal != TickCap || first.Item() != 1 {
		t.Fatalf("ended %s with item %d", first.End.Terminal, first.Item())
	}
	end, st := playFrom(t, Resume(first, true), limits(), tickScript{tree: "b"})
	if end.End.Terminal != Done {
		t.Errorf("ended %s: %s", end.End.Terminal, end.End.Reason)
	}
	if d := cmp.Diff([]string{"two since a"}, st.asked); d != "" {
		t.Errorf("items judged (-want +got):\n%s", d)
	}
}

func TestGeneratedHistoriesWithAPlanKeepThePromises(t *testing.T) {
	t.Parallel()
	// INV-4, INV-6, INV-16 over histories nobody thought of, with a plan in each. The tally is the control.
	seen := map[Terminal]int{}
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 2))
		l, ticks := generated(r)
		l.PlanStallAfter = 1 + r.IntN(4)
		l.MaxDuration = 10 * time.Hour
		for i := range ticks {
			if r.IntN(4) == 0 {
				ticks[i].item = []ReviewSeen{{Rejected: true, Fingerprint: fmt.Sprint(r.IntN(3))}, {Detail: "none"}}[r.IntN(2)]
			}
			if r.IntN(3) == 0 {
				ticks[i].claims = []int{r.IntN(5) - 1}
			}
		}
		var items []string
		for i := range 1 + r.IntN(3) {
			items = append(items, []string{"", "x "}[r.IntN(2)]+fmt.Sprint(i))
		}
		end, st := playFrom(t, plan(items...), l, ticks...)
		seen[end.End.Terminal]++
		msg := broken(end, st, l)
		if msg == "" {
			msg = brokenPlan(end, st, l)
		}
		if msg != "" {
			t.Fatalf("seed %d: %s\nend %+v\nplan %+v", seed, msg, *end.End, end.Plan)
		}
	}
	for _, want := range []Terminal{Done, Cancelled, SafetyHalt, AgentUnavailable, JudgeUnavailable, GateBroken, StoppedBudget, Overfit, NoProgress, ReviewStall, PlanStall, TickCap} {
		if seen[want] == 0 {
			t.Errorf("no history ended %s: %v", want, seen)
		}
	}
}

// brokenPlan names the promise about plans that a finished run breaks.
func brokenPlan(end State, st *stage, l Limits) string {
	switch {
	case end.End.Terminal == Done && end.Item() >= 0:
		return "done with an open item"
	case end.End.Terminal == PlanStall && end.Item() < 0:
		return "a stall without an open item"
	case end.End.Terminal == PlanStall && end.PlanStale < l.PlanStallAfter:
		return "a stall too early"
	}
	perTick := map[int]int{}
	for n, i := range end.Plan {
		if i.Done == 0 {
			continue
		}
		s := st.ticks[i.Done-1]
		perTick[i.Done]++
		healthy := s.agent.Health == "" || s.agent.Health == AgentHealthy
		green := (s.iteration.Status == "" || s.iteration.Status == GatePassed) && (!l.Regression || s.regression.Status == "" || s.regression.Status == GatePassed)
		switch {
		case i.Before:
			return "an item was ticked off twice"
		case !healthy, !green, s.guard.Level != "" && s.guard.Level != GuardPass:
			return fmt.Sprintf("item %d was ticked off in tick %d without green gates", n, i.Done)
		case l.Review && !slices.ContainsFunc(st.asked, func(a string) bool { return strings.HasPrefix(a, i.Text+" since ") }):
			return fmt.Sprintf("item %d was ticked off and nobody was asked", n)
		case s.tree == baseTree:
			return fmt.Sprintf("item %d was ticked off over an empty diff", n)
		}
	}
	for tick, n := range perTick {
		if n > 1 {
			return fmt.Sprintf("tick %d ticked off %d items", tick, n)
		}
	}
	return ""
}
