package toolloop

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func stream(data ...string) io.Reader {
	return strings.NewReader("data: " + strings.Join(data, "\n\ndata: ") + "\n\n")
}

// What compatible servers send in their own way is read as what they mean.
func TestChatCompletionsOfOtherServersAreRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		data  []string
		calls []call
		stop  stop
	}{
		{"Ollama: calls whole, without an index, finish stop", []string{
			`{"choices":[{"delta":{"role":"assistant","tool_calls":[{"id":"call_a","function":{"name":"read","arguments":"{\"path\":\"x\"}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"id":"call_b","function":{"name":"read","arguments":"{\"path\":\"y\"}"}}]}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"stop"}]}`, `[DONE]`,
		}, []call{{ID: "call_a", Name: "read", Input: `{"path":"x"}`}, {ID: "call_b", Name: "read", Input: `{"path":"y"}`}}, stopTools},
		{"no ids at all", []string{
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"shell","arguments":""}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"command\":\"true\"}"}}]}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`, `[DONE]`,
		}, []call{{ID: "call_0", Name: "shell", Input: `{"command":"true"}`}}, stopTools},
		{"no [DONE]", []string{`{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}`}, nil, stopEnd},
		{"a filter", []string{`{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`, `[DONE]`}, nil, stopRefusal},
	} {
		r, err := chatWire{}.read(stream(c.data...))
		if err != nil || r.stop != c.stop {
			t.Errorf("%s: %+v %v", c.name, r, err)
		}
		if diff := cmp.Diff(c.calls, r.calls); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// INV-29 in spirit: what is no whole answer is never taken for one.
func TestAnswersThatEndEarlyOrStrangelyAreNoAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		w    wire
		data []string
	}{
		"chat: nothing":                {chatWire{}, []string{`{"choices":[]}`}},
		"chat: DONE without a reason":  {chatWire{}, []string{`{"choices":[{"delta":{"content":"a"}}]}`, `[DONE]`}},
		"chat: an unknown reason":      {chatWire{}, []string{`{"choices":[{"delta":{},"finish_reason":"whim"}]}`, `[DONE]`}},
		"chat: no JSON":                {chatWire{}, []string{`hello`}},
		"anthropic: no last event":     {anthropicWire{}, []string{`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`}},
		"anthropic: no reason":         {anthropicWire{}, []string{`{"type":"message_stop"}`}},
		"anthropic: an unknown reason": {anthropicWire{}, []string{`{"type":"message_delta","delta":{"stop_reason":"whim"}}`, `{"type":"message_stop"}`}},
		"anthropic: a stray delta":     {anthropicWire{}, []string{`{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"a"}}`}},
		"anthropic: a negative block":  {anthropicWire{}, []string{`{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"a"}}`}},
		"responses: no last event":     {responsesWire{}, []string{`{"type":"response.created"}`}},
		"responses: DONE":              {responsesWire{}, []string{`[DONE]`}},
		"responses: no JSON":           {responsesWire{}, []string{`{"type":`}},
	} {
		if r, err := c.w.read(stream(c.data...)); err == nil {
			t.Errorf("%s: read as %+v", name, r)
		} else if f := (*failed)(nil); errors.As(err, &f) {
			t.Errorf("%s: read as a failure of the provider: %v", name, err)
		}
	}
}

func TestReasoningIsReadBackWhereItCanBe(t *testing.T) {
	t.Parallel()
	r, err := responsesWire{}.read(stream(
		`{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","encrypted_content":"sealed","summary":[]}}`,
		`{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_2"}}`,
		`{"type":"response.output_item.done","item":{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{}"}}`,
		`{"type":"response.completed","response":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(r.items)
	if want := `[{"encrypted_content":"sealed","summary":[],"type":"reasoning"},{"arguments":"{}","call_id":"c1","name":"read","type":"function_call"}]`; string(b) != want {
		t.Error(string(b))
	}
	a, err := anthropicWire{}.read(stream(
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":" "}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`))
	b, _ = json.Marshal(a.items)
	if want := `[{"signature":"sig","thinking":"hm","type":"thinking"}]`; err != nil || string(b) != want {
		t.Errorf("%s %v", b, err)
	}
	for model, want := range map[string]bool{"gpt-5.1": true, "o3": true, "gpt-4.1": false, "gpt-oss:20b": false, "llama3": false, "opus": false} {
		if reasons(model) != want {
			t.Errorf("%s reasons: %t", model, !want)
		}
	}
}

func TestEventsAreSplitAsTheStandardSays(t *testing.T) {
	t.Parallel()
	var got []string
	err := events(strings.NewReader(": ping\r\nevent: a\r\ndata: one\r\ndata:two\r\n\r\n\n\ndata: three\n\ndata: torn"), func(b []byte) error {
		got = append(got, string(b))
		return nil
	})
	if diff := cmp.Diff([]string{"one\ntwo", "three"}, got); diff != "" || !errors.Is(err, io.EOF) {
		t.Errorf("%s %v", diff, err)
	}
	endless := io.MultiReader(strings.NewReader("data: "), &repeat{})
	if err := events(endless, func([]byte) error { return nil }); !errors.Is(err, errEventTooLong) {
		t.Errorf("an endless line: %v", err)
	}
}

type repeat struct{}

func (*repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'y'
	}
	return len(p), nil
}

// FuzzAnswer feeds streams to the three readers: none may panic, and what is read can be sent back.
func FuzzAnswer(f *testing.F) {
	a := said{text: "hello", calls: []call{use("c1", "read", `{"path":"x"}`), use("c2", "write", `{"pa`)}}
	for _, list := range [][]any{a.anthropic(), a.responses(), a.chat()} {
		var b strings.Builder
		for _, e := range list {
			j, ok := e.(string)
			if !ok {
				raw, _ := json.Marshal(e)
				j = string(raw)
			}
			b.WriteString("data: " + j + "\n\n")
		}
		f.Add(b.String())
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, w := range []wire{anthropicWire{}, responsesWire{}, chatWire{}} {
			r, err := w.read(strings.NewReader(s))
			if err != nil {
				continue
			}
			e := exchange{Items: r.items, Calls: r.calls}
			for range r.calls {
				e.Results = append(e.Results, result{Text: "x"})
			}
			if _, err := w.request(Order{}, &conversation{Exchanges: []exchange{e}}); err != nil {
				t.Fatalf("%T: %v", w, err)
			}
		}
	})
}
