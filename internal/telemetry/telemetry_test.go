package telemetry

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/money"
)

// got is a span as a collector receives it.
type got struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	StartTimeUnixNano, EndTimeUnixNano  string
	Attributes                          []struct {
		Key   string
		Value map[string]any
	}
	Status struct {
		Code    int
		Message string
	}
}

// collector takes OTLP over HTTP on loopback.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []got
	bodies  string
	headers []http.Header
	status  int
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{status: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var in struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []got }
			}
		}
		if err := json.Unmarshal(body, &in); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies += string(body)
		c.headers = append(c.headers, r.Header.Clone())
		for _, rs := range in.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
		w.WriteHeader(c.status)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(c.Close)
	return c
}

// tree names each span by the path to it.
func (c *collector) tree(t *testing.T) map[string]got {
	t.Helper()
	byID := map[string]got{}
	for _, s := range c.spans {
		if _, twice := byID[s.SpanID]; twice || len(s.SpanID) != 16 || len(s.TraceID) != 32 || s.TraceID != c.spans[0].TraceID {
			t.Errorf("ids of %+v", s)
		}
		if s.StartTimeUnixNano > s.EndTimeUnixNano {
			t.Errorf("%s ends before it starts", s.Name)
		}
		byID[s.SpanID] = s
	}
	out := map[string]got{}
	for _, s := range c.spans {
		path := s.Name
		for p := s; p.ParentSpanID != ""; path = p.Name + " > " + path {
			parent, ok := byID[p.ParentSpanID]
			if !ok {
				t.Fatalf("the parent of %s was never sent", p.Name)
			}
			p = parent
		}
		out[path] = s
	}
	return out
}

func (s got) attribute(key string) any {
	for _, a := range s.Attributes {
		if a.Key == key {
			for _, v := range a.Value {
				return v
			}
		}
	}
	return nil
}

// story emits the events of a run with two ticks, the second of which never ends.
func story(e *evidence.Events) {
	gate := func(kind evidence.Kind, tick int, name, where string, more ...slog.Attr) {
		e.Emit(kind, tick, append([]slog.Attr{slog.String(evidence.KeyClass, "iteration"), slog.String(evidence.KeyGate, name), slog.String(evidence.KeyWhere, where)}, more...)...)
	}
	passed, failed := slog.String(evidence.KeyStatus, "passed"), slog.String(evidence.KeyStatus, "failed")
	call := func(tick int, purpose, model string, status int) {
		e.Emit(evidence.ModelCall, tick, slog.String(evidence.KeyPurpose, purpose), slog.String(evidence.KeyModel, model), slog.Int(evidence.KeyStatus, status), slog.Int(evidence.KeyInput, 100),
			slog.Int(evidence.KeyOutput, 20), slog.Int(evidence.KeyCacheRead, 7), slog.Int(evidence.KeyCacheWrite, 3), evidence.Cost(evidence.KeyCost, money.Dollar/4), slog.Int(evidence.KeyMillis, 500))
	}
	e.Emit(evidence.RunStarted, 0, slog.String(evidence.KeyRun, "run-1"), slog.String(evidence.KeyRepo, "o/r"), slog.String(evidence.KeyActor, "maya"))
	gate(evidence.GateStarted, 0, "unit", "base")
	gate(evidence.GateEnded, 0, "unit", "base", failed)
	e.Emit(evidence.TickStarted, 1)
	e.Emit(evidence.AgentStarted, 1, slog.String(evidence.KeyAgent, "anthropic"), slog.String(evidence.KeyModel, "claude-x"))
	e.Emit(evidence.AgentEvent, 1, slog.String(evidence.KeyEvent, "tool"), slog.String(evidence.KeyTool, "TOOLNAME"))
	call(1, "agent", "claude-x", 200)
	call(1, "agent", "gpt-x", 529)
	e.Emit(evidence.AgentEnded, 1, slog.String(evidence.KeyOutcome, "limit_rate"), slog.Int(evidence.KeyTurns, 2))
	gate(evidence.GateStarted, 1, "unit", "gate")
	gate(evidence.GateEnded, 1, "unit", "gate", passed)
	call(1, "review", "claude-y", 200)
	e.Emit(evidence.ReviewEvent, 1, slog.Bool(evidence.KeyApproved, true))
	e.Emit(evidence.ProofStarted, 1, slog.String(evidence.KeyCommit, "c1"))
	gate(evidence.GateStarted, 1, "held", "proof")
	gate(evidence.GateEnded, 1, "held", "proof", passed)
	e.Emit(evidence.ProofEnded, 1, passed)
	e.Emit(evidence.Note, 1, slog.String(evidence.KeyNote, "NOTETEXT"))
	e.Emit(evidence.TickEnded, 1, slog.String(evidence.KeyVerdict, "no_change"))
	e.Emit(evidence.TickStarted, 2)
	e.Emit(evidence.AgentStarted, 2, slog.String(evidence.KeyAgent, "anthropic"))
	e.Emit(evidence.Ended, 0, slog.String(evidence.KeyTerminal, "cancelled"), slog.Int(evidence.KeyExitCode, 130), slog.String(evidence.KeyReason, "REASONTEXT"))
}

func play(t *testing.T, c Config) error {
	t.Helper()
	tr, err := New(c, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	story(evidence.NewEvents(io.Discard, clock, nil, tr.Apply))
	ctx, done := context.WithTimeout(t.Context(), 10*time.Second)
	defer done()
	return tr.Close(ctx, clock())
}

func TestARunIsATreeOfSpans(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	config, err := FromEnvironment(func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL + "/", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20tok, x-tenant=a"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := play(t, config); err != nil {
		t.Fatal(err)
	}
	tree := c.tree(t)
	want := []string{
		"proctor run", "proctor run > gate unit",
		"proctor run > tick 1", "proctor run > tick 1 > invoke_agent anthropic",
		"proctor run > tick 1 > invoke_agent anthropic > chat claude-x", "proctor run > tick 1 > invoke_agent anthropic > chat gpt-x",
		"proctor run > tick 1 > gate unit", "proctor run > tick 1 > review", "proctor run > tick 1 > review > chat claude-y",
		"proctor run > tick 1 > proof", "proctor run > tick 1 > proof > gate held",
		"proctor run > tick 2", "proctor run > tick 2 > invoke_agent anthropic",
	}
	for _, path := range want {
		if _, ok := tree[path]; !ok {
			t.Errorf("there is no span %q", path)
		}
	}
	if len(c.spans) != len(want) {
		t.Errorf("%d spans, want %d", len(c.spans), len(want))
	}
	chat := tree["proctor run > tick 1 > invoke_agent anthropic > chat claude-x"]
	told := map[string]any{}
	for _, key := range []string{"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens", "proctor.cost_usd"} {
		told[key] = chat.attribute(key)
	}
	if diff := cmp.Diff(map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-x", "gen_ai.usage.input_tokens": "110",
		"gen_ai.usage.output_tokens": "20", "gen_ai.usage.cache_read.input_tokens": "7", "proctor.cost_usd": 0.25,
	}, told); diff != "" || chat.Kind != kindClient || chat.Status.Code != 0 {
		t.Errorf("%s %+v", diff, chat)
	}
	if s := tree["proctor run > tick 1 > invoke_agent anthropic > chat gpt-x"]; s.Status.Code != codeError || s.attribute("error.type") != "529" || s.attribute("gen_ai.provider.name") != "openai" {
		t.Errorf("%+v", s)
	}
	if s := tree["proctor run"]; s.Status.Message != "cancelled" || s.attribute("proctor.run") != "run-1" {
		t.Errorf("%+v", s)
	}
	for _, h := range c.headers {
		if h.Get("Authorization") != "Bearer tok" || h.Get("X-Tenant") != "a" || h.Get("Content-Type") != "application/json" {
			t.Errorf("%v", h)
		}
	}
	if len(c.headers) != 2 {
		t.Errorf("%d requests: one after the tick, one at the end", len(c.headers))
	}
	// No text: not a note's, not a reason's, no tool's, nobody's name. The control is what is there by name.
	for _, word := range []string{"NOTETEXT", "REASONTEXT", "TOOLNAME", "maya"} {
		if strings.Contains(c.bodies, word) {
			t.Errorf("a span carries %s", word)
		}
	}
	if !strings.Contains(c.bodies, "run-1") {
		t.Error("the control is missing")
	}
}

func TestACollectorThatFailsIsToldAndNothingMore(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	c.status = http.StatusServiceUnavailable
	if err := play(t, Config{Endpoint: c.URL + "/v1/traces", Headers: map[string]string{"Authorization": "Bearer tok"}}); err == nil || !strings.Contains(err.Error(), "HTTP 503") || strings.Contains(err.Error(), "tok") {
		t.Errorf("%v", err)
	}
	gone := newCollector(t)
	at := gone.URL + "/v1/traces?key=sesame"
	gone.Close()
	if err := play(t, Config{Endpoint: at}); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("%v", err)
	}
	// One that never answers does not hold the end up beyond its context.
	stuck := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	t.Cleanup(func() { close(stuck); slow.Close() })
	tr, err := New(Config{Endpoint: slow.URL}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	story(evidence.NewEvents(io.Discard, time.Now, nil, tr.Apply))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tr.Close(ctx, time.Now()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A redirect would take the headers to whoever it names.
func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	other := newCollector(t)
	s := httptest.NewServer(http.RedirectHandler(other.URL+"/v1/traces", http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	if err := play(t, Config{Endpoint: s.URL, Headers: map[string]string{"X-Key": "k"}}); err == nil || len(other.headers) != 0 {
		t.Errorf("%v, and the other got %d requests", err, len(other.headers))
	}
}

func TestTracesAreOffUnlessAnEndpointIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env      map[string]string
		endpoint string
		wrong    string
	}{
		{map[string]string{}, "", ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, "", ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, "", ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "http://c:4318/v1/traces", ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://d/in"}, "https://d/in", ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", "grpc"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "c:4318"}, "", "http or https URL"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://u:p@c"}, "", "password"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "secret"}, "", "name=value"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "a=b%0d%0ac"}, "", "name=value"},
	} {
		got, err := FromEnvironment(func(n string) string { return c.env[n] })
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v: %v", c.env, err)
			}
		case err != nil || got.Endpoint != c.endpoint:
			t.Errorf("%v: %+v %v", c.env, got, err)
		}
	}
	if tr, err := New(Config{}, rand.Reader); tr != nil || err != nil {
		t.Errorf("%v %v", tr, err)
	}
	var none *Tracer
	none.Apply(evidence.Event{Kind: evidence.TickEnded})
	if err := none.Close(t.Context(), time.Now()); err != nil {
		t.Error(err)
	}
}
