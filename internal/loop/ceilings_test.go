package loop

import (
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/money"
)

// The next step lifts the ceiling that was reached: a comment's raise is for the alone, and no day's sum begins anew by a label.
func TestTheNextStepIsThatOfTheCeilingThatWasReached(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ceiling      string
		limit        money.USD
		reason, next []string
		not          string
	}{
		{"stops.max_cost_usd", money.Dollar, []string{"of $1.0000 is spent (stops.max_cost_usd)"}, []string{"label again to resume", "stops.max_cost_usd"}, "/proctor budget"},
		{"budget.per_issue_usd", money.Dollar, []string{"of $1.0000 is spent (budget.per_issue_usd)"}, []string{"/proctor budget", "budget.per_issue_usd"}, "midnight"},
		{"budget.per_day_usd", money.Dollar, []string{"of the $1.0000 that budget.per_day_usd left this run today is spent"}, []string{"midnight UTC", "budget.per_day_usd"}, "/proctor budget"},
		{"budget.per_actor_day_usd", 0, []string{"budget.per_actor_day_usd left this run nothing for today"}, []string{"midnight UTC", "budget.per_actor_day_usd"}, "/proctor budget"},
	} {
		l := Limits{CostCeiling: c.ceiling, MaxCost: c.limit}
		for name, reach := range map[string]func(*State){
			"spent": func(s *State) { s.Spent = c.limit; s.holdSpent(l) }, "review": func(s *State) { s.holdReview(l) },
			"broke": func(s *State) { s.noteAgent(l, AgentSeen{Broke: true}) },
		} {
			var s State
			reach(&s)
			if len(s.Pending) != 1 || s.Pending[0].Terminal != StoppedBudget {
				t.Fatalf("%s, %s: pending %+v", c.ceiling, name, s.Pending)
			}
			p := s.Pending[0]
			for text, words := range map[string][]string{p.Reason: c.reason, p.Next: c.next} {
				for _, w := range words {
					if !strings.Contains(text, w) {
						t.Errorf("%s, %s: %q, want %q in it", c.ceiling, name, text, w)
					}
				}
			}
			if strings.Contains(p.Next, c.not) {
				t.Errorf("%s, %s: next %q, which does not help", c.ceiling, name, p.Next)
			}
		}
	}
}
