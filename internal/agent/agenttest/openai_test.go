package agenttest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
)

// The two APIs of OpenAI play the same script, turn by turn and attempt by attempt.
func TestOpenAIsAPIsPlayTheSameScript(t *testing.T) {
	t.Parallel()
	const call = `{\"content\":\"x\",\"file_path\":\"/a.txt\"}`
	for _, c := range []struct{ path, opening, next, want1, want2 string }{
		{"/v1/responses",
			`{"model":"m","stream":true,"tools":[{"type":"function","name":"Write"}],"instructions":"be good","input":[{"role":"user","content":"hi"}]}`,
			`{"model":"m","stream":true,"tools":[{"type":"function","name":"Write"}],"instructions":"be good","input":[{"role":"user","content":"hi"},
			 {"type":"message","role":"assistant","content":[{"type":"output_text","text":"one"}]},{"type":"function_call","call_id":"a","name":"Write","arguments":"{}"},
			 {"type":"function_call_output","call_id":"a","output":"written"}]}`,
			`"arguments":"` + call + `"`, `"text":"two"`},
		{"/v1/chat/completions",
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"Write"}}],"messages":[{"role":"system","content":"be good"},{"role":"user","content":"hi"}]}`,
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"Write"}}],"messages":[{"role":"system","content":"be good"},{"role":"user","content":"hi"},
			 {"role":"assistant","content":"one","tool_calls":[{"id":"a","type":"function","function":{"name":"Write","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"written"}]}`,
			`"arguments":"` + call + `"`, `"content":"two"`},
	} {
		m, url := serve(t, agenttest.Turns(
			agenttest.Turn{Text: "one", Tools: []agenttest.Tool{agenttest.Write("/a.txt", "x")}},
			agenttest.Turn{Text: "two", Usage: &agenttest.Usage{Input: 5, Output: 7, CacheRead: 3}},
		))
		_, first, err := ask(t, url+c.path, c.opening, "Authorization", "Bearer k")
		if err != nil || !strings.Contains(first, c.want1) || !strings.Contains(first, "one") {
			t.Errorf("%s: %s %v", c.path, first, err)
		}
		_, second, err := ask(t, url+c.path, c.next)
		if err != nil || !strings.Contains(second, c.want2) || !strings.Contains(second, `"cached_tokens":3`) {
			t.Errorf("%s: %s %v", c.path, second, err)
		}
		calls := m.Calls()
		if len(calls) != 2 || calls[1].Turn != 1 || calls[1].Attempt != 1 || calls[0].Key() != "k" || !strings.Contains(calls[1].Text(), "be good") {
			t.Fatalf("%s: %+v", c.path, calls)
		}
		if diff := cmp.Diff([]agenttest.Result{{Text: "written"}}, calls[1].Results()); diff != "" {
			t.Errorf("%s: %s", c.path, diff)
		}
	}
	_, url := serve(t, func(agenttest.Request) agenttest.Turn {
		return agenttest.Turn{Text: "x", Fault: agenttest.Fault{CutAfter: 2}}
	})
	if _, body, err := ask(t, url+"/v1/responses", `{"stream":true,"input":[]}`); err == nil || strings.Count(body, "data: ") != 2 {
		t.Errorf("a cut stream: %q %v", body, err)
	}
}
