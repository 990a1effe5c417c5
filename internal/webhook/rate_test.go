package webhook_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/claimtest"
)

// picky is a store that fails at "release", or at counters that begin so.
type picky struct {
	webhook.Store
	at *string
}

func (p picky) Count(ctx context.Context, name string, end time.Time) (int, error) {
	if *p.at != "" && strings.HasPrefix(name, *p.at) {
		return 0, errStore
	}
	return p.Store.Count(ctx, name, end)
}

func (p picky) Release(ctx context.Context, id string, n int, in webhook.State) error {
	if *p.at == "release" {
		return errStore
	}
	return p.Store.Release(ctx, id, n, in)
}

func TestAnHourTakesSoManyRunsOfAnAccountAndOfARepository(t *testing.T) {
	t.Parallel()
	by := func(login string, id int) map[string]any {
		return map[string]any{"sender.login": login, "sender.id": id}
	}
	r := newRig(t, func(c *webhook.Config) { c.Rates = webhook.Rates{Actor: 2, Repo: 3} })
	ask := func(n int, edit map[string]any) got {
		text := "/proctor run"
		return r.deliver("issue_comment", fmt.Sprint("d", n), commented(n, int64(100+n), text, edit))
	}
	for n := range 2 {
		if g := ask(n+1, nil); g.Status != "dispatched" {
			t.Fatalf("run %d: %v", n+1, g)
		}
	}
	// The same events again are no further requests.
	for n := range 2 {
		if g := ask(n+1, nil); g.Status != "duplicate" {
			t.Errorf("again: %v", g)
		}
	}
	for n := 3; n < 6; n++ {
		if g := ask(n, nil); g.String() != "202 refused rate" {
			t.Errorf("ann's run %d: %v", n, g)
		}
	}
	if len(r.w.comments) != 1 || !strings.Contains(r.w.comments[0], "this account has asked for 2") || !strings.Contains(r.w.comments[0], "04:00 UTC") {
		t.Errorf("the issue is told %q, want one comment", r.w.comments)
	}
	// Another account has a count of its own, and the repository one of all.
	if g := ask(6, by("bob", 8)); g.Status != "dispatched" {
		t.Errorf("bob: %v", g)
	}
	if g := ask(7, by("cid", 9)); g.String() != "202 refused rate" || !strings.Contains(r.w.comments[len(r.w.comments)-1], "this repository has asked for 3") {
		t.Errorf("cid: %v, told %q", g, r.w.comments)
	}
	// A stop gets through.
	if g := r.deliver("issue_comment", "d8", commented(1, 200, "/proctor stop", nil)); g.Status != "dispatched" {
		t.Errorf("stop: %v", g)
	}
	// What was refused burnt no claim: in the next hour the same delivery starts a run.
	r.clock.Advance(time.Hour)
	if g := ask(3, nil); g.Status != "dispatched" {
		t.Errorf("in the next hour: %v", g)
	}
}

// A count that the store does not take refuses nothing for good and starts nothing uncounted.
func TestARequestThatCannotBeCountedComesAgain(t *testing.T) {
	t.Parallel()
	fail := false
	r := newRig(t, nil)
	s := counting{shaky{r.store, func() (bool, bool) { return false, false }}, &fail}
	r = newRig(t, func(c *webhook.Config) { c.Rates, c.Store = webhook.Rates{Actor: 1}, s })
	fail = true
	if g := r.deliver("issues", "d1", labeled(3, nil)); g.String() != "503 retry store" || r.w.dispatched() != 0 {
		t.Fatal(g)
	}
	fail = false
	if g := r.deliver("issues", "d1", labeled(3, nil)); g.Status != "dispatched" {
		t.Error(g)
	}
}

// INV-46: a forge that is away gives each claim back, and the next try of the same event is no further request.
func TestAnOutageCountsEachRequestOnce(t *testing.T) {
	t.Parallel()
	for name, open := range localStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			countsOnce(t, open)
		})
	}
}

func countsOnce(t *testing.T, open openStore) {
	t.Helper()
	for name, away := range map[string]error{"limited": forge.ErrRateLimited, "ambiguous": forge.ErrUnavailable} {
		clock := claimtest.NewClock()
		r := newRig(t, func(c *webhook.Config) {
			c.Rates, c.Store, c.Now = webhook.Rates{Actor: 2, Repo: 2}, open(t, clock), clock.Now
		})
		ask := func(n int) got {
			return r.deliver("issue_comment", fmt.Sprint("d", n), commented(n, int64(100+n), "/proctor run", nil))
		}
		r.w.fail = func(bool) error { return away }
		for range 5 {
			for n := 1; n <= 2; n++ {
				if g := ask(n); g.Status != "retry" {
					t.Fatalf("%s: while the forge is away: %v", name, g)
				}
			}
			clock.Advance(2 * time.Minute) // what was left to its lease comes as a further attempt
		}
		r.w.fail = nil
		for n := 1; n <= 2; n++ {
			if g := ask(n); g.Status != "dispatched" {
				t.Errorf("%s: request %d when the forge is back: %v", name, n, g)
			}
		}
		// The control: both were counted.
		if g := ask(3); g.String() != "202 refused rate" {
			t.Errorf("%s: control: %v", name, g)
		}
	}
}

// What one counter has taken before the other failed, it does not take again.
func TestACounterThatFailsLeavesTheOtherAsItIs(t *testing.T) {
	t.Parallel()
	var fail string
	memory := webhook.NewMemory(claimtest.NewClock().Now)
	s := picky{memory, &fail}
	r := newRig(t, func(c *webhook.Config) { c.Rates, c.Store = webhook.Rates{Actor: 2, Repo: 9}, s })
	ask := func(n int) got { return r.deliver("issues", fmt.Sprint("d", n), labeled(n, nil)) }
	fail = "rate:repo:"
	for range 4 {
		if g := ask(1); g.String() != "503 retry store" {
			t.Fatal(g)
		}
	}
	fail = ""
	for n := 1; n <= 2; n++ {
		if g := ask(n); g.Status != "dispatched" {
			t.Errorf("request %d: %v", n, g)
		}
	}
	if g := ask(3); g.String() != "202 refused rate" {
		t.Errorf("control: %v", g)
	}
}

// A refused request whose claim could not be given back is refused again when the claim has lapsed.
func TestARefusedRequestDoesNotPassAsAFurtherAttempt(t *testing.T) {
	t.Parallel()
	var fail string
	clock := claimtest.NewClock()
	s := picky{webhook.NewMemory(clock.Now), &fail}
	r := newRig(t, func(c *webhook.Config) { c.Rates, c.Store, c.Now = webhook.Rates{Actor: 1}, s, clock.Now })
	ask := func(n int) got { return r.deliver("issues", fmt.Sprint("d", n), labeled(n, nil)) }
	if g := ask(1); g.Status != "dispatched" {
		t.Fatal(g)
	}
	fail = "release"
	if g := ask(2); g.String() != "202 refused rate" {
		t.Fatal(g)
	}
	fail = ""
	if g := ask(2); g.String() != "503 retry in_flight" {
		t.Errorf("while its lease runs: %v", g)
	}
	clock.Advance(2 * time.Minute)
	if g := ask(2); g.String() != "202 refused rate" || r.w.dispatched() != 1 {
		t.Errorf("when its lease is over: %v, %d runs", g, r.w.dispatched())
	}
	// The control: the next hour has room.
	clock.Advance(time.Hour)
	if g := ask(2); g.Status != "dispatched" {
		t.Errorf("control: %v", g)
	}
}

// A request that waited for room is counted once, when it was made.
func TestAWaitingRequestIsNotCountedAgain(t *testing.T) {
	t.Parallel()
	var b *board
	r := newRig(t, func(c *webhook.Config) {
		c.Rates = webhook.Rates{Actor: 1, Repo: 1}
		c.Connect = connectTo(&b)
	})
	b = &board{world: r.w, queued: []int{8, 9}}
	for n, pull := range []int{23, 24} {
		if g := r.deliver("pull_request", fmt.Sprint("d", n), endedPull(t, "proctor/issue-3", false, pull)); g.Status != "dispatched" {
			t.Errorf("%v", g)
		}
	}
}
