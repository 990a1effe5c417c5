package toolloop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// said is one answer of the stand-in, told in the shape of whichever API is spoken.
type said struct {
	text    string
	calls   []call // Input may be no JSON
	stop    stop   // zero: as the calls say
	refusal string

	status  int // an error answer
	code    string
	message string
	header  map[string]string
	cutAt   int // end the connection after so many events
	events  int // set by the stub: how many there were
	inline  bool
}

// stub is a model server that speaks all three APIs and plays one answer after the other.
type stub struct {
	*httptest.Server
	t  *testing.T
	mu sync.Mutex

	answers []said
	bodies  []map[string]any
	headers []http.Header
}

func newStub(t *testing.T, answers ...said) *stub {
	t.Helper()
	s := &stub{t: t, answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *stub) serve(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		s.t.Errorf("the request is no JSON: %v", err)
	}
	s.mu.Lock()
	s.bodies, s.headers = append(s.bodies, body), append(s.headers, r.Header.Clone())
	a := said{text: "Done."}
	if n := len(s.bodies) - 1; n < len(s.answers) {
		a = s.answers[n]
	}
	s.mu.Unlock()
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	if a.status != 0 && !a.inline {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.status)
		fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"code":%q,"message":%q}}`, a.code, a.code, a.message)
		return
	}
	var events []any
	switch r.URL.Path {
	case "/v1/messages":
		events = a.anthropic()
	case "/v1/responses":
		events = a.responses()
	case "/v1/chat/completions":
		events = a.chat()
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i, e := range events {
		if a.cutAt > 0 && i == a.cutAt {
			panic(http.ErrAbortHandler)
		}
		b, ok := e.(string)
		if !ok {
			j, _ := json.Marshal(e)
			b = string(j)
		}
		fmt.Fprintf(w, "event: x\ndata: %s\n\n", b)
		w.(http.Flusher).Flush()
	}
}

func (s *stub) requests() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]map[string]any(nil), s.bodies...)
}

// sent is one request as text.
func (s *stub) sent(n int) string {
	b, _ := json.Marshal(s.requests()[n])
	return string(b)
}

func halves(s string) []string { return []string{s[:len(s)/2], s[len(s)/2:]} }

func (a said) anthropic() []any {
	if a.inline {
		return []any{object{"type": "message_start", "message": object{"usage": object{"input_tokens": 1}}}, object{"type": "error", "error": object{"type": a.code, "message": a.message}}}
	}
	out := []any{object{"type": "message_start", "message": object{"usage": object{"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 7}}}, object{"type": "ping"}}
	n := 0
	block := func(start object, deltas ...object) {
		out = append(out, object{"type": "content_block_start", "index": n, "content_block": start})
		for _, d := range deltas {
			out = append(out, object{"type": "content_block_delta", "index": n, "delta": d})
		}
		out = append(out, object{"type": "content_block_stop", "index": n})
		n++
	}
	if a.text != "" {
		h := halves(a.text)
		block(object{"type": "text", "text": ""}, object{"type": "text_delta", "text": h[0]}, object{"type": "text_delta", "text": h[1]})
	}
	for _, c := range a.calls {
		h := halves(c.Input)
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, object{"type": "input_json_delta", "partial_json": h[0]}, object{"type": "input_json_delta", "partial_json": h[1]})
	}
	word := map[stop]string{stopEnd: "end_turn", stopTools: "tool_use", stopLength: "max_tokens", stopRefusal: "refusal", stopContext: "model_context_window_exceeded", stopPause: "pause_turn"}[a.why()]
	return append(out, object{"type": "message_delta", "delta": object{"stop_reason": word}, "usage": object{"output_tokens": 20}}, object{"type": "message_stop"})
}

func (a said) why() stop {
	switch {
	case a.stop != 0:
		return a.stop
	case a.refusal != "":
		return stopRefusal
	case len(a.calls) > 0:
		return stopTools
	}
	return stopEnd
}

func (a said) responses() []any {
	if a.inline {
		return []any{object{"type": "response.created"}, object{"type": "response.failed", "response": object{"error": object{"code": a.code, "message": a.message}}}}
	}
	out := []any{object{"type": "response.created", "response": object{"status": "in_progress"}}}
	item := func(o object) {
		out = append(out, object{"type": "response.output_item.added", "item": object{"type": o["type"]}}, object{"type": "response.output_item.done", "item": o})
	}
	if a.text != "" {
		out = append(out, object{"type": "response.output_text.delta", "delta": a.text})
		item(object{"type": "message", "id": "msg_1", "role": "assistant", "content": []object{{"type": "output_text", "text": a.text}}})
	}
	if a.refusal != "" {
		item(object{"type": "message", "id": "msg_2", "role": "assistant", "content": []object{{"type": "refusal", "refusal": a.refusal}}})
	}
	for _, c := range a.calls {
		item(object{"type": "function_call", "id": "fc_1", "call_id": c.ID, "name": c.Name, "arguments": c.Input, "status": "completed"})
	}
	end := object{"usage": object{"input_tokens": 107, "output_tokens": 20, "input_tokens_details": object{"cached_tokens": 7}}}
	kind := "response.completed"
	if a.why() == stopLength {
		kind, end["incomplete_details"] = "response.incomplete", object{"reason": "max_output_tokens"}
	}
	return append(out, object{"type": kind, "response": end})
}

func (a said) chat() []any {
	if a.inline {
		return []any{object{"choices": []object{{"delta": object{"role": "assistant"}}}}, object{"error": object{"code": a.code, "message": a.message}}}
	}
	delta := func(d object) object {
		return object{"choices": []object{{"index": 0, "delta": d, "finish_reason": nil}}}
	}
	out := []any{delta(object{"role": "assistant", "content": ""})}
	if a.text != "" {
		h := halves(a.text)
		out = append(out, delta(object{"content": h[0]}), delta(object{"content": h[1]}))
	}
	if a.refusal != "" {
		out = append(out, delta(object{"refusal": a.refusal}))
	}
	for i, c := range a.calls {
		h := halves(c.Input)
		out = append(out, delta(object{"tool_calls": []object{{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": h[0]}}}}),
			delta(object{"tool_calls": []object{{"index": i, "function": object{"arguments": h[1]}}}}))
	}
	word := map[stop]string{stopEnd: "stop", stopTools: "tool_calls", stopLength: "length", stopRefusal: "stop"}[a.why()]
	return append(out, object{"choices": []object{{"index": 0, "delta": object{}, "finish_reason": word}}},
		object{"choices": []object{}, "usage": object{"prompt_tokens": 107, "completion_tokens": 20, "prompt_tokens_details": object{"cached_tokens": 7}}}, "[DONE]")
}

// played is what a loop did.
type played struct {
	end   Line
	lines []Line
	slept []time.Duration
	dir   string
}

func (p played) tools() string {
	var out []string
	for _, l := range p.lines {
		if l.Type == "tool" {
			out = append(out, l.Tool)
		}
	}
	return strings.Join(out, " ")
}

// play runs a loop against s in a directory, without waiting for delays.
func play(t *testing.T, api API, s *stub, dir string, change func(*loop)) played {
	t.Helper()
	p := played{dir: dir}
	l, err := newLoop(Order{API: api, BaseURL: s.URL, Nonce: "nonce-1", Model: "m-1", Prompt: "Fix it."}, dir, func(l Line) { p.lines = append(p.lines, l) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.client.sleep = func(_ context.Context, d time.Duration) error { p.slept = append(p.slept, d); return nil }
	if change != nil {
		change(l)
	}
	p.end = l.run(t.Context())
	return p
}

// everyAPI runs a test over the three protocols.
func everyAPI(t *testing.T, test func(t *testing.T, api API)) {
	t.Helper()
	for _, api := range []API{Anthropic, Responses, Chat} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			test(t, api)
		})
	}
}

func use(id, name, input string) call { return call{ID: id, Name: name, Input: input} }
