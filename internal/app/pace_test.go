package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/loop"
)

// INV-27: code in a proof that runs longer for a one than for a nought says nothing by it within one doubling.
func TestHowLongAFailedProofTookIsRounded(t *testing.T) {
	t.Parallel()
	red := loop.ProofSeen{Gate: "acceptance", Acceptance: true}
	// next is when the next tick starts, by the session's clock, after a proof that took so long.
	next := func(took time.Duration, seen loop.ProofSeen) time.Duration {
		began := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
		now := began.Add(took)
		s := session{env: Env{Now: func() time.Time { return now }, Sleep: func(_ context.Context, d time.Duration) error {
			if d <= 0 {
				t.Errorf("waits for %s", d)
			}
			now = now.Add(d)
			return nil
		}}}
		s.pace(t.Context(), began, seen)
		return now.Sub(began)
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

// INV-27: the run itself waits, after each proof that the held-out gate fails and after no other.
func TestARunWaitsAfterTheProofsThatTheHeldOutGateFails(t *testing.T) {
	for _, c := range []struct {
		name string
		plan []tick
		end  string
		want []string
	}{
		{"one attempt fails", []tick{{reply(halfRight)}, {reply(allRight)}}, "done", []string{"positive"}},
		{"the control: none fails", []tick{{reply(allRight)}}, "done", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "sleeps")
			w := open(t, setting{plan: c.plan, env: map[string]string{sleepsVariable: file}})
			w.label().ended(c.end, 0, "proctor:review")
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
		})
	}
}
