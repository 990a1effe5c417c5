package app

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/judge"
	"github.com/proctor-ci/proctor/internal/meter"
)

// busy answers with one status after the other, then with a text.
type busy struct {
	statuses []int
	asked    int
}

func (b *busy) Name() string { return "busy" }

func (b *busy) Complete(context.Context, judge.Request) (string, error) {
	b.asked++
	if b.asked <= len(b.statuses) {
		return "", &judge.HTTPError{Status: b.statuses[b.asked-1]}
	}
	return "ok", nil
}

func TestAThrottledReviewerIsAskedAgainAFewTimes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statuses []int
		waits    []time.Duration
		ok       bool
	}{
		"at once":         {nil, nil, true},
		"throttled":       {[]int{429, 529}, []time.Duration{5 * time.Second, 10 * time.Second}, true},
		"for too long":    {[]int{429, 429, 429, 429, 429}, []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}, false},
		"a wrong key":     {[]int{401}, nil, false},
		"over the budget": {[]int{402}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var waits []time.Duration
			p := patient{&busy{statuses: c.statuses}, func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }}
			text, err := p.Complete(t.Context(), judge.Request{})
			if (err == nil && text == "ok") != c.ok || !slices.Equal(waits, c.waits) {
				t.Errorf("%q, %v after %v", text, err, waits)
			}
		})
	}
}

func TestOnlyTheMetersOwnRefusalIsTheBudgets(t *testing.T) {
	t.Parallel()
	wrap := func(e *judge.HTTPError) error { return errors.Join(judge.ErrUnavailable, e) }
	if !overBudget(wrap(&judge.HTTPError{Status: 402, Message: meter.Mark + "the ceiling"})) {
		t.Error("the meter's refusal is not the budget's")
	}
	for _, err := range []error{wrap(&judge.HTTPError{Status: 402, Message: "Your payment method was declined"}), wrap(&judge.HTTPError{Status: 400, Message: meter.Mark + "no"}), judge.ErrUnavailable} {
		if overBudget(err) {
			t.Errorf("%v is taken for the run's budget", err)
		}
	}
}
