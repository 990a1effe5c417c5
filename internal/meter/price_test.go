package meter

import (
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

func TestEveryRowOfTheEmbeddedTableIsCompleteAndPlausible(t *testing.T) {
	t.Parallel()
	rows := Embedded().Rows()
	if len(rows) < 10 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, p := range rows {
		if err := p.validate(); err != nil {
			t.Error(err)
		}
		if _, err := time.Parse(time.DateOnly, p.Date); err != nil {
			t.Errorf("%s: date %q", p.Model, p.Date)
		}
		for _, r := range []Rates{p.Rates, p.Long} {
			if r != (Rates{}) && (r.Output < r.Input || r.CacheRead > r.Input || r.CacheWrite5m < r.Input || r.CacheWrite1h < r.CacheWrite5m || r.Output > 200*money.Dollar) {
				t.Errorf("%s: rates in an unlikely order: %+v", p.Model, r)
			}
		}
	}
}

func TestCostIsExactRoundsUpAndKnowsTheLongTier(t *testing.T) {
	t.Parallel()
	table := Embedded()
	for _, c := range []struct {
		model string
		u     Usage
		want  money.USD
		ok    bool
	}{
		{"claude-opus-4-8", Usage{Input: 1_000_000, Output: 1_000_000}, 30 * money.Dollar, true},
		{"claude-haiku-5-5", Usage{Input: 1}, 100, true},
		{"claude-haiku-5-5", Usage{CacheRead: 100_000}, 1_000_000, true},
		{"claude-haiku-5-5", Usage{CacheRead: 100_001, Output: 1}, 5_000_050 + 2_500, true},
		{"claude-3-5-haiku-latest", Usage{CacheWrite1h: 1}, 1_600, true},
		{"claude-sonnet-4-5-20250929", Usage{Input: 200_001}, 1_200_006_000, true},
		{"claude-opus-5", Usage{Output: -1}, 0, false},
		{"claude-opus-5", Usage{Input: 1 << 60}, 0, false},
	} {
		p, ok := table.Find(c.model)
		if !ok {
			t.Fatalf("%s is unknown", c.model)
		}
		if got, ok := p.Cost(c.u); got != c.want || ok != c.ok {
			t.Errorf("%s %+v: %d %v, want %d %v", c.model, c.u, got, ok, c.want, c.ok)
		}
	}
	if got := perMillion(1, 1); got != 1 {
		t.Errorf("a part of a nano-dollar is rounded to %d", got)
	}
}

func TestPriceTablesWithHolesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, row, want string }{
		{"no cache price", `{"model":"m","input":"1","output":"1","source":"s","date":"d"}`, "needs input, output"},
		{"no source", `{"model":"m","input":"1","output":"1","cache_read":"1","cache_write_5m":"1","cache_write_1h":"1"}`, "source"},
		{"a number", `{"model":"m","input":1}`, "read price table"},
		{"negative", `{"model":"m","input":"-1"}`, "want dollars"},
		{"no name", `{"input":"1"}`, "no model"},
	} {
		if _, err := ParsePrices([]byte(`{"rows":[` + c.row + `]}`)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
