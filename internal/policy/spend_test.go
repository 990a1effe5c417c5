package policy_test

import (
	"testing"

	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/policy"
)

func TestADayGrantsNoMoreThanIsLeft(t *testing.T) {
	t.Parallel()
	const d = money.Dollar
	limits := policy.Allowances{PerDay: 50 * d, PerActorDay: 20 * d}
	for name, c := range map[string]struct {
		want, total, actor, granted money.USD
		cut                         string
		a                           policy.Allowances
	}{
		"a fresh day":                 {want: 5 * d, granted: 5 * d, a: limits},
		"the last of the day":         {want: 5 * d, total: 47 * d, granted: 3 * d, cut: "budget.per_day_usd", a: limits},
		"the last of the actor":       {want: 5 * d, total: 40 * d, actor: 18 * d, granted: 2 * d, cut: "budget.per_actor_day_usd", a: limits},
		"the tighter of both":         {want: 5 * d, total: 49 * d, actor: 18 * d, granted: d, cut: "budget.per_day_usd", a: limits},
		"nothing left":                {want: 5 * d, total: 50 * d, granted: 0, cut: "budget.per_day_usd", a: limits},
		"more spent than was allowed": {want: 5 * d, total: 51 * d, granted: 0, cut: "budget.per_day_usd", a: limits},
		"no limits":                   {want: 5 * d, total: 500 * d, actor: 500 * d, granted: 5 * d},
		"nothing wanted":              {want: -d, granted: 0, a: limits},
	} {
		if got, cut := policy.Grant(c.want, policy.Day{Total: c.total, Actor: c.actor}, c.a); got != c.granted || cut != c.cut {
			t.Errorf("%s: %v by %q, want %v by %q", name, got, cut, c.granted, c.cut)
		}
	}
}
