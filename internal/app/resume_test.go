package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

func TestACancelledRunIsKeptAndResumed(t *testing.T) {
	// INV-9, INV-11: the runner's SIGINT comes while the agent works in tick 2.
	w := open(t, setting{plan: []tick{
		{spend(1000, 100), reply("one\n")}, {reply("two\n"), spend(1000, 100), hang("stubborn")}, {spend(1000, 100), reply(allRight)},
	}})
	w.ask()
	ctx, cancel := context.WithCancel(t.Context())
	terminated := make(chan struct{}, 1)
	w.runner.After = func(d time.Duration) <-chan time.Time {
		c := make(chan time.Time, 1)
		go func() {
			if clock.Sleep(t.Context(), d) == nil {
				if d == 7500*time.Millisecond {
					terminated <- struct{}{}
				}
				c <- time.Time{}
			}
		}()
		return c
	}
	run := w.take()
	ended := make(chan job)
	go func() { ended <- w.execute(ctx, run, nil) }()
	<-w.called
	<-w.called
	cancel()
	first := <-ended
	select {
	case <-terminated:
		t.Error("INV-11 the runner had to follow SIGINT with SIGTERM")
	default:
	}
	first.ended("cancelled", 130, "proctor:failed")
	w.unpublished()
	if first.Conclusion != "cancelled" || len(first.rec.Ticks) != 2 || first.rec.Kept != "refs/proctor/1/state" || !strings.Contains(w.statuses()[0], "label the issue again") {
		t.Errorf("the job ended %s after %d ticks, kept on %q; status:\n%s", first.Conclusion, len(first.rec.Ticks), first.rec.Kept, w.statuses()[0])
	}
	// What the agent had written when it was stopped is kept too.
	if got := w.git("show", "refs/proctor/1/state^:app/answer.txt"); got != "two\n" {
		t.Errorf("the checkpoint's answer is %q", got)
	}
	second := w.label().ended("done", 0, "proctor:review")
	if d := second.rec.Totals; !slices.Equal(second.rec.Resumed, []string{first.rec.Run}) || d.Calls != 1 || d.IssueUSD != first.rec.Totals.CostUSD.Add(d.CostUSD) || second.rec.Ticks[0].N != 3 {
		t.Errorf("resumed %q at tick %d with totals %+v after %+v", second.rec.Resumed, second.rec.Ticks[0].N, d, first.rec.Totals)
	}
	if w.file("app/answer.txt") != allRight || len(w.hub.Pulls()) != 1 {
		t.Errorf("the branch's answer is %q", w.file("app/answer.txt"))
	}
}

// sixTicks leave something in each, so that a lost or repeated one would show in the tree.
func sixTicks() []tick {
	var out []tick
	for n := 1; n <= 6; n++ {
		s := tick{spend(1000, 100), write(fmt.Sprintf("app/tick-%d.txt", n), fmt.Sprintln("tick", n)), reply(fmt.Sprintln("attempt", n))}
		if n == 6 {
			s = append(s, reply(allRight))
		}
		out = append(out, s)
	}
	return out
}

// killsVariable sets how many kills TestKillsAtRandomMoments spreads over its runs; `make kills` sets 100.
const killsVariable = "PROCTOR_TEST_KILLS"

func TestKillsAtRandomMomentsLoseAtMostTheTickInFlight(t *testing.T) {
	// INV-11. The control is the uninterrupted run, whose tree every other one must reach.
	kills := 10
	if n, err := strconv.Atoi(os.Getenv(killsVariable)); err == nil {
		kills = n
	}
	s := setting{plan: sixTicks(), byLabel: true, config: map[string]string{"gates": visibleGates, "stops": "{max_ticks: 6, no_progress_after: 9, max_cost_usd: 9}"}}
	whole := open(t, s)
	begin := time.Now()
	want := whole.label().ended("done", 0, "proctor:review")
	length := time.Since(begin)
	if want.rec.Totals.Calls != 6 {
		t.Fatalf("the uninterrupted run made %d calls", want.rec.Totals.Calls)
	}
	seed := uint64(begin.UnixNano())
	t.Logf("seed %d, uninterrupted %s", seed, length)
	random := rand.New(rand.NewPCG(seed, 0))
	runs, most, repeated := 0, 0, 0
	for done := 0; done < kills; runs++ {
		w := again(t, s)
		n := w.killUntilDone(random, length, kills-done)
		done += n
		if n == 0 {
			continue // the first kill came too late
		}
		if got := strings.TrimSpace(w.git("rev-parse", w.branch()+"^{tree}")); got != want.rec.Head.Tree {
			t.Errorf("after %d kills the tree is %s, uninterrupted %s:\n%s", n, got, want.rec.Head.Tree, w.git("diff", "--stat", base, w.branch()))
		}
		calls := len(w.model.Calls())
		if calls > 6+n {
			t.Errorf("%d calls after %d kills: more than the tick in flight was lost", calls, n)
		}
		most, repeated = max(most, n), repeated+calls-6
		w.nothingTwice()
	}
	t.Logf("%d runs of 6 ticks were killed %d times, one of them %d times, and made %d calls again", runs, kills, most, repeated)
}

// killUntilDone runs the issue, killing the action up to most times, each time on a fresh runner, and returns the kills.
func (w *world) killUntilDone(random *rand.Rand, length time.Duration, most int) int {
	w.t.Helper()
	w.ask()
	run := w.take()
	for kills := 0; ; {
		env := map[string]string{laterVariable: fmt.Sprint(time.Duration(kills) * 2 * leaseTime)}
		if kills < most {
			env[dieVariable] = fmt.Sprint(random.Int64N(length.Milliseconds()))
		}
		j := w.execute(w.t.Context(), run, env)
		if !j.killed() {
			j.ended("done", 0, "proctor:review")
			return kills
		}
		w.t.Logf("killed after %s ms:\n%s", env[dieVariable], j.run.Log)
		for alive := []string{""}; len(alive) > 0; alive = processesIn(filepath.Dir(j.Workspace)) {
			// They end by themselves, as soon as their supervisor or the forge's answer finds the harness gone.
			if err := clock.Sleep(w.t.Context(), 20*time.Millisecond); err != nil {
				w.t.Fatalf("INV-23 the killed harness left %s", alive)
			}
		}
		if counted, charged := w.counted(), w.charged(); counted < charged {
			w.t.Errorf("after %d kills %s are counted, the model has charged %s", kills+1, counted, charged)
		}
		kills++
		run = w.rerun(run)
	}
}

// rerun is the button of that name: the same event in a new attempt.
func (w *world) rerun(run forgetest.Run) forgetest.Run {
	w.runner.Dir = fmt.Sprintf("%s-%d", strings.TrimRight(w.runner.Dir, "-0123456789"), len(w.hub.Requests()))
	run.Attempt++
	return run
}

// nothingTwice asserts one of everything that a run makes on the forge.
func (w *world) nothingTwice() {
	w.t.Helper()
	w.leaves()
	is, _ := w.hub.Issue(w.issue)
	if len(w.hub.Pulls()) != 1 || len(is.Comments) != 1 {
		w.t.Errorf("%d pull requests, %d comments: want one of each", len(w.hub.Pulls()), len(is.Comments))
	}
}

func TestAPullRequestWhoseAnswerWasLostIsNotOpenedTwice(t *testing.T) {
	w := open(t, setting{plan: []tick{{spend(10, 10), reply(allRight)}}, byLabel: true, config: map[string]string{"gates": visibleGates}})
	w.must(w.hub.Fail("POST /repos/*/*/pulls", 1, forgetest.DoneBut502()))
	w.label().ended("done", 0, "proctor:review")
	if unmet := w.hub.Unmet(); len(unmet) != 0 {
		t.Errorf("faults that never happened: %q", unmet)
	}
	w.nothingTwice()
}

func TestAMachineLostWhilePublishingIsMendedByTheNextAttempt(t *testing.T) {
	// INV-11: each loss is at a request that the forge holds back; the next attempt has to find out what was done.
	const push = "POST /octo/shop.git/git-receive-pack"
	for _, c := range []struct {
		name   string
		after  string // with so many of these requests behind it,
		count  int
		held   string // the run is lost at the next of these
		opened int    // pull requests at that time
		calls  int    // of the model, when all is done
		signs  bool   // the forge signs what is published
	}{
		{"before the day's money is reserved", push, 1, push, 0, 1, false},
		{"before money is held", push, 2, push, 0, 1, false},
		{"before the checkpoint of the tick and its end", push, 3, push, 0, 2, false},
		{"before the branch is pushed", push, 4, push, 0, 1, false},
		{"between the branch and the pull request", push, 5, "POST /repos/*/*/pulls", 0, 1, false},
		{"between the pull request and its checkpoint", "POST /repos/*/*/pulls", 1, push, 1, 1, false},
		{"between the last checkpoint and the labels", push, 6, "POST /repos/*/*/issues/*/labels", 1, 1, false},
		{"between the labels and the end of the day's reservation", "POST /repos/*/*/issues/*/labels", 2, push, 1, 1, false},
		{"between what the forge signed and its checkpoint", "POST /repos/*/*/git/commits", 1, push, 0, 1, true},
		{"between what the forge signed and its push", push, 5, push, 0, 1, true},
		{"between the signed branch and the pull request", push, 6, "POST /repos/*/*/pulls", 0, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t, setting{plan: []tick{{spend(10, 10), reply(allRight)}}, byLabel: true, config: map[string]string{"gates": visibleGates, "stops": "{max_ticks: 1}"}, signs: c.signs})
			w.ask()
			run := w.take()
			pid := filepath.Join(w.t.TempDir(), "pid")
			go w.killAt(c.after, c.count, c.held, pid)
			if j := w.execute(t.Context(), run, map[string]string{pidVariable: pid}); !j.killed() {
				t.Fatalf("the run was not lost: %s\n%s", j.rec.Terminal, j.run.Log)
			}
			if n := len(w.hub.Pulls()); n != c.opened {
				t.Errorf("%d pull requests at the time of the loss, want %d", n, c.opened)
			}
			before := w.hub.Branch(w.branch())
			mended := w.execute(t.Context(), w.rerun(run), map[string]string{laterVariable: "1h"}).ended("done", 0, "proctor:review")
			if c.signs {
				if at := w.signed(mended, 1); before != "" && before != at {
					t.Errorf("what was signed and pushed as %s was signed again, as %s", before, at)
				}
			}
			if calls := len(w.model.Calls()); calls != c.calls {
				t.Errorf("%d model calls, want %d", calls, c.calls)
			}
			w.nothingTwice()
		})
	}
}

// killAt waits until so many requests fit after, holds the next one that fits held, and kills the process that sent it.
func (w *world) killAt(after string, count int, held, pidFile string) {
	every := func(done func() bool) bool {
		for !done() {
			if clock.Sleep(w.t.Context(), 2*time.Millisecond) != nil {
				return false
			}
		}
		return true
	}
	if !every(func() bool { return w.hub.Count(after) >= count }) {
		return
	}
	before := w.hub.Count(held)
	if w.hub.Fail(held, 1, forgetest.Fault{Delay: time.Minute, Drop: true}) != nil || !every(func() bool { return w.hub.Count(held) > before }) {
		return
	}
	b, err := os.ReadFile(pidFile)
	if pid, convErr := strconv.Atoi(string(b)); err == nil && convErr == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// INV-12: a forge may keep a run waiting for longer than its lease while it publishes.
func TestTheLeaseIsHeldWhilePublishing(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply(allRight)}}, config: map[string]string{"gates": visibleGates}})
	w.ask()
	run, opens := w.take(), "POST /repos/*/*/pulls"
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	w.must(w.hub.Fail(opens, 1, forgetest.Fault{Delay: time.Minute, Drop: true}))
	renewed := make(chan bool, 1)
	go func() {
		defer done() // the job is cancelled: nobody has to wait for the forge
		held := ""
		for clock.Sleep(ctx, 20*time.Millisecond) == nil {
			raw, err := os.ReadFile(filepath.Join(w.hub.GitDir(), "refs/proctor/1/lease"))
			switch at := string(raw); {
			case err != nil || w.hub.Count(opens) == 0:
			case held == "":
				held = at
			case at != held:
				renewed <- true
				return
			}
		}
		renewed <- false
	}()
	w.execute(ctx, run, map[string]string{hurryVariable: "200ms"})
	if !<-renewed {
		t.Error("the lease was not renewed while the draft was opened")
	}
}

// damage changes one word in the file that a checkpoint was saved in.
func (w *world) damage(ref, from, to string) {
	w.t.Helper()
	w.rewrite(ref, func(text string) string { return strings.Replace(text, from, to, 1) })
}

// rewrite changes the file that a checkpoint was saved in.
func (w *world) rewrite(ref string, change func(string) string) {
	w.t.Helper()
	var tree strings.Builder
	for line := range strings.Lines(w.git("ls-tree", ref)) {
		if entry := strings.Fields(line); entry[3] == "proctor-state.json" {
			text := change(w.git("cat-file", "-p", entry[2]))
			line = strings.Replace(line, entry[2], strings.TrimSpace(w.gitIn(text, "hash-object", "-w", "--stdin")), 1)
		}
		tree.WriteString(line)
	}
	id := strings.TrimSpace(w.gitIn(tree.String(), "mktree"))
	if id == strings.TrimSpace(w.git("rev-parse", ref+"^{tree}")) {
		w.t.Fatalf("%s holds nothing to change", ref)
	}
	w.git("update-ref", ref, strings.TrimSpace(w.gitIn("Checkpoint\n", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit-tree", id, "-p", ref+"^")))
}

func TestADamagedCheckpointIsToldAndNotTrusted(t *testing.T) {
	// INV-9: the control is the resume above.
	w := open(t, setting{plan: []tick{{spend(1000, 100), reply("one\n")}, {spend(1000, 100), reply(allRight)}}, config: map[string]string{"stops": "{max_ticks: 1}"}})
	w.label().ended("tick_cap", 2, "proctor:needs-human")
	w.damage("refs/proctor/1/state", `"tick":1`, `"tick":0`)
	j := w.label()
	if !slices.ContainsFunc(j.rec.Notes, func(n string) bool { return strings.Contains(n, "not trusted") }) || j.rec.Ticks[0].N != 1 || len(j.rec.Resumed) != 0 {
		t.Errorf("a damaged checkpoint was taken: first tick %d, notes %q", j.rec.Ticks[0].N, j.rec.Notes)
	}
	if j.rec.Terminal != evidence.TickCap {
		t.Errorf("ended %s: %s", j.rec.Terminal, j.rec.Reason)
	}
}
