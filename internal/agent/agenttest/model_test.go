package agenttest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
)

func serve(t *testing.T, s agenttest.Script) (*agenttest.Model, string) {
	t.Helper()
	m := agenttest.NewModel(s)
	url, err := m.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, url
}

func ask(t *testing.T, url, body string, headers ...string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

const opening = `{"model":"m","stream":true,"max_tokens":9,"tools":[{"name":"Write"}],"system":[{"type":"text","text":"Primary working directory: /w/tree"}],"messages":[{"role":"user","content":"hi"}]}`

func eventTypes(t *testing.T, stream string) (types []string, text, input string) {
	t.Helper()
	for sc := bufio.NewScanner(strings.NewReader(stream)); sc.Scan(); {
		name, isEvent := strings.CutPrefix(sc.Text(), "event: ")
		if isEvent {
			types = append(types, name)
		}
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type  string
			Delta struct {
				Text    string
				Partial string `json:"partial_json"`
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Type != types[len(types)-1] {
			t.Fatalf("event %s has the data %s: %v", types[len(types)-1], data, err)
		}
		text, input = text+e.Delta.Text, input+e.Delta.Partial
	}
	return types, text, input
}

func TestAStreamHasTheEventsOfTheRealAPIInOrder(t *testing.T) {
	t.Parallel()
	_, url := serve(t, agenttest.Turns(agenttest.Turn{Text: "héllo", Tools: []agenttest.Tool{agenttest.Write("a.txt", "x")}}))
	resp, body, err := ask(t, url+"/v1/messages?beta=true", opening)
	if err != nil || resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%v %v", resp, err)
	}
	types, text, input := eventTypes(t, body)
	want := strings.Fields("message_start ping content_block_start content_block_delta content_block_stop content_block_start content_block_delta content_block_delta content_block_stop message_delta message_stop")
	if diff := cmp.Diff(want, types); diff != "" {
		t.Error(diff)
	}
	if text != "héllo" || input != `{"content":"x","file_path":"/w/tree/a.txt"}` || !strings.Contains(body, `"stop_reason":"tool_use"`) {
		t.Errorf("%q %q", text, input)
	}
}

func TestAnAnswerInOnePieceSaysTheSame(t *testing.T) {
	t.Parallel()
	_, url := serve(t, agenttest.Turns(agenttest.Turn{Text: "hello", Usage: &agenttest.Usage{Input: 5, Output: 7, CacheRead: 3}}))
	_, body, err := ask(t, url+"/v1/messages", strings.Replace(opening, `"stream":true`, `"stream":false`, 1))
	var got struct {
		Type    string
		Content []struct{ Type, Text string }
		Usage   map[string]int
	}
	if err != nil || json.Unmarshal([]byte(body), &got) != nil || got.Type != "message" || got.Content[0].Text != "hello" ||
		got.Usage["output_tokens"] != 7 || got.Usage["cache_read_input_tokens"] != 3 {
		t.Errorf("%s %v", body, err)
	}
	_, body, err = ask(t, url+"/v1/messages/count_tokens", opening)
	if err != nil || !strings.Contains(body, "input_tokens") {
		t.Errorf("%s %v", body, err)
	}
}

func TestConversationsAdvanceByWhatTheyHoldAndAttemptsByWhoAsks(t *testing.T) {
	t.Parallel()
	say := func(s string) agenttest.Turn { return agenttest.Turn{Text: s} }
	m, url := serve(t, agenttest.Attempts(agenttest.Turns(say("naive 1"), say("naive 2")), agenttest.Turns(say("right 1"))))
	next := strings.Replace(opening, `"content":"hi"}`, `"content":"hi"},{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"no such file"}]}]}`, 1)
	for _, c := range []struct{ session, body, want string }{
		{"one", opening, "naive 1"},
		{"one", opening, "naive 1"}, // a retry is the same turn
		{"one", next, "naive 2"},
		{"two", opening, "right 1"},
		{"one", opening, "naive 1"},
		{"three", opening, "right 1"},
		{"three", next, "Done."},
	} {
		_, body, err := ask(t, url+"/v1/messages", c.body, "X-Claude-Code-Session-Id", c.session, "X-Api-Key", "k-"+c.session)
		if _, text, _ := eventTypes(t, body); err != nil || text != c.want {
			t.Errorf("%s: %q, want %q (%v)", c.session, text, c.want, err)
		}
	}
	calls := m.Calls()
	if len(calls) != 7 || calls[0].Key() != "k-one" || calls[2].Turn != 1 || calls[0].Dir != "/w/tree" {
		t.Errorf("%d calls: %+v", len(calls), calls[0])
	}
	if diff := cmp.Diff([]agenttest.Result{{Text: "no such file", Error: true}}, calls[2].Results()); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsLookLikeTheRealOnes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		turn agenttest.Turn
		ok   func(*http.Response, string, error) bool
	}{
		{"429", agenttest.Turn{Fault: agenttest.Fault{Status: 429, RetryAfter: "3"}}, func(r *http.Response, b string, err error) bool {
			return err == nil && r.StatusCode == 429 && r.Header.Get("Retry-After") == "3" && strings.Contains(b, "rate_limit_error")
		}},
		{"529", agenttest.Turn{Fault: agenttest.Fault{Status: 529}}, func(r *http.Response, b string, err error) bool {
			return err == nil && r.StatusCode == 529 && strings.Contains(b, "overloaded_error")
		}},
		{"a redirect", agenttest.Turn{Fault: agenttest.Fault{Redirect: "https://x.example.com"}}, func(r *http.Response, b string, err error) bool {
			return err == nil && r.StatusCode == 307 && r.Header.Get("Location") == "https://x.example.com"
		}},
		{"a cut stream", agenttest.Turn{Text: "x", Fault: agenttest.Fault{CutAfter: 3}}, func(r *http.Response, b string, err error) bool {
			return errors.Is(err, io.ErrUnexpectedEOF) && strings.Count(b, "event: ") == 3
		}},
		{"no word", agenttest.Turn{Fault: agenttest.Fault{HangUp: true}}, func(r *http.Response, b string, err error) bool { return err != nil && b == "" }},
		{"no usage", agenttest.Turn{Text: "x", Usage: &agenttest.Usage{None: true}}, func(r *http.Response, b string, err error) bool {
			return err == nil && !strings.Contains(b, "usage")
		}},
		{"negative usage", agenttest.Turn{Text: "x", Usage: &agenttest.Usage{Raw: `{"output_tokens":-5}`}}, func(r *http.Response, b string, err error) bool {
			return err == nil && strings.Count(b, `"output_tokens":-5`) == 2
		}},
		{"a 2 MiB line", agenttest.Turn{Big: 2 << 20}, func(r *http.Response, b string, err error) bool {
			return err == nil && strings.Contains(b, agenttest.LongText(2<<20))
		}},
	} {
		_, url := serve(t, func(agenttest.Request) agenttest.Turn { return c.turn })
		if r, b, err := ask(t, url+"/v1/messages", opening); !c.ok(r, b, err) {
			t.Errorf("%s: %v %.200s %v", c.name, r, b, err)
		}
	}
}
