package meter

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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
	calls := m.Calls()
	if len(calls) != 1 {
		t.Fatalf("calls: %+v", calls)
	}
	got1 := calls[0]
	got1.Started, got1.Millis, got1.Reserved = time.Time{}, 0, 0
	if diff := cmp.Diff(Call{Tick: 3, Purpose: "agent", Model: model, Status: 200, Input: 100, Output: 50,
		CacheRead: 1000, CacheWrite: 20, CostUSD: want, Priced: PricedUsage}, got1); diff != "" {
		t.Error(diff)
	}
	if m.Spent() != want || m.Left() != 5*money.Dollar-want || m.Exhausted() {
		t.Errorf("spent %s, left %s, exhausted %v", m.Spent(), m.Left(), m.Exhausted())
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
				if m.Spent() != want {
					t.Errorf("spent %s, want %s: %+v", m.Spent().Decimal(), want.Decimal(), m.Calls())
				}
				if (proto == "HTTP/2.0") != h2 {
					t.Errorf("travelled by %s", proto)
				}
			})
		}
	}
}

// INV-36: no price, no call, unless the run says so. A name that begins like a known one is unknown.
func TestAModelWithoutAPriceIsRefusedUnlessAcknowledged(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude-sonnet-5-turbo", "claude-sonnet", "claude-sonnet-5-2026", "gpt-5", "Claude-Sonnet-5", "claude-sonnet-5 "} {
		var asked int
		up := server(t, func(w http.ResponseWriter, r *http.Request) { asked++; stream(w, sse(evStart, evDelta)) })
		m := start(t, up, nil)
		status, got := post(t, m, "/v1/messages", body(name, 10))
		if status != http.StatusNotFound || asked != 0 || !strings.Contains(got, Mark) || !strings.Contains(got, "no known price") {
			t.Errorf("INV-36 %s: status %d, asked %d, %s", name, status, asked, got)
		}
		if m.Check(name) == nil {
			t.Errorf("INV-36 %s: check finds no fault", name)
		}
		control := start(t, up, func(c *Config) { c.AllowUnpriced = true })
		if status, _ := post(t, control, "/v1/messages", body(name, 10)); status != 200 || asked != 1 {
			t.Errorf("control %s: status %d, asked %d", name, status, asked)
		}
		if c := control.Calls()[0]; c.Priced != PricedUnpriced || c.Output != 50 || control.Spent() != 0 {
			t.Errorf("control %s: %+v", name, c)
		}
		priced := start(t, up, func(c *Config) {
			c.Prices = Embedded().With(Price{Model: name, Rates: Rates{1, 1, 1, 1, 1}, Source: "configuration", Date: "2026-01-01"})
		})
		if status, _ := post(t, priced, "/v1/messages", body(name, 10)); status != 200 {
			t.Errorf("override %s: status %d", name, status)
		}
	}
}

// INV-37, each with the same request let through by its rightful form.
func TestTheMeterServesOnlyItsNoncePathsAndModels(t *testing.T) {
	t.Parallel()
	var asked []*http.Request
	up := server(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r)
		stream(w, sse(evStart, evDelta))
	})
	m := start(t, up, func(c *Config) { c.Models = []string{"claude-sonnet-5", "claude-haiku-4-5-20251001"} })
	ep := m.Endpoint()
	good := body("claude-sonnet-5-20260101", 10)
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		host                     string
		want                     int
	}{
		{name: "no key", headers: []string{"X-Api-Key", ""}, want: 401},
		{name: "a wrong key", headers: []string{"X-Api-Key", "proctor-0000"}, want: 401},
		{name: "the real key", headers: []string{"X-Api-Key", testKey}, want: 401},
		{name: "the nonce with something behind it", headers: []string{"X-Api-Key", ep.Nonce + "0"}, want: 401},
		{name: "the nonce under another scheme", headers: []string{"X-Api-Key", "", "Authorization", "Basic " + ep.Nonce}, want: 401},
		{name: "another host", host: "attacker.example.com", want: 403},
		{name: "a rebound name with the right port", host: fmt.Sprintf("attacker.example.com:%d", ep.Port), want: 403},
		{name: "another path", path: "/v1/files", want: 404},
		{name: "a path that climbs", path: "/v1/messages/../files", want: 404},
		{name: "a path in disguise", path: "/v1/messages%2f..%2ffiles", want: 404},
		{name: "batches", path: "/v1/messages/batches", want: 404},
		{name: "another method", method: http.MethodGet, want: 404},
		{name: "a model off the list", body: body("claude-opus-5", 10), want: 404},
		{name: "another release of a dated entry", body: body("claude-haiku-4-5", 10), want: 404},
		{name: "two models", body: `{"model":"claude-sonnet-5","max_tokens":1,"model":"claude-opus-5"}`, want: 400},
		{name: "two models, one escaped", body: `{"model":"claude-sonnet-5","max_tokens":1,"mod\u0065l":"claude-opus-5"}`, want: 400},
		{name: "a model in other letters only", body: `{"Model":"claude-sonnet-5","max_tokens":1}`, want: 400},
		{name: "further servers", body: `{"model":"claude-sonnet-5","max_tokens":1,"mcp_servers":[{"url":"https://attacker.example.com"}]}`, want: 400},
		{name: "a page to fetch", body: `{"model":"claude-sonnet-5","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://attacker.example.com/?secret"}}]}]}`, want: 400},
		{name: "a page to fetch in a tool's result", body: `{"model":"claude-sonnet-5","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"document","source":{"url":"https://attacker.example.com","type":"\u0075rl"}}]}]}]}`, want: 400},
		{name: "a search at the provider", body: `{"model":"claude-sonnet-5","max_tokens":1,"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, want: 400},
		{name: "a faster, dearer mode", body: `{"model":"claude-sonnet-5","max_tokens":1,"speed":"fast"}`, want: 400},
		{name: "a list", body: `[]`, want: 400},
		{name: "no JSON", body: `{"model":`, want: 400},
		{name: "a compressed request", headers: []string{"Content-Encoding", "gzip"}, want: 415},
	} {
		t.Run("INV-37 "+c.name, func(t *testing.T) {
			before := len(asked)
			method, path, b := c.method, c.path, c.body
			if method == "" {
				method = http.MethodPost
			}
			if path == "" {
				path = "/v1/messages"
			}
			if b == "" {
				b = good
			}
			req, err := http.NewRequestWithContext(t.Context(), method, ep.BaseURL+path, strings.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Api-Key", ep.Nonce)
			for i := 0; i+1 < len(c.headers); i += 2 {
				req.Header.Set(c.headers[i], c.headers[i+1])
			}
			if c.host != "" {
				req.Host = c.host
			}
			status, got := do(t, req)
			if status != c.want || len(asked) != before {
				t.Errorf("status %d, want %d; upstream asked %d times; %s", status, c.want, len(asked)-before, got)
			}
			var answer struct {
				Type  string
				Error struct{ Type, Message string }
			}
			if err := json.Unmarshal([]byte(got), &answer); err != nil || answer.Type != "error" || answer.Error.Message == "" {
				t.Errorf("not an error that the client shows: %s", got)
			}
		})
	}
	for _, h := range [][]string{{"X-Api-Key", ep.Nonce}, {"X-Api-Key", "", "Authorization", "Bearer " + ep.Nonce}} {
		before := len(asked)
		status, got := post(t, m, "/v1/messages", good, append(h, "Cookie", "c=1", "X-Forwarded-For", "10.0.0.1", "Anthropic-Beta", "a,b")...)
		if status != 200 || len(asked) != before+1 {
			t.Fatalf("control: status %d, %s", status, got)
		}
		r := asked[before]
		if r.Header.Get("X-Api-Key") != testKey || r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" ||
			r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Anthropic-Beta") != "a,b" || strings.Contains(fmt.Sprint(r.Header), ep.Nonce) {
			t.Errorf("control: headers sent on: %v", r.Header)
		}
	}
}

// INV-37: a redirect is never followed with the key. The control follows it as a plain client would.
func TestARedirectIsNotFollowedWithTheKey(t *testing.T) {
	t.Parallel()
	var leaked string
	thief := server(t, func(w http.ResponseWriter, r *http.Request) { leaked = r.Header.Get("X-Api-Key") })
	for _, code := range []int{301, 302, 303, 307, 308} {
		up := server(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", thief.URL+"/v1/messages")
			w.WriteHeader(code)
		})
		m := start(t, up, nil)
		for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
			status, got := post(t, m, path, body(model, 10))
			if status != http.StatusBadGateway || leaked != "" || strings.Contains(got, thief.URL) {
				t.Errorf("INV-37 %d %s: status %d, leaked %q, %s", code, path, status, leaked, got)
			}
		}
		if m.Spent() != 0 {
			t.Errorf("INV-37 %d: a redirect cost %s", code, m.Spent())
		}
	}
	up := server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, up.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", testKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if leaked != testKey {
		t.Error("control: a plain client did not carry the key along, so the test shows nothing")
	}
}

// upstream kinds of INV-35.
func reports(kind int, r *rand.Rand, maxTokens int64) string {
	n := r.Int64N(maxTokens + 1)
	switch kind {
	case 0: // truthful
		return sse(`{"type":"message_start","message":{"usage":{"input_tokens":40,"output_tokens":1}}}`, evText,
			fmt.Sprintf(`{"type":"message_delta","usage":{"output_tokens":%d}}`, n), evStop)
	case 1: // late: all at the end
		return sse(`{"type":"message_start","message":{}}`, evText,
			fmt.Sprintf(`{"type":"message_delta","usage":{"input_tokens":40,"output_tokens":%d}}`, n), evStop)
	case 2: // never
		return sse(`{"type":"message_start","message":{}}`, evText, `{"type":"message_delta","delta":{}}`, evStop)
	case 3: // negative
		return sse(evStart, evText, fmt.Sprintf(`{"type":"message_delta","usage":{"output_tokens":-%d}}`, n+1), evStop)
	case 4: // absurd
		return sse(evStart, evText, `{"type":"message_delta","usage":{"output_tokens":9000000000000000000,"cache_read_input_tokens":9000000000000000000}}`, evStop)
	case 5: // absurd beyond integers
		return sse(evStart, `{"type":"message_delta","usage":{"output_tokens":1e300}}`, evStop)
	default: // torn
		return sse(evStart, evText)
	}
}

// INV-35: 100 runs against every kind of usage report, several clients at once. The overshoot is
// compared with the dearest call that the provider ran. The control spends without the ceiling.
func TestOvershootIsAtMostOneCallWhateverUsageIsReported(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 2))
	const maxTokens = 2000
	up := server(t, func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		s := reports(r.IntN(7), r, maxTokens)
		mu.Unlock()
		stream(w, s)
	})
	run := func(ceiling money.USD, reserve Reserve) (m *Meter, refused int) {
		m = start(t, up, func(c *Config) { c.Ceiling, c.Reserve = ceiling, reserve })
		var wg sync.WaitGroup
		var count sync.Mutex
		for range 3 {
			wg.Go(func() {
				for range 12 {
					status, _ := post(t, m, "/v1/messages", body(model, maxTokens))
					if status == http.StatusPaymentRequired {
						count.Lock()
						refused++
						count.Unlock()
						return
					}
				}
			})
		}
		wg.Wait()
		return m, refused
	}
	for i := range 100 {
		ceiling := money.Dollar / 10
		reserve := Reserve{}
		if i%2 == 1 {
			reserve = Reserve{BytesPerToken: 4, MaxOutput: 100} // estimates that are far too low
		}
		m, refused := run(ceiling, reserve)
		var dearest, sum money.USD
		for _, c := range m.Calls() {
			dearest, sum = max(dearest, c.CostUSD), sum.Add(c.CostUSD)
		}
		if sum != m.Spent() {
			t.Fatalf("INV-35 run %d: calls sum to %s, spent is %s", i, sum, m.Spent())
		}
		if over := m.Spent() - ceiling; over > dearest || over > money.Dollar/25 {
			t.Fatalf("INV-35 run %d: %s over the ceiling of %s, the dearest call was %s", i, over, ceiling, dearest)
		}
		if refused != 3 || !m.Exhausted() {
			t.Fatalf("INV-35 run %d: %d clients were stopped, exhausted %v, spent %s in %d calls", i, refused, m.Exhausted(), m.Spent(), len(m.Calls()))
		}
	}
	if control, refused := run(money.Max, Reserve{}); control.Spent() <= money.Dollar/10 || refused != 0 {
		t.Errorf("control: without a ceiling the same load spent %s and %d were refused", control.Spent(), refused)
	}
}

func TestTheRefusalTellsTheAgentWhatToDo(t *testing.T) {
	t.Parallel()
	up := server(t, func(w http.ResponseWriter, r *http.Request) { t.Error("the provider was asked") })
	m := start(t, up, func(c *Config) { c.Ceiling = money.Dollar / 100 })
	status, got := post(t, m, "/v1/messages", body(model, 128000))
	if status != http.StatusPaymentRequired || !strings.Contains(got, "billing_error") || !strings.Contains(got, "$0.0000 of $0.0100") ||
		!strings.Contains(got, "stops.max_cost_usd") || !m.Exhausted() || m.Spent() != 0 {
		t.Errorf("status %d, exhausted %v: %s", status, m.Exhausted(), got)
	}
}

// INV-35: cost counts on failed and timed-out calls, as the provider would count it.
func TestFailedCallsCostWhatTheProviderWouldCharge(t *testing.T) {
	t.Parallel()
	hangUp := func(w http.ResponseWriter) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = c.Close()
		}
	}
	for _, c := range []struct {
		name   string
		h      http.HandlerFunc
		status int
		priced string
		least  money.USD
		most   money.USD
	}{
		{"401", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(401) }, 401, PricedFree, 0, 0},
		{"429", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Retry-After", "7"); w.WriteHeader(429) }, 429, PricedFree, 0, 0},
		{"529", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(529) }, 529, PricedFree, 0, 0},
		{"hangs up without a word", func(w http.ResponseWriter, r *http.Request) { hangUp(w) }, 502, PricedReserved, 10_000_000, 11_000_000},
		{"hangs up in the stream", func(w http.ResponseWriter, r *http.Request) {
			stream(w, sse(evStart, evText))
			_ = http.NewResponseController(w).Flush()
			hangUp(w)
		}, 200, PricedReserved, 10_450_000, 10_450_000},
		{"an encoding nobody asked for", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			stream(w, "x")
		}, 502, PricedReserved, 10_000_000, 11_000_000},
		{"says nothing", func(w http.ResponseWriter, r *http.Request) { stream(w, "") }, 200, PricedReserved, 10_000_000, 11_000_000},
	} {
		t.Run("INV-35 "+c.name, func(t *testing.T) {
			t.Parallel()
			m := start(t, server(t, c.h), nil)
			status, got := post(t, m, "/v1/messages", body(model, 1000)) // 1000 × $10 per million = $0.01
			call := m.Calls()[0]
			if status != c.status || call.Priced != c.priced || m.Spent() < c.least || m.Spent() > c.most {
				t.Errorf("status %d, priced %s, spent %s: %s", status, call.Priced, m.Spent().Decimal(), got)
			}
			if c.status == 429 && call.RetryAfter != 7*time.Second {
				t.Errorf("retry after %s", call.RetryAfter)
			}
		})
	}
	t.Run("INV-35 nobody listens", func(t *testing.T) {
		t.Parallel()
		up := server(t, nil)
		m := start(t, up, nil)
		up.Close()
		if status, _ := post(t, m, "/v1/messages", body(model, 1000)); status != 502 || m.Calls()[0].Priced != PricedFree {
			t.Errorf("status %d, %+v", status, m.Calls())
		}
	})
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
	if m.Spent() == 0 || len(m.Calls()) != 1 {
		t.Errorf("spent %s in %d calls", m.Spent(), len(m.Calls()))
	}
}

// INV-33, INV-34: nothing that is written anywhere holds the key, the nonce or what was said.
func TestTheLogHoldsNoKeyNoncePayloadOrControlBytes(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	up := server(t, func(w http.ResponseWriter, r *http.Request) { stream(w, sse(evStart, evText, evDelta)) })
	m := start(t, up, func(c *Config) {
		c.Log, c.AllowUnpriced = slog.New(slog.NewTextHandler(&log, nil)), true
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

func TestAReservationCannotBePushedOutOfRange(t *testing.T) {
	t.Parallel()
	up := server(t, func(w http.ResponseWriter, r *http.Request) { t.Error("the provider was asked") })
	m := start(t, up, func(c *Config) { c.Ceiling = money.Dollar })
	docs := strings.Repeat(`{"type":"document"},`, 50_000)
	for _, b := range []string{
		`{"model":"claude-sonnet-5","max_tokens":1000000000}`,
		`{"model":"claude-sonnet-5","max_tokens":9e8}`,
		`{"model":"claude-sonnet-5","max_tokens":1,"messages":[{"content":[` + docs + `{}]}]}`,
	} {
		if status, got := post(t, m, "/v1/messages", b); status != http.StatusPaymentRequired {
			t.Errorf("status %d: %.200s", status, got)
		}
	}
}
