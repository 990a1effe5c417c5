package webhook_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/bolt"
	"github.com/proctor-ci/proctor/internal/webhook/claimtest"
)

type parcel struct {
	id   string
	body []byte
}

// storm delivers everything with 8 workers and delivers again what was not answered with 2xx, as a sweep
// over failed deliveries does, until everything was.
func storm(t *testing.T, r *rig, rng *rand.Rand, todo []parcel) (rounds int) {
	t.Helper()
	for ; len(todo) > 0; rounds++ {
		if rounds == 60 {
			t.Fatalf("%d deliveries are still refused after %d rounds", len(todo), rounds)
		}
		rng.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
		work, failed := make(chan parcel), make(chan parcel, len(todo))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for p := range work {
					if g := r.deliver("issues", p.id, p.body); g.Code/100 != 2 {
						failed <- p
					}
				}
			})
		}
		for _, p := range todo {
			work <- p
		}
		close(work)
		wg.Wait()
		close(failed)
		todo = todo[:0]
		for p := range failed {
			todo = append(todo, p)
		}
		r.clock.Advance(pastLease)
	}
	return rounds
}

// pastLease is longer than a claim that nobody finished stays taken.
const pastLease = 61 * time.Second

type openStore func(*testing.T, *claimtest.Clock) webhook.Store

// localStores are those that need no server; DynamoDB has a test of its own.
func localStores() map[string]openStore {
	return map[string]openStore{
		"memory": func(_ *testing.T, clock *claimtest.Clock) webhook.Store { return webhook.NewMemory(clock.Now) },
		"bbolt": func(t *testing.T, clock *claimtest.Clock) webhook.Store {
			f, err := bolt.Open(filepath.Join(t.TempDir(), "webhook.db"), clock.Now)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			return f
		},
	}
}

// INV-45: 1,000 deliveries of 400 label events, duplicated and shuffled, 8 workers, a store and a
// forge that fail now and then, before or after the fact: exactly one run per label event, none lost.
func TestExactlyOneRunPerLabelEventThroughAStorm(t *testing.T) {
	t.Parallel()
	for name, open := range localStores() {
		for _, seed := range []uint64{1, 2} {
			t.Run(fmt.Sprintf("INV-45 %s, seed %d", name, seed), func(t *testing.T) {
				t.Parallel()
				exactlyOnce(t, seed, 400, 1000, open)
			})
		}
	}
}

func exactlyOnce(t *testing.T, seed uint64, events, deliveries int, open openStore) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 45))
	var mu sync.Mutex
	dice := func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n) == 0
	}
	storeFaults := 0
	clock := claimtest.NewClock()
	r := newRig(t, func(c *webhook.Config) {
		c.Now = clock.Now
		c.Store = shaky{open(t, clock), func() (bool, bool) {
			before, after := dice(10), dice(10)
			if before || after {
				mu.Lock()
				storeFaults++
				mu.Unlock()
			}
			return before, after
		}}
	})
	r.clock = clock
	r.w.fail = func(bool) error {
		if dice(10) {
			return forge.ErrUnavailable
		}
		return nil
	}
	var todo []parcel
	for i := range deliveries {
		n := i%events + 1
		todo = append(todo, parcel{fmt.Sprintf("d%d", n), labeled(n, nil)})
	}
	rounds := storm(t, r, rand.New(rand.NewPCG(seed, 46)), todo)
	perID := map[string]int{}
	for _, in := range r.w.runs {
		perID[in[trigger.InputIssue]]++
	}
	if len(perID) != events || len(r.w.runs) != events {
		t.Errorf("%d runs for %d of %d label events", len(r.w.runs), len(perID), events)
	}
	if rounds < 2 || storeFaults < deliveries/10 {
		t.Errorf("%d rounds and %d store faults: the storm was a calm", rounds, storeFaults)
	}
}

// The control of INV-45: with a store that forgets, the same storm starts more runs than there are events.
func TestWithoutClaimsTheStormStartsTooManyRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *webhook.Config) { c.Store = forgetful{} })
	var todo []parcel
	for i := range 100 {
		todo = append(todo, parcel{fmt.Sprintf("d%d", i%40), labeled(i%40+1, nil)})
	}
	storm(t, r, rand.New(rand.NewPCG(1, 1)), todo)
	if r.w.dispatched() != 100 {
		t.Errorf("INV-45 control: %d runs, want one for each of 100 deliveries", r.w.dispatched())
	}
}
