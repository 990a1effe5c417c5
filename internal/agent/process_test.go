package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// standIn makes a program that stands in for a CLI, outside the directories that the agent may write.
func standIn(t testing.TB, name, script string) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

const initLine = `{"type":"system","subtype":"init","session_id":"s1","model":"m"}`

// INV-7: hang, crash, silence, floods and early ends each have their outcome, without a wait for the
// time limit where there is a result. The control is the time limit itself.
func TestProcessesThatMisbehaveHaveTheirOwnOutcome(t *testing.T) {
	t.Parallel()
	say := func(lines ...string) string { return "printf '%s\\n' '" + strings.Join(lines, "' '") + "'\n" }
	for _, c := range []struct {
		name, script string
		timeout      time.Duration
		grace        time.Duration
		want         Outcome
	}{
		{"P01 hangs after its result", say(initLine, resultLine) + "exec sleep 3600", time.Hour, 50 * time.Millisecond,
			Outcome{Kind: OK, Final: "done", ExitCode: -1, Signal: "terminated", Warnings: []string{"killed_after_result"}}},
		{"P01 control: without the watch it runs into the limit", say(initLine, resultLine) + "exec sleep 3600", time.Second, time.Hour,
			Outcome{Kind: OK, Final: "done", ExitCode: -1, Signal: "terminated", Warnings: []string{"killed_after_result"}}},
		{"P02 a grandchild holds stdout", "sleep 3600 &\n" + say(initLine, resultLine), time.Hour, time.Hour,
			Outcome{Kind: OK, Final: "done", Survivors: 1}},
		{"P03 ignores TERM", "trap '' TERM INT HUP\n" + say(initLine) + "while :; do sleep 1; done", time.Second, time.Hour,
			Outcome{Kind: Timeout, ExitCode: -1, Signal: "killed"}},
		{"P05 waits for stdin", "cat >/dev/null\n" + say(initLine, resultLine), time.Hour, time.Hour, Outcome{Kind: OK, Final: "done"}},
		{"P06 floods stderr", "head -c 20000000 /dev/zero | tr '\\0' e >&2\n" + say(initLine, resultLine), time.Hour, time.Hour, Outcome{Kind: OK, Final: "done"}},
		{"P07 half a line, then idle", "printf '%s' '{\"type\":\"assistant\"'\nexec sleep 3600", time.Second, time.Hour,
			Outcome{Kind: Timeout, ExitCode: -1, Signal: "terminated", Warnings: []string{"bad_line"}}},
		{"P09 dies by a signal", "kill -SEGV $$", time.Hour, time.Hour, Outcome{Kind: Incomplete, ExitCode: -1, Signal: "segmentation fault"}},
		{"refuses to start", "echo 'error: unknown option' >&2; exit 1", time.Hour, time.Hour,
			Outcome{Kind: RefusedStart, ExitCode: 1, Lasting: true}},
		{"a later result decides", say(initLine, resultLine, `{"type":"result","subtype":"success","is_error":true,"result":"API Error: 529 Overloaded"}`), time.Hour, time.Hour,
			Outcome{Kind: LimitRate, Final: "API Error: 529 Overloaded"}},
		{"too much output", say(initLine) + "yes " + strings.Repeat("y", 1000), time.Hour, time.Hour, Outcome{Kind: AgentError, ExitCode: -1, Signal: "killed", Warnings: []string{"bad_line"}, Excess: "it printed more than 32 MiB, so all of its processes were killed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, sandbox.Auto)
			l.task.Timeout = c.timeout
			o, _ := l.run(t, "claude-code", Options{
				Program: standIn(t, "claude", c.script), ResultGrace: c.grace,
				Sandbox: sandbox.Policy{Limits: sandbox.Limits{Output: 32 << 20}},
			})
			if c.want.Signal == "killed" && o.Signal == "terminated" {
				o.Signal = "killed" // the limit's first signal is enough for some programs
			}
			ignore := cmpopts.IgnoreFields(Outcome{}, "Duration", "Usage", "Session", "Stderr", "Detail", "Next", "Skipped")
			if diff := cmp.Diff(c.want, o, ignore); diff != "" {
				t.Errorf("(-want +got) %s\n%+v", diff, o)
			}
			if o.Kind != OK && o.Detail == "" {
				t.Error("INV-7 an ending without a word about it")
			}
			if len(o.Stderr) > stderrMax {
				t.Errorf("%d bytes of stderr are kept", len(o.Stderr))
			}
			if o.Duration > 30*time.Second {
				t.Errorf("it took %s", o.Duration)
			}
		})
	}
}

func TestACancelledCallIsToldAsStoppedNotAsAFault(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Auto)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, err := New("claude-code", Options{Runner: l.box, Program: standIn(t, "claude", "echo '"+initLine+"'; exec sleep 3600")})
	if err != nil {
		t.Fatal(err)
	}
	o, err := a.Run(ctx, l.task, func(e Event) {
		if e.Kind == "start" {
			cancel()
		}
	})
	if err != nil || o.Kind != Timeout || !strings.Contains(o.Detail, "stopped") {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = a.Run(ctx, l.task, nil)
	if err != nil || o.Kind != Timeout {
		t.Errorf("started after its cancellation: %+v, %v", o, err)
	}
}

// INV-7, INV-33: the CLI's environment is built from nothing, and its arguments are what keeps planted
// settings out. The prompt comes on stdin, whole.
func TestClaudeCodeIsStartedWithNothingOfOurs(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Auto)
	l.task.Gateway = Gateway{BaseURL: "http://127.0.0.1:7777", Nonce: "proctor-nonce-of-a-test", Port: 7777}
	l.task.Model, l.task.Args = "claude-opus-4-8", []string{"--max-turns", "7"}
	l.task.Prompt = "/compact\n" + strings.Repeat("a long prompt ", 20_000) + "@/etc/hostname \xff"
	program := standIn(t, "claude", `env > env.txt; for a in "$@"; do printf '%s\n' "[$a]"; done > args.txt; cat > prompt.txt; cat /proc/$PPID/environ > up.txt 2>/dev/null; echo '`+resultLine+`'; echo "$ANTHROPIC_API_KEY" >&2`)
	o, _ := l.run(t, "claude-code", Options{Program: program})
	if o.Kind != OK || strings.Contains(o.Stderr, l.task.Gateway.Nonce) {
		t.Fatalf("%+v", o)
	}
	var names []string
	for _, line := range strings.Split(strings.TrimSpace(l.read(t, "env.txt")), "\n") {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CI", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
		"CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CONFIG_DIR", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_TELEMETRY", "GIT_CONFIG_NOSYSTEM",
		"GIT_TERMINAL_PROMPT", "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "PWD", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "USER"}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "IS_SANDBOX" || n == "_" || n == "OLDPWD" || n == "SHLVL" })
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("environment (-want +got) %s", diff)
	}
	args := l.read(t, "args.txt")
	for _, want := range []string{"[-p]\n", "[--setting-sources]\n[]\n", "[--strict-mcp-config]\n", "[--tools]\n[Read,Edit,Write,Bash,Glob,Grep]\n", "[--model]\n[claude-opus-4-8]\n[--max-turns]\n[7]\n"} {
		if !strings.Contains(args, want) {
			t.Errorf("arguments lack %q: %s", want, args)
		}
	}
	var told struct {
		Type    string
		Message struct{ Role, Content string }
	}
	if err := json.Unmarshal([]byte(l.read(t, "prompt.txt")), &told); err != nil || told.Type != "user" || told.Message.Role != "user" {
		t.Errorf("it was told %+v: %v", told, err)
	}
	prompt := told.Message.Content
	if strings.HasPrefix(prompt, "/") || !strings.HasSuffix(prompt, "@"+wordJoiner+"/etc/hostname \uFFFD") || len(prompt) < 250_000 {
		t.Errorf("prompt of %d bytes: %.40q … %q", len(prompt), prompt, prompt[len(prompt)-30:])
	}
	left, _ := filepath.Glob(filepath.Join(l.task.Home, ".claude*"))
	if len(left) != 0 {
		t.Errorf("left in HOME: %v", left)
	}
}

func TestArgumentsThatUndoTheAdaptersOwnAreRefused(t *testing.T) {
	t.Parallel()
	for _, bad := range [][]string{
		{"--settings", "{}"}, {"--settings={}"}, {"--mcp-config", "x"}, {"--setting-sources", "project"}, {"--tools", "default"},
		{"--output-format", "text"}, {"-p"}, {"-c"}, {"--permission-mode", "plan"}, {"do this instead"}, {"--effort", "high", "do this instead"}, {"--"}, {"-pc"},
	} {
		l := newLab(t, sandbox.Off)
		l.task.Args = bad
		o, _ := l.run(t, "claude-code", Options{Program: standIn(t, "claude", "echo started > started")})
		if o.Kind != RefusedStart || !o.Lasting || !strings.Contains(o.Detail, "agent.args[") || !strings.HasPrefix(l.read(t, "started"), "(") {
			t.Errorf("%q: %+v", bad, o)
		}
	}
	for _, good := range [][]string{nil, {"--max-turns", "5"}, {"--effort=high", "--betas", "x"}, {"--append-system-prompt", "Be brief."}} {
		if err := checkClaudeArgs(good); err != nil {
			t.Errorf("control %q: %v", good, err)
		}
	}
}

func TestAMissingProgramIsNamedWithTheCommandThatBringsIt(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Auto)
	l.task.Model, l.task.Gateway = "m", Gateway{BaseURL: "http://127.0.0.1:7777", Nonce: "n", Port: 7777}
	for name, o := range map[string]Options{
		"claude-code": {Program: "/nowhere/claude"},
		"codex":       {Program: "/nowhere/codex"},
		"copilot":     {Program: "/nowhere/copilot"},
		"gemini":      {Program: "/nowhere/gemini"},
		"opencode":    {Program: "/nowhere/opencode"},
		"command":     {Command: []string{"no-such-agent"}},
	} {
		o.Runner = l.box
		a, err := New(name, o)
		if err != nil {
			t.Fatal(err)
		}
		err = a.Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), "install") {
			t.Errorf("INV-7 %s: %v", name, err)
		}
		out, err := a.Run(t.Context(), l.task, nil)
		if err != nil || out.Kind != RefusedStart || out.Next == "" || out.Advice() != RetryNo {
			t.Errorf("INV-7 %s: %+v, %v", name, out, err)
		}
	}
	if _, err := New("clyde", Options{}); err == nil || !strings.Contains(err.Error(), "anthropic, claude-code, codex, command, copilot, gemini, openai, opencode, script") {
		t.Errorf("%v", err)
	}
}

func TestACommandIsJudgedByItsExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		want         Outcome
	}{
		{"changes a file", `cat > got.txt; echo working; echo done`, Outcome{Kind: OK, Final: "working\ndone\n"}},
		{"fails", `echo no luck >&2; exit 3`, Outcome{Kind: AgentError, ExitCode: 3, Detail: "it ended with exit code 3: no luck", Stderr: "no luck\n"}},
		{"says success and fails", `echo '{"type":"result","subtype":"success","is_error":false}'; exit 1`,
			Outcome{Kind: AgentError, ExitCode: 1, Detail: "it ended with exit code 1", Final: "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false}\n"}},
		{"is killed", `kill -KILL $$`, Outcome{Kind: Incomplete, ExitCode: -1, Signal: "killed", Detail: "it ended by a signal (killed) without telling a result"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, sandbox.Auto)
			o, events := l.run(t, "command", Options{Command: []string{"sh", "-c", c.script}})
			if diff := cmp.Diff(c.want, o, cmpopts.IgnoreFields(Outcome{}, "Duration")); diff != "" {
				t.Error(diff)
			}
			if c.name == "changes a file" {
				if got := l.read(t, "got.txt"); got != "Fix it." {
					t.Errorf("the prompt arrived as %q", got)
				}
				if diff := cmp.Diff([]Event{{Kind: "message", Text: "working"}, {Kind: "message", Text: "done"}}, events); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestDefusedPromptsReadTheSameAndExpandNothing(t *testing.T) {
	t.Parallel()
	j := wordJoiner
	for in, want := range map[string]string{
		"see @a.txt":            "see @" + j + "a.txt",
		"@a.txt":                "The task follows.\n\n@" + j + "a.txt",
		"(@\"a b\") \n@/etc":    "(@" + j + "\"a b\") \n@" + j + "/etc",
		"mail me@example.com":   "mail me@example.com",
		"a\u00a0@x and\u2003@y": "a\u00a0@" + j + "x and\u2003@" + j + "y",
		"/compact":              "The task follows.\n\n/compact",
		" \n -x":                "The task follows.\n\n \n -x",
		"nul \x00 bad \xff":     "nul  bad \uFFFD",
		"plain":                 "plain",
	} {
		if got := defuse(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestEventsAreShortPrintableAndInOrder(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal("line one\nline two \x1b[31m" + strings.Repeat("x", 1000))
	if err != nil {
		t.Fatal(err)
	}
	var events []Event
	on := func(e Event) { events = append(events, e) }
	s := newStream(newClaudeReader(on), on)
	_, _ = s.Write([]byte(initLine + "\nnoise\n" +
		`{"type":"assistant","message":{"content":[{"type":"text","text":` + string(text) + `},{"type":"tool_use","name":"Write","input":{"file_path":"a.go","content":"secret body"}}]}}` + "\n" + resultLine + "\n"))
	s.close()
	kinds := ""
	for _, e := range events {
		kinds += e.Kind + " "
		if len(e.Text) > eventMax || strings.ContainsAny(e.Text, "\n\x1b") || strings.Contains(e.Text, "secret body") {
			t.Errorf("%+v", e)
		}
	}
	if kinds != "start noise message tool result " {
		t.Errorf("%s", kinds)
	}
}

// TestACLIInAPrivateHomeIsNamedBeforeTheStart: root finds it, the agent's own user would not.
func TestACLIInAPrivateHomeIsNamedBeforeTheStart(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Auto)
	if _, other := l.box.User(); !other {
		t.Skip("needs root, to give the agent a user of its own: sudo -E go test ./internal/agent/")
	}
	home := t.TempDir()
	if err := os.WriteFile(home+"/claude", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, 4321, 4321); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Runner: l.box, Path: []string{home}}, {Runner: l.box, Program: home + "/claude"}} {
		a, err := New("claude-code", o)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Check(context.Background()); err == nil || !strings.Contains(err.Error(), "cannot enter "+home+" (mode 0700)") {
			t.Errorf("Check: %v", err)
		}
		if err := os.Chmod(home, 0o711); err != nil {
			t.Fatal(err)
		}
		if err := a.Check(context.Background()); err != nil {
			t.Errorf("positive control: passable, and Check says %v", err)
		}
		if err := os.Chmod(home, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
