package git

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// StopError: the lease is still ours and somebody asked its holder to stop. By is the word they left.
type StopError struct{ Ref, By string }

func (e *StopError) Error() string { return fmt.Sprintf("%s asked the run to stop (%s)", e.By, e.Ref) }

// Holding is who holds a lease now. A zero Holder: nobody.
type Holding struct {
	Holder  string
	Expires time.Time
	Stop    string // who asked the holder to stop; "" when nobody did
}

// Holder reads a lease without taking it.
func (s *Store) Holder(ctx context.Context, remote Remote, ref string) (Holding, error) {
	c, err := s.readLease(ctx, remote, ref)
	if err != nil || !s.git.now().Before(c.expires) {
		return Holding{}, err
	}
	return Holding{c.holder, c.expires, c.stop}, nil
}

// stopTries is how often a request to stop is written anew because the holder renewed its lease meanwhile.
const stopTries = 10

// AskToStop leaves a request to stop in the lease of holder; by says who asks and is not empty. The lease stays the
// holder's, who reads the request at its next renewal. false: holder holds it no more.
func (s *Store) AskToStop(ctx context.Context, remote Remote, ref, holder, by string) (bool, error) {
	for try := 0; ; try++ {
		c, err := s.readLease(ctx, remote, ref)
		switch {
		case err != nil:
			return false, err
		case c.holder != holder || !s.git.now().Before(c.expires):
			return false, nil
		case c.stop != "":
			return true, nil
		}
		theirs := &Lease{Ref: ref, Holder: holder, id: c.id, stop: by, store: s, remote: remote}
		if err = theirs.set(ctx, c.expires); err == nil {
			return true, nil
		}
		if !errors.Is(err, ErrLeaseLost) || try == stopTries-1 {
			return false, fmt.Errorf("ask run %s to stop: %w", holder, err)
		}
	}
}

// stillOurs adopts a change of the ref that left the lease with its holder: a request to stop, or a write of our own that the remote took and
// whose answer was lost, with the connection or with a git process that was ended. A holder is one run, so nobody else writes its name.
func (l *Lease) stillOurs(ctx context.Context) bool {
	c, err := l.store.readLease(ctx, l.remote, l.Ref)
	if err != nil || c.holder != l.Holder {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.id, l.stop = c.id, c.stop
	return true
}
