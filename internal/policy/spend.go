package policy

import "github.com/proctor-ci/proctor/internal/money"

// Day is what runs have spent or reserved in a repository since midnight UTC.
type Day struct {
	Total, Actor money.USD // of everybody, and of the one who asks
}

// Allowances are the ceilings of a day, 0 for none.
type Allowances struct {
	PerDay, PerActorDay money.USD
}

// Grant is how much of want a run may reserve, and the setting that cut it short; "" where nothing did. What is
// reserved counts as spent until the run says what it was.
func Grant(want money.USD, d Day, a Allowances) (granted money.USD, cut string) {
	granted = max(want, 0)
	for _, l := range []struct {
		limit, used money.USD
		name        string
	}{{a.PerDay, d.Total, "budget.per_day_usd"}, {a.PerActorDay, d.Actor, "budget.per_actor_day_usd"}} {
		if left := max(l.limit-l.used, 0); l.limit > 0 && left < granted {
			granted, cut = left, l.name
		}
	}
	return granted, cut
}
