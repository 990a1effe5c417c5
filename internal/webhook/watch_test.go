package webhook_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/claimtest"
)

// street is a board whose pull requests can be counted, and the rig that watches it.
type street struct {
	*rig
	b *board
	t *testing.T
}

func watched(t *testing.T, change func(*webhook.Config), queued ...int) street {
	t.Helper()
	var b *board
	r := newRig(t, func(c *webhook.Config) {
		c.Connect = connectTo(&b)
		c.Pulls = func(context.Context, webhook.Target) (forge.PullCounter, error) { return b, nil }
		if change != nil {
			change(c)
		}
	})
	b = &board{world: r.w, queued: queued}
	r.w.issue = func(n int) forge.Issue {
		return forge.Issue{Number: n, Title: title(n), State: "open", Labels: []string{"proctor:queued"}}
	}
	return street{r, b, t}
}

func (s street) issues() (out []string) {
	for _, run := range s.w.runs {
		out = append(out, run[trigger.InputIssue])
	}
	return out
}

// reap is a round when d has passed.
func (s street) reap(d time.Duration) webhook.Reaped {
	s.t.Helper()
	s.clock.Advance(d)
	out, err := s.h.Reap(s.t.Context())
	if err != nil {
		s.t.Error(err)
	}
	return out
}

func (s street) end(number int) got {
	return s.deliver("pull_request", fmt.Sprint("end", number), endedPull(s.t, "proctor/issue-3", false, number))
}

func (s street) completed(issue int, run string) got {
	return s.deliver("workflow_run", "completed"+run, labeled(issue, map[string]any{
		"action": "completed", "workflow_run": runEvent(fmt.Sprint("proctor #", issue, " ", run), "completed", nil),
	}))
}

// INV-46: a request that found no room is started when there is some again, though no delivery told of it: once, and as far as the room goes.
func TestAWaitingRequestIsStartedWhenThereIsRoomThoughNobodySaidSo(t *testing.T) {
	t.Parallel()
	s := watched(t, nil, 8, 9)
	s.b.open = 3
	first := s.end(23)
	if first.Status != "dispatched" {
		t.Fatal(first)
	}
	s.completed(8, first.Run) // it found no room: 8 waits anew
	for range 3 {
		if out := s.reap(time.Hour); out.Started != 0 || s.w.dispatched() != 1 {
			t.Fatalf("the repository is full: %+v, runs for %q", out, s.issues())
		}
	}
	s.b.open = 2
	if out := s.reap(time.Hour); out.Started != 1 || !slices.Equal(s.issues(), []string{"8", "8"}) {
		t.Errorf("there is room: %+v, runs for %q", out, s.issues())
	}
	// Until its run begins it carries its label, then the next one, and at last it has a draft: each takes the room.
	for name, change := range map[string]func(){
		"dispatched": func() {},
		"running": func() {
			s.b.queued, s.b.running = []int{9}, []forge.Issue{{Number: 8, UpdatedAt: s.clock.Now().Add(4 * time.Hour)}}
		},
		"published": func() { s.b.queued, s.b.running, s.b.open = []int{9}, nil, 3 },
	} {
		queued := s.b.queued
		change()
		if out := s.reap(time.Hour); out.Started != 0 || s.w.dispatched() != 2 {
			t.Errorf("%s: %+v, runs for %q", name, out, s.issues())
		}
		s.b.queued, s.b.running, s.b.open = queued, nil, 2
	}
	// The control: what a lost machine left behind takes none, and the next one is started.
	s.b.queued, s.b.running, s.b.open = []int{9}, []forge.Issue{{Number: 8, UpdatedAt: s.clock.Now().Add(-8 * time.Hour)}}, 2
	if out := s.reap(time.Hour); out.Started != 1 || !slices.Equal(s.issues(), []string{"8", "8", "9"}) {
		t.Errorf("control: %+v, runs for %q", out, s.issues())
	}
	// Nobody waits: the repository is looked at no more.
	s.b.queued = nil
	s.reap(time.Hour)
	if _, err := s.store.Claim(t.Context(), webhook.Claim{ID: "watch:github:5:octo/shop"}, time.Minute); err != nil {
		t.Errorf("it is watched still: %v", err)
	}
}

// INV-46: a waiting request whose run never began is started again, though its end has been dealt with.
func TestAWaitingRequestWhoseRunNeverBeganIsStartedAgain(t *testing.T) {
	t.Parallel()
	for name, open := range localStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := claimtest.NewClock()
			s := watched(t, func(c *webhook.Config) { c.Store, c.Now = open(t, clock), clock.Now }, 8, 9)
			s.rig.clock = clock
			s.b.open = 2
			if g := s.end(23); g.Status != "dispatched" {
				t.Fatal(g)
			}
			s.w.runs, s.w.refs = nil, nil // the forge took it, and lost it
			if out := s.reap(31 * time.Minute); out.Freed != 1 || out.Started != 0 {
				t.Errorf("%+v", out)
			}
			var wg sync.WaitGroup
			s.clock.Advance(6 * time.Minute)
			for range 6 {
				wg.Go(func() {
					if _, err := s.h.Reap(context.Background()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if !slices.Equal(s.issues(), []string{"8"}) {
				t.Errorf("runs for %q, want one for 8", s.issues())
			}
			// Nobody has said that there is room for a second one.
			if s.reap(10 * time.Minute); s.w.dispatched() != 1 {
				t.Errorf("runs for %q", s.issues())
			}
		})
	}
	// The control: without somebody who counts nobody starts it.
	s := watched(t, func(c *webhook.Config) { c.Pulls = nil }, 8)
	s.end(23)
	s.w.runs, s.w.refs = nil, nil
	for range 3 {
		s.reap(31 * time.Minute)
	}
	if s.w.dispatched() != 0 {
		t.Errorf("control: runs for %q", s.issues())
	}
}

// The end of a run that no delivery told of leaves its room where it has no draft.
func TestARunThatEndsUnheardLeavesItsRoom(t *testing.T) {
	t.Parallel()
	for label, want := range map[string][]string{
		"proctor:failed": {"3", "8"}, "": {"3", "8"}, "proctor:review": {"3"}, "proctor:running": {"3"}, "proctor:queued": {"3"},
	} {
		s := watched(t, nil)
		waiting := s.w.issue
		s.w.issue = newWorld().issue
		s.deliver("issues", "d1", labeled(3, nil))
		s.b.queued = []int{8, 9}
		s.w.issue = func(n int) forge.Issue {
			is := waiting(n)
			if n == 3 {
				is.Labels = []string{label}
			}
			return is
		}
		s.b.over, s.b.open = true, 1
		s.reap(31 * time.Minute)
		s.reap(6 * time.Minute)
		s.reap(11 * time.Minute)
		if !slices.Equal(s.issues(), want) {
			t.Errorf("an end with %q: runs for %q, want %q", label, s.issues(), want)
		}
	}
}

// Looks take neither the reaper's turn nor each other's, however many are due and whatever the forge says.
func TestLooksAreBoundedAndHoldUpNoClaim(t *testing.T) {
	t.Parallel()
	const repositories = 130 // more than a batch
	var mu sync.Mutex
	connected := map[string]int{}
	var b *board
	s := watched(t, func(c *webhook.Config) {
		c.Connect = func(_ context.Context, to webhook.Target) (webhook.Forge, error) {
			mu.Lock()
			defer mu.Unlock()
			if strings.HasPrefix(to.Repo.Name, "r") {
				connected[to.Repo.Name]++
			}
			return b, nil
		}
	})
	b = s.b
	b.queued, b.uncounted = []int{8}, forge.ErrForbidden
	for n := range repositories {
		to := webhook.Target{Forge: trigger.GitHub, Repo: trigger.Repo{Owner: "octo", Name: fmt.Sprint("r", n), ID: int64(100 + n)}, Install: 6}
		if _, err := s.store.Claim(t.Context(), webhook.Claim{ID: fmt.Sprintf("watch:github:%d:octo/r%d", 100+n, n), To: to, Full: 1}, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	s.clock.Advance(time.Minute)
	s.w.issue, s.w.fail = newWorld().issue, func(bool) error { return forge.ErrUnavailable }
	if g := s.deliver("issues", "d1", labeled(3, nil)); g.String() != "503 retry unknown_outcome" { // a claim that nobody finishes
		t.Fatal(g)
	}
	if out := s.reap(time.Minute); out.Freed != 1 || out.Failed != 0 {
		t.Errorf("the reaper: %+v", out)
	}
	if len(connected) != 20 {
		t.Errorf("%d repositories were looked at in a round, want 20", len(connected))
	}
	for range 6 {
		s.reap(time.Minute)
	}
	if len(connected) != repositories {
		t.Errorf("%d of %d repositories were looked at", len(connected), repositories)
	}
	if s.w.dispatched() != 0 || !strings.Contains(s.log.String(), `"looked"`) || !strings.Contains(s.log.String(), `"permission"`) {
		t.Errorf("%d runs where nobody may count, log %.300s", s.w.dispatched(), s.log)
	}
}

// A request that waits where nobody may count is started by the next end that is heard of, and its run's end is not asked for again.
func TestWhereNobodyMayCountAnEndStartsWhatWaits(t *testing.T) {
	t.Parallel()
	s := watched(t, nil, 8)
	for _, c := range []struct {
		err  error
		want string
	}{{forge.ErrForbidden, "202 recorded ended"}, {forge.ErrRateLimited, "503 retry forge"}} {
		s.b.uncounted = c.err
		n := 23 + s.w.dispatched()
		g := s.end(n)
		if g.Status != "dispatched" {
			t.Fatal(g)
		}
		if g := s.completed(8, g.Run); g.String() != c.want {
			t.Errorf("%v: %v, want %s", c.err, g, c.want)
		}
	}
}

// slowly is a board at a forge that takes its time over each label event.
type slowly struct {
	*board
	each time.Duration
	asks *int
}

func (w slowly) LabelEvent(ctx context.Context, n int, label string) (forge.LabelEvent, error) {
	*w.asks++
	select {
	case <-ctx.Done():
		return forge.LabelEvent{}, ctx.Err()
	case <-time.After(w.each):
		return w.board.LabelEvent(ctx, n, label)
	}
}

// INV-46: a repository where a hundred wait at a slow forge keeps no other from its look, and is started itself where a look can be had in its time. Time
// is the bubble's.
func TestARepositoryWhereManyWaitKeepsNoOtherFromItsLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		each time.Duration // of a label event where many wait
		open int           // pull requests there
		runs []string
		asks int
	}{
		"hardly any answer": {time.Minute, 1, []string{"8"}, 1},
		"slow":              {1100 * time.Millisecond, 1, []string{"8"}, 10},
		"as usual":          {300 * time.Millisecond, 1, []string{"101", "8"}, 21},
		"full":              {time.Second, 3, []string{"8"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asks := 0
				var many, few *board
				s := watched(t, func(cfg *webhook.Config) {
					cfg.Connect = func(_ context.Context, to webhook.Target) (webhook.Forge, error) {
						if to.Repo.Name == "many" {
							return slowly{many, c.each, &asks}, nil
						}
						return few, nil
					}
					cfg.Pulls = func(_ context.Context, to webhook.Target) (forge.PullCounter, error) {
						if to.Repo.Name == "many" {
							return many, nil
						}
						return few, nil
					}
				})
				many, few = &board{world: s.w, open: c.open}, &board{world: s.w, open: 1, queued: []int{8}}
				for n := range 100 {
					many.queued = append(many.queued, 101+n)
				}
				for n, name := range []string{"many", "few"} {
					to := webhook.Target{Forge: trigger.GitHub, Install: 6, Repo: trigger.Repo{Owner: "octo", Name: name, ID: int64(5 + n), DefaultBranch: "trunk"}}
					if _, err := s.store.Claim(t.Context(), webhook.Claim{ID: fmt.Sprintf("watch:github:%d:octo/%s", 5+n, name), To: to, Full: 3}, time.Minute); err != nil {
						t.Fatal(err)
					}
					s.clock.Advance(time.Second)
				}
				s.clock.Advance(time.Minute)
				out, err := s.h.Reap(t.Context())
				if err != nil || out.Started != len(c.runs) || !slices.Equal(s.issues(), c.runs) {
					t.Errorf("INV-46 %+v, %v: runs for %q, want %q; log %s", out, err, s.issues(), c.runs, s.log)
				}
				if asks != c.asks {
					t.Errorf("INV-46 %d label events were asked for, want %d", asks, c.asks)
				}
			})
		})
	}
}
