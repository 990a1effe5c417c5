package judge

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/money"
)

// speaker is a model API as a reviewer meets it. In parts NONCE stands for the question's nonce.
type speaker struct {
	name   string
	api    meter.API
	prefix string // of the base URL that the meter is given
	path   string
	header string
	model  func(Endpoint) Model
	body   func(stop string, parts ...string) string

	call, text, thought, otherTool string // parts
	stop, cut, refused             string
	refusal                        string // a whole answer; empty: refused says it
}

func speakers() []speaker {
	join := func(parts []string) string { return strings.Join(parts, ",") }
	return []speaker{
		{
			name: "responses", api: meter.OpenAI, prefix: "/v1", path: "/v1/responses", header: "Authorization",
			model: func(e Endpoint) Model { return Responses{e} },
			body: func(stop string, parts ...string) string {
				return `{"object":"response",` + stop + `,"output":[` + join(parts) + `],"usage":{"input_tokens":10,"output_tokens":5}}`
			},
			call:      `{"type":"function_call","name":"verdict","arguments":` + quote(approve) + `}`,
			text:      `{"type":"message","content":[{"type":"output_text","text":` + quote(approve) + `}]}`,
			thought:   `{"type":"reasoning","summary":[]}`,
			otherTool: `{"type":"function_call","name":"approve","arguments":` + quote(approve) + `}`,
			stop:      `"status":"completed"`, cut: `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`, refused: `"status":"incomplete","incomplete_details":{"reason":"content_filter"}`,
			refusal: `{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]}`,
		},
		{
			name: "gemini", api: meter.Gemini, path: "/v1beta/models/reviewer-1:generateContent", header: "X-Goog-Api-Key",
			model: func(e Endpoint) Model { return Gemini{e} },
			body: func(stop string, parts ...string) string {
				return `{"candidates":[{"finishReason":"` + stop + `","content":{"parts":[` + join(parts) + `]}}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}`
			},
			call:      `{"functionCall":{"name":"verdict","args":` + approve + `}}`,
			text:      `{"text":` + quote(approve) + `}`,
			thought:   `{"thought":true,"text":"hm"}`,
			otherTool: `{"functionCall":{"name":"approve","args":` + approve + `}}`,
			stop:      "STOP", cut: "MAX_TOKENS", refused: "SAFETY", refusal: `{"promptFeedback":{"blockReason":"SAFETY"}}`,
		},
		{
			name: "chat", api: meter.OpenAI, prefix: "/v1", path: "/v1/chat/completions", header: "Authorization",
			model: func(e Endpoint) Model { return Chat{e} },
			body: func(stop string, parts ...string) string {
				message := map[string]json.RawMessage{"role": json.RawMessage(`"assistant"`)}
				var calls []string
				for _, p := range parts {
					switch {
					case strings.HasPrefix(p, `{"function"`):
						calls = append(calls, p)
					case p != "null" && message["content"] != nil:
						message["refusal"] = json.RawMessage(p) // two texts a message cannot hold; a refusal beside one it can
					default:
						message["content"] = json.RawMessage(p)
					}
				}
				if len(calls) > 0 {
					message["tool_calls"] = json.RawMessage("[" + join(calls) + "]")
				}
				b, err := json.Marshal(message)
				if err != nil {
					panic(err)
				}
				return `{"object":"chat.completion","choices":[{"finish_reason":"` + stop + `","message":` + string(b) + `}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`
			},
			call:      `{"function":{"name":"verdict","arguments":` + quote(approve) + `}}`,
			text:      quote(approve),
			thought:   "null",
			otherTool: `{"function":{"name":"approve","arguments":` + quote(approve) + `}}`,
			stop:      "stop", cut: "length", refused: "content_filter", refusal: `{"choices":[]}`,
		},
	}
}

// metered is a model behind the real meter. body is made from the nonce in the question.
func (s speaker) metered(t *testing.T, status int, body func(nonce string) string) (Model, *meter.Meter) {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if r.URL.Path != s.path || !strings.HasSuffix(r.Header.Get(s.header), "the-real-key") || !strings.Contains(string(raw), `"verdict"`) {
			t.Errorf("request to %s as %q: %s", r.URL, r.Header.Get(s.header), raw)
		}
		_, rest, _ := strings.Cut(string(raw), "The nonce of this message is ")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.ReplaceAll(body(rest[:32]), "NONCE", rest[:32]))
	}))
	t.Cleanup(up.Close)
	prices := meter.Embedded().With(meter.Price{Model: "reviewer-1", Source: "this test", Date: "2026-01-01", Rates: meter.Rates{Input: money.Dollar, Output: money.Dollar, CacheWrite5m: money.Dollar, CacheWrite1h: money.Dollar, CacheRead: money.Dollar}})
	m, err := meter.Start(t.Context(), meter.Config{API: s.api, Upstream: up.URL + s.prefix, Key: meter.Credential{Value: "the-real-key"}, Prices: prices, Ceiling: 5 * money.Dollar})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	m.SetTick(1, "review")
	at := m.ReviewEndpoint()
	return s.model(Endpoint{Client: &http.Client{}, BaseURL: at.BaseURL, Nonce: at.Nonce, Model: "reviewer-1"}), m
}

// INV-29: over every API an answer counts only when it is whole and the one verdict that was asked for. All go through the
// real meter, which lets the question through and books it.
func TestEveryAPIGivesAVerdictOnlyWhenItIsWhole(t *testing.T) {
	t.Parallel()
	for _, s := range speakers() {
		words := func(stop string, parts ...string) func(string) string {
			return func(string) string { return s.body(stop, parts...) }
		}
		plain := func(text string) func(string) string { return func(string) string { return text } }
		double := strings.Replace(s.call, `findings`, `findings\":[],\"verdict`, 1)
		if s.name == "gemini" {
			double = strings.Replace(s.call, `"findings"`, `"findings":[],"verdict":"approve","findings"`, 1)
		}
		for _, c := range []struct {
			name     string
			status   int
			body     func(string) string
			approved bool
		}{
			{"a tool call", 200, words(s.stop, s.call), true},
			{"a text", 200, words(s.stop, s.text), true},
			{"thoughts first", 200, words(s.stop, s.thought, s.call), true},
			{"cut at the token limit", 200, words(s.cut, s.call), false},
			{"ended by a filter", 200, words(s.refused, s.call), false},
			{"a refusal", 200, plain(s.refusal), false},
			{"a tool call and a text", 200, words(s.stop, s.text, s.call), false},
			{"two tool calls", 200, words(s.stop, s.call, s.call), false},
			{"a refusal or a second text", 200, words(s.stop, s.text, s.text), false},
			{"another tool", 200, words(s.stop, s.otherTool), false},
			{"duplicate members", 200, words(s.stop, double), false},
			{"another nonce", 200, words(s.stop, strings.ReplaceAll(s.call, "NONCE", strings.Repeat("0", 32))), false},
			{"no content", 200, words(s.stop), false},
			{"an unknown end", 200, words("", s.call), false},
			{"no JSON", 200, plain("approve"), false},
			{"overloaded", 503, plain(`{"error":{"message":"Overloaded"}}`), false},
			{"an approval with a failure's status", 500, words(s.stop, s.call), false},
		} {
			t.Run(s.name+", "+c.name, func(t *testing.T) {
				t.Parallel()
				model, m := s.metered(t, c.status, c.body)
				v, err := Judge{Model: model}.Review(t.Context(), small(t))
				if v.Approved != c.approved || (err == nil) != c.approved || err != nil && !errors.Is(err, ErrUnavailable) {
					t.Fatalf("got %+v, %v; want approved %v", v, err, c.approved)
				}
				var answer *HTTPError
				if c.status != 200 && (!errors.As(err, &answer) || answer.Status != c.status) {
					t.Errorf("the status is lost: %v", err)
				}
				if err := m.Quiet(t.Context()); err != nil {
					t.Fatal(err)
				}
				if calls := m.Calls(); len(calls) == 0 || calls[0].Purpose != "review" || c.approved && (calls[0].Priced != meter.PricedUsage || calls[0].Input+calls[0].Output != 15) {
					t.Errorf("booked %+v", calls)
				}
			})
		}
	}
}
