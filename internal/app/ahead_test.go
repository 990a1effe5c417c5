package app

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/agent/toolloop"
	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
)

// waits counts how often the processes of a run's agent were seen beside something else.
type waits struct {
	gates   atomic.Int64 // beside a visible gate
	heldOut atomic.Int64 // while held-out files lay in a checkout
	exams   atomic.Int64 // how often such files were seen
}

// look looks at one moment.
func (s *waits) look(w *world) {
	loops, gates := 0, 0
	runs := map[string]bool{}
	for _, p := range processesIn(w.dir) {
		at := p[strings.LastIndex(p, " in ")+4:]
		switch {
		case strings.HasSuffix(at, "/agent") && strings.Contains(p, toolloop.Arg):
			loops++
		case strings.HasSuffix(at, "/gate"):
			gates++
		}
		for d := at; d != w.dir && d != "/" && d != "."; d = filepath.Dir(d) {
			runs[d] = true
		}
	}
	if loops > 0 && gates > 0 {
		s.gates.Add(1)
	}
	for d := range runs {
		if exam, _ := filepath.Glob(filepath.Join(d, "proof-*", "proof", "tree", "sealed", "check.sh")); len(exam) > 0 {
			s.exams.Add(1)
			if loops > 0 {
				s.heldOut.Add(1)
			}
		}
	}
}

// watch looks until stop is called.
func (s *waits) watch(w *world) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for clock.Sleep(ctx, 3*time.Millisecond) == nil {
			s.look(w)
		}
	}()
	return func() { cancel(); <-ended }
}

// aheads says of each start of the agent whether its process was there already.
func (j job) aheads() (out []bool) {
	j.t.Helper()
	b, err := os.ReadFile(filepath.Join(j.reports, evidence.EventsFile))
	if err != nil {
		j.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, `"`+string(evidence.AgentStarted)+`"`) {
			out = append(out, strings.Contains(line, `"`+evidence.KeyAhead+`":true`))
		}
	}
	return out
}

// slowGates give what watches the time to see.
var slowGates = map[string]string{
	"tests/run.sh":    "sleep 0.4\ngrep -q right app/answer.txt\n",
	"sealed/check.sh": "# " + sealedMark + "\nsleep 0.4\ngrep -qx 'right for sure' app/answer.txt\n",
}

// INV-27, INV-35, INV-54: the agent of the second tick waits while the first one's gate runs and does what one does that is
// started for its prompt. None waits while held-out files lie anywhere, and no call but those of the ticks is made.
func TestTheNextAgentWaitsBesideVisibleGatesOnly(t *testing.T) {
	w := open(t, setting{
		files: slowGates, config: map[string]string{"agent": "{name: anthropic, timeout: 1m}"},
		script: agenttest.Attempts(
			agenttest.Turns(answerTurn("not yet\n"), agenttest.Turn{Text: "Done."}),
			agenttest.Turns(answerTurn(allRight), agenttest.Turn{Text: "Done now."}),
		),
	})
	var seen waits
	stop := seen.watch(w)
	j := w.label().ended("done", 0, "proctor:review")
	stop()
	if got := j.aheads(); len(got) != 2 || got[0] || !got[1] {
		t.Errorf("agents that had waited: %v, want that of the second tick", got)
	}
	if seen.gates.Load() == 0 || seen.exams.Load() == 0 {
		t.Errorf("control: an agent was seen beside a gate %d times, held-out files %d times", seen.gates.Load(), seen.exams.Load())
	}
	if n := seen.heldOut.Load(); n != 0 {
		t.Errorf("INV-27 an agent was there %d times while held-out files were", n)
	}
	if j.rec.Totals.Calls != 4 || len(w.model.Calls()) != 4 {
		t.Errorf("INV-35 %d calls are recorded, %d were made, want 4", j.rec.Totals.Calls, len(w.model.Calls()))
	}
	if left := processesIn(w.dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// INV-11, INV-23: however a run ends while an agent waits, nothing is left of it. That it was there is the control.
func TestNothingIsLeftOfAnAgentThatWaited(t *testing.T) {
	for _, c := range []struct {
		name     string
		max      string
		usage    agenttest.Usage // of the first tick's last call
		end      func(pid int, cancel context.CancelFunc)
		terminal string // "": the process is gone
	}{
		{"the harness is killed", "1", agenttest.Usage{Input: 10, Output: 10}, func(pid int, _ context.CancelFunc) { _ = syscall.Kill(pid, syscall.SIGKILL) }, ""},
		{"the run is cancelled", "1", agenttest.Usage{Input: 10, Output: 10}, func(_ int, cancel context.CancelFunc) { cancel() }, "cancelled"},
		// The call fits by its reservation, and costs the 14 cents that the run has.
		{"the budget is used up", "0.14", agenttest.Usage{Input: 8000, Output: 8000}, nil, "stopped_budget"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t, setting{
				files: map[string]string{"tests/run.sh": "sleep 2\nexit 1\n"}, byLabel: true,
				config: map[string]string{"agent": `{name: anthropic, timeout: 1m, args: ["--max-output=8000"]}`, "gates": visibleGates, "stops": "{max_ticks: 4, max_cost_usd: " + c.max + "}"},
				script: agenttest.Turns(
					agenttest.Turn{Tools: answerTurn("not yet\n").Tools, Usage: &agenttest.Usage{Input: 10, Output: 10}},
					agenttest.Turn{Text: "Done.", Usage: &c.usage},
				),
			})
			w.ask()
			run := w.take()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			pidFile := filepath.Join(t.TempDir(), "pid")
			var seen waits
			stop := seen.watch(w)
			ended := make(chan job, 1)
			go func() { ended <- w.execute(ctx, run, map[string]string{pidVariable: pidFile}) }()
			for len(w.model.Calls()) < 2 && clock.Sleep(ctx, time.Millisecond) == nil {
			}
			seen.gates.Store(0) // some beside the gate on the base commit
			if c.end != nil {
				for seen.gates.Load() == 0 && clock.Sleep(ctx, time.Millisecond) == nil {
				}
				b, err := os.ReadFile(pidFile)
				if err != nil {
					t.Fatal(err)
				}
				pid, err := strconv.Atoi(string(b))
				if err != nil {
					t.Fatal(err)
				}
				c.end(pid, cancel)
			}
			j := <-ended
			if j.killed() != (c.terminal == "") || c.terminal != "" && j.rec.Terminal != c.terminal {
				t.Fatalf("killed %v, %s: %s\n%s", j.killed(), j.rec.Terminal, j.rec.Reason, j.run.Log)
			}
			if seen.gates.Load() == 0 {
				t.Error("control: no agent waited")
			}
			for begin := time.Now(); c.terminal == "" && len(processesIn(w.dir)) > 0 && time.Since(begin) < 30*time.Second; {
				_ = clock.Sleep(t.Context(), 20*time.Millisecond) // their supervisors find the harness gone
			}
			stop()
			if left := processesIn(w.dir); len(left) != 0 {
				t.Errorf("INV-23 left: %v", left)
			}
			if n := len(w.model.Calls()); n != 2 {
				t.Errorf("INV-35 %d model calls, want the first tick's 2", n)
			}
		})
	}
}

// counted is an agent that counts how often it was started ahead.
type counted struct {
	agent.Agent
	starts int
}

func (c *counted) Start(context.Context, agent.Task) (*agent.Waiting, error) {
	c.starts++
	return nil, nil
}

func TestAnAgentIsStartedAheadOnlyWhereAFurtherTickMayCome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*session)
		want   int
	}{
		"a further tick may come": {func(*session) {}, 1},
		"it is the last one":      {func(s *session) { s.another = false }, 0},
		"it is not wanted":        {func(s *session) { s.cfg.Agent.Prestart = false }, 0},
		"a dry run":               {func(s *session) { s.req.dryRun = true }, 0},
		"one is there":            {func(s *session) { s.ahead = &agent.Waiting{} }, 0},
		"it cannot wait":          {func(s *session) { s.coder = s.coder.(*counted).Agent }, 0},
	} {
		coder := &counted{}
		s := &session{coder: coder, another: true, agentTree: &git.Worktree{}}
		s.cfg.Agent.Prestart = true
		c.change(s)
		if err := s.startAhead(t.Context()); err != nil || coder.starts != c.want {
			t.Errorf("%s: started %d times, %v", name, coder.starts, err)
		}
	}
}
