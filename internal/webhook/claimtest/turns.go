package claimtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/webhook"
)

func turned(id, turn string, keys ...string) webhook.Claim {
	c := claim(id, keys...)
	c.Turn = turn
	return c
}

func turnKept(t *testing.T, s webhook.Store, clock *Clock) {
	ctx := context.Background()
	want := take(t, s, turned("a", "turn", "k1"))
	holder, err := s.Claim(ctx, turned("b", "turn", "k2"), lease)
	wantErr(t, err, webhook.ErrTaken)
	if d := cmp.Diff(want, holder); d != "" {
		t.Error(d)
	}
	take(t, s, turned("other", "", "k2"))
	clock.Advance(2 * lease)
	_, err = s.Claim(ctx, turned("b", "turn", "k3"), lease)
	wantErr(t, err, webhook.ErrTaken)
	if got := take(t, s, turned("a", "turn", "k1")); got.Attempt != 2 {
		t.Errorf("attempt %d of the turn's own claim, want 2", got.Attempt)
	}
	must(t, s.Mark(ctx, "a", 2, webhook.Running, lease))
	clock.Advance(2 * lease)
	holder, err = s.Claim(ctx, turned("b", "turn", "k1"), lease)
	wantErr(t, err, webhook.ErrTaken)
	if holder.ID != "a" {
		t.Errorf("held by %q, want a", holder.ID)
	}
	_, err = s.Find(ctx, []string{"b", "k3"})
	wantErr(t, err, webhook.ErrNoClaim)
}

func turnGoesOn(t *testing.T, s webhook.Store, clock *Clock) {
	ctx := context.Background()
	take(t, s, turned("a", "turn", "k1"))
	must(t, s.Mark(ctx, "a", 1, webhook.Ended, lease))
	if got := take(t, s, turned("b", "turn", "k2")); got.Attempt != 1 {
		t.Errorf("attempt %d of another claim, want 1", got.Attempt)
	}
	got, err := s.Find(ctx, []string{"k1"})
	must(t, err)
	if got.ID != "a" {
		t.Errorf("k1 is held by %q, want a: an ended claim keeps its keys", got.ID)
	}
	// Forgetting the old holder takes nothing from the new one.
	must(t, s.Release(ctx, "a", 1, webhook.Ended))
	_, err = s.Claim(ctx, turned("c", "turn", "k3"), lease)
	wantErr(t, err, webhook.ErrTaken)
	must(t, s.Release(ctx, "b", 1, webhook.Claimed))
	take(t, s, turned("c", "turn", "k3"))
	// A lapsed claim that loses its keys to another event leaves the turn, too.
	clock.Advance(lease)
	take(t, s, claim("d", "k3"))
	take(t, s, turned("e", "turn", "k4"))
}

func turnConcurrent(t *testing.T, s webhook.Store, _ *Clock) {
	take(t, s, turned("old", "turn", "k"))
	must(t, s.Mark(context.Background(), "old", 1, webhook.Ended, lease))
	var wg sync.WaitGroup
	won := make(chan string, 16)
	for i := range cap(won) {
		wg.Go(func() {
			c := turned(fmt.Sprintf("id%d", i), "turn", fmt.Sprintf("k%d", i))
			if _, err := s.Claim(context.Background(), c, lease); err == nil {
				won <- c.ID
			} else if !errors.Is(err, webhook.ErrTaken) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d claims got the turn, want one", len(won))
	}
}
