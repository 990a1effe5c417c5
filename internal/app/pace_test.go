package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/loop"
)

// INV-27: code in a proof that runs longer for a one than for a nought says nothing by it within one doubling.
func TestHowLongAFailedProofTookIsRounded(t *testing.T) {
	t.Parallel()
	red := loop.ProofSeen{Gate: "acceptance", Acceptance: true}
	// next is when the next tick starts, by the session's clock, after a proof that took so long and a checkpoint that took
	// as long as saving; left is the time that the next tick is told to have of ten hours.
	turn := func(took, saving time.Duration, seen loop.ProofSeen) (next, left time.Duration) {
		began := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
		now := began.Add(took + saving)
		s := session{env: Env{Now: func() time.Time { return now }, Sleep: func(_ context.Context, d time.Duration) error {
			if d <= 0 {
				t.Errorf("waits for %s", d)
			}
			now = now.Add(d)
			return nil
		}}}
		s.remark(began, seen)
		got := s.pace(t.Context(), loop.Turn{TimeLeft: 10*time.Hour - took - saving})
		next = now.Sub(began)
		if s.pace(t.Context(), loop.Turn{}); now.Sub(began) != next {
			t.Errorf("the tick behind the next one waits too")
		}
		return next, got.TimeLeft
	}
	next := func(took time.Duration, seen loop.ProofSeen) time.Duration {
		at, _ := turn(took, 0, seen)
		return at
	}
	const ms = time.Millisecond
	for took, want := range map[time.Duration]time.Duration{
		-time.Hour: -time.Hour + 250*ms, 0: 250 * ms, 1: 250 * ms, 90 * ms: 250 * ms, 250 * ms: 250 * ms, 250*ms + 1: 500 * ms, 420 * ms: 500 * ms,
		501 * ms: 1000 * ms, 1900 * ms: 2000 * ms, 7 * time.Second: 8 * time.Second, 64 * time.Second: 64 * time.Second, 64*time.Second + 1: 128 * time.Second, 9 * time.Minute: 576 * time.Second, 3 * time.Hour: 10816 * time.Second,
	} {
		if got := next(took, red); got != want {
			t.Errorf("after %s the next tick starts at %s, want %s", took, got, want)
		}
	}
	// One bit by half a second more, which is the channel that INV-27 names.
	nought, one := 600*ms, 900*ms
	if a, b := next(nought, red), next(one, red); a != b {
		t.Errorf("INV-27 a nought starts the next tick at %s and a one at %s", a, b)
	}
	// What is saved meanwhile, and the time that is left, say no more than the start.
	for _, saving := range []time.Duration{0, 1500 * ms} {
		a, leftA := turn(nought, saving, red)
		if b, leftB := turn(one, saving, red); a != b || leftA != leftB || leftA != 10*time.Hour-a {
			t.Errorf("INV-27 with a checkpoint of %s a nought starts the next tick at %s with %s left, and a one at %s with %s", saving, a, leftA, b, leftB)
		}
	}
	t.Run("control: where nothing has to be hidden the times differ", func(t *testing.T) {
		for name, seen := range map[string]loop.ProofSeen{
			"green": {Passed: true}, "a visible gate": {Gate: "iteration"}, "broken": {Broken: true, Gate: "acceptance"}, "stopped": {Stopped: true},
		} {
			if a, b := next(nought, seen), next(one, seen); a != nought || b != one {
				t.Errorf("%s: the next tick starts at %s and %s", name, a, b)
			}
		}
	})
}

// INV-27: the run itself waits, in front of a tick behind a proof that the held-out gate failed and nowhere else. What was
// learnt is saved by then.
func TestARunWaitsBehindTheProofsThatTheHeldOutGateFails(t *testing.T) {
	once := map[string]string{"gates": "{iteration: sh tests/run.sh, acceptance: {run: sh sealed/check.sh, attempts: 1}, timeout: 20s, stability: 1}"}
	for _, c := range []struct {
		name, end, label string
		exit             int
		plan             []tick
		config           map[string]string
		want             []string
	}{
		{"one attempt fails", "done", "proctor:review", 0, []tick{{reply(halfRight)}, {reply(allRight)}}, nil, []string{"positive"}},
		{"the control: none fails", "done", "proctor:review", 0, []tick{{reply(allRight)}}, nil, nil},
		{"the last attempt fails", "overfit", "proctor:needs-human", 2, []tick{{reply(halfRight)}}, once, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "sleeps")
			w := open(t, setting{plan: c.plan, config: c.config, env: map[string]string{sleepsVariable: file}})
			j := w.label().ended(c.end, c.exit, c.label)
			var got []string
			b, err := os.ReadFile(file)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			for _, line := range strings.Fields(string(b)) {
				d, err := time.ParseDuration(line)
				switch {
				case err != nil || d <= 0:
					got = append(got, line)
				case d != leaseEvery: // the keeper of the lease sleeps too
					got = append(got, "positive")
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("waits (-want +got):\n%s", d)
			}
			events, err := os.ReadFile(filepath.Join(j.reports, evidence.EventsFile))
			if err != nil {
				t.Fatal(err)
			}
			before, _, waited := strings.Cut(string(events), "waits until the failed proof")
			if waited != (len(c.want) > 0) {
				t.Errorf("the wait is told: %t", waited)
			}
			if waited && !strings.Contains(before, `"`+string(evidence.Checkpoint)+`"`) {
				t.Error("the wait comes before the attempt is saved")
			}
		})
	}
}
