package app

import (
	"context"

	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/money"
)

// purse is the run's meter, or nothing where a run uses no model: a scripted agent, a program of one's own, a
// rehearsal. An empty purse spends nothing and gives no gateway.
type purse struct{ *meter.Meter }

func (p purse) SetTick(n int, purpose string) {
	if p.Meter != nil {
		p.Meter.SetTick(n, purpose)
	}
}

func (p purse) Spent() money.USD {
	if p.Meter == nil {
		return 0
	}
	return p.Meter.Spent()
}

func (p purse) Calls() []meter.Call {
	if p.Meter == nil {
		return nil
	}
	return p.Meter.Calls()
}

// Exhausted says that nothing is left, or that a call was refused because it would not have fitted.
func (p purse) Exhausted() bool { return p.Meter != nil && p.Meter.Exhausted() }

// Quiet waits until every call in flight is booked.
func (p purse) Quiet(ctx context.Context) error {
	if p.Meter == nil {
		return nil
	}
	return p.Meter.Quiet(ctx)
}

// Settle is the meter's; an empty purse holds nothing.
func (p purse) Settle(ctx context.Context, goOn bool, save func(money.USD) error) error {
	if p.Meter == nil {
		return save(0)
	}
	return p.Meter.Settle(ctx, goOn, save)
}

func (p purse) Close(ctx context.Context) error {
	if p.Meter == nil {
		return nil
	}
	return p.Meter.Close(ctx)
}

// gateway is how a process reaches the model; zero when there is none.
func (p purse) gateway() agent.Gateway {
	if p.Meter == nil {
		return agent.Gateway{}
	}
	at := p.Endpoint()
	return agent.Gateway{BaseURL: at.BaseURL, Nonce: at.Nonce, Port: at.Port}
}
