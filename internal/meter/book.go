package meter

import (
	"log/slog"

	"github.com/proctor-ci/proctor/internal/money"
)

// book settles a call. count is nil when no answer was read; ran says that the provider may have
// worked for it.
func (m *Meter) book(c *call, count counter, ran bool) {
	c.Priced, c.CostUSD = m.charge(c, count, ran)
	c.Millis = m.cfg.Now().Sub(c.Started).Milliseconds()
	if c.price != nil {
		m.purse.settle(c.most(), c.Reserved, c.CostUSD)
	}
	m.mu.Lock()
	m.calls = append(m.calls, c.Call)
	m.mu.Unlock()
	m.cfg.Log.Info("model call",
		slog.Int("tick", c.Tick), slog.String("purpose", c.Purpose), slog.String("model", printable(c.Model)),
		slog.Int("status", c.Status), slog.Int64("input", c.Input), slog.Int64("output", c.Output),
		slog.Int64("cache_read", c.CacheRead), slog.Int64("cache_write", c.CacheWrite),
		slog.String("cost", c.CostUSD.String()), slog.String("priced", c.Priced), slog.Int64("ms", c.Millis))
	if m.cfg.OnCall != nil {
		m.cfg.OnCall(c.Call)
	}
}

// charge decides what a call cost. Doubt is never in the run's favour: without a usable report a call is booked at all
// that it can have cost, since a client can leave before the usage is told, and of a torn stream that has told its input
// the output counts as used up.
func (m *Meter) charge(c *call, count counter, ran bool) (string, money.USD) {
	if !ran {
		return PricedFree, 0
	}
	var told, believed Usage
	var complete, started bool
	if count != nil {
		told, complete, started = count.usage()
	}
	if complete {
		believed = told
	}
	if c.price == nil {
		c.note(believed)
		return PricedUnpriced, 0
	}
	cost, possible := c.price.Cost(told)
	possible = possible && told.Output <= c.bound.Output && cost <= c.most()
	switch {
	case complete && possible:
		c.note(told)
		return PricedUsage, cost
	case started && possible && told.Input+told.CacheRead+told.CacheWrite5m+told.CacheWrite1h > 0:
		told.Output = c.bound.Output
		c.note(Usage{Input: told.Input, CacheRead: told.CacheRead, CacheWrite5m: told.CacheWrite5m, CacheWrite1h: told.CacheWrite1h})
		torn, _ := c.price.Cost(told)
		return PricedReserved, min(max(c.Reserved, torn), c.most())
	}
	return PricedReserved, c.most()
}

func (c *call) note(u Usage) {
	c.Reasoning = u.Reasoning
	c.Input, c.Output, c.CacheRead, c.CacheWrite = u.Input, u.Output, u.CacheRead, u.CacheWrite5m+u.CacheWrite1h
}
