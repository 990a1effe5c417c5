package config

import (
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/money"
)

func TestOriginsNameTheLine(t *testing.T) {
	t.Parallel()
	c, all, err := Origins(file, []byte("version: 1\nsandbox: strict\ngates:\n  iteration: npm test\nstops: {max_ticks: 4}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Origin{
		"sandbox.mode":       {Value: "strict", From: "file " + file + ":2"},
		"gates.iteration":    {Value: "npm test", From: "file " + file + ":4"},
		"stops.max_ticks":    {Value: "4", From: "file " + file + ":5"},
		"stops.max_cost_usd": {Value: Default().Stops.MaxCost.Decimal(), From: "default"},
	}
	for _, o := range all {
		if w, ok := want[o.Key]; ok {
			if o.Value != w.Value || o.From != w.From {
				t.Errorf("%s: %q (%s), want %q (%s)", o.Key, o.Value, o.From, w.Value, w.From)
			}
			delete(want, o.Key)
		}
	}
	if len(want) > 0 || len(all) != len(schema().keys) {
		t.Errorf("not told: %v; %d of %d keys", want, len(all), len(schema().keys))
	}
	lowered, _, err := Narrow(c, Override{MaxCost: money.Dollar / 2})
	if err != nil {
		t.Fatal(err)
	}
	text := ShowText(Renew(all, lowered, "input of the job"))
	first, rest, _ := strings.Cut(text, "(default)")
	for _, line := range []string{"0.5", "(input of the job)", "strict", ":5)"} {
		if !strings.Contains(first, line) {
			t.Errorf("%q is not among what differs from the defaults:\n%s", line, first)
		}
	}
	if strings.Contains(rest, "(file") {
		t.Errorf("a value of the file stands among the defaults:\n%s", rest)
	}
}

func TestOriginsOfAWrongFile(t *testing.T) {
	t.Parallel()
	if _, all, err := Origins(file, []byte("stops: {max_tick: 4}\n")); err == nil || all != nil || !strings.Contains(err.Error(), "max_ticks") {
		t.Errorf("%v, %v", all, err)
	}
}
