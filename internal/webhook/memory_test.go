package webhook_test

import (
	"context"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/claimtest"
)

func TestMemoryKeepsTheContractOfAStore(t *testing.T) {
	t.Parallel()
	open := func(_ *testing.T, clock *claimtest.Clock) webhook.Store { return webhook.NewMemory(clock.Now) }
	// It keeps no bytes that could be spoilt: a claim is there, or it is gone.
	spoil := func(t *testing.T, s webhook.Store, id string) bool {
		if err := s.Release(t.Context(), id, 0, webhook.Claimed); err != nil {
			t.Fatal(err)
		}
		return false
	}
	claimtest.Run(t, open, spoil)
}

// forgetful gives every claim to everybody.
type forgetful struct{ webhook.Store }

func (forgetful) Find(context.Context, []string) (webhook.Claim, error) {
	return webhook.Claim{}, webhook.ErrNoClaim
}

func (forgetful) Claim(_ context.Context, c webhook.Claim, _ time.Duration) (webhook.Claim, error) {
	c.Attempt = 1
	return c, nil
}

func (forgetful) Mark(context.Context, string, int, webhook.State, time.Duration) error { return nil }
