package wire

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/proctor-ci/proctor/internal/clock"
)

// Retry decides which failed calls are tried again. The zero value is not usable: see NewRetry.
type Retry struct {
	attempts int
	maxWait  time.Duration
	now      func() time.Time
	sleep    func(context.Context, time.Duration) error
	log      *slog.Logger
}

// Defaults of a Retry.
const (
	DefaultAttempts = 5
	// DefaultMaxWait bounds the waiting of one call. A primary limit may ask for an hour: that is told
	// to a person instead of holding a paid runner.
	DefaultMaxWait = 5 * time.Minute
	firstBackoff   = time.Second
)

// NewRetry fills in what is nil: the wall clock, a timer that ends with ctx, no log.
func NewRetry(now func() time.Time, sleep func(context.Context, time.Duration) error, log *slog.Logger) Retry {
	if now == nil {
		now = time.Now
	}
	if sleep == nil {
		sleep = clock.Sleep
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return Retry{attempts: DefaultAttempts, maxWait: DefaultMaxWait, now: now, sleep: sleep, log: log}
}

// Safety says what a second try may do after a failure that leaves open whether the first arrived.
type Safety int

// Safeties.
const (
	// Repeatable calls give the same result twice: reads, edits, and creations that look first when attempt > 0.
	Repeatable Safety = iota
	// Once is for calls that must not be sent again when the first may have arrived.
	Once
)

// Failure is the last failed attempt.
type Failure struct {
	Resp    *http.Response // nil when there was no answer
	Err     error
	Limited bool
	RetryAt time.Time // for Limited
}

// Do calls f until it succeeds, fails for good, or the attempts or the patience are used up. f is
// told how many attempts went before it.
func (r Retry) Do(ctx context.Context, op string, s Safety, f func(ctx context.Context, attempt int) (*http.Response, error)) *Failure {
	waited := time.Duration(0)
	for attempt := 0; ; attempt++ {
		resp, err := f(ctx, attempt)
		if err == nil {
			return nil
		}
		fail := &Failure{Resp: resp, Err: err, Limited: Limited(resp)}
		wait, again := r.wait(fail, s, attempt)
		if fail.Limited {
			fail.RetryAt = r.now().Add(wait)
		}
		if !again || ctx.Err() != nil || attempt+1 >= r.attempts || waited+wait > r.maxWait {
			return fail
		}
		r.log.WarnContext(ctx, "forge call failed, trying again",
			"op", op, "attempt", attempt+1, "status", status(resp), "wait", wait)
		if err := r.sleep(ctx, wait); err != nil {
			return fail
		}
		waited += wait
	}
}

func (r Retry) wait(f *Failure, s Safety, attempt int) (time.Duration, bool) {
	backoff := firstBackoff << min(attempt, 6)
	switch {
	case f.Limited:
		// A limited request was not performed, so even Once may be sent again.
		return limitWait(f.Resp, r.now(), attempt), true
	case f.Resp == nil:
		if errors.Is(f.Err, ErrForeignHost) {
			return 0, false
		}
		return backoff, s == Repeatable || neverSent(f.Err)
	case f.Resp.StatusCode < http.StatusMultipleChoices:
		// It was done, but the answer was cut off or is not what the library can read.
		return backoff, s == Repeatable
	case f.Resp.StatusCode >= http.StatusInternalServerError && f.Resp.StatusCode != http.StatusNotImplemented:
		if d, ok := retryAfter(f.Resp, r.now()); ok {
			backoff = d
		}
		return backoff, s == Repeatable
	}
	return 0, false
}

// neverSent is true when no connection was made.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func status(resp *http.Response) int {
	if resp == nil {
		return 0
	}
	return resp.StatusCode
}
