package meter

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/money"
)

// vendor is one API as a test sees it. Its model costs $2 in, $10 out, $0.2 from the cache, $2.5 into it.
type vendor struct {
	name   string
	api    API
	path   string // streamed
	whole  string // path for an answer in one piece
	body   func(model string, maxTokens int) string
	header string // where the key goes
	stream []string
	plain  string
	want   Usage // of stream and plain
}

const testModel = "a-model-of-this-test"

func testPrices(names ...string) Prices {
	p := Embedded()
	for _, n := range append(names, testModel) {
		p = p.With(Price{Model: n, Source: "this test", Date: "2026-01-01", Rates: Rates{
			Input: 2 * money.Dollar, Output: 10 * money.Dollar, CacheRead: money.Dollar / 5, CacheWrite5m: 5 * money.Dollar / 2, CacheWrite1h: 4 * money.Dollar,
		}})
	}
	return p
}

// vendors are the APIs beside Anthropic's, whose own tests are in meter_test.go.
func vendors() []vendor {
	responses := func(model string, maxTokens int) string {
		return fmt.Sprintf(`{"model":%q,"max_output_tokens":%d,"stream":true,"store":false,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}],"tools":[{"type":"function","name":"shell","parameters":{"type":"object","properties":{"file_id":{"type":"web_search"}}}}]}`, model, maxTokens)
	}
	chat := func(model string, maxTokens int) string {
		return fmt.Sprintf(`{"model":%q,"max_completion_tokens":%d,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hello"}]}`, model, maxTokens)
	}
	generate := func(_ string, maxTokens int) string {
		return fmt.Sprintf(`{"contents":[{"role":"user","parts":[{"text":"hello"},{"functionResponse":{"name":"x","response":{"fileUri":"y"}}}]}],"generationConfig":{"maxOutputTokens":%d},"tools":[{"functionDeclarations":[{"name":"x"}]}]}`, maxTokens)
	}
	text := `he said \"usage\": {\"output_tokens\": 999999}`
	return []vendor{
		{
			name: "responses", api: OpenAI, path: "/v1/responses", whole: "/v1/responses", body: responses, header: "Authorization",
			stream: []string{
				`{"type":"response.created","response":{"id":"r","usage":null}}`,
				`{"type":"response.output_text.delta","delta":"` + text + `"}`,
				`{"type":"response.completed","response":{"id":"r","output":[{"content":[{"text":"` + text + `"}]}],"usage":{"input_tokens":1120,"input_tokens_details":{"cached_tokens":1000,"cache_write_tokens":20},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":30},"total_tokens":1170}}}`,
			},
			plain: `{"id":"r","object":"response","status":"completed","usage":{"input_tokens":1120,"input_tokens_details":{"cached_tokens":1000,"cache_write_tokens":20},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":30}}}`,
			want:  Usage{Input: 100, Output: 50, CacheRead: 1000, CacheWrite5m: 20, Reasoning: 30},
		},
		{
			name: "chat completions", api: OpenAI, path: "/v1/chat/completions", whole: "/v1/chat/completions", body: chat, header: "Authorization",
			stream: []string{
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}],"usage":null}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}`,
				`{"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":1100,"prompt_tokens_details":{"cached_tokens":1000},"completion_tokens":50,"completion_tokens_details":{"reasoning_tokens":30}}}`,
			},
			plain: `{"object":"chat.completion","choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1100,"prompt_tokens_details":{"cached_tokens":1000},"completion_tokens":50,"completion_tokens_details":{"reasoning_tokens":30}}}`,
			want:  Usage{Input: 100, Output: 50, CacheRead: 1000, Reasoning: 30},
		},
		{
			name: "gemini", api: Gemini, path: "/v1beta/models/" + testModel + ":streamGenerateContent?alt=sse", whole: "/v1beta/models/" + testModel + ":generateContent",
			body: generate, header: "X-Goog-Api-Key",
			stream: []string{
				`{"candidates":[{"content":{"parts":[{"text":"` + text + `"}]}}],"usageMetadata":{"promptTokenCount":1100,"cachedContentTokenCount":1000,"candidatesTokenCount":1,"totalTokenCount":1101}}`,
				`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1100,"cachedContentTokenCount":1000,"candidatesTokenCount":20,"thoughtsTokenCount":30,"totalTokenCount":1150}}`,
			},
			plain: `{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1100,"cachedContentTokenCount":1000,"candidatesTokenCount":20,"thoughtsTokenCount":30,"totalTokenCount":1150}}`,
			want:  Usage{Input: 100, Output: 50, CacheRead: 1000, Reasoning: 30},
		},
	}
}

// dataLines writes events without names, as two of the APIs do.
func dataLines(events ...string) string {
	return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"
}

func (v vendor) start(t *testing.T, up *httptest.Server, change func(*Config)) *Meter {
	t.Helper()
	return start(t, up, func(c *Config) {
		c.API, c.Prices = v.api, testPrices()
		if change != nil {
			change(c)
		}
	})
}

// INV-36: each API's usage is read, however it travels.
func TestEveryAPIIsPricedByTheUsageThatItReports(t *testing.T) {
	t.Parallel()
	price, _ := testPrices().Find(testModel)
	for _, v := range vendors() {
		cost, _ := price.Cost(v.want)
		text := dataLines(v.stream...)
		for name, h := range map[string]http.HandlerFunc{
			"a stream": func(w http.ResponseWriter, r *http.Request) { stream(w, text) },
			"one byte at a time": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				for i := range len(text) {
					_, _ = w.Write([]byte{text[i]})
					if i%97 == 0 {
						_ = http.NewResponseController(w).Flush()
					}
				}
			},
			"CRLF and a last mark": func(w http.ResponseWriter, r *http.Request) {
				stream(w, strings.ReplaceAll(text+"data: [DONE]\n\n", "\n", "\r\n"))
			},
			"in one piece": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, v.plain)
			},
			"gzip unasked": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				_, _ = io.WriteString(z, text)
				_ = z.Close()
			},
			"a 2 MiB line in it": func(w http.ResponseWriter, r *http.Request) {
				stream(w, dataLines(strings.Replace(v.stream[len(v.stream)-1], `,"usage`, `,"pad":"`+strings.Repeat("y", 2<<20)+`","usage`, 1)))
			},
		} {
			for _, h2 := range []bool{false, true} {
				t.Run(fmt.Sprintf("INV-36 %s, %s, HTTP/2 %v", v.name, name, h2), func(t *testing.T) {
					t.Parallel()
					up := httptest.NewUnstartedServer(h)
					up.EnableHTTP2 = h2
					up.StartTLS()
					t.Cleanup(up.Close)
					m := v.start(t, up, nil)
					path := v.path
					if name == "in one piece" {
						path = v.whole
					}
					if status, got := post(t, m, path, v.body(testModel, 1000)); status != 200 {
						t.Fatalf("status %d: %s", status, got)
					}
					c := booked(t, m).Calls()[0]
					got := Usage{Input: c.Input, Output: c.Output, CacheRead: c.CacheRead, CacheWrite5m: c.CacheWrite, Reasoning: c.Reasoning}
					if diff := cmp.Diff(v.want, got); diff != "" || c.Priced != PricedUsage || c.CostUSD != cost || c.Model != testModel {
						t.Errorf("%s\n%+v, want it at %s", diff, c, cost.Decimal())
					}
				})
			}
		}
	}
}

// INV-37: the key goes where the API has it, to the base URL as its own clients take it, and nothing else of
// the client goes along.
func TestTheKeyIsPutInUpstreamOnly(t *testing.T) {
	t.Parallel()
	for _, v := range vendors() {
		for _, kind := range []KeyKind{APIKey, Bearer} {
			var asked *http.Request
			up := server(t, func(w http.ResponseWriter, r *http.Request) { asked = r; stream(w, dataLines(v.stream...)) })
			m := v.start(t, up, func(c *Config) { c.Upstream, c.Key.Kind = up.URL+"/base/", kind })
			ep := m.Endpoint()
			status, got := post(t, m, v.path, v.body(testModel, 10), "X-Api-Key", "", v.header, strings.TrimPrefix("Bearer "+ep.Nonce, map[bool]string{true: "Bearer "}[v.header != "Authorization"]),
				"Cookie", "c=1", "Openai-Organization", "org", "X-Goog-User-Project", "p", "X-Forwarded-For", "10.0.0.1")
			if status != 200 {
				t.Fatalf("%s: status %d: %s", v.name, status, got)
			}
			header, want := v.header, testKey
			if kind == Bearer {
				header = "Authorization"
			}
			if header == "Authorization" {
				want = "Bearer " + testKey
			}
			all := fmt.Sprint(asked.Header, asked.URL)
			if asked.Header.Get(header) != want || strings.Contains(all, ep.Nonce) || strings.Count(all, testKey) != 1 {
				t.Errorf("INV-37 %s by %s: %s", v.name, kind, all)
			}
			for _, h := range []string{"Cookie", "Openai-Organization", "X-Goog-User-Project", "X-Forwarded-For"} {
				if asked.Header.Get(h) != "" {
					t.Errorf("INV-37 %s: %s went along", v.name, h)
				}
			}
			if wantPath := "/base" + strings.TrimPrefix(v.path, map[bool]string{true: "/v1"}[v.api == OpenAI]); asked.URL.String() != wantPath {
				t.Errorf("INV-37 %s: asked for %s, want %s", v.name, asked.URL, wantPath)
			}
		}
	}
}

// INV-37: what leads out of the sandbox, has a price that is not known or is not an answer's affair is refused, in
// the shape that the API's clients show. The control is each API's own request.
func TestEachAPIServesModelCallsOnly(t *testing.T) {
	t.Parallel()
	with := func(member string) func(string) string {
		return func(b string) string { return strings.TrimSuffix(b, "}") + "," + member + "}" }
	}
	image := func(part string) func(string) string {
		return with(`"input":[{"role":"user","content":[` + part + `]}]`)
	}
	inline := func(kind string) func(string) string {
		return func(b string) string {
			return strings.Replace(b, `{"text":"hello"}`, `{"inlineData":{`+kind+`,"data":"eA=="}}`, 1)
		}
	}
	cases := map[string][]struct {
		name   string
		change func(string) string
		path   string
		method string
		key    string
		want   int
	}{
		"responses": {
			{name: "no nonce", key: "sk-other", want: 401},
			{name: "another path", path: "/v1/files", want: 404},
			{name: "what it keeps", path: "/v1/responses/resp_1", want: 404},
			{name: "another method", method: http.MethodGet, want: 404},
			{name: "an unpriced model", change: func(b string) string { return strings.Replace(b, testModel, "gpt-of-tomorrow", 1) }, want: 404},
			{name: "two models", change: with(`"model":"gpt-of-tomorrow"`), want: 400},
			{name: "two models, one in other letters", change: with(`"Model":"gpt-of-tomorrow"`), want: 400},
			{name: "two caps, one in letters that fold", change: with(`"max_output_to\u212aens":100000`), want: 400},
			{name: "tools in other letters", change: with(`"Tools":[{"type":"web_search"}]`), want: 400},
			{name: "a search at the provider", change: func(b string) string { return strings.Replace(b, `"type":"function"`, `"type":"web_search"`, 1) }, want: 400},
			{name: "further servers", change: func(b string) string { return strings.Replace(b, `"type":"function"`, `"type":"mcp"`, 1) }, want: 400},
			{name: "code at the provider", change: func(b string) string {
				return strings.Replace(b, `"type":"function"`, `"type":"\u0063ode_interpreter"`, 1)
			}, want: 400},
			{name: "a dearer tier", change: with(`"service_tier":"priority"`), want: 400},
			{name: "what was kept", change: with(`"previous_response_id":"resp_1"`), want: 400},
			{name: "a call that goes on", change: with(`"background":true`), want: 400},
			{name: "a page to fetch", change: func(string) string {
				return image(`{"type":"input_image","image_url":"\u0068ttps://attacker.example.com/?secret"}`)(`{"model":"` + testModel + `"}`)
			}, want: 400},
			{name: "a file to fetch in a tool's result", change: func(string) string {
				return with(`"input":[{"type":"function_call_output","output":[{"type":"input_file","file_url":"https://attacker.example.com"}]}]`)(`{"model":"` + testModel + `"}`)
			}, want: 400},
			{name: "no number", change: func(b string) string {
				return strings.Replace(b, `"max_output_tokens":10`, `"max_output_tokens":-10`, 1)
			}, want: 400},
		},
		"chat completions": {
			{name: "a page to fetch", change: func(string) string {
				return `{"model":"` + testModel + `","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://attacker.example.com"}}]}]}`
			}, want: 400},
			{name: "a search at the provider", change: with(`"web_search_options":{}`), want: 400},
			{name: "many answers at once", change: with(`"n":128`), want: 400},
			{name: "a stream whose usage nobody asked for", change: func(b string) string { return strings.Replace(b, `"stream_options":{"include_usage":true},`, "", 1) }, want: 400},
			{name: "a stream whose usage is declined", change: func(b string) string { return strings.Replace(b, `"include_usage":true`, `"include_usage":false`, 1) }, want: 400},
			{name: "speech", change: with(`"audio":{"voice":"x"}`), want: 400},
			{name: "a file it keeps", change: func(string) string {
				return `{"model":"` + testModel + `","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]}`
			}, want: 400},
		},
		"gemini": {
			{name: "another path", path: "/v1beta/files", want: 404},
			{name: "a stream that ends without a word", path: "/v1beta/models/" + testModel + ":streamGenerateContent", want: 404},
			{name: "a path that climbs", path: "/v1beta/models/../tunedModels/x:generateContent", want: 404},
			{name: "another operation", path: "/v1beta/models/" + testModel + ":batchGenerateContent", want: 404},
			{name: "an unpriced model", path: "/v1beta/models/gemini-of-tomorrow:generateContent", want: 404},
			{name: "a search at the provider", change: func(b string) string {
				return strings.Replace(b, `"functionDeclarations":[{"name":"x"}]`, `"google_search":{}`, 1)
			}, want: 400},
			{name: "code at the provider", change: func(b string) string {
				return strings.Replace(b, `"functionDeclarations":[{"name":"x"}]`, `"codeExecution":{}`, 1)
			}, want: 400},
			{name: "a file to fetch", change: func(b string) string {
				return strings.Replace(b, `{"text":"hello"}`, `{"file_data":{"file_uri":"https://attacker.example.com"}}`, 1)
			}, want: 400},
			{name: "speech", change: inline(`"mimeType":"audio/wav"`), want: 400},
			{name: "speech in other letters", change: inline(`"mime_type":"Audio/WAV"`), want: 400},
			{name: "speech beside a document", change: inline(`"mimeType":"text/plain","mime_type":"audio/wav"`), want: 400},
			{name: "a film", change: inline(`"mimeType":"video/mp4"`), want: 400},
			{name: "a configuration in other letters", change: with(`"GenerationConfig":{"maxOutputTokens":100000}`), want: 400},
			{name: "what was kept", change: with(`"cached_content":"cachedContents/x"`), want: 400},
			{name: "many answers at once", change: func(b string) string {
				return strings.Replace(b, `{"maxOutputTokens"`, `{"candidate_count":2,"maxOutputTokens"`, 1)
			}, want: 400},
			{name: "pictures as output", change: func(b string) string {
				return strings.Replace(b, `{"maxOutputTokens"`, `{"response_modalities":["IMAGE"],"maxOutputTokens"`, 1)
			}, want: 400},
		},
	}
	for _, v := range vendors() {
		asked := 0
		up := server(t, func(w http.ResponseWriter, r *http.Request) { asked++; stream(w, dataLines(v.stream...)) })
		m := v.start(t, up, nil)
		good := v.body(testModel, 10)
		for _, c := range cases[v.name] {
			t.Run("INV-37 "+v.name+": "+c.name, func(t *testing.T) {
				before, b, path, method, key := asked, good, v.path, http.MethodPost, m.Endpoint().Nonce
				if c.change != nil {
					b = c.change(good)
				}
				path, method, key = or(c.path, path), or(c.method, method), or(c.key, key)
				req, err := http.NewRequestWithContext(t.Context(), method, m.Endpoint().BaseURL+path, strings.NewReader(b))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+key)
				status, got := do(t, req)
				var answer struct{ Error struct{ Message string } }
				if err := json.Unmarshal([]byte(got), &answer); status != c.want || asked != before || err != nil || !strings.HasPrefix(answer.Error.Message, Mark) {
					t.Errorf("status %d, want %d; upstream asked %d times; %s", status, c.want, asked-before, got)
				}
			})
		}
		if status, got := post(t, m, v.path, good); status != 200 || asked != 1 {
			t.Errorf("control %s: status %d, asked %d: %s", v.name, status, asked, got)
		}
		if v.name == "gemini" {
			for _, kind := range []string{"image/png", "application/pdf"} {
				if status, got := post(t, m, v.path, inline(`"mimeType":"`+kind+`"`)(good)); status != 200 {
					t.Errorf("control %s: %s: status %d: %s", v.name, kind, status, got)
				}
			}
			asked = 1
		}
		if status, _ := post(t, m, "/v1/messages", body(model, 10)); status != 404 || asked != 1 {
			t.Errorf("INV-37 %s: another vendor's path is served: %d", v.name, status)
		}
	}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func TestTwoProvidersShareOneNonceAndOnePurse(t *testing.T) {
	t.Parallel()
	first := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+testKey {
			w.WriteHeader(401)
			return
		}
		stream(w, dataLines(vendors()[0].stream...))
	})
	second := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "another-key" {
			w.WriteHeader(401)
			return
		}
		stream(w, sse(evStart, evDelta))
	})
	v := vendors()[0]
	m := v.start(t, first, func(c *Config) {
		c.Beside = []Provider{{API: Anthropic, Upstream: second.URL, Key: Credential{APIKey, "another-key"}}}
	})
	for path, b := range map[string]string{v.path: v.body(testModel, 10), "/v1/messages": body(model, 100)} {
		if status, got := post(t, m, path, b); status != 200 {
			t.Errorf("%s: status %d: %s", path, status, got)
		}
	}
	var sum money.USD
	for _, c := range booked(t, m).Calls() {
		sum = sum.Add(c.CostUSD)
	}
	if len(m.Calls()) != 2 || sum == 0 || m.Spent() != sum {
		t.Errorf("spent %s over %+v", m.Spent(), m.Calls())
	}
	_, err := Start(t.Context(), Config{Upstream: first.URL, Key: Credential{APIKey, "k"}, Beside: []Provider{{Upstream: second.URL, Key: Credential{APIKey, "k"}}}})
	if err == nil || !strings.Contains(err.Error(), "two providers") {
		t.Errorf("two providers of one API: %v", err)
	}
}

func TestHostsThatSignOtherwiseAreRefusedWithTheWayRound(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"https://bedrock-runtime.us-east-1.amazonaws.com":  "Amazon Bedrock",
		"https://us-central1-aiplatform.googleapis.com/v1": "Vertex AI",
		"https://aiplatform.googleapis.com":                "Vertex AI",
	} {
		for _, api := range []API{Anthropic, OpenAI, Gemini} {
			_, err := Provider{API: api, Upstream: host, Key: Credential{APIKey, "k"}}.check()
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Next: put a gateway in front") {
				t.Errorf("%s: %v", host, err)
			}
		}
	}
	if _, err := (Provider{API: OpenAI, Upstream: "https://gateway.example.com/v1", Key: Credential{APIKey, "k"}}).check(); err != nil {
		t.Errorf("control: %v", err)
	}
	if _, err := (Provider{API: "cohere", Upstream: "https://x.example.com", Key: Credential{APIKey, "k"}}).check(); err == nil {
		t.Error("an API that is not known is accepted")
	}
}
