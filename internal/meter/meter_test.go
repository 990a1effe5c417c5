package meter

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/money"
)

const testKey = "the-model-key-of-this-test"

const model = "claude-sonnet-5" // $2 in, $10 out

// start returns a meter in front of upstream.
func start(t *testing.T, upstream *httptest.Server, change func(*Config)) *Meter {
	t.Helper()
	cfg := Config{Upstream: upstream.URL, Key: Credential{APIKey, testKey}, Ceiling: 5 * money.Dollar, Transport: upstream.Client().Transport}
	if change != nil {
		change(&cfg)
	}
	m, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func server(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func body(model string, maxTokens int) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":%d,"stream":true,"messages":[{"role":"user","content":"hello"}]}`, model, maxTokens)
}

// post sends a request as an agent does and returns the status and what came.
func post(t *testing.T, m *Meter, path, body string, headers ...string) (int, string) {
	t.Helper()
	ep := m.Endpoint()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ep.BaseURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", ep.Nonce)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return do(t, req)
}

func do(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body) // a torn answer is some tests' subject
	return resp.StatusCode, string(b)
}

func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var t struct{ Type string }
		_ = json.Unmarshal([]byte(e), &t)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", t.Type, e)
	}
	return b.String()
}

const (
	evStart = `{"type":"message_start","message":{"usage":{"input_tokens":100,"cache_read_input_tokens":1000,"cache_creation_input_tokens":20,"output_tokens":1}}}`
	evText  = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"he said \"usage\": {\"output_tokens\": 999999}"}}`
	evDelta = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":50}}`
	evStop  = `{"type":"message_stop"}`
)

func stream(w http.ResponseWriter, s string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, s)
}

func TestACallIsPricedByTheUsageThatTheStreamReports(t *testing.T) {
	t.Parallel()
	up := server(t, func(w http.ResponseWriter, r *http.Request) { stream(w, sse(evStart, evText, evDelta, evStop)) })
	m := start(t, up, nil)
	m.SetTick(3, "agent")
	status, got := post(t, m, "/v1/messages?beta=true", body(model, 1000))
	if status != 200 || got != sse(evStart, evText, evDelta, evStop) {
		t.Fatalf("status %d, body %q", status, got)
	}
	// 100×2 + 1000×0.2 + 20×2.5 + 50×10 dollars per million
	want := money.USD(200_000 + 200_000 + 50_000 + 500_000)
	calls := booked(t, m).Calls()
	if len(calls) != 1 {
		t.Fatalf("calls: %+v", calls)
	}
	got1 := calls[0]
	got1.Started, got1.Millis, got1.Reserved = time.Time{}, 0, 0
	if diff := cmp.Diff(Call{Tick: 3, Purpose: "agent", Model: model, Status: 200, Input: 100, Output: 50,
		CacheRead: 1000, CacheWrite: 20, CostUSD: want, Priced: PricedUsage}, got1); diff != "" {
		t.Error(diff)
	}
	if booked(t, m).Spent() != want || booked(t, m).Left() != 5*money.Dollar-want || m.Exhausted() {
		t.Errorf("spent %s, left %s, exhausted %v", booked(t, m).Spent(), booked(t, m).Left(), m.Exhausted())
	}
}

// INV-36: the same stream costs the same however it travels.
func TestTheWayAStreamTravelsDoesNotChangeItsPrice(t *testing.T) {
	t.Parallel()
	text := sse(evStart, evText, evDelta, evStop)
	plain := `{"type":"message","usage":{"input_tokens":100,"cache_read_input_tokens":1000,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":0},"output_tokens":50}}`
	want := money.USD(950_000)
	for name, h := range map[string]http.HandlerFunc{
		"chunked, one byte at a time": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			for i := range len(text) {
				_, _ = w.Write([]byte{text[i]})
				if i%97 == 0 {
					_ = http.NewResponseController(w).Flush()
				}
			}
		},
		"with a length": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			stream(w, text)
		},
		"CRLF":          func(w http.ResponseWriter, r *http.Request) { stream(w, strings.ReplaceAll(text, "\n", "\r\n")) },
		"no last blank": func(w http.ResponseWriter, r *http.Request) { stream(w, strings.TrimRight(text, "\n")+"\n") },
		"in one piece": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, plain)
		},
		"gzip unasked": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, text)
			_ = z.Close()
		},
		"a 2 MiB line in it": func(w http.ResponseWriter, r *http.Request) {
			big := `{"type":"content_block_delta","delta":{"text":"` + strings.Repeat("y", 2<<20) + `"}}`
			stream(w, sse(evStart, big, evDelta, evStop))
		},
		"compacted in two passes": func(w http.ResponseWriter, r *http.Request) {
			stream(w, sse(evStart, `{"type":"message_delta","usage":{"output_tokens":20,"iterations":[{"input_tokens":50,"output_tokens":30},{"input_tokens":50,"output_tokens":20}]}}`))
		},
	} {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("INV-36 %s, HTTP/2 %v", name, h2), func(t *testing.T) {
				t.Parallel()
				var proto string
				up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { proto = r.Proto; h(w, r) }))
				up.EnableHTTP2 = h2
				up.StartTLS()
				t.Cleanup(up.Close)
				m := start(t, up, nil)
				if status, _ := post(t, m, "/v1/messages", body(model, 1000)); status != 200 {
					t.Fatalf("status %d", status)
				}
				if booked(t, m).Spent() != want {
					t.Errorf("spent %s, want %s: %+v", booked(t, m).Spent().Decimal(), want.Decimal(), booked(t, m).Calls())
				}
				if (proto == "HTTP/2.0") != h2 {
					t.Errorf("travelled by %s", proto)
				}
			})
		}
	}
}

func TestAClientThatLeavesIsChargedAndItsCallEnded(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	up := server(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		stream(w, sse(evStart))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
	})
	settled := make(chan Call, 1)
	m := start(t, up, func(c *Config) { c.OnCall = func(c Call) { settled <- c } })
	ctx, cancel := context.WithCancel(t.Context())
	ep := m.Endpoint()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, ep.BaseURL+"/v1/messages", strings.NewReader(body(model, 1000)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+ep.Nonce)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	// The first event arrives while the provider is still at work: streams are flushed at once.
	if n, err := io.ReadFull(resp.Body, make([]byte, len(sse(evStart)))); err != nil {
		t.Fatalf("read %d bytes: %v", n, err)
	}
	cancel()
	_ = resp.Body.Close()
	<-ended
	if c := <-settled; c.Priced != PricedReserved || c.Input != 100 || c.CostUSD < 10_000_000 {
		t.Errorf("%+v", c)
	}
}

func TestClosingBooksTheCallsInFlight(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	up := server(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client has gone
		close(arrived)
		<-r.Context().Done()
	})
	m := start(t, up, nil)
	done := make(chan struct{})
	go func() { defer close(done); post(t, m, "/v1/messages", body(model, 1000)) }()
	<-arrived
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
	if booked(t, m).Spent() == 0 || len(booked(t, m).Calls()) != 1 {
		t.Errorf("spent %s in %d calls", booked(t, m).Spent(), len(booked(t, m).Calls()))
	}
}

// INV-33, INV-34: nothing that is written anywhere holds the key, the nonce or what was said.
func TestTheLogHoldsNoKeyNoncePayloadOrControlBytes(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	up := server(t, func(w http.ResponseWriter, r *http.Request) { stream(w, sse(evStart, evText, evDelta)) })
	m := start(t, up, func(c *Config) {
		c.Log, c.AllowUnpriced = slog.New(slog.NewTextHandler(&log, nil)), []string{"evil\n::set-output name=x::\u001b[31m"}
	})
	post(t, m, "/v1/messages", body(model, 100))
	post(t, m, "/v1/messages", strings.ReplaceAll(body("evil", 100), "evil", `evil\n::set-output name=x::\u001b[31m`))
	for _, bad := range []string{testKey, m.Endpoint().Nonce, "hello", "he said", "\x1b", "\n::"} {
		if strings.Contains(log.String(), bad) {
			t.Errorf("the log holds %q: %s", bad, log.String())
		}
	}
	if strings.Count(log.String(), "model call") != 2 {
		t.Errorf("want one line per call: %s", log.String())
	}
	if s := fmt.Sprintf("%v %+v", m.cfg.Key, m.cfg); strings.Contains(s, testKey) {
		t.Error("printing the configuration shows the key")
	}
}

func TestASubscriptionTokenGoesAsBearer(t *testing.T) {
	t.Parallel()
	var h http.Header
	up := server(t, func(w http.ResponseWriter, r *http.Request) { h = r.Header; stream(w, sse(evStart, evDelta)) })
	m := start(t, up, func(c *Config) { c.Key = Credential{Bearer, "a-token"} })
	post(t, m, "/v1/messages", body(model, 10), "Anthropic-Beta", "x")
	if h.Get("Authorization") != "Bearer a-token" || h.Get("X-Api-Key") != "" || h.Get("Anthropic-Beta") != "x,"+oauthBeta {
		t.Errorf("%v", h)
	}
}

func TestStartNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, upstream, key, want string }{
		{"no key", "https://api.example.com", "", "no model key"},
		{"clear text", "http://api.example.com", "k", "use https"},
		{"no host", "api.example.com", "k", "want https://host"},
		{"a password in it", "https://u:p@api.example.com", "k", "leave out user"},
		{"another scheme", "file:///etc/passwd", "k", "want https://host"},
	} {
		_, err := Start(t.Context(), Config{Upstream: c.upstream, Key: Credential{APIKey, c.key}})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestABasePathIsKept(t *testing.T) {
	t.Parallel()
	var path string
	up := server(t, func(w http.ResponseWriter, r *http.Request) { path = r.URL.String(); stream(w, sse(evStart, evDelta)) })
	m := start(t, up, func(c *Config) { c.Upstream = up.URL + "/gateway/anthropic/" })
	post(t, m, "/v1/messages?beta=true&x=1", body(model, 10))
	if path != "/gateway/anthropic/v1/messages?beta=true" {
		t.Errorf("path %s", path)
	}
}

// booked waits until every answered call is booked: a client has its answer a moment earlier.
func booked(t *testing.T, m *Meter) *Meter {
	t.Helper()
	ctx, done := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer done()
	if err := m.Quiet(ctx); err != nil {
		t.Fatal(err)
	}
	return m
}
