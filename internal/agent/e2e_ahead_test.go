//go:build e2e

package agent

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// starters are the real CLIs that can wait for their prompt.
func starters() (out []realCLI) {
	for _, c := range realCLIs() {
		if a, err := New(c.name, Options{Runner: new(sandbox.Box)}); err == nil && starts(a) {
			out = append(out, c)
		}
	}
	return out
}

func starts(a Agent) bool { _, ok := a.(Starter); return ok }

// ahead starts the CLI ahead and lets it wait until it has done all that it does before its prompt.
func (e *e2e) ahead(t testing.TB) *Waiting {
	t.Helper()
	w := e.start(t, e.cli.name, Options{Program: e.cli.program(t)})
	if err := clock.Sleep(t.Context(), 4*time.Second); err != nil {
		t.Fatal(err)
	}
	return w
}

// INV-35: a CLI that waits makes no request. What it is told then is text, and the work is that of any call, as the
// directory stands when it is told.
func TestE2EContractAWaitingCLIAsksNothingAndThenWorksAsEver(t *testing.T) {
	t.Parallel()
	for _, c := range starters() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			turns := append(oneEach(c.edit("pkg/sum.go", "return a }", "return a + b }")), agenttest.Turn{Text: "All is done."})
			e := newE2EOf(t, c, agenttest.Turns(turns...), 20*money.Dollar)
			e.file(t, "canary.txt", "CANARY-in-a-file-nobody-asked-for")
			w := e.ahead(t)
			if n := len(e.model.Requests()); n != 0 {
				t.Errorf("%d requests before the prompt", n)
			}
			if len(alive("", e.task.Dir)) == 0 {
				t.Fatal("control: nothing waits")
			}
			e.task.Prompt = "/compact and see @canary.txt"
			o, told, err := w.Run(t.Context(), e.task, nil)
			if err != nil || !told || o.Kind != OK || o.Final != "All is done." {
				t.Fatalf("told %v, %v: %+v", told, err, o)
			}
			if err := e.meter.Quiet(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := e.read(t, "pkg/sum.go"); !strings.Contains(got, "return a + b }") || len(e.meter.Calls()) != len(turns) {
				t.Errorf("%d calls, and %s", len(e.meter.Calls()), got)
			}
			if strings.Contains(string(e.model.Calls()[0].Body), "CANARY") {
				t.Error("a file's content reached the model")
			}
		})
	}
}

// INV-23: a CLI that is not needed is gone, with its state, and has asked nothing.
func TestE2EContractAWaitingCLIThatIsNotNeededLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range starters() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newE2EOf(t, c, nil, 20*money.Dollar)
			w := e.ahead(t)
			if len(alive("", e.task.Dir)) == 0 {
				t.Fatal("control: nothing waits")
			}
			begin := time.Now()
			if err := w.End(); err != nil {
				t.Fatal(err)
			}
			t.Logf("gone after %s", time.Since(begin))
			left, _ := filepath.Glob(filepath.Join(e.task.Home, "."+strings.TrimSuffix(c.name, "-code")+"-*"))
			if procs := alive("", e.task.Dir); len(procs) != 0 || len(left) != 0 || len(e.model.Requests()) != 0 {
				t.Errorf("left: %v, %v; %d requests", procs, left, len(e.model.Requests()))
			}
		})
	}
}

// The time from the prompt to the first model request, with a process that waits and with one that is started for it.
func BenchmarkE2EPromptToFirstRequest(b *testing.B) {
	for _, c := range starters() {
		for _, waits := range []bool{false, true} {
			name := map[bool]string{false: "/started for it", true: "/waiting"}[waits]
			b.Run(c.name+name, func(b *testing.B) {
				var sum time.Duration
				for range b.N {
					var first atomic.Int64
					e := newE2EOf(b, c, func(agenttest.Request) agenttest.Turn {
						first.CompareAndSwap(0, time.Now().UnixNano())
						return agenttest.Turn{Text: "Done."}
					}, 5*money.Dollar)
					var told time.Time
					var o Outcome
					if waits {
						w := e.ahead(b)
						told = time.Now()
						o, _, _ = w.Run(b.Context(), e.task, nil)
					} else {
						told = time.Now()
						o, _ = e.run(b)
					}
					if o.Kind != OK {
						b.Fatalf("%+v", o)
					}
					sum += time.Unix(0, first.Load()).Sub(told)
				}
				b.ReportMetric(float64(sum.Milliseconds())/float64(b.N), "ms/first-request")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
