package app

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/evidence"
)

const goalText = "Make the answer right"

// standing is what of a checkout belongs to the person at it: files, index, HEAD, and the branches that were there.
func standing(t *testing.T, checkout string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(checkout, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "objects":
			return fs.SkipDir
		}
		if d.Type().IsRegular() {
			b, err := os.ReadFile(p)
			out[strings.TrimPrefix(p, checkout+"/")] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// gained lists what came to a checkout, and fails where anything that was there changed.
func gained(t *testing.T, before, after map[string]string) []string {
	t.Helper()
	got := []string{}
	for p, text := range after {
		was, old := before[p]
		switch {
		case !old:
			got = append(got, p)
		case was != text:
			t.Errorf("%s changed in the person's checkout", p)
		}
	}
	for p := range before {
		if _, ok := after[p]; !ok {
			t.Errorf("%s is gone from the person's checkout", p)
		}
	}
	return got
}

// INV-11: what a local run had come to is a branch afterwards, and nothing else of the checkout changes.
func TestALocalRunThatIsStoppedKeepsItsWorkAsABranch(t *testing.T) {
	for _, c := range []struct {
		name, terminal string
		exit           int
		plan           []tick
		stops          string
		answer         string
	}{
		{name: "tick cap", terminal: "tick_cap", exit: 2, plan: []tick{{reply("one\n")}, {reply("two\n")}}, stops: "{max_ticks: 2, max_cost_usd: 1, max_duration: 5m}", answer: "two\n"},
		{name: "budget", terminal: "stopped_budget", exit: 3, plan: []tick{{reply("one\n"), spend(400000, 30000)}}, stops: "{max_ticks: 4, max_cost_usd: 0.5, max_duration: 5m}", answer: "one\n"},
		{name: "INV-14 a broken rule keeps what was good before it", terminal: "safety_halt", exit: 4, plan: []tick{{reply("one\n")}, {write(".github/proctor.yml", "version: 1\n")}}, stops: "{max_ticks: 3, max_cost_usd: 1, max_duration: 5m}", answer: "one\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t, setting{plan: c.plan, config: map[string]string{"stops": c.stops}})
			w.local("run", "--goal", "x", "--dry-run") // makes the clone
			checkout := filepath.Join(w.dir, "clone")
			if err := os.WriteFile(filepath.Join(checkout, "README.md"), []byte("being edited\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			before := standing(t, checkout)
			rec, _, out, exit := w.local("run", "--goal", goalText)
			if rec.Terminal != c.terminal || exit != c.exit {
				t.Fatalf("ended %s (exit %d): %s\n%s", rec.Terminal, exit, rec.Reason, out)
			}
			branch := strings.TrimPrefix(rec.Kept, "refs/heads/")
			if !regexp.MustCompile(`^proctor/goal-[0-9a-f]{12}-unproved$`).MatchString(branch) || rec.Branch != "" {
				t.Fatalf("kept on %q, branch %q\n%s", rec.Kept, rec.Branch, out)
			}
			if d := cmp.Diff([]string{".git/refs/heads/" + branch}, gained(t, before, standing(t, checkout))); d != "" {
				t.Errorf("the checkout gained (-want +got):\n%s", d)
			}
			d := &desk{t: t, dir: checkout}
			if got := d.git(checkout, "show", branch+":app/answer.txt") + "\n"; got != c.answer {
				t.Errorf("the branch's answer is %q, want %q", got, c.answer)
			}
			d.git(checkout, "fsck", "--strict", "--no-dangling")
			for _, want := range []string{"the local branch " + branch, "git diff ", "git switch " + branch, "run the same command again"} {
				if !strings.Contains(out, want) {
					t.Errorf("the terminal is not told %q:\n%s", want, out)
				}
			}
			if strings.Contains(out, "label") {
				t.Errorf("a person without a forge is told of labels:\n%s", out)
			}
		})
	}
}

func TestALocalRunInterruptedKeepsTheTickInFlight(t *testing.T) {
	// INV-11: ^C while the agent works in tick 2.
	w := open(t, setting{plan: []tick{{spend(10, 10), reply("one\n")}, {reply("two\n"), spend(10, 10), hang("stubborn")}}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		<-w.called
		<-w.called
		cancel()
	}()
	rec, checkout, out, exit := w.localContext(ctx, "run", "--goal", goalText)
	if rec.Terminal != "cancelled" || exit != 130 {
		t.Fatalf("ended %s (exit %d): %s\n%s", rec.Terminal, exit, rec.Reason, out)
	}
	d := &desk{t: t, dir: checkout}
	if got := d.git(checkout, "show", rec.Kept+":app/answer.txt"); got != "two" || !strings.HasSuffix(rec.Kept, unproved) {
		t.Errorf("kept on %q with the answer %q", rec.Kept, got)
	}
	if !strings.Contains(out, "git switch "+strings.TrimPrefix(rec.Kept, "refs/heads/")) {
		t.Errorf("the terminal is not told where the work is:\n%s", out)
	}
}

func TestWithoutACommitOfItsOwnNothingIsKept(t *testing.T) {
	// The control: the base commit is no work.
	w := open(t, setting{plan: []tick{{say("I do nothing.")}}, config: map[string]string{"stops": "{max_ticks: 1, max_cost_usd: 1, max_duration: 5m}"}})
	rec, checkout, out, _ := w.local("run", "--goal", goalText)
	d := &desk{t: t, dir: checkout}
	if got := d.git(checkout, "branch", "--list", "proctor/*"); rec.Kept != "" || rec.Terminal != "tick_cap" || got != "" || strings.Contains(out, "label") {
		t.Errorf("ended %s, kept on %q, branches %q\n%s", rec.Terminal, rec.Kept, got, out)
	}
}

func TestTheSameGoalAgainMovesNoBranch(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply(allRight)}}})
	first, checkout, out, _ := w.local("run", "--goal", goalText)
	d := &desk{t: t, dir: checkout}
	if first.Terminal != "done" {
		t.Fatalf("ended %s\n%s", first.Terminal, out)
	}
	d.git(checkout, "pack-refs", "--all") // a packed branch is there as well
	for _, want := range []string{first.Branch + "-2", first.Branch + "-3"} {
		rec, _, out, exit := w.local("run", "--goal", goalText)
		if rec.Terminal != "done" || exit != 0 || rec.Branch != want || !strings.Contains(out, "local branch "+want) {
			t.Errorf("ended %s on %q, want %q\n%s", rec.Terminal, rec.Branch, want, out)
		}
		if got := d.git(checkout, "rev-parse", rec.Branch); got != rec.Head.ID {
			t.Errorf("%s is at %s, the record says %s", rec.Branch, got, rec.Head.ID)
		}
	}
	if got := d.git(checkout, "rev-parse", first.Branch); got != first.Head.ID {
		t.Errorf("%s was moved from %s to %s", first.Branch, first.Head.ID, got)
	}
}

func TestNoNextStepOfALocalRunSpeaksOfALabel(t *testing.T) {
	var texts []string
	for _, tm := range evidence.Terminals() {
		texts = append(texts, tm.Next)
	}
	// What the loop says stands in its source.
	sources, err := filepath.Glob("../loop/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range sources {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, "hold(") && !strings.HasSuffix(f, "_test.go") {
				texts = append(texts, line)
			}
		}
	}
	labels := 0
	for _, text := range texts {
		if strings.Contains(text, "label") {
			labels++
		}
		if got := localWords.Replace(text); strings.Contains(got, "label") || strings.Contains(got, "/proctor") {
			t.Errorf("a local run is told %q", got)
		}
	}
	if labels < 10 {
		t.Errorf("the control: only %d of %d texts speak of labels, so this test looks at the wrong ones", labels, len(texts))
	}
}
