package meter

import (
	"context"
	"fmt"

	"github.com/proctor-ci/proctor/internal/money"
)

// coverFunc is Config.Cover.
type coverFunc func(ctx context.Context, upTo money.USD) error

// aheadPart bounds what is covered beyond the call at hand, as a part of the ceiling: a save for each call would be
// too slow, and what a lost machine has covered and not spent is lost to the run.
const aheadPart = 20

// uncoveredError says that nobody would know of the call if this machine were lost.
type uncoveredError struct{ err error }

func (e *uncoveredError) Error() string {
	return "what this call may cost could not be put on record, so it was not made: " + e.err.Error()
}
func (e *uncoveredError) Unwrap() error { return e.err }

// topUp covers need, and as much again as the call at hand may cost but no more than a part of the ceiling.
func (l *ledger) topUp(ctx context.Context, need, bound money.USD) error {
	if err := l.hold(ctx); err != nil {
		return err
	}
	defer l.letGo()
	l.mu.Lock()
	enough := need <= l.covered
	slack := min(bound, l.ceiling/aheadPart)
	l.mu.Unlock()
	if enough { // another call has waited for as much
		return nil
	}
	// A save that is given up half-way may have happened or not, so it does not end with the call.
	if err := l.cover(context.WithoutCancel(ctx), need.Add(slack)); err != nil {
		return &uncoveredError{err}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.covered, l.ahead = need.Add(slack), bound.Add(slack)
	return nil
}

// hold makes sure that one save is under way at a time.
func (l *ledger) hold(ctx context.Context) error {
	select {
	case l.saving <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a save that is under way: %w", ctx.Err())
	}
}

func (l *ledger) letGo() { <-l.saving }

// lower brings the cover down to what is spent and can still be spent by calls in flight.
func (l *ledger) lower() money.USD {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.covered = l.spent.Add(l.bound)
	return l.covered
}

// Settle gives back what was covered and is not needed any more: save is told up to what this meter may spend from now
// on without another cover, and has to make that survive. With goOn that is as much beyond what is spent as the last
// cover was asked for, so that a run's next calls need none; else nothing. When save fails nothing of it counts.
func (m *Meter) Settle(ctx context.Context, goOn bool, save func(upTo money.USD) error) error {
	l := m.purse
	if err := l.hold(ctx); err != nil {
		return err
	}
	defer l.letGo()
	upTo := l.lower()
	l.mu.Lock()
	if goOn {
		upTo = upTo.Add(l.ahead)
	}
	l.mu.Unlock()
	if err := save(upTo); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.covered = upTo
	return nil
}
