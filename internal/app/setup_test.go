package app

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/evidence"
)

// prepared lists where and when setup commands ran, in the record's order.
func prepared(rec evidence.Record) []string {
	var out []string
	add := func(n int, gates []evidence.Gate) {
		for _, g := range gates {
			if g.Class == "setup" {
				out = append(out, fmt.Sprintf("tick %d, %s: %s", n, g.Where, g.Status))
			}
		}
	}
	add(0, rec.Baseline)
	for _, t := range rec.Ticks {
		add(t.N, t.Gates)
		add(t.N, t.Proof)
	}
	return out
}

func TestSetupRunsOncePerWorktreeAndAgainWhenALockFileChanged(t *testing.T) {
	// The gates want what the setup made, and made of the lock file as it is: a worktree that was not set up, or not again, is red.
	const (
		install = `mkdir -p ignored; cp package-lock.json ignored/installed; echo x >> ignored/times`
		gates   = "{iteration: sh tests/run.sh, acceptance: {run: sh sealed/check.sh, sealed: [sealed/**], attempts: 2}, timeout: 20s, stability: 1}"
		ready   = "cmp package-lock.json ignored/installed || exit 1\n"
	)
	s := setting{
		files: map[string]string{
			"package-lock.json": `{"lockfileVersion": 3}` + "\n",
			"tests/run.sh":      "#!/bin/sh\n. ./app/lib.sh\n" + ready + "grep -q right app/answer.txt || { echo 'the answer is not right'; exit 1; }\n",
			"sealed/check.sh":   "# " + sealedMark + "\n" + ready + "grep -qx 'right for sure' app/answer.txt\n",
		},
		config: map[string]string{"gates": gates, "setup": "['" + install + "']", "stops": "{max_ticks: 5, no_progress_after: 5, max_cost_usd: 1, max_duration: 5m}"},
	}
	t.Run("once per worktree", func(t *testing.T) {
		s := s
		s.plan = []tick{{reply("wrong again\n")}, {sh("cp ignored/times ignored/kept; cat ignored/times > seen.txt"), reply(allRight)}}
		j := open(t, s).label().ended("done", 0, "proctor:review")
		want := []string{
			"tick 0, base: passed", "tick 0, base: passed", "tick 0, agent: passed", // the gates' worktree, the exam's and the agent's
			"tick 2, proof: passed", "tick 2, proof: passed", // one for the visible gates, one for the held-out ones
		}
		if d := cmp.Diff(want, prepared(j.rec)); d != "" {
			t.Errorf("setups (-want +got):\n%s", d)
		}
		if got := j.file("seen.txt"); got != "x\n" {
			t.Errorf("the agent's directory was set up %q", got)
		}
	})
	t.Run("again when the lock file changed", func(t *testing.T) {
		s := s
		s.plan = []tick{{reply("wrong again\n")}, {write("package-lock.json", `{"lockfileVersion": 3, "packages": {}}`+"\n")}, {reply(halfRight)}, {reply(allRight)}}
		j := open(t, s).label().ended("done", 0, "proctor:review")
		want := []string{
			"tick 0, base: passed", "tick 0, base: passed", "tick 0, agent: passed", "tick 2, gate: passed",
			"tick 3, proof: passed", "tick 3, proof: passed", "tick 4, proof: passed", "tick 4, proof: passed",
		}
		if d := cmp.Diff(want, prepared(j.rec)); d != "" {
			t.Errorf("setups (-want +got):\n%s", d)
		}
	})
	t.Run("a lock file that cannot be set up is fed back", func(t *testing.T) {
		s := s
		s.config = merged(s.config, map[string]string{"setup": "['grep -q lockfileVersion package-lock.json || exit 1; " + install + "']"})
		s.plan = []tick{{write("package-lock.json", "{}\n"), reply(allRight)}, {write("package-lock.json", `{"lockfileVersion": 3}`+"\n")}}
		j := open(t, s).label().ended("done", 0, "proctor:review")
		want := []string{"tick 0, base: passed", "tick 0, base: passed", "tick 0, agent: passed", "tick 1, gate: failed", "tick 2, gate: passed", "tick 2, proof: passed", "tick 2, proof: passed"}
		if d := cmp.Diff(want, prepared(j.rec)); d != "" {
			t.Errorf("setups (-want +got):\n%s", d)
		}
	})
	t.Run("one that can be set up only where an earlier one was is fed back from the proof", func(t *testing.T) {
		s := s
		s.config = merged(s.config, map[string]string{"setup": "['[ -f ignored/installed ] || grep -q lockfileVersion package-lock.json || exit 1; " + install + "']"})
		s.plan = []tick{{write("package-lock.json", "{}\n"), reply(allRight)}, {write("package-lock.json", `{"lockfileVersion": 3}`+"\n")}}
		j := open(t, s).label().ended("done", 0, "proctor:review")
		want := []string{"tick 0, base: passed", "tick 0, base: passed", "tick 0, agent: passed", "tick 1, gate: passed", "tick 1, proof: failed", "tick 2, gate: passed", "tick 2, proof: passed", "tick 2, proof: passed"}
		if d := cmp.Diff(want, prepared(j.rec)); d != "" {
			t.Errorf("setups (-want +got):\n%s", d)
		}
	})
	t.Run("the control: without a setup the gates stay red", func(t *testing.T) {
		s := s
		s.config = merged(s.config, map[string]string{"setup": "", "stops": "{max_ticks: 1, max_cost_usd: 1, max_duration: 5m}"})
		s.plan = []tick{{reply(allRight)}}
		open(t, s).label().ended("tick_cap", 2, "proctor:needs-human")
	})
}
