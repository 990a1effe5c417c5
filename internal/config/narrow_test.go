package config_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/money"
)

func TestAnOverrideNarrows(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Agent.Choices, c.Agent.Models = []string{"codex"}, []string{"small"}
	got, changed, err := config.Narrow(c, config.Override{
		Agent: "codex", Model: "small", MaxTicks: 2, MaxCost: money.Dollar, MaxDuration: 5 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := c
	want.Agent.Name, want.Agent.Model = "codex", "small"
	want.Stops.MaxTicks, want.Stops.MaxCost, want.Stops.MaxDuration = 2, money.Dollar, 5*time.Minute
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantChanged := []string{
		"agent.name: claude-code → codex (input agent)",
		"agent.model: default → small (input model)",
		"stops.max_ticks: 10 → 2 (input max_ticks)",
		"stops.max_cost_usd: 5 → 1 (input max_cost_usd)",
		"stops.max_duration: 45m → 5m (input max_duration)",
	}
	if diff := cmp.Diff(wantChanged, changed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnEmptyOverrideChangesNothing(t *testing.T) {
	t.Parallel()
	got, changed, err := config.Narrow(config.Default(), config.Override{})
	if diff := cmp.Diff(config.Default(), got); diff != "" || err != nil || len(changed) != 0 {
		t.Errorf("%s %v %v", diff, changed, err)
	}
}

func TestAnOverrideNeverWidens(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		o    config.Override
		want string
	}{
		{"ticks", config.Override{MaxTicks: 11}, "input max_ticks: stops.max_ticks: 11 is more than the limit of 10"},
		{"money", config.Override{From: "flag", MaxCost: 6 * money.Dollar}, "flag --max-cost: stops.max_cost_usd: 6 is more than the limit of 5"},
		{"time", config.Override{MaxDuration: time.Hour}, "input max_duration: stops.max_duration: 1h is more than the limit of 45m"},
		{"negative ticks", config.Override{MaxTicks: -1}, "-1 is below zero"},
		{"negative money", config.Override{MaxCost: -1}, "is below zero"},
		{"agent", config.Override{Agent: "codex"}, `input agent: agent.name: "codex" is not in agent.choices; add it to agent.choices`},
		{"model", config.Override{Model: "huge"}, `"huge" is not in agent.models`},
		{"agent that is no name", config.Override{Operator: true, Agent: "../x"}, `"../x" is not a name`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := config.Narrow(config.Default(), c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if diff := cmp.Diff(config.Default(), got); diff != "" {
				t.Errorf("changed all the same:\n%s", diff)
			}
		})
	}
}

func TestTheOperatorMayNameAnyAgentAndItsModelFollows(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Agent.Model = "claude-opus-4-8"
	got, _, err := config.Narrow(c, config.Override{Operator: true, Agent: "codex"})
	if err != nil || got.Agent.Name != "codex" || got.Agent.Model != "" {
		t.Errorf("got %+v, %v", got.Agent, err)
	}
}

func TestFindReadsTheOneFile(t *testing.T) {
	t.Parallel()
	tree := func(paths ...string) func(string) ([]byte, error) {
		return func(p string) ([]byte, error) {
			for _, have := range paths {
				if have == p {
					return []byte(p), nil
				}
			}
			return nil, fs.ErrNotExist
		}
	}
	for _, p := range config.Paths() {
		path, data, err := config.Find(tree(p))
		if path != p || string(data) != p || err != nil {
			t.Errorf("%s: got %q %q %v", p, path, data, err)
		}
	}
	if path, data, err := config.Find(tree()); path != "" || data != nil || err != nil {
		t.Errorf("no file: got %q %q %v", path, data, err)
	}
	_, _, err := config.Find(tree(".github/proctor.yml", "proctor.yaml"))
	if err == nil || !strings.Contains(err.Error(), ".github/proctor.yml and proctor.yaml") {
		t.Errorf("two files: %v", err)
	}
	broken := errors.New("disk on fire")
	if _, _, err := config.Find(func(string) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("broken: %v", err)
	}
}

func TestTheDigestFollowsMeaningNotSpelling(t *testing.T) {
	t.Parallel()
	load := func(s string) string {
		c, err := config.Load("x", []byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return config.Digest(c)
	}
	if a, b := load("fix: {max_rounds: 1}\n"), load("# same\nfix:\n  max_rounds:   1\n"); a != b {
		t.Errorf("%s and %s", a, b)
	}
	if a, b := load("fix: {max_rounds: 1}\n"), load(""); a == b {
		t.Error("another meaning, the same digest")
	}
}

// What a run's token has left lowers its time and never raises it, whatever the file and an input say.
func TestTheRemainingTimeOnlyLowers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, input, left, want time.Duration }{
		{45 * time.Minute, 0, 55 * time.Minute, 45 * time.Minute},
		{3 * time.Hour, 0, 55 * time.Minute, 55 * time.Minute},
		{3 * time.Hour, 10 * time.Minute, 55 * time.Minute, 10 * time.Minute},
		{3 * time.Hour, 0, 0, 3 * time.Hour},
	} {
		cfg := config.Default()
		cfg.Stops.MaxDuration = c.file
		got, changed, err := config.Narrow(cfg, config.Override{MaxDuration: c.input, Remaining: c.left})
		if err != nil || got.Stops.MaxDuration != c.want || (len(changed) > 0) != (c.want != c.file) {
			t.Errorf("%+v: %s, %q, %v", c, got.Stops.MaxDuration, changed, err)
		}
	}
}
