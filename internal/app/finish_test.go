package app

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/loop"
)

// quiet is a session at its begin, with nothing outside this process but the directory of its reports.
func quiet(t *testing.T, getenv func(string) string) *session {
	t.Helper()
	s := &session{log: slog.New(slog.DiscardHandler)}
	s.env.Now, s.env.Getenv, s.env.Random = time.Now, getenv, constant{}
	s.req.reports = filepath.Join(t.TempDir(), "reports")
	s.begin()
	return s
}

type constant struct{}

func (constant) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 7
	}
	return len(b), nil
}

// A collector may take all the time there is; what others wait for is given back before it is asked.
func TestTheRunIsOverBeforeTheTraceIsWaitedFor(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var asked, early atomic.Int32
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		if _, err := os.Stat(dir); err == nil {
			early.Add(1)
		}
	}))
	defer collector.Close()
	s := quiet(t, func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}[name]
	})
	s.dir = dir // its end is the end of release
	s.emit(evidence.RunStarted, 0)
	s.finish(t.Context(), refused("there is nothing to do", ""))
	if asked.Load() == 0 || early.Load() != 0 {
		t.Errorf("the collector was asked %d times, %d of them before the run was over", asked.Load(), early.Load())
	}
}

// INV-9, INV-11: a cancel at any time leaves a run its last words, and nothing else hurries them.
func TestACancelHurriesTheLastWords(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	calm, done := lastly(ctx, time.Hour, 0)
	defer done()
	if calm.Err() != nil {
		t.Error("nobody was in a hurry")
	}
	patient, done := lastly(ctx, time.Hour, time.Hour)
	defer done()
	cancel()
	<-calm.Done()
	late, done := lastly(ctx, time.Hour, 0)
	defer done()
	<-late.Done()
	if patient.Err() != nil {
		t.Error("a cancel left no time for last words")
	}
}

// What the egress proxy tells meanwhile is not lost; run with -race it is no race either.
func TestWhatIsToldWhileTheStateIsReadIsNotLost(t *testing.T) {
	t.Parallel()
	s := quiet(t, func(string) string { return "" })
	const events = 2000
	var heard atomic.Int32
	s.req.watch = func(e evidence.Event) { heard.Add(1) }
	s.saved.State.Version, s.saved.Goal = loop.StateVersion, "another text" // so that there is something to note
	told := make(chan struct{})
	go func() {
		defer close(told)
		for range events {
			s.emit(evidence.EgressEvent, 1)
		}
	}()
	for going := true; going; {
		select {
		case <-told:
			going = false
		default:
			_ = s.begun0()
		}
	}
	if n := heard.Load(); n != events || len(s.rec.Notes) != 0 {
		t.Errorf("%d of %d events were heard; notes %q", n, events, s.rec.Notes)
	}
	s.begun() // control: it has something to say
	if len(s.rec.Notes) != 1 {
		t.Errorf("notes %q", s.rec.Notes)
	}
}
