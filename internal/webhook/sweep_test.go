package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
)

// journal is the forge's log of attempts.
type journal struct {
	all   []webhook.Attempt
	short bool
	asked []int64
	err   error
	stuck map[int64]error // attempts that are not sent again
}

func (j *journal) Attempts(_ context.Context, since time.Time) ([]webhook.Attempt, bool, error) {
	var out []webhook.Attempt
	for _, a := range j.all {
		if !a.At.Before(since) {
			out = append(out, a)
		}
	}
	return out, !j.short, j.err
}

func (j *journal) Redeliver(_ context.Context, id int64) error {
	j.asked = append(j.asked, id)
	return j.stuck[id]
}

func TestASweepAsksForWhatNoAttemptGotThrough(t *testing.T) {
	t.Parallel()
	j := &journal{}
	var log bytes.Buffer
	r := newRig(t, func(c *webhook.Config) { c.Attempts, c.Log = j, slog.New(slog.NewTextHandler(&log, nil)) })
	ago := func(id int64, delivery, event string, d time.Duration, ok bool) {
		j.all = append(j.all, webhook.Attempt{ID: id, Delivery: delivery, Event: event, At: r.clock.Now().Add(-d), Delivered: ok})
	}
	ago(9, "fresh", "issues", time.Minute, false)
	ago(8, "twice", "issues", 10*time.Minute, false)
	ago(7, "mended", "issues", 11*time.Minute, true)
	ago(6, "mended", "issues", 12*time.Minute, false)
	ago(5, "noise", "star", 13*time.Minute, false)
	ago(4, "twice", "issues", time.Hour, false)
	ago(3, "once", "issue_comment", 2*time.Hour, false)
	ago(2, "old", "issues", 80*time.Hour, false)
	for range 12 {
		ago(1, "hopeless", "issues", 20*time.Hour, false)
	}
	got, err := r.h.Sweep(context.Background())
	if err != nil || !slices.Equal(j.asked, []int64{3, 8}) || got != (webhook.Swept{Asked: 2, GivenUp: 1, Complete: true}) {
		t.Errorf("asked for %v, %+v, %v; want the newest attempt at once and twice, the oldest delivery first", j.asked, got, err)
	}
	if !strings.Contains(log.String(), "failed too often") || !strings.Contains(log.String(), "delivery=hopeless") {
		t.Errorf("the log does not tell of what was given up: %s", log.String())
	}
	j.err = errStore
	if _, err := r.h.Sweep(context.Background()); err == nil {
		t.Error("a log that cannot be read was swept")
	}
}

// What is given up is told once, by whatever process looks, and again only where nobody can say that it was told.
func TestADeliveryThatIsGivenUpIsToldOnce(t *testing.T) {
	t.Parallel()
	j := &journal{}
	var log bytes.Buffer
	lines := func() int { return strings.Count(log.String(), "failed too often") }
	setup := func(c *webhook.Config) { c.Attempts, c.Log = j, slog.New(slog.NewTextHandler(&log, nil)) }
	first := newRig(t, setup)
	// Another process, on the same store.
	second := newRig(t, func(c *webhook.Config) { setup(c); c.Store, c.Now = first.store, first.clock.Now })
	for range 12 {
		for _, d := range []string{"one", "two"} {
			j.all = append(j.all, webhook.Attempt{ID: 1, Delivery: d, Event: "issues", At: first.clock.Now().Add(-20 * time.Hour)})
		}
	}
	for range 5 {
		for _, r := range []*rig{first, second} {
			if got, err := r.h.Sweep(context.Background()); err != nil || got.GivenUp != 2 {
				t.Fatal(got, err)
			}
		}
		if _, err := first.h.Reap(context.Background()); err != nil {
			t.Fatal(err)
		}
		first.clock.Advance(10 * time.Minute)
	}
	if lines() != 2 {
		t.Errorf("two deliveries are told of %d times: %s", lines(), log.String())
	}
	down := newRig(t, func(c *webhook.Config) {
		setup(c)
		c.Now, c.Store = first.clock.Now, shaky{first.store, func() (bool, bool) { return true, false }}
	})
	for range 2 {
		if _, err := down.h.Sweep(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if lines() != 6 {
		t.Errorf("%d lines, want two more with each sweep that cannot know", lines())
	}
}

// INV-46: what notes that a delivery was given up is no run's claim, and never stays in the reaper's way. The control is a run's claim, which is
// kept while its forge cannot be asked.
func TestANoteThatCouldNotBeFinishedIsReapedWithoutAForge(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		fails int // marks that fail
		state webhook.State
		kept  int // claims afterwards
	}{
		"a store that stumbles": {2, webhook.Ended, 2},
		"a store that is away":  {3, webhook.Claimed, 1},
	} {
		t.Run("INV-46 "+name, func(t *testing.T) {
			t.Parallel()
			j := &journal{}
			var marks int
			var asked []webhook.Target
			r := newRig(t, func(cfg *webhook.Config) {
				cfg.Attempts, cfg.Store = j, stumbling{cfg.Store, func() bool { marks++; return marks <= c.fails }}
				cfg.Connect = func(_ context.Context, to webhook.Target) (webhook.Forge, error) {
					asked = append(asked, to)
					return nil, forge.ErrUnavailable
				}
			})
			for range 12 {
				j.all = append(j.all, webhook.Attempt{ID: 1, Delivery: "one", Event: "issues", At: r.clock.Now().Add(-20 * time.Hour)})
			}
			run := webhook.Claim{ID: "run", To: webhook.Target{Forge: trigger.GitHub, Repo: trigger.Repo{Owner: "octo", Name: "shop"}}}
			if _, err := r.store.Claim(ctx, run, time.Minute); err != nil {
				t.Fatal(err)
			}
			if got, err := r.h.Sweep(ctx); err != nil || got.GivenUp != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			if note, err := r.store.Find(ctx, []string{"given-up:one"}); err != nil || note.State != c.state {
				t.Errorf("INV-46 the note is %s, want %s: %v", note.State, c.state, err)
			}
			r.clock.Advance(time.Minute)
			got, err := r.h.Reap(ctx)
			if want := (webhook.Reaped{Freed: 2 - c.kept, Failed: 1}); err != nil || got != want || len(asked) != 1 || asked[0] != run.To {
				t.Errorf("INV-46 %+v, want %+v; %v; asked about %+v", got, want, err, asked)
			}
			r.clock.Advance(100 * time.Hour)
			if all, err := r.store.Expired(ctx, 9); err != nil || len(all) != c.kept {
				t.Errorf("INV-46 %d claims are kept, want %d: %v", len(all), c.kept, err)
			}
			if strings.Contains(r.log.String(), "run never started") {
				t.Errorf("INV-46 a note is told of as a run: %s", r.log)
			}
		})
	}
}

// stumbling is a store that does not mark when it is told to fail.
type stumbling struct {
	webhook.Store
	fails func() bool
}

func (s stumbling) Mark(ctx context.Context, id string, n int, to webhook.State, l time.Duration) error {
	if s.fails() {
		return errStore
	}
	return s.Store.Mark(ctx, id, n, to, l)
}

// A refused redelivery adds no attempt: what is refused now comes first in each sweep of the next three days.
func TestDeliveriesThatAreNotSentAgainHoldNoOtherUp(t *testing.T) {
	t.Parallel()
	j := &journal{stuck: map[int64]error{}}
	r := newRig(t, func(c *webhook.Config) { c.Attempts = j })
	for id := range int64(20) {
		j.all = append(j.all, webhook.Attempt{ID: id, Delivery: fmt.Sprint("d", id), Event: "issues", At: r.clock.Now().Add(-time.Duration(id+10) * time.Minute)})
	}
	// The oldest are the first.
	for id := int64(9); id < 20; id++ {
		j.stuck[id] = []error{forge.ErrNotFound, forge.ErrInvalid, forge.ErrForbidden, forge.ErrConflict}[id%4]
	}
	got, err := r.h.Sweep(context.Background())
	if !errors.Is(err, forge.ErrInvalid) || !strings.Contains(err.Error(), "d9 ") || got != (webhook.Swept{Asked: 9, Refused: 11, Complete: true}) {
		t.Errorf("%+v, %v", got, err)
	}
	// The control: an answer that would be the same for any of them ends the sweep.
	for _, away := range []error{forge.ErrUnavailable, forge.ErrRateLimited, forge.ErrUnauthorized, errStore} {
		for id := range int64(20) {
			j.stuck[id] = away
		}
		j.asked = nil
		if got, err := r.h.Sweep(context.Background()); !errors.Is(err, away) || got.Complete || len(j.asked) != 10 {
			t.Errorf("a forge that is away was asked %d times: %+v %v", len(j.asked), got, err)
		}
	}
}

// A forge or a network may be away for hours: attempts that are all made within one tell nothing.
func TestTheAttemptsAtADeliveryOutlastADay(t *testing.T) {
	t.Parallel()
	j := &journal{}
	r := newRig(t, func(c *webhook.Config) { c.Attempts = j })
	start := r.clock.Now()
	fail := func() {
		j.all = append(j.all, webhook.Attempt{ID: int64(len(j.all)), Delivery: "d", Event: "issues", At: r.clock.Now()})
	}
	fail()
	for len(j.all) < 12 && r.clock.Now().Sub(start) < 72*time.Hour {
		r.clock.Advance(5 * time.Minute)
		got, err := r.h.Sweep(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for range got.Asked {
			fail()
		}
	}
	if d := r.clock.Now().Sub(start); len(j.all) != 12 || d < 24*time.Hour {
		t.Errorf("%d attempts in %s, want 12 in more than a day", len(j.all), d)
	}
}

// hung is a forge's log that does not answer.
type hung struct{ journal }

func (h *hung) Attempts(ctx context.Context, _ time.Time) ([]webhook.Attempt, bool, error) {
	<-ctx.Done()
	return nil, false, ctx.Err()
}

// INV-46: a sweep that uses up its time leaves the reaper its half.
func TestASweepThatHangsLeavesTheReaperItsTime(t *testing.T) {
	t.Parallel()
	var r *rig
	r = newRig(t, func(c *webhook.Config) {
		c.Attempts = &hung{}
		c.Connect = func(ctx context.Context, _ webhook.Target) (webhook.Forge, error) { return r.w, ctx.Err() }
	})
	r.w.fail = func(bool) error { return forge.ErrUnavailable }
	if g := r.deliver("issues", "d1", labeled(3, nil)); g.String() != "503 retry unknown_outcome" {
		t.Fatal(g)
	}
	r.clock.Advance(time.Hour)
	// The control first: without any time nothing can be asked about the claim.
	for _, c := range []struct {
		patience time.Duration
		says     string
	}{{0, "claim not reaped"}, {time.Second, "claim given back"}} {
		ctx, done := context.WithTimeout(t.Context(), c.patience)
		a, err := r.h.Lambda(ctx, []byte(`{"source":"aws.events","detail-type":"Scheduled Event"}`))
		done()
		if err != nil || !strings.Contains(a.Body, `"retry"`) || !strings.Contains(r.log.String(), c.says) {
			t.Errorf("%s: %+v, %v; the log does not say %q: %s", c.patience, a, err, c.says, r.log)
		}
	}
}
