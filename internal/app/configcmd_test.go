package app

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/config"
)

// shown runs `proctor config show --json` in a checkout with these files and this environment.
func shown(t *testing.T, files, env map[string]string) (map[string]config.Origin, string, int) {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir(), env: map[string]string{}}
	d.git(d.dir, "init", "-q", "-b", "main")
	for path, text := range files {
		d.put(path, text)
	}
	var out, errs bytes.Buffer
	code := CLI(t.Context(), Env{Args: []string{"config", "show", "--json"}, Getenv: func(n string) string { return env[n] }, Stdout: &out, Stderr: &errs, Dir: d.dir})
	var all []config.Origin
	if code == 0 {
		if err := json.Unmarshal(out.Bytes(), &all); err != nil {
			t.Fatalf("%v: %s", err, out.Bytes())
		}
	}
	byKey := map[string]config.Origin{}
	for _, o := range all {
		byKey[o.Key] = o
	}
	return byKey, errs.String(), code
}

func TestConfigShowSaysWhereAValueComesFrom(t *testing.T) {
	t.Parallel()
	const path = ".github/proctor.yml"
	text := "version: 1\ngates:\n  iteration: make check\nstops:\n  max_ticks: 7\n  max_cost_usd: 3\n"
	got, _, code := shown(t, map[string]string{path: text}, map[string]string{"INPUT_MAX-COST-USD": "2", "PROCTOR_MAX_DURATION": "5m"})
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	for key, want := range map[string][2]string{
		"gates.iteration":    {"make check", "file " + path + ":3"},
		"stops.max_ticks":    {"7", "file " + path + ":5"},
		"stops.max_cost_usd": {"2", "input of the job"},
		"stops.max_duration": {"5m", "input of the job"},
		"sandbox.mode":       {"auto", "default"},
	} {
		if o := got[key]; o.Value != want[0] || o.From != want[1] {
			t.Errorf("%s: %q (%s), want %q (%s)", key, o.Value, o.From, want[0], want[1])
		}
	}
}

func TestConfigShowWithoutAFileSaysWhatWasDetected(t *testing.T) {
	t.Parallel()
	got, _, code := shown(t, map[string]string{"go.mod": "module example.org/x\n\ngo 1.26\n", "x.go": "package x\n", "x_test.go": "package x\n"}, nil)
	if o := got["gates.iteration"]; code != 0 || o.From != "detected in the repository" || !strings.Contains(o.Value, "go test") {
		t.Errorf("exit %d, %+v", code, o)
	}
}

func TestConfigShowRefusesWhatARunWouldRefuse(t *testing.T) {
	t.Parallel()
	files := map[string]string{".github/proctor.yml": "version: 1\ngates: {iteration: make}\nstops: {max_ticks: 3}\n"}
	for value, want := range map[string]string{"9": "never widen it", "many": "whole number above zero"} {
		if _, errs, code := shown(t, files, map[string]string{"PROCTOR_MAX_TICKS": value}); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("max-ticks %s: exit %d, %s", value, code, errs)
		}
	}
}
