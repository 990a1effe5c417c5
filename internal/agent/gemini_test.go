package agent

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

func geminiFeed(t *testing.T, exit int, lines ...string) (Outcome, []Event) {
	t.Helper()
	var events []Event
	on := func(e Event) { events = append(events, e) }
	s := newStream(newGeminiReader(on), on)
	_, _ = s.Write([]byte(strings.Join(lines, "\n")))
	s.close()
	end := ending{Result: sandbox.Result{ExitCode: exit}}
	return geminiOutcome(judge(s, end), end), events
}

const geminiInit = `{"type":"init","session_id":"s1","model":"gemini-2.5-pro"}`

// INV-7: what the Gemini CLI 0.61.0 was seen to print and how it exited, with a stand-in for the API.
func TestGeminisEndingsHaveTheirOutcomes(t *testing.T) {
	t.Parallel()
	failed := func(text string) string {
		return fmt.Sprintf(`{"type":"result","status":"error","error":{"type":"unknown","message":%q},"stats":{"input_tokens":0}}`, "[API Error: "+text+"]")
	}
	done := `{"type":"result","status":"success","stats":{"input_tokens":10,"output_tokens":2,"cached":4}}`
	for _, c := range []struct {
		name    string
		exit    int
		lines   []string
		kind    Kind
		lasting bool
		final   string
	}{
		{"success", 0, []string{geminiInit, `{"type":"message","role":"user","content":"x"}`, `{"type":"message","role":"assistant","content":"All ","delta":true}`, `{"type":"message","role":"assistant","content":"done.","delta":true}`, done}, OK, false, "All done."},
		{"the last message counts", 0, []string{geminiInit, `{"type":"message","role":"assistant","content":"I look."}`, `{"type":"tool_use","tool_name":"read_file","parameters":{"file_path":"a"}}`, `{"type":"tool_result","status":"error"}`, `{"type":"message","role":"assistant","content":"Done."}`, done}, OK, false, "Done."},
		{"401", 145, []string{geminiInit, failed(`{"error":{"code":401}}`)}, Auth, false, ""},
		{"429, of which the text says nothing", 173, []string{geminiInit, failed("slow down")}, LimitRate, false, ""},
		{"503", 247, []string{geminiInit, failed("x")}, LimitRate, false, ""},
		{"529", 17, []string{geminiInit, failed("x")}, LimitRate, false, ""},
		{"400", 144, []string{geminiInit, failed("x")}, AgentError, true, ""},
		{"the meter's 402", 146, []string{geminiInit, failed("proctor: the budget of this run does not allow another model call")}, LimitBudget, false, ""},
		{"the provider's 402", 146, []string{geminiInit, failed("no payment method")}, LimitUsage, true, ""},
		{"the meter's 404", 1, []string{geminiInit, failed("proctor: model gemini-x has no known price")}, AgentError, true, ""},
		{"a stream that is cut", 1, []string{geminiInit, failed("terminated")}, AgentError, false, ""},
		{"no login", 41, nil, Auth, false, ""},
		{"a wrong setting", 52, nil, RefusedStart, true, ""},
		{"too many turns", 53, []string{geminiInit}, LimitTurns, false, ""},
		{"no result", 0, []string{geminiInit, "YOLO mode is enabled."}, Incomplete, false, ""},
		{"an answer that broke off, or a loop of its own", 0, []string{geminiInit, `{"type":"message","role":"assistant","content":"I look."}`, `{"type":"tool_use","tool_name":"read_file","parameters":{"file_path":"a"}}`, done}, Incomplete, false, ""},
		{"nothing at all was said", 0, []string{geminiInit, done}, Incomplete, false, ""},
		{"an unknown status", 0, []string{geminiInit, `{"type":"result","status":"aborted"}`}, AgentError, false, ""},
	} {
		o, _ := geminiFeed(t, c.exit, c.lines...)
		if o.Kind != c.kind || o.Lasting != c.lasting || c.final != "" && o.Final != c.final {
			t.Errorf("INV-7 %s: %s, lasting %v, final %q", c.name, o.Kind, o.Lasting, o.Final)
		}
	}
	late := geminiOutcome(Outcome{Kind: RefusedStart, Lasting: true}, ending{Result: sandbox.Result{ExitCode: 42}, stderr: "No input provided via stdin. Input can be"})
	if late.Kind != Incomplete || late.Advice() != RetryOnce {
		t.Errorf("INV-7 a start on a busy machine: %+v", late)
	}
	torn := geminiOutcome(Outcome{Kind: RefusedStart, Detail: "Error in /w/.gemini/settings.json: Expected property name"}, ending{Result: sandbox.Result{ExitCode: 52}})
	if torn.Kind != RefusedStart || !strings.Contains(torn.Next, "valid JSON, or delete it") {
		t.Errorf("INV-7 settings that cannot be parsed: %+v", torn)
	}
	o, events := geminiFeed(t, 0, geminiInit, `{"type":"tool_use","tool_name":"run_shell_command","parameters":{"command":"ls"}}`, "noise", done)
	if o.Usage.InputTokens != 10 || o.Usage.CacheRead != 4 || o.Session != "s1" || o.Skipped != 1 || len(events) != 4 || events[1].Text != "ls" {
		t.Errorf("%+v %+v", o, events)
	}
}

// INV-33: the Gemini CLI's settings are ours, in a directory that is new for the call and gone after it.
func TestGeminiIsStartedWithNothingOfOurs(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Auto)
	l.task.Gateway = Gateway{BaseURL: "http://127.0.0.1:7777", Nonce: "proctor-nonce-of-a-test", Port: 7777}
	l.task.Model, l.task.Prompt = "gemini-2.5-pro", "/quit\nsee @/etc/hostname"
	program := standIn(t, "gemini", `env > env.txt; for a in "$@"; do printf '%s\n' "[$a]"; done > args.txt; cat > prompt.txt; cat "$GEMINI_CLI_HOME/.gemini/settings.json" > settings.txt; echo '{"type":"message","role":"assistant","content":"Done."}'; echo '{"type":"result","status":"success"}'`)
	node := standIn(t, "node", "exit 0")
	o, _ := l.run(t, "gemini", Options{Program: program, Path: []string{filepath.Dir(node)}})
	if o.Kind != OK {
		t.Fatalf("%+v", o)
	}
	env := l.read(t, "env.txt")
	for _, want := range []string{"GEMINI_API_KEY=" + l.task.Gateway.Nonce + "\n", "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:7777\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment lacks %q: %s", want, env)
		}
	}
	if got := l.read(t, "settings.txt"); got != geminiSettings {
		t.Errorf("settings %s", got)
	}
	if got := l.read(t, "args.txt"); got != "[--output-format]\n[stream-json]\n[--approval-mode]\n[default]\n[--extensions]\n[none]\n[--model]\n[gemini-2.5-pro]\n[--prompt=The task follows.\n\n/quit\nsee @"+wordJoiner+"/etc/hostname]\n" {
		t.Errorf("arguments %s", got)
	}
	if got := l.read(t, "prompt.txt"); got != "" {
		t.Errorf("the prompt is on stdin too: %q", got)
	}
	l.task.Prompt = strings.Repeat("a long prompt ", 10_000)
	l.run(t, "gemini", Options{Program: program, Path: []string{filepath.Dir(node)}})
	if got, args := l.read(t, "prompt.txt"), l.read(t, "args.txt"); got != l.task.Prompt || strings.Contains(args, "--prompt") {
		t.Errorf("a long prompt of %d bytes on stdin, arguments %.300s", len(got), args)
	}
	if left, _ := filepath.Glob(filepath.Join(l.task.Home, ".gemini*")); len(left) != 0 {
		t.Errorf("left in HOME: %v", left)
	}
	l.task.Args = []string{"--sandbox"}
	if o, _ := l.run(t, "gemini", Options{Program: program, Path: []string{filepath.Dir(node)}}); o.Kind != RefusedStart || !o.Lasting {
		t.Errorf("an argument is let through: %+v", o)
	}
}
