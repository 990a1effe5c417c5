package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/loop"
)

func TestTheWorstOfAClassDecidesAndNotTheFirst(t *testing.T) {
	t.Parallel()
	ordered := []loop.GateStatus{loop.GatePassed, loop.GateStopped, loop.GateFailed, loop.GateFlaked, loop.GateWasted, ""}
	for i, better := range ordered {
		for j, worse := range ordered {
			first, second := loop.GateSeen{Status: better, Detail: "first"}, loop.GateSeen{Status: worse, Detail: "second"}
			want := "first"
			if j > i {
				want = "second"
			}
			if got := worst(worst(loop.GateSeen{}, first), second); got.Detail != want {
				t.Errorf("%q, then %q: the %s decides", better, worse, got.Detail)
			}
		}
	}
}

// INV-25: whatever cannot run ends the run before the first model call, also where a gate in front of it is red, as it is
// on the base commit of every run that is worth starting.
func TestAGateThatCannotRunIsToldBeforeAnythingIsSpent(t *testing.T) {
	const red = "iteration: sh tests/run.sh"
	spending := []tick{{spend(1000, 100), reply(allRight)}}
	for _, c := range []struct{ name, gates, says string }{
		{"a probe without its builder", "{" + red + ", probes: [{docker-build: {file: Dockerfile}}], timeout: 20s, stability: 1}", "PROCTOR_DOCKER_HOST"},
		{"a regression gate of a missing program", "{" + red + ", regression: [no-such-program, here], timeout: 20s, stability: 1}", "no-such-program"},
		{"a held-out gate of a missing program", "{" + red + ", acceptance: {run: [no-such-program, sealed/check.sh], sealed: [sealed/**]}, timeout: 20s, stability: 1}", "acceptance"},
		{"the second of two held-out gates", "{" + red + ", acceptance: {run: sh sealed/check.sh, parts: [[no-such-program, here]], sealed: [sealed/**]}, timeout: 20s, stability: 1}", "acceptance"},
		{"a program that a probe cannot start", "{" + red + ", probes: [{boots: {start: [no-such-program, here], for: 1s}}], timeout: 20s, stability: 1}", "no-such-program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t, setting{plan: spending, files: map[string]string{"Dockerfile": "FROM scratch\n"}, config: map[string]string{"gates": c.gates}})
			j := w.label().ended("gate_broken", 5, "proctor:failed").says(c.says)
			if n := len(w.model.Calls()); n != 0 || len(j.rec.Ticks) != 0 {
				t.Errorf("%d model calls, %d ticks", n, len(j.rec.Ticks))
			}
			var base []string
			for _, g := range j.rec.Baseline {
				base = append(base, g.Name+" "+g.Status)
			}
			if said := strings.Join(base, ", "); !strings.HasPrefix(said, "iteration failed") || !strings.Contains(said, "broken") {
				t.Errorf("the record shows %s", said)
			}
		})
	}
	t.Run("the control: the same red gate alone is where a run begins", func(t *testing.T) {
		w := open(t, setting{plan: spending, config: map[string]string{"gates": fmt.Sprintf("{%s, timeout: 20s, stability: 1}", red)}})
		w.label().ended("done", 0, "proctor:review")
		if n := len(w.model.Calls()); n != 1 {
			t.Errorf("%d model calls", n)
		}
	})
}
