package app

import (
	"context"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/trigger"
)

// INV-12: the lease is renewed from the claim on, not from the loop on: what is fetched in between may outlast it.
func TestTheLeaseIsRenewedFromTheClaimOn(t *testing.T) {
	t.Parallel()
	s := daySession(t)
	s.trigger.Issue.Number, s.trigger.Command = 1, &trigger.Command{Name: "resume"} // of nothing: no forge is asked
	naps, renewed := 0, make(chan struct{})
	s.env.Sleep = func(ctx context.Context, _ time.Duration) error {
		if naps++; naps == 1 {
			return nil
		}
		close(renewed)
		<-ctx.Done()
		return ctx.Err()
	}
	if err := s.claim(t.Context()); err == nil || s.lease == nil {
		t.Fatalf("claimed %v: %v", s.lease, err)
	}
	<-renewed
	s.letLease()
	s.letLease()
	if err := s.lease.Release(t.Context()); err != nil {
		t.Errorf("the lease after its renewal: %v", err)
	}
}
