package evidence

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exam is sample with held-out files from elsewhere and with added tests that were tried on the base code.
func exam() Record {
	r := sample()
	r.HeldOut = &HeldOut{Form: "source", Repo: "octo/exams", Ref: "main", Commit: hexid("e", 40), Tree: hexid("f", 40), Files: 3}
	g := gateRun("iteration", "fail-first", "go test ./...", "failed", 700)
	g.Log = "fail-first-02-iteration-iteration.log.gz"
	r.Ticks[0].First = &FailFirst{Mode: "require", Verdict: "none", Detail: "the change adds no test"}
	r.Ticks[1].First = &FailFirst{Mode: "require", Verdict: "assertion", Runner: "go test", Tests: []string{"TestTotal"}, Gate: &g}
	return r
}

func TestWhatARecordSaysOfHeldOutFilesAndAddedTestsHasToFit(t *testing.T) {
	t.Parallel()
	if err := Validate(exam()); err != nil {
		t.Fatalf("control: %v", err)
	}
	dir := exam()
	dir.HeldOut = &HeldOut{Form: "dir", Tree: hexid("f", 64), Files: 1}
	unknown := exam()
	unknown.Ticks[0].First = &FailFirst{Mode: "warn", Verdict: "unknown", Tests: []string{"x"}}
	same := exam()
	same.Ticks[1].First.Same, same.Ticks[1].First.Gate = true, nil
	for name, r := range map[string]Record{"of a directory": dir, "unknown without a gate": unknown, "the same as before": same} {
		if err := Validate(r); err != nil {
			t.Errorf("control %s: %v", name, err)
		}
	}
	first := func(change func(*FailFirst)) func(*Record) { return func(r *Record) { change(r.Ticks[1].First) } }
	held := func(change func(*HeldOut)) func(*Record) { return func(r *Record) { change(r.HeldOut) } }
	for name, c := range map[string]struct {
		change func(*Record)
		want   string
	}{
		"INV-27 held-out form":         {held(func(h *HeldOut) { h.Form = "cloud" }), `the form "cloud"`},
		"held-out tree":                {held(func(h *HeldOut) { h.Tree = "main" }), `held-out tree "main"`},
		"held-out commit":              {held(func(h *HeldOut) { h.Commit = h.Commit[:12] }), "held-out commit"},
		"held-out repository":          {held(func(h *HeldOut) { h.Repo = "" }), "without a repository"},
		"no held-out files":            {held(func(h *HeldOut) { h.Files = 0 }), "held out are 0 files"},
		"a directory with a commit":    {held(func(h *HeldOut) { h.Form = "dir" }), "of a directory and of octo/exams"},
		"INV-5 no exam in the proof":   {func(r *Record) { p := &r.Ticks[1].Proof; *p = (*p)[:2] }, "no held-out gate in its proof"},
		"mode":                         {first(func(f *FailFirst) { f.Mode = "off" }), `the mode "off"`},
		"verdict":                      {first(func(f *FailFirst) { f.Verdict = "good" }), `verdict on added tests is "good"`},
		"INV-31 required and passing":  {first(func(f *FailFirst) { f.Verdict, f.Gate.Status, f.Gate.ExitCode = "passed", "passed", 0 }), `have to fail first, and what they did is "passed"`},
		"INV-31 required and unknown":  {first(func(f *FailFirst) { f.Verdict = "unknown" }), `what they did is "unknown"`},
		"assertion of a passing gate":  {first(func(f *FailFirst) { f.Gate.Status, f.Gate.ExitCode = "passed", 0 }), `is "assertion", and the gate passed`},
		"passed by a failing gate":     {first(func(f *FailFirst) { f.Verdict = "passed" }), `is "passed", and the gate failed`},
		"assertion without a gate":     {first(func(f *FailFirst) { f.Gate = nil }), "no gate ran"},
		"tests of no verdict":          {first(func(f *FailFirst) { f.Verdict = "none" }), `1 added tests, and the verdict on them is "none"`},
		"a verdict on no tests":        {first(func(f *FailFirst) { f.Tests = nil }), "0 added tests"},
		"none by a gate":               {func(r *Record) { r.Ticks[0].First.Gate = r.Ticks[1].First.Gate }, `is "none", and the gate failed`},
		"run again though the same":    {first(func(f *FailFirst) { f.Same = true }), "were run again"},
		"tried elsewhere":              {first(func(f *FailFirst) { f.Gate.Where = "gate" }), `tried added tests in "gate"`},
		"INV-27 tried with the exam":   {first(func(f *FailFirst) { f.Gate.Class, f.Gate.Log = "acceptance", "" }), "tried added tests in"},
		"digest of the run":            {first(func(f *FailFirst) { f.Gate.Digest = "md5:1" }), "want SHA-256"},
		"log elsewhere":                {first(func(f *FailFirst) { f.Gate.Log = "../x.log.gz" }), "is not a file beside"},
		"the gate's log written over":  {first(func(f *FailFirst) { f.Gate.Log = "gate-02-iteration-iteration.log.gz" }), `in "fail-first" shares the log`},
		"a log of two ticks":           {func(r *Record) { r.Ticks[1].Gates[0].Log = "GATE-01-iteration-iteration.log.gz" }, `in "gate" shares the log`},
		"passed with an exit code too": {first(func(f *FailFirst) { f.Verdict, f.Mode, f.Gate.Status = "passed", "warn", "passed" }), "passed with exit code 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := exam()
			c.change(&r)
			err := Validate(r)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestEachPlaceOfATickHasALogOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := map[string]string{}
	for _, where := range []string{"gate", "fail-first", "agent"} {
		name, err := SaveGateLog(dir, 1, Gate{Class: "iteration", Name: "iteration", Where: where}, []byte(where), nil)
		if err != nil {
			t.Fatal(err)
		}
		want[name] = where
	}
	if len(want) != 3 || want["gate-01-iteration-iteration.log.gz"] != "gate" {
		t.Errorf("logs %v", want)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Errorf("%d files, %v", len(files), err)
	}
	for name := range want {
		if !logShape.MatchString(name) || filepath.Base(name) != name {
			t.Errorf("%q is no name of a log", name)
		}
	}
}
