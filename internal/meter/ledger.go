package meter

import (
	"context"
	"fmt"
	"sync"

	"github.com/proctor-ci/proctor/internal/money"
)

// ledger is the purse of one run. A call is admitted against an estimate and settled with what it
// cost; the two together keep this promise, whatever usage is reported and however many calls are
// in flight: when all are settled, what was spent is over the ceiling by less than one call.
type ledger struct {
	mu       sync.Mutex
	ceiling  money.USD
	spent    money.USD
	bound    money.USD // the most that the calls in flight can cost together
	inflight int
	refused  bool
	settled  chan struct{} // closed and replaced at each settlement

	cover   coverFunc // nil: what is spent is not kept anywhere
	saving  chan struct{}
	covered money.USD // the spending that the loss of this machine would not hide
	ahead   money.USD // what the last cover was asked for beyond what was spent and in flight
}

func newLedger(ceiling money.USD, cover coverFunc) *ledger {
	return &ledger{ceiling: ceiling, settled: make(chan struct{}), cover: cover, saving: make(chan struct{}, 1)}
}

// refusedError says that a call would not fit any more.
type refusedError struct {
	spent, ceiling, reserve money.USD
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the budget of this run does not allow another model call: %s of %s is spent and this call may cost %s",
		e.spent, e.ceiling, e.reserve)
}

// admit takes reserve (what the call is expected to cost at most) and bound (what it cannot exceed,
// at least reserve). A call whose reserve does not fit is refused. One whose bound does not fit
// beside the calls in flight waits until it is alone: so at most one call can pass the ceiling.
func (l *ledger) admit(ctx context.Context, reserve, bound money.USD) error {
	bound = max(bound, reserve)
	for {
		l.mu.Lock()
		if reserve > l.ceiling-l.spent || l.spent >= l.ceiling {
			l.refused = true
			err := &refusedError{spent: l.spent, ceiling: l.ceiling, reserve: reserve}
			l.mu.Unlock()
			return err
		}
		if need := l.spent.Add(l.bound).Add(bound); l.inflight == 0 || need <= l.ceiling {
			if l.cover == nil || need <= l.covered {
				l.inflight++
				l.bound = l.bound.Add(bound)
				l.mu.Unlock()
				return nil
			}
			l.mu.Unlock()
			if err := l.topUp(ctx, need, bound); err != nil {
				return err
			}
			continue
		}
		wait := l.settled
		l.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle books what an admitted call cost and returns its bound.
func (l *ledger) settle(bound, reserve, cost money.USD) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inflight--
	l.bound -= max(bound, reserve)
	l.spent = l.spent.Add(cost)
	close(l.settled)
	l.settled = make(chan struct{})
}

func (l *ledger) state() (spent, left money.USD, refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spent, max(0, l.ceiling-l.spent), l.refused
}
