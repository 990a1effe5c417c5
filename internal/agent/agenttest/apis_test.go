package agenttest_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
)

// apis are the other APIs: a first request, a second one that answers the first's tool call, and how their
// clients read what comes.
var apis = []struct {
	name, path, whole, first, second string
	text, tool, usage                string // what a stream of the turn below has in it
	events                           int
}{
	{
		name: "responses", path: "/v1/responses", whole: "/v1/responses",
		first:  `{"model":"m","stream":true,"prompt_cache_key":"one","tools":[{"type":"function","name":"exec_command"}],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"<cwd>/w/tree</cwd>"}]}]}`,
		second: `{"model":"m","stream":true,"prompt_cache_key":"one","tools":[{"type":"function","name":"exec_command"}],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"<cwd>/w/tree</cwd>"}]},{"type":"message","role":"assistant","content":[]},{"type":"function_call","call_id":"a"},{"type":"function_call_output","call_id":"a","output":"it ran"}]}`,
		text:   `"delta":"héllo"`, tool: `"arguments":"{\"cmd\":\"ls /w/tree\"}"`, usage: `"cached_tokens":3`, events: 8,
	},
	{
		name: "chat", path: "/v1/chat/completions", whole: "/v1/chat/completions",
		first:  `{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"exec_command"}}],"messages":[{"role":"user","content":"Working directory: /w/tree"}]}`,
		second: `{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"exec_command"}}],"messages":[{"role":"user","content":"Working directory: /w/tree"},{"role":"assistant","tool_calls":[{}]},{"role":"tool","tool_call_id":"a","content":"it ran"}]}`,
		text:   `"content":"héllo"`, tool: `"arguments":"{\"cmd\":\"ls /w/tree\"}"`, usage: `"cached_tokens":3`, events: 5,
	},
	{
		name: "gemini", path: "/v1beta/models/m:streamGenerateContent?alt=sse", whole: "/v1beta/models/m:generateContent",
		first:  `{"tools":[{"functionDeclarations":[{"name":"exec_command"}]}],"contents":[{"role":"user","parts":[{"text":"Working directory: /w/tree"}]}]}`,
		second: `{"tools":[{"functionDeclarations":[{"name":"exec_command"}]}],"contents":[{"role":"user","parts":[{"text":"Working directory: /w/tree"}]},{"role":"model","parts":[{"functionCall":{"name":"exec_command"}}]},{"role":"user","parts":[{"functionResponse":{"name":"exec_command","response":{"output":"it ran"}}}]}]}`,
		text:   `"text":"héllo"`, tool: `"args":{"cmd":"ls /w/tree"}`, usage: `"cachedContentTokenCount":3`, events: 2,
	},
}

func TestEachAPIStreamsTextCallsAndUsageAndAdvancesByWhatWasAnswered(t *testing.T) {
	t.Parallel()
	turn := agenttest.Turn{Text: "héllo", Tools: []agenttest.Tool{agenttest.Exec("ls {{dir}}")}, Usage: &agenttest.Usage{Input: 5, Output: 7, CacheRead: 3}}
	for _, a := range apis {
		m, url := serve(t, agenttest.Turns(turn, agenttest.Turn{Text: "second"}))
		resp, body, err := ask(t, url+a.path, a.first, "Authorization", "Bearer k")
		if err != nil || resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			t.Fatalf("%s: %v %v %s", a.name, resp, err, body)
		}
		for _, want := range []string{a.text, a.tool, a.usage} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: the stream lacks %s: %s", a.name, want, body)
			}
		}
		events := 0
		for line := range strings.Lines(body) {
			data, ok := strings.CutPrefix(line, "data: ")
			if ok && strings.HasPrefix(data, "{") {
				events++
				if !json.Valid([]byte(data)) {
					t.Errorf("%s: %s", a.name, data)
				}
			}
		}
		if events < a.events {
			t.Errorf("%s: %d events: %s", a.name, events, body)
		}
		if _, body, err = ask(t, url+a.path, a.second); err != nil || !strings.Contains(body, "second") {
			t.Errorf("%s: the next turn: %s, %v", a.name, body, err)
		}
		_, body, err = ask(t, url+a.whole, strings.Replace(a.first, `"stream":true`, `"stream":false`, 1))
		if err != nil || !json.Valid([]byte(body)) || !strings.Contains(body, "héllo") || !strings.Contains(body, a.usage) {
			t.Errorf("%s: in one piece: %s, %v", a.name, body, err)
		}
		calls := m.Calls()
		if len(calls) != 3 || calls[0].Dir != "/w/tree" || calls[0].Model != "m" || calls[0].Key() != "k" || calls[1].Turn != 1 || !cmp.Equal(calls[0].Tools, []string{"exec_command"}) {
			t.Fatalf("%s: %+v", a.name, calls)
		}
		if r := calls[1].Results(); len(r) != 1 || !strings.Contains(r[0].Text, "it ran") {
			t.Errorf("%s: results %+v", a.name, r)
		}
	}
}

func TestEachAPIHasItsOwnFaults(t *testing.T) {
	t.Parallel()
	for _, a := range apis {
		_, url := serve(t, func(agenttest.Request) agenttest.Turn {
			return agenttest.Turn{Fault: agenttest.Fault{Status: 429, RetryAfter: "3"}}
		})
		resp, body, err := ask(t, url+a.path, a.first)
		var e struct{ Error struct{ Message string } }
		if err != nil || resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "3" || json.Unmarshal([]byte(body), &e) != nil || e.Error.Message == "" {
			t.Errorf("%s: %v %s %v", a.name, resp, body, err)
		}
		_, url = serve(t, func(agenttest.Request) agenttest.Turn {
			return agenttest.Turn{Text: strings.Repeat("words ", 50), Fault: agenttest.Fault{CutAfter: 1}}
		})
		if _, body, err := ask(t, url+a.path, a.first); !errors.Is(err, io.ErrUnexpectedEOF) || strings.Count(body, "data: ") != 1 {
			t.Errorf("%s: a cut stream: %v %s", a.name, err, body)
		}
		_, url = serve(t, func(agenttest.Request) agenttest.Turn {
			return agenttest.Turn{Text: "x", Usage: &agenttest.Usage{None: true}}
		})
		if _, body, err := ask(t, url+a.path, a.first); err != nil || strings.Contains(body, "oken") {
			t.Errorf("%s: no usage: %v %s", a.name, err, body)
		}
	}
}
