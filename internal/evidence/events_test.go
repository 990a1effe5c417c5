package evidence

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/money"
)

func fixedNow() time.Time { return began }

func TestAnEventIsOneFlushedLineWithFixedKeys(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var told []Event
	e := NewEvents(&out, fixedNow, NewRedactor("canary-secret-1"), func(ev Event) { told = append(told, ev) })
	e.Emit(GateEnded, 2, slog.String(KeyGate, "unit\n::error::canary-secret-1"), slog.Int(KeyExit, 1), slog.Duration(KeyMillis, 1500*time.Millisecond), Cost(KeyCost, 1500))
	e.Emit(Note, 0, slog.String(KeyNote, strings.Repeat("é", 400)), slog.Bool(KeyApproved, true))
	want := `{"time":"2026-03-04T10:00:00Z","seq":1,"kind":"gate.ended","tick":2,"gate":"unit\n::error::[redacted]","exit":1,"ms":1500,"cost_usd":0.0000015}` + "\n" +
		`{"time":"2026-03-04T10:00:00Z","seq":2,"kind":"note","note":"` + strings.Repeat("é", 250) + `","approved":true}` + "\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, line := range lines {
		got, err := DecodeEvent([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(told[i], got); d != "" {
			t.Errorf("-told +read:\n%s", d)
		}
	}
	if ev := told[0]; ev.Int(KeyExit) != 1 || ev.USD(KeyCost) != 1500 || ev.Text(KeyExit) != "" {
		t.Errorf("fields: %+v", ev.Fields)
	}
	if err := e.Err(); err != nil {
		t.Error(err)
	}
}

func TestAnUnknownKeyOrKindOfValueIsLeftOutAndTold(t *testing.T) {
	t.Parallel()
	for _, a := range []slog.Attr{slog.String("prompt", "all of it"), slog.Any(KeyNote, []string{"a"}), slog.String("time", "now"), slog.Float64(KeyCost, 0.1)} {
		var out bytes.Buffer
		e := NewEvents(&out, fixedNow, nil, nil)
		e.Emit(Note, 0, a)
		if e.Err() == nil || !strings.HasSuffix(out.String(), `"kind":"note"}`+"\n") {
			t.Errorf("%v: %v, %s", a, e.Err(), out.String())
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAFullDiskStopsNoRun(t *testing.T) {
	t.Parallel()
	told := 0
	e := NewEvents(brokenWriter{}, fixedNow, nil, func(Event) { told++ })
	e.Emit(Note, 0)
	e.Emit(Note, 0)
	if told != 2 || e.Close() == nil || !strings.Contains(e.Err().Error(), "no space left") {
		t.Errorf("told %d, %v", told, e.Err())
	}
	var none *Events
	none.Emit(Note, 0)
	if none.Close() != nil {
		t.Error("nil Events failed")
	}
}

func TestEventsOfManyGoroutinesStayWholeAndInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, err := CreateEvents(dir, fixedNow, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				e.Emit(ModelCall, 1, slog.String(KeyModel, "m"), Cost(KeyCost, 7))
			}
		})
	}
	wg.Wait()
	e.Emit(RunEnded, 0)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	var p Progress
	n := int64(0)
	for ev, err := range Tail(t.Context(), dir, func(context.Context) error { t.Error("waited after the last event"); return io.EOF }) {
		if n++; err != nil || ev.Seq != n {
			t.Fatalf("event %d: %+v, %v", n, ev, err)
		}
		p.Apply(ev)
	}
	if n != 401 || p.Cost != 2800 || p.Calls != 400 {
		t.Errorf("%d events, %d calls, %s", n, p.Calls, p.Cost.Decimal())
	}
}

func TestTailWaitsForHalfALineAndGoesOnAfterABrokenOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), EventsFile)
	line := func(kind string) string { return `{"time":"2026-03-04T10:00:00Z","seq":1,"kind":"` + kind + `"}` }
	add := func(s string) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		io.WriteString(f, s)
	}
	whole := line("note")
	pieces := []string{whole[:10], whole[10:], "\nnot an event\n", strings.Repeat("y", maxLine+5000) + "\n" + line("new.kind") + "\n", line(string(RunEnded)) + "\n"}
	add(line("tick.started") + "\n")
	var got []string
	for ev, err := range Tail(t.Context(), path, func(context.Context) error {
		if len(pieces) == 0 {
			return io.EOF
		}
		add(pieces[0])
		pieces = pieces[1:]
		return nil
	}) {
		if err != nil {
			got = append(got, "error")
			continue
		}
		got = append(got, string(ev.Kind))
	}
	if d := cmp.Diff([]string{"tick.started", "note", "error", "error", "new.kind", "run.ended"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	stop := errors.New("stop")
	for _, err := range Tail(t.Context(), t.TempDir(), func(context.Context) error { return stop }) {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("missing file: %v", err)
		}
	}
}

func TestProgressTellsTheStagesAsTheyAre(t *testing.T) {
	t.Parallel()
	var p Progress
	e := NewEvents(io.Discard, fixedNow, nil, p.Apply)
	e.Emit(RunStarted, 0, slog.String(KeyRun, "run-42-1"), slog.String(KeyRunURL, "https://git.example/octo/shop/actions/runs/77"), slog.String(KeyRepo, "octo/shop"),
		slog.Int(KeyIssue, 42), slog.String(KeyActor, "maria"), slog.String(KeyAgent, "script"), slog.Int(KeyMaxTicks, 10), Cost(KeyMaxCost, 5*money.Dollar))
	gate := func(tick int, class, where, status string) {
		a := []slog.Attr{slog.String(KeyClass, class), slog.String(KeyGate, class), slog.String(KeyWhere, where)}
		e.Emit(GateStarted, tick, a...)
		if status != "" {
			e.Emit(GateEnded, tick, append(a, slog.String(KeyStatus, status))...)
		}
	}
	gate(0, "iteration", "base", "passed")
	gate(0, "acceptance", "base", "failed")
	for tick, last := range []string{"failed", ""} {
		n := tick + 1
		e.Emit(TickStarted, n)
		e.Emit(AgentEvent, n, slog.String(KeyTool, "Edit"))
		e.Emit(ModelCall, n, Cost(KeyCost, 10_000_000))
		e.Emit(AgentEnded, n, slog.String(KeyOutcome, "ok"))
		e.Emit(Snapshot, n, slog.String(KeyCommit, hexid("1", 40)), slog.Int(KeyFiles, 2))
		e.Emit(Guard, n, slog.String(KeyLevel, ""))
		gate(n, "iteration", "gate", "passed")
		e.Emit(ReviewEvent, n, slog.Bool(KeyApproved, true))
		e.Emit(ProofStarted, n, slog.String(KeyCommit, hexid("1", 40)))
		gate(n, "acceptance", "proof", last)
		if last != "" {
			e.Emit(TickEnded, n, slog.String(KeyVerdict, "not_accepted"))
		}
	}
	if p.Now != "the acceptance (held out) gate is running on the pristine checkout" || p.Cost != 20_000_000 || len(p.Ticks) != 2 {
		t.Errorf("%+v", p)
	}
	golden(t, "running.md", RunningComment(p, 0))
	for range 500 {
		p.Ticks = append(p.Ticks, p.Ticks[0])
	}
	if s := RunningComment(p, 4000); len(s) > 4000 || !strings.Contains(s, "of 502 ticks") || !strings.Contains(s, "now: the acceptance") {
		t.Errorf("INV-52: %d bytes:\n%s", len(s), s)
	}
}

func TestGateLogsAreRedactedAndSealedGatesLeaveNone(t *testing.T) {
	t.Parallel()
	const secret, output = "canary-secret-1", "12 tests\nleak canary-secret-1\n"
	dir := t.TempDir()
	name, err := SaveGateLog(dir, 3, Gate{Class: "iteration", Name: "npm test/../x", Where: "gate"}, []byte(output), NewRedactor(secret))
	if err != nil || !logShape.MatchString(name) {
		t.Fatalf("%q, %v", name, err)
	}
	read := func(name string) string {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := read(name); got != strings.ReplaceAll(output, secret, Redacted) {
		t.Errorf("INV-34: %q", got)
	}
	name, err = SaveGateLog(dir, 4, Gate{Class: "iteration", Name: "x", Where: "gate"}, []byte(output), nil)
	if err != nil || read(name) != output {
		t.Errorf("control: %q, %v", name, err)
	}
	before, _ := os.ReadDir(dir)
	for _, g := range []Gate{
		{Class: "acceptance", Where: "proof"}, {Class: "iteration", Where: "proof"}, {Class: "setup", Where: "proof"}, {Class: "acceptance", Where: "base"}, {Class: "setup", Where: "base"},
	} {
		if name, err := SaveGateLog(dir, 5, g, []byte("sealed words"), nil); name != "" || err != nil {
			t.Errorf("INV-27: %+v left %q, %v", g, name, err)
		}
	}
	if after, _ := os.ReadDir(dir); len(after) != len(before) {
		t.Errorf("INV-27: a sealed gate left a file: %v", after)
	}
}

func FuzzEventLines(f *testing.F) {
	f.Add([]byte(`{"time":"2026-03-04T10:00:00Z","seq":1,"kind":"note","tick":1,"note":"x"}`))
	f.Add([]byte(`{"time":1,"kind":[],"tick":"x"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, line []byte) {
		ev, err := DecodeEvent(line)
		if err == nil && (ev.Kind == "" || ev.Time.IsZero() && !bytes.Contains(line, []byte("0001"))) {
			t.Errorf("%q decoded to %+v", line, ev)
		}
		var p Progress
		p.Apply(ev)
		RunningComment(p, 2000)
	})
}

// What started a run is said where no account did: while it goes on, at its end, and in the pull request.
func TestARunThatNobodyAskedForSaysWhatStartedIt(t *testing.T) {
	t.Parallel()
	const cause = "CI failed for commit 1111 of pull request 7"
	var p Progress
	NewEvents(io.Discard, fixedNow, nil, p.Apply).Emit(RunStarted, 0, slog.String(KeyRun, "run-42-2"), slog.String(KeyActor, "maria"), slog.String(KeyCause, cause))
	if s := RunningComment(p, 0); !strings.Contains(s, "since "+cause+", on the account of `maria`") || strings.Contains(s, "asked for by") {
		t.Errorf("%s", s)
	}
	r := sample()
	r.Trigger.Actor = "maria"
	views := func() map[string]string {
		return map[string]string{"status": StatusComment(r, 0), "PR": PRBody(r, 0)}
	}
	for view, s := range views() {
		if strings.Contains(s, "since ") {
			t.Errorf("control: %s:\n%s", view, s)
		}
	}
	r.Trigger.Cause = cause
	for view, s := range views() {
		if !strings.Contains(s, cause) || strings.Contains(s, "Asked by") {
			t.Errorf("%s:\n%s", view, s)
		}
	}
}
