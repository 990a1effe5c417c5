package agent

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// start starts an agent of the lab ahead.
func (l lab) start(t testing.TB, name string, o Options) *Waiting {
	t.Helper()
	o.Runner = l.box
	a, err := New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	ahead := l.task
	ahead.Prompt, ahead.Timeout = "", 0
	w, err := a.(Starter).Start(t.Context(), ahead)
	if err != nil || w == nil {
		t.Fatalf("%v, %v", w, err)
	}
	t.Cleanup(func() { _ = w.End() })
	return w
}

// comes waits for something that another process brings about.
func comes(t testing.TB, what string, there func() bool) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); !there(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%s did not come", what)
		}
	}
}

func (l lab) has(name string) func() bool {
	return func() bool {
		found, _ := filepath.Glob(filepath.Join(l.task.Dir, name))
		return len(found) > 0
	}
}

// awaits is a stand-in that says in started.txt that it is there, and gives its prompt back.
const awaits = `echo here > started.txt; echo state > "$CODEX_HOME/kept"; cat > prompt.txt; echo '{"type":"item.completed","item":{"type":"agent_message","text":"done"}}'; echo '` + codexDone + `'`

// A process that was started ahead does what one does that was started for its prompt: the same outcome, the same
// events, and nothing before it is told.
func TestAWaitingProcessDoesTheSameAsOneThatIsStartedForItsPrompt(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Auto)
	program := standIn(t, "codex", awaits)
	cold, coldEvents := l.run(t, "codex", Options{Program: program})
	if l.read(t, "prompt.txt") != "Fix it." {
		t.Fatalf("control: %+v", cold)
	}
	warm := newLab(t, sandbox.Auto)
	w := warm.start(t, "codex", Options{Program: program})
	comes(t, "the process", warm.has("started.txt"))
	if warm.has("prompt.txt")() && warm.read(t, "prompt.txt") != "" {
		t.Error("it was told something before there was a prompt")
	}
	var events []Event
	o, told, err := w.Run(t.Context(), warm.task, func(e Event) { events = append(events, e) })
	if err != nil || !told || warm.read(t, "prompt.txt") != "Fix it." {
		t.Fatalf("told %v, %v: %+v", told, err, o)
	}
	if diff := cmp.Diff(cold, o, cmpopts.IgnoreFields(Outcome{}, "Duration")); diff != "" || o.Kind != OK {
		t.Errorf("(-cold +warm):\n%s", diff)
	}
	if diff := cmp.Diff(coldEvents, events); diff != "" {
		t.Errorf("events (-cold +warm):\n%s", diff)
	}
	if left, _ := filepath.Glob(filepath.Join(warm.task.Home, ".codex*")); len(left) != 0 {
		t.Errorf("left in HOME: %v", left)
	}
}

// INV-35: waiting costs nothing. The tool loop is metered as ever once it is told its prompt.
func TestAWaitingProcessAsksItsModelNothing(t *testing.T) {
	t.Parallel()
	r := newAPIRun(t, agenttest.Turns(
		agenttest.Turn{Tools: []agenttest.Tool{own("write", map[string]any{"path": "a.txt", "content": "hello"})}},
		agenttest.Turn{Text: "Done."},
	), money.Dollar)
	w := r.start(t, "anthropic", Options{})
	comes(t, "the process", func() bool { return len(alive("", r.task.Dir)) > 0 })
	if n := len(r.model.Requests()); n != 0 {
		t.Errorf("%d requests before the prompt", n)
	}
	o, told, err := w.Run(t.Context(), r.task, nil)
	if err != nil || !told || o.Kind != OK || r.read(t, "a.txt") != "hello" || len(r.model.Calls()) != 2 {
		t.Errorf("told %v, %v: %+v after %d calls", told, err, o, len(r.model.Calls()))
	}
}

// INV-7, INV-11, INV-23: a process that is not needed, and one whose run is cancelled, is gone with all its
// descendants, its state and whoever was to tell it something. The control is that all of it was there.
func TestAWaitingProcessThatIsNotNeededLeavesNothing(t *testing.T) {
	t.Parallel()
	const stubborn = `trap '' TERM HUP INT; setsid sh -c 'trap "" TERM; echo $$ > child.txt; while :; do sleep 1; done' & ` + awaits + `; while :; do sleep 1; done`
	for name, end := range map[string]func(*Waiting, context.CancelFunc) error{
		"it is not needed":     func(w *Waiting, _ context.CancelFunc) error { return w.End() },
		"the run is cancelled": func(w *Waiting, cancel context.CancelFunc) error { cancel(); <-w.over; return w.End() },
		"it is ended twice":    func(w *Waiting, _ context.CancelFunc) error { _ = w.End(); return w.End() },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, sandbox.Auto)
			a, err := New("codex", Options{Runner: l.box, Program: standIn(t, "codex", stubborn)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w, err := a.(Starter).Start(ctx, l.task)
			if err != nil {
				t.Fatal(err)
			}
			state := func() []string { s, _ := filepath.Glob(filepath.Join(l.task.Home, ".codex-*")); return s }
			comes(t, "the process", func() bool { return l.has("started.txt")() && l.has("child.txt")() && len(state()) > 0 })
			if len(alive("", l.task.Dir)) < 2 {
				t.Fatal("control: there are no processes")
			}
			if err := end(w, cancel); err != nil {
				t.Error(err)
			}
			if procs := alive("", l.task.Dir); len(procs) != 0 || len(state()) != 0 {
				t.Errorf("left: processes %v, files %v", procs, state())
			}
			if _, told, err := w.Run(t.Context(), l.task, nil); told || err != nil {
				t.Errorf("a process that is gone was told something: %v", err)
			}
		})
	}
}

// What cannot be used is not: the caller starts another, which the control shows to work.
func TestAWaitingProcessThatCannotBeUsedIsNotTold(t *testing.T) {
	t.Parallel()
	const result = `echo '{"type":"item.completed","item":{"type":"agent_message","text":"done"}}'; echo '` + codexDone + `'`
	for _, c := range []struct {
		name, script string
		ready        func(*Waiting, lab) func() bool
		change       func(*Task)
		told         bool
	}{
		{"control", awaits, nil, nil, true},
		{"it has ended", "echo here > started.txt", over, nil, false},
		{"it has told a result", result + "; " + awaits, over, nil, false},
		{"it has told anything", "echo noise; " + awaits, over, nil, false},
		{"another directory", awaits, nil, func(t *Task) { t.Dir = t.Home }, false},
		{"another model", awaits, nil, func(t *Task) { t.Model = "another" }, false},
		{"other arguments", awaits, nil, func(t *Task) { t.Args = []string{"-c", "model_reasoning_effort=low"} }, false},
		{"another gateway", awaits, nil, func(t *Task) { t.Gateway.Nonce = "another" }, false},
		{"no prompt", awaits, nil, func(t *Task) { t.Prompt = " " }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, sandbox.Auto)
			w := l.start(t, "codex", Options{Program: standIn(t, "codex", c.script)})
			ready := l.has("started.txt")
			if c.ready != nil {
				ready = c.ready(w, l)
			}
			comes(t, "the process", ready)
			task := l.task
			if c.change != nil {
				c.change(&task)
			}
			o, told, err := w.Run(t.Context(), task, nil)
			if told != c.told || err != nil || told && o.Kind != OK {
				t.Errorf("told %v, %v: %+v", told, err, o)
			}
			if prompt := l.read(t, "prompt.txt"); !c.told && strings.Contains(prompt, "Fix") {
				t.Errorf("it was told %q", prompt)
			}
			if procs := alive("", l.task.Dir); len(procs) != 0 {
				t.Errorf("left: %v", procs)
			}
		})
	}
}

func over(w *Waiting, _ lab) func() bool {
	return func() bool {
		select {
		case <-w.over:
			return true
		default:
			return false
		}
	}
}

// INV-7: the time limit of a call is that of the call, and a cancel ends it.
func TestAProcessThatWaitedIsBoundLikeAnyOther(t *testing.T) {
	t.Parallel()
	program := standIn(t, "codex", "echo here > started.txt; cat > prompt.txt; echo told > told.txt; sleep 3600")
	for _, cancelled := range []bool{false, true} {
		l := newLab(t, sandbox.Auto)
		w := l.start(t, "codex", Options{Program: program})
		comes(t, "the process", l.has("started.txt"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		want := "it was ended after"
		l.task.Timeout = 500 * time.Millisecond
		if cancelled {
			l.task.Timeout, want = time.Hour, "it was stopped before it had told a result"
			go func() {
				for began := l.has("told.txt"); !began() && t.Context().Err() == nil; {
					time.Sleep(5 * time.Millisecond)
				}
				cancel()
			}()
		}
		o, told, err := w.Run(ctx, l.task, nil)
		if err != nil || !told || o.Kind != Timeout || !strings.HasPrefix(o.Detail, want) || len(alive("", l.task.Dir)) != 0 {
			t.Errorf("cancelled %v: told %v, %v: %+v", cancelled, told, err, o)
		}
	}
}

// Whoever takes its prompt in another way, or is not known to wait for it, is started when it is needed.
func TestOnlyAgentsThatWaitOnStdinAreStartedAhead(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Off)
	starts := map[string]bool{"claude-code": true, "codex": true, "anthropic": true, "openai": true}
	for _, name := range Names() {
		a, err := New(name, Options{Runner: l.box, Command: []string{"true"}, Plan: []byte("ticks: [[]]")})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := a.(Starter); ok != starts[name] {
			t.Errorf("%s: %v", name, ok)
		}
	}
}
