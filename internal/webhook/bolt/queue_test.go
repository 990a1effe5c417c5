package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/bolt"
	"github.com/proctor-ci/proctor/internal/webhook/claimtest"
)

const lease = time.Minute

func sent(t *testing.T, f *bolt.File, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := f.Send(context.Background(), webhook.Message{Version: 1, Delivery: id}); err != nil {
			t.Fatal(err)
		}
	}
}

// taken gives the delivery, "" when nothing is due.
func taken(t *testing.T, f *bolt.File) (string, webhook.Taken) {
	t.Helper()
	m, err := f.Take(context.Background(), lease)
	if err != nil && !errors.Is(err, webhook.ErrEmpty) {
		t.Fatal(err)
	}
	return m.Message.Delivery, m
}

func TestMessagesComeInOrderOnceWhileTheirLeaseRuns(t *testing.T) {
	t.Parallel()
	clock := claimtest.NewClock()
	f, ctx := open(t, filepath.Join(t.TempDir(), "webhook.db"), clock), context.Background()
	sent(t, f, "a", "b", "c")
	a, ma := taken(t, f)
	b, mb := taken(t, f)
	c, mc := taken(t, f)
	if none, _ := taken(t, f); a+b+c+none != "abc" {
		t.Fatalf("taken %q %q %q and then %q, want a b c and nothing", a, b, c, none)
	}
	if err := errors.Join(f.Done(ctx, ma), f.Later(ctx, mb, 3*lease)); err != nil {
		t.Fatal(err)
	}
	clock.Advance(lease)
	// c's worker was not heard of again.
	if again, m := taken(t, f); again != "c" || m.Attempts != 2 || !m.Since.Equal(mc.Since) {
		t.Errorf("after the lease %q at attempt %d, want c at 2", again, m.Attempts)
	}
	if err := errors.Join(f.Done(ctx, mc), f.Later(ctx, mc, 0)); err != nil {
		t.Errorf("settled by whoever held it before: %v", err)
	}
	clock.Advance(2 * lease)
	again, m := taken(t, f)
	other, _ := taken(t, f)
	if again+other != "cb" && again+other != "bc" {
		t.Errorf("after the pause %q and %q, want b and c (attempt %d)", again, other, m.Attempts)
	}
}

func TestWhatAProcessHadInHandIsDueAtTheNextStart(t *testing.T) {
	t.Parallel()
	clock, path := claimtest.NewClock(), filepath.Join(t.TempDir(), "webhook.db")
	f := open(t, path, clock)
	sent(t, f, "a", "b")
	_, m := taken(t, f)
	_, later := taken(t, f)
	if err := f.Later(context.Background(), later, lease); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = open(t, path, clock)
	got, again := taken(t, f)
	if got != "a" || again.Attempts != m.Attempts+1 {
		t.Errorf("%q at attempt %d, want a at 2", got, again.Attempts)
	}
	if none, _ := taken(t, f); none != "" {
		t.Errorf("%q was put off and came at once", none)
	}
}

func TestAFullQueueRefusesAndTakesAgain(t *testing.T) {
	t.Parallel()
	f := open(t, filepath.Join(t.TempDir(), "webhook.db"), claimtest.NewClock())
	bolt.Fill(f)
	if err := f.Send(context.Background(), webhook.Message{}); !errors.Is(err, bolt.ErrFull) {
		t.Errorf("%v, want a full queue", err)
	}
	bolt.Drain(f)
	for i := range 3 {
		sent(t, f, fmt.Sprint(i))
	}
}
