package webhook_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/webhook"
)

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
