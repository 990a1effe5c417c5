package app

import (
	"context"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/loop"
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

// A retry begins at the base commit once: the same job run again goes on with what it has paid for.
func TestARetryThatIsRunAgainKeepsItsOwnTicks(t *testing.T) {
	t.Parallel()
	const base, goal = "b1", "g1"
	for name, c := range map[string]struct {
		asked string
		want  bool
	}{
		"the job of the retry again":        {"comment 5", true},
		"control: a new retry":              {"comment 4", false},
		"control: what a label had started": {"label event 5", false},
	} {
		s := session{
			anew: true, order: order{comment: forge.Comment{ID: 5}},
			rec:   evidence.Record{Base: evidence.Commit{ID: base}, Trigger: evidence.Trigger{Snapshot: goal}},
			saved: checkpoint{State: loop.State{Version: loop.StateVersion, Tick: 3}, Base: base, Goal: goal, Asked: c.asked, Runs: []string{"r1"}},
		}
		if ok, why := s.resumable(); ok != c.want {
			t.Errorf("%s: goes on: %t (%s), want %t", name, ok, why, c.want)
		}
	}
}
