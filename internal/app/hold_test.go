package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/money"
)

const stateBlob = "refs/proctor/1/state:proctor-state.json"

// saved is the checkpoint that lies on the forge; zero when there is none.
func (w *world) saved() (c checkpoint) {
	w.t.Helper()
	if !strings.Contains(strings.Join(w.refs(), " "), "refs/proctor/1/state") {
		return c
	}
	_, payload, _ := strings.Cut(w.git("show", stateBlob), "\n")
	if err := json.Unmarshal([]byte(payload), &c); err != nil {
		w.t.Fatalf("the checkpoint on the forge: %v", err)
	}
	return c
}

// counted is what the next run would take for spent.
func (w *world) counted() money.USD {
	c := w.saved()
	return c.State.IssueBefore.Add(c.State.Spent).Add(c.Held)
}

// charged is what the provider has billed: each request it took, answered or not, at what the scripted agent asked for.
func (w *world) charged() money.USD {
	var sum money.USD
	for _, r := range w.model.Calls() {
		var in, out int64
		if n, err := fmt.Sscanf(strings.TrimSpace(r.LastText()), "proctor script: spend input=%d output=%d", &in, &out); err != nil || n != 2 {
			w.t.Fatalf("a call that nobody planned: %q", r.LastText())
		}
		sum = sum.Add(money.USD(in * 1000)).Add(money.USD(out * 5000)) // $1 and $5 per million tokens
	}
	return sum
}

// forgetHeld takes out of the checkpoint what was held, as if the program never had held it.
func (w *world) forgetHeld() {
	w.t.Helper()
	head, payload, _ := strings.Cut(w.git("show", stateBlob), "\n")
	var c map[string]json.RawMessage
	var e map[string]any
	if err := json.Unmarshal([]byte(payload), &c); err != nil {
		w.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(head), &e); err != nil {
		w.t.Fatal(err)
	}
	delete(c, "held_usd")
	bare, err := json.Marshal(c)
	if err != nil {
		w.t.Fatal(err)
	}
	sum := sha256.Sum256(bare)
	e["bytes"], e["sha256"] = len(bare), hex.EncodeToString(sum[:])
	line, err := json.Marshal(e)
	if err != nil {
		w.t.Fatal(err)
	}
	w.rewrite("refs/proctor/1/state", func(string) string { return string(line) + "\n" + string(bare) })
}

// killMidCall executes the run and kills it while the provider works on its first call.
func (w *world) killMidCall(run forgetest.Run, attempt int) job {
	w.t.Helper()
	pid := filepath.Join(w.t.TempDir(), "pid")
	ended := make(chan struct{})
	go func() {
		select {
		case <-w.called:
			if b, err := os.ReadFile(pid); err == nil {
				if id, err := strconv.Atoi(string(b)); err == nil {
					_ = syscall.Kill(id, syscall.SIGKILL)
				}
			}
		case <-ended:
		}
	}()
	defer close(ended)
	return w.execute(w.t.Context(), run, map[string]string{pidVariable: pid, laterVariable: fmt.Sprint(time.Duration(attempt) * 2 * leaseTime)})
}

// INV-9, INV-11, INV-35: a machine that is lost in the middle of a model call has paid for it, and no checkpoint of its own
// could tell. The control is the same run with what was held taken out of its checkpoint: it spends without an end.
func TestKillsInTheMiddleOfACallAreNeverForgotten(t *testing.T) {
	const dear = 20_010_000 // nano-dollars of one call
	ceiling := 7 * money.Dollar / 100
	s := setting{plan: []tick{{spend(10, 4000), reply(allRight)}}, byLabel: true, mute: true, config: map[string]string{"gates": visibleGates, "stops": "{max_ticks: 4, max_cost_usd: 0.07}"}}
	t.Run("held", func(t *testing.T) {
		w := open(t, s)
		w.ask()
		run := w.take()
		for attempt := 0; ; attempt++ {
			j := w.killMidCall(run, attempt)
			if counted, charged := w.counted(), w.charged(); counted < charged {
				t.Errorf("INV-35 after %d kills %s are counted, the model has charged %s", attempt+1, counted, charged)
			}
			if !j.killed() {
				j.ended("stopped_budget", 3, "proctor:needs-human")
				if attempt < 2 || !strings.Contains(strings.Join(j.rec.Notes, "\n"), "were held for model calls when its machine was lost") || j.rec.Totals.IssueUSD < w.charged() {
					t.Errorf("stopped after %d kills with totals %+v: %q", attempt, j.rec.Totals, j.rec.Notes)
				}
				break
			}
			run = w.rerun(run)
		}
		if charged := w.charged(); charged > ceiling+dear {
			t.Errorf("INV-35 the model has charged %s of %s", charged, ceiling)
		}
	})
	t.Run("control", func(t *testing.T) {
		w := open(t, s)
		w.ask()
		run := w.take()
		for attempt := range 5 {
			if j := w.killMidCall(run, attempt); !j.killed() {
				t.Fatalf("the run that forgets stopped after %d kills as %s", attempt, j.rec.Terminal)
			}
			w.forgetHeld()
			run = w.rerun(run)
		}
		if charged := w.charged(); charged <= ceiling+dear {
			t.Errorf("control: the model has charged %s, which is no overspending", charged)
		}
	})
}
