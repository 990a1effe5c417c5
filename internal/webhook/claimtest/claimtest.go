// Package claimtest owns the contract of webhook.Store as tests. It must never know an
// implementation: memory, a file and a cloud table all pass the same list.
package claimtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
)

// Clock is a clock that stands until it is moved. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts at a fixed time of whole seconds, which every store can keep.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

// Now is the time it shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves it.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

const lease = time.Minute

func claim(id string, keys ...string) webhook.Claim {
	return webhook.Claim{
		ID: id, Keys: keys, File: "proctor.yml", Issue: 3, Full: 4,
		To: webhook.Target{Forge: trigger.GitHub, Repo: trigger.Repo{Owner: "octo", Name: "shop", ID: 5, DefaultBranch: "main"}, Install: 6},
	}
}

// Run proves a store. open gives an empty one that takes its time from the clock. spoil does to a claim of one what a disk or another version
// of this program may do to it, and says whether the store then has to tell that it cannot be read.
func Run(t *testing.T, open func(t *testing.T, clock *Clock) webhook.Store, spoil func(t *testing.T, s webhook.Store, id string) (told bool)) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, webhook.Store, *Clock){
		"a claim is given once and found by every key":                     givenOnce,
		"a claim takes all of its keys or none":                            allOrNone,
		"one of many concurrent claims wins":                               concurrent,
		"a lapsed claim is taken over with the next attempt":               takeover,
		"a lapsed claim of another event gives its keys up":                otherLapsed,
		"a dispatched claim is not taken over however old":                 dispatchedStays,
		"a turn is kept until its claim has ended, however old":            turnKept,
		"a turn goes on when its claim has ended or is given back":         turnGoesOn,
		"one of many concurrent claims gets the turn":                      turnConcurrent,
		"counters count each name and end alone, and all of them":          counted,
		"states move forward only":                                         forward,
		"a mark of a past attempt is lost":                                 fenced,
		"a release gives every key back":                                   release,
		"a release of a claim that moved on is lost":                       releaseMoved,
		"the expired are listed oldest first and at most as many as asked": expired,
		"claims that cannot be read hold up no others that are due": func(t *testing.T, s webhook.Store, clock *Clock) {
			unreadable(t, s, clock, spoil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := NewClock()
			test(t, open(t, clock), clock)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("error %v, want %v", got, want)
	}
}

func take(t *testing.T, s webhook.Store, c webhook.Claim) webhook.Claim {
	t.Helper()
	got, err := s.Claim(context.Background(), c, lease)
	must(t, err)
	return got
}

func givenOnce(t *testing.T, s webhook.Store, clock *Clock) {
	ctx := context.Background()
	_, err := s.Find(ctx, []string{"a", "k1"})
	wantErr(t, err, webhook.ErrNoClaim)
	want := claim("a", "k1", "k2")
	want.Attempt, want.State, want.Created, want.Expires = 1, webhook.Claimed, clock.Now(), clock.Now().Add(lease)
	if d := cmp.Diff(want, take(t, s, claim("a", "k1", "k2"))); d != "" {
		t.Error(d)
	}
	for _, key := range []string{"a", "k1", "k2"} {
		got, err := s.Find(ctx, []string{"other", key})
		must(t, err)
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
	holder, err := s.Claim(ctx, claim("a", "k1", "k2"), lease)
	wantErr(t, err, webhook.ErrTaken)
	if d := cmp.Diff(want, holder); d != "" {
		t.Error(d)
	}
}

func allOrNone(t *testing.T, s webhook.Store, _ *Clock) {
	ctx := context.Background()
	take(t, s, claim("a", "shared", "k1"))
	holder, err := s.Claim(ctx, claim("b", "k2", "shared"), lease)
	wantErr(t, err, webhook.ErrTaken)
	if holder.ID != "a" {
		t.Errorf("holder %q, want a", holder.ID)
	}
	for _, key := range []string{"b", "k2"} {
		_, err := s.Find(ctx, []string{key})
		wantErr(t, err, webhook.ErrNoClaim)
	}
	take(t, s, claim("c", "k2"))
}

func concurrent(t *testing.T, s webhook.Store, _ *Clock) {
	var wg sync.WaitGroup
	won := make(chan string, 32)
	for i := range cap(won) {
		wg.Go(func() {
			// Half of them come under another id and share only a key.
			c := claim(fmt.Sprintf("id%d", i%2), "shared", fmt.Sprintf("k%d", i))
			if _, err := s.Claim(context.Background(), c, lease); err == nil {
				won <- c.ID
			} else if !errors.Is(err, webhook.ErrTaken) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d claims won, want one", len(won))
	}
}

func takeover(t *testing.T, s webhook.Store, clock *Clock) {
	ctx := context.Background()
	first := take(t, s, claim("a", "k1"))
	clock.Advance(lease - time.Second)
	_, err := s.Claim(ctx, claim("a", "k1"), lease)
	wantErr(t, err, webhook.ErrTaken)
	clock.Advance(time.Second)
	_, err = s.Find(ctx, []string{"k1"})
	wantErr(t, err, webhook.ErrNoClaim)
	other := claim("a", "k2")
	other.Full = 9
	second := take(t, s, other)
	if got, err := s.Find(ctx, []string{"k2"}); err != nil || got.Full != 9 || second.Full != 9 {
		t.Errorf("%+v, %v; want what the second attempt said of itself", got, err)
	}
	if second.Attempt != 2 || !second.Created.Equal(first.Created) {
		t.Errorf("attempt %d created %v, want 2 and the first one's %v", second.Attempt, second.Created, first.Created)
	}
	_, err = s.Find(ctx, []string{"k1"})
	wantErr(t, err, webhook.ErrNoClaim)
}

func otherLapsed(t *testing.T, s webhook.Store, clock *Clock) {
	take(t, s, claim("a", "shared", "k1"))
	clock.Advance(lease)
	if got := take(t, s, claim("b", "shared")); got.Attempt != 1 {
		t.Errorf("attempt %d of another event, want 1", got.Attempt)
	}
	wantErr(t, s.Mark(context.Background(), "a", 1, webhook.Dispatched, lease), webhook.ErrLost)
}

func dispatchedStays(t *testing.T, s webhook.Store, clock *Clock) {
	ctx := context.Background()
	take(t, s, claim("a", "k1"))
	must(t, s.Mark(ctx, "a", 1, webhook.Dispatched, lease))
	clock.Advance(100 * lease)
	_, err := s.Claim(ctx, claim("a", "k1"), lease)
	wantErr(t, err, webhook.ErrTaken)
	got, err := s.Find(ctx, []string{"k1"})
	must(t, err)
	if got.State != webhook.Dispatched {
		t.Errorf("state %v, want dispatched", got.State)
	}
}

func counted(t *testing.T, s webhook.Store, clock *Clock) {
	ctx, end := context.Background(), clock.Now().Add(time.Hour)
	const many = 24
	var wg sync.WaitGroup
	got := make([]int, many)
	for i := range got {
		wg.Go(func() {
			n, err := s.Count(ctx, "a", end)
			if err != nil {
				t.Error(err)
			}
			got[i] = n
		})
	}
	wg.Wait()
	slices.Sort(got)
	for i, n := range got {
		if n != i+1 {
			t.Fatalf("counts %v, want each number once", got)
		}
	}
	for _, c := range []struct {
		name string
		end  time.Time
		want int
	}{{"b", end, 1}, {"a", end.Add(time.Hour), 1}, {"b", end, 2}} {
		if n, err := s.Count(ctx, c.name, c.end); err != nil || n != c.want {
			t.Errorf("%s until %s: %d %v, want %d", c.name, c.end, n, err, c.want)
		}
	}
	clock.Advance(3 * time.Hour)
	if n, err := s.Count(ctx, "a", clock.Now().Add(time.Hour)); err != nil || n != 1 {
		t.Errorf("in another window: %d %v, want 1", n, err)
	}
}

func forward(t *testing.T, s webhook.Store, clock *Clock) {
	ctx := context.Background()
	take(t, s, claim("a", "k1"))
	must(t, s.Mark(ctx, "a", 1, webhook.Running, 2*lease))
	must(t, s.Mark(ctx, "a", 1, webhook.Dispatched, 9*lease))
	got, err := s.Find(ctx, []string{"a"})
	must(t, err)
	if got.State != webhook.Running || !got.Expires.Equal(clock.Now().Add(2*lease)) {
		t.Errorf("%v until %v, want running with its own lease", got.State, got.Expires)
	}
	must(t, s.Mark(ctx, "a", 0, webhook.Ended, lease))
	wantErr(t, s.Mark(ctx, "nobody", 0, webhook.Ended, lease), webhook.ErrLost)
}

func fenced(t *testing.T, s webhook.Store, clock *Clock) {
	ctx := context.Background()
	take(t, s, claim("a", "k1"))
	clock.Advance(lease)
	take(t, s, claim("a", "k1"))
	wantErr(t, s.Mark(ctx, "a", 1, webhook.Dispatched, lease), webhook.ErrLost)
	wantErr(t, s.Release(ctx, "a", 1, webhook.Claimed), webhook.ErrLost)
	must(t, s.Mark(ctx, "a", 2, webhook.Dispatched, lease))
}

func release(t *testing.T, s webhook.Store, _ *Clock) {
	ctx := context.Background()
	take(t, s, claim("a", "k1", "k2"))
	must(t, s.Release(ctx, "a", 1, webhook.Claimed))
	_, err := s.Find(ctx, []string{"a", "k1", "k2"})
	wantErr(t, err, webhook.ErrNoClaim)
	wantErr(t, s.Release(ctx, "a", 1, webhook.Claimed), webhook.ErrLost)
	if got := take(t, s, claim("a", "k1", "k2")); got.Attempt != 1 {
		t.Errorf("attempt %d after a release, want 1", got.Attempt)
	}
}

func releaseMoved(t *testing.T, s webhook.Store, _ *Clock) {
	ctx := context.Background()
	take(t, s, claim("a", "k1"))
	must(t, s.Mark(ctx, "a", 0, webhook.Running, lease))
	wantErr(t, s.Release(ctx, "a", 1, webhook.Claimed), webhook.ErrLost)
	got, err := s.Find(ctx, []string{"k1"})
	must(t, err)
	if got.State != webhook.Running {
		t.Errorf("state %v, want running", got.State)
	}
}

func expired(t *testing.T, s webhook.Store, clock *Clock) {
	ctx := context.Background()
	for _, id := range []string{"a", "b", "c"} {
		take(t, s, claim(id, "k"+id))
		must(t, s.Mark(ctx, id, 1, webhook.Dispatched, lease))
		clock.Advance(time.Second)
	}
	clock.Advance(lease - 2*time.Second)
	ids := func(limit int) []string {
		cs, err := s.Expired(ctx, limit)
		must(t, err)
		var out []string
		for _, c := range cs {
			out = append(out, c.ID)
		}
		return out
	}
	if got := ids(10); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("expired %q, want a and b", got)
	}
	if got := ids(1); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the first expired %q, want a", got)
	}
}

// unreadable ones are the oldest, and more than anybody asks for at once.
func unreadable(t *testing.T, s webhook.Store, clock *Clock, spoil func(t *testing.T, s webhook.Store, id string) bool) {
	ctx := context.Background()
	for _, id := range []string{"bad1", "bad2", "bad3", "bad4", "bad5", "a", "bad6", "b", "c"} {
		take(t, s, claim(id, "k"+id))
		clock.Advance(time.Second)
	}
	clock.Advance(lease)
	ids := func(limit int) ([]string, error) {
		cs, err := s.Expired(ctx, limit)
		var out []string
		for _, c := range cs {
			out = append(out, c.ID)
		}
		return out, err
	}
	if got, err := ids(2); err != nil || !slices.Equal(got, []string{"bad1", "bad2"}) {
		t.Errorf("control: due while all can be read: %q, %v", got, err)
	}
	told := false
	for n := range 6 {
		told = spoil(t, s, fmt.Sprint("bad", n+1))
	}
	for limit, want := range map[int][]string{1: {"a"}, 2: {"a", "b"}, 10: {"a", "b", "c"}} {
		got, err := ids(limit)
		if !slices.Equal(got, want) || (err != nil) != told {
			t.Errorf("%d asked for: %q, %v; want %q, and an error: %v", limit, got, err, want, told)
		}
	}
}
