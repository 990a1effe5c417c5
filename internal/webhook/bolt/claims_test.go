package bolt_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/bolt"
	"github.com/proctor-ci/proctor/internal/webhook/claimtest"
)

func open(t *testing.T, path string, clock *claimtest.Clock) *bolt.File {
	t.Helper()
	f, err := bolt.Open(path, clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // a second time is no error
	return f
}

func TestTheFileKeepsTheContractOfAStore(t *testing.T) {
	t.Parallel()
	empty := func(t *testing.T, clock *claimtest.Clock) webhook.Store {
		return open(t, filepath.Join(t.TempDir(), "webhook.db"), clock)
	}
	spoil := func(t *testing.T, s webhook.Store, id string) bool {
		if err := bolt.Spoil(s.(*bolt.File), id); err != nil {
			t.Fatal(err)
		}
		return true
	}
	claimtest.Run(t, empty, spoil)
}

func TestAClaimOutlivesTheProcessThatTookIt(t *testing.T) {
	t.Parallel()
	clock, path, ctx := claimtest.NewClock(), filepath.Join(t.TempDir(), "webhook.db"), context.Background()
	f := open(t, path, clock)
	c, err := f.Claim(ctx, webhook.Claim{ID: "a", Keys: []string{"k1"}}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Mark(ctx, "a", c.Attempt, webhook.Dispatched, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = open(t, path, clock)
	got, err := f.Find(ctx, []string{"k1"})
	if err != nil || got.ID != "a" || got.State != webhook.Dispatched {
		t.Errorf("after a restart: %+v %v, want a dispatched", got, err)
	}
	clock.Advance(time.Hour)
	if due, err := f.Expired(ctx, 9); err != nil || len(due) != 1 {
		t.Errorf("after a restart %d claims are due (%v), want one", len(due), err)
	}
}

func TestAFileThatIsInUseIsNamed(t *testing.T) {
	t.Parallel()
	clock, path := claimtest.NewClock(), filepath.Join(t.TempDir(), "webhook.db")
	open(t, path, clock)
	if _, err := bolt.Open(path, clock.Now); err == nil || !strings.Contains(err.Error(), "another webhook has it open") {
		t.Errorf("opened twice: %v", err)
	}
	if _, err := bolt.Open(filepath.Join(path, "below", "a-file"), clock.Now); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("below a file: %v", err)
	}
}
