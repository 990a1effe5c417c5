package agent

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// own are calls of the tool loop's tools.
func own(name string, input map[string]any) agenttest.Tool {
	return agenttest.Tool{Name: name, Input: input}
}

func ownShell(line string) agenttest.Tool { return own("shell", map[string]any{"command": line}) }

// apiRun is one call of the anthropic agent, confined, through the real meter.
type apiRun struct {
	lab
	meter *meter.Meter
	model *agenttest.Model
}

func newAPIRun(t testing.TB, script agenttest.Script, ceiling money.USD) *apiRun {
	t.Helper()
	r := &apiRun{lab: newLab(t, sandbox.Auto)}
	r.meter, r.model = paid(t, &r.lab, script, ceiling)
	r.task.Model = "claude-opus-4-8"
	return r
}

// paid gives a lab a meter before a scripted model.
func paid(t testing.TB, l *lab, script agenttest.Script, ceiling money.USD) (*meter.Meter, *agenttest.Model) {
	t.Helper()
	model := agenttest.NewModel(script)
	url, err := model.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	m, err := meter.Start(t.Context(), meter.Config{Upstream: url, Key: meter.Credential{Value: "the-real-key"}, Ceiling: ceiling})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	at := m.Endpoint()
	l.task.Gateway = Gateway{BaseURL: at.BaseURL, Nonce: at.Nonce, Port: at.Port}
	return m, model
}

func (r *apiRun) run(t testing.TB) (Outcome, []Event) {
	t.Helper()
	out, events := r.lab.run(t, "anthropic", Options{})
	if err := r.meter.Quiet(context.Background()); err != nil {
		t.Fatal(err)
	}
	return out, events
}

// INV-33, INV-38: what the model asks for is done by the agent's user within the confinement: its commands see
// neither key nor nonce and write nothing outside.
func TestTheToolLoopWorksConfinedWithTheNonceAsItsOnlyCredential(t *testing.T) {
	t.Parallel()
	r := newAPIRun(t, agenttest.Turns(
		agenttest.Turn{Text: "I look.", Tools: []agenttest.Tool{own("read", map[string]any{"path": "sum.txt"})}},
		agenttest.Turn{Tools: []agenttest.Tool{
			own("edit", map[string]any{"path": "sum.txt", "old": "two", "new": "three"}),
			ownShell("id -u > uid.txt; env > env.txt; (cat /proc/$PPID/environ; cat /proc/$PPID/fd/0; tr '\\0' ' ' < /proc/$PPID/cmdline) > parent.txt 2>err.txt; echo x > ../outside.txt; echo x > /proc/$PPID/fd/1; echo ran"),
		}},
		agenttest.Turn{Text: "A long word follows.", Big: 2 << 20, Tools: []agenttest.Tool{ownShell("true")}, Usage: &agenttest.Usage{Input: 9000, Output: 16_000}},
		agenttest.Turn{Text: "All is done."},
	), 20*money.Dollar)
	r.task.Args = []string{"--context=2000000"} // a long answer is read back, and not trimmed here
	r.file(t, "sum.txt", "one\ntwo\n")
	if err := r.box.Own(r.task.Dir, r.task.Home, r.task.Tmp); err != nil {
		t.Fatal(err)
	}
	o, events := r.run(t)
	if o.Kind != OK || o.Final != "All is done." || o.Usage.Turns != 4 {
		t.Fatalf("%+v\n%+v", o, events)
	}
	if r.read(t, "sum.txt") != "one\nthree\n" {
		t.Error(r.read(t, "sum.txt"))
	}
	nonce := r.task.Gateway.Nonce
	for _, name := range []string{"env.txt", "parent.txt"} {
		if got := r.read(t, name); strings.Contains(got, nonce) || strings.Contains(got, "the-real-key") || strings.HasPrefix(got, "(") {
			t.Errorf("INV-33 %s: %.200s", name, got)
		}
	}
	if !strings.Contains(r.read(t, "parent.txt"), "proctor-tool-loop") {
		t.Error("the control: the command found its parent")
	}
	if !strings.HasPrefix(r.read(t, "../outside.txt"), "(") {
		t.Error("INV-38 a command wrote outside")
	}
	if id, other := r.box.User(); other && strings.TrimSpace(r.read(t, "uid.txt")) != fmt.Sprint(id.UID) {
		t.Errorf("commands run as %s", r.read(t, "uid.txt"))
	}
	var tools []string
	for _, e := range events {
		if e.Kind == "tool" {
			tools = append(tools, e.Tool)
		}
	}
	if got := strings.Join(tools, " "); got != "read edit shell shell" {
		t.Errorf("tools %s", got)
	}
	for _, c := range r.model.Calls() {
		if c.Key() != "the-real-key" || strings.Contains(string(c.Body), nonce) {
			t.Errorf("the provider was shown %q", c.Key())
		}
	}
	if calls := r.meter.Calls(); len(calls) != 4 || r.meter.Spent() == 0 {
		t.Errorf("%d calls", len(calls))
	}
}

// INV-35: the ceiling ends the loop between two calls, and is told as one.
func TestTheToolLoopIsCutOffByTheBudgetInMidRun(t *testing.T) {
	t.Parallel()
	turn := agenttest.Turn{Tools: []agenttest.Tool{ownShell("echo turn >> turns.txt")}, Usage: &agenttest.Usage{Input: 1000, Output: 10_000}}
	r := newAPIRun(t, func(agenttest.Request) agenttest.Turn { return turn }, money.Dollar)
	r.task.Args = []string{"--max-output=10000"} // what is reserved before each call
	if err := r.box.Own(r.task.Dir, r.task.Home, r.task.Tmp); err != nil {
		t.Fatal(err)
	}
	o, _ := r.run(t)
	if o.Kind != LimitBudget || o.Next == "" || o.Usage.Turns < 2 || !r.meter.Exhausted() {
		t.Fatalf("%+v", o)
	}
	if r.meter.Spent() > money.Dollar+money.Dollar/2 {
		t.Errorf("INV-35 %s were spent", r.meter.Spent())
	}
	if n := strings.Count(r.read(t, "turns.txt"), "turn"); n != o.Usage.Turns {
		t.Errorf("%d turns did their work, of %d", n, o.Usage.Turns)
	}
}

// INV-23 for agents: a time-out takes the loop, its commands and what they left behind.
func TestTheToolLoopTimesOutWithItsGrandchildren(t *testing.T) {
	t.Parallel()
	r := newAPIRun(t, agenttest.Turns(
		agenttest.Turn{Tools: []agenttest.Tool{ownShell("setsid sleep 3600 >/dev/null 2>&1 & echo $! > pid.txt; sleep 3600")}},
	), 20*money.Dollar)
	r.task.Timeout = 2 * time.Second
	if err := r.box.Own(r.task.Dir, r.task.Home, r.task.Tmp); err != nil {
		t.Fatal(err)
	}
	o, _ := r.run(t)
	if o.Kind != Timeout || o.Survivors == 0 {
		t.Fatalf("%+v", o)
	}
	if strings.HasPrefix(r.read(t, "pid.txt"), "(") {
		t.Error("the control: the grandchild was started")
	}
}

// INV-7: what ends a call for good has the outcome that any other agent would have.
func TestFailedCallsOfTheToolLoopHaveTheirOutcome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault agenttest.Fault
		want  Outcome
	}{
		{"429 with a long wait", agenttest.Fault{Status: 429, RetryAfter: "90"}, Outcome{Kind: LimitRate, RetryIn: 90 * time.Second}},
		{"401", agenttest.Fault{Status: 401}, Outcome{Kind: Auth}},
		{"402", agenttest.Fault{Status: 402}, Outcome{Kind: LimitUsage, Lasting: true}},
		{"404", agenttest.Fault{Status: 404}, Outcome{Kind: AgentError, Lasting: true}},
	} {
		r := newAPIRun(t, func(agenttest.Request) agenttest.Turn { return agenttest.Turn{Fault: c.fault} }, money.Dollar)
		o, _ := r.run(t)
		if o.Kind != c.want.Kind || o.RetryIn != c.want.RetryIn || o.Lasting != c.want.Lasting || o.Detail == "" {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
}

// A short throttle and a stream that breaks off are waited out within the process.
func TestTheToolLoopOutlastsShortTroubleByItself(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	r := newAPIRun(t, func(agenttest.Request) agenttest.Turn {
		switch n.Add(1) {
		case 1:
			return agenttest.Turn{Fault: agenttest.Fault{Status: 529}}
		case 2:
			return agenttest.Turn{Text: "half", Fault: agenttest.Fault{CutAfter: 3}}
		}
		return agenttest.Turn{Text: "All is done."}
	}, 5*money.Dollar)
	o, events := r.run(t)
	again := 0
	for _, e := range events {
		if strings.Contains(e.Text, "asked again") {
			again++
		}
	}
	if o.Kind != OK || o.Final != "All is done." || again != 2 {
		t.Errorf("%+v %+v", o, events)
	}
}

// The openai agent speaks both of its APIs from within the confinement.
func TestTheOpenAIAgentSpeaksBothItsAPIs(t *testing.T) {
	t.Parallel()
	for api, answers := range map[string][]string{
		"responses": {
			`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c1","name":"write","arguments":"{\"path\":\"a.txt\",\"content\":\"hi\"}"}}` + "\n\n" + `data: {"type":"response.completed","response":{"usage":{"input_tokens":5,"output_tokens":7}}}`,
			`{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"Done."}]}}` + "\n\n" + `data: {"type":"response.completed","response":{}}`,
		},
		"chat": {
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"write","arguments":"{\"path\":\"a.txt\",\"content\":\"hi\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}` + "\n\ndata: [DONE]",
			`{"choices":[{"delta":{"content":"Done."},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]",
		},
	} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var paths []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				paths = append(paths, r.URL.Path)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprintf(w, "data: %s\n\n", answers[len(paths)-1])
			}))
			t.Cleanup(s.Close)
			l := newLab(t, sandbox.Auto)
			if err := l.box.Own(l.task.Dir, l.task.Home, l.task.Tmp); err != nil {
				t.Fatal(err)
			}
			at := netip.MustParseAddrPort(s.Listener.Addr().String())
			l.task.Gateway, l.task.Model = Gateway{BaseURL: s.URL, Nonce: "n", Port: at.Port()}, "some-model"
			l.task.Args = []string{"--api=" + api}
			o, _ := l.run(t, "openai", Options{})
			if o.Kind != OK || o.Final != "Done." || l.read(t, "a.txt") != "hi" || o.Usage.OutputTokens != 7 {
				t.Errorf("%+v", o)
			}
			mu.Lock()
			defer mu.Unlock()
			want := map[string]string{"responses": "/v1/responses", "chat": "/v1/chat/completions"}[api]
			if len(paths) != 2 || paths[0] != want {
				t.Errorf("asked at %v", paths)
			}
		})
	}
}

func TestAnAPIAgentRefusesToStartByName(t *testing.T) {
	t.Parallel()
	gateway := Gateway{BaseURL: "http://127.0.0.1:1", Nonce: "n", Port: 1}
	for _, c := range []struct {
		agent, model string
		args         []string
		gateway      Gateway
		want         string
	}{
		{"openai", "", nil, gateway, "set agent.model"},
		{"anthropic", "", nil, Gateway{}, "no model gateway"},
		{"anthropic", "", []string{"--verbose"}, gateway, "agent.args[0]: --verbose is not known"},
		{"anthropic", "", []string{"--api=chat"}, gateway, "with the agent openai"},
		{"openai", "m", []string{"--api=soap"}, gateway, "--api=responses or --api=chat"},
		{"openai", "m", []string{"--max-turns=0"}, gateway, "from 1 to 10000"},
		{"openai", "m", []string{"--context=many"}, gateway, "want a whole number"},
		{"openai", "m", []string{"--effort=LOW!"}, gateway, "--effort=low"},
	} {
		l := newLab(t, sandbox.Auto)
		l.task.Model, l.task.Args, l.task.Gateway = c.model, c.args, c.gateway
		o, _ := l.run(t, c.agent, Options{})
		if o.Kind != RefusedStart || !o.Lasting || !strings.Contains(o.Detail, c.want) {
			t.Errorf("%s %v: %+v", c.agent, c.args, o)
		}
	}
}
