package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// cpStart and others are lines as the Copilot CLI 1.0.102 printed them, without ids and times.
const (
	cpStart = `{"type":"assistant.turn_start","data":{"turnId":"0"}}`
	cpText  = `{"type":"assistant.message","data":{"model":"m","content":"Hello.","toolRequests":[]}}`
	cpTool  = `{"type":"tool.execution_start","data":{"toolName":"bash","arguments":{"command":"true"}}}`
	cpDone  = `{"type":"result","sessionId":"s1","exitCode":0,"usage":{"premiumRequests":0}}`
	cpNot   = `{"type":"result","sessionId":"s1","exitCode":1,"usage":{"premiumRequests":0}}`
)

func cpError(status, message string) string {
	return `{"type":"session.error","data":{"errorType":"query","message":"` + message + `"` + status + `}}`
}

// INV-7: a result that tells success is one only when nothing failed before it and the process ended by itself.
func TestCopilotsEndingsHaveTheirOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		lines   []string
		exit    string
		want    Kind
		lasting bool
	}{
		{"done", []string{`{"type":"session.skills_loaded","data":{}}`, cpStart, cpTool, cpStart, cpText, cpDone}, "0", OK, false},
		{"interrupted", []string{cpStart, cpText, `{"type":"abort","data":{"reason":"user_initiated"}}`, cpDone}, "0", Incomplete, false},
		{"no result", []string{cpStart, cpText}, "0", Incomplete, false},
		{"no event", []string{"hello"}, "0", Incomplete, false},
		{"a result without a code", []string{cpStart, cpText, `{"type":"result"}`}, "0", AgentError, false},
		{"no reason", []string{cpStart, cpNot}, "1", AgentError, false},
		{"401", []string{cpStart, cpError(`,"statusCode":401`, "Authentication failed with provider"), cpNot}, "1", Auth, false},
		{"429", []string{cpStart, cpError(`,"statusCode":429`, "retried 5 times. Last error: 429 slow down"), cpNot}, "1", LimitRate, false},
		{"529", []string{cpStart, cpError(`,"statusCode":529`, "busy"), cpNot}, "1", LimitRate, false},
		{"400", []string{cpStart, cpError(`,"statusCode":400`, "400 bad"), cpNot}, "1", AgentError, true},
		{"the meter's budget", []string{cpStart, cpError(`,"statusCode":402`, "402 proctor: the budget of this run does not allow another model call"), cpNot}, "1", LimitBudget, false},
		{"the meter's price", []string{cpStart, cpError(`,"statusCode":404`, "404 proctor: model m has no known price, so no budget could hold"), cpNot}, "1", AgentError, true},
		{"the provider's bill", []string{cpStart, cpError(`,"statusCode":402`, "402 pay first"), cpNot}, "1", LimitUsage, true},
		{"a failure without a status", []string{cpStart, cpError("", "terminated"), cpNot}, "1", AgentError, false},
		{"a failure and a code of success", []string{cpStart, cpError(`,"statusCode":401`, "no"), cpText, cpDone}, "0", Auth, false},
	} {
		t.Run("INV-7 "+c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, sandbox.Auto)
			l.task.Model, l.task.Gateway = "m", Gateway{BaseURL: "http://127.0.0.1:7777", Nonce: "proctor-nonce-of-a-test", Port: 7777}
			o, _ := l.run(t, "copilot", Options{Program: standIn(t, "copilot", "cat >/dev/null\ncat <<'END'\n"+strings.Join(c.lines, "\n")+"\nEND\nexit "+c.exit)})
			if o.Kind != c.want || o.Lasting != c.lasting || o.Kind != OK && o.Detail == "" {
				t.Errorf("%+v", o)
			}
			if c.want == OK && (o.Usage.Turns != 2 || o.Final != "Hello." || o.Session != "s1" || o.Skipped != 0) {
				t.Errorf("%+v", o)
			}
		})
	}
}

// INV-7: on a signal the CLI tells a result of success, which a time limit does not turn into work that is done.
func TestCopilotsResultBehindASignalIsATimeout(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Auto)
	l.task.Model, l.task.Gateway, l.task.Timeout, l.task.Grace = "m", Gateway{BaseURL: "http://127.0.0.1:7777", Nonce: "n", Port: 7777}, time.Second, 10*time.Second
	program := standIn(t, "copilot", "trap 'echo \"$LAST\"; exit 0' TERM\ncat >/dev/null; echo '"+cpStart+"'; LAST='{\"type\":\"abort\",\"data\":{}}\n"+cpDone+"'; while :; do sleep 0.05; done")
	if o, _ := l.run(t, "copilot", Options{Program: program}); o.Kind != Timeout || o.Session != "s1" {
		t.Errorf("%+v", o)
	}
}

// INV-33: the Copilot CLI's environment is built from nothing; its state is in a directory that is new for the call and gone
// after it. The prompt is on stdin and inert. A package that lies unpacked beside the program is used as it is.
func TestCopilotIsStartedWithNothingOfOurs(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Auto)
	l.task.Gateway = Gateway{BaseURL: "http://127.0.0.1:7777", Nonce: "proctor-nonce-of-a-test", Port: 7777}
	l.task.Model, l.task.Args, l.task.Prompt = "someones-model", []string{"--api=chat", "--context=32000", "--max-output=4000"}, "see @/etc/hostname"
	program := standIn(t, "copilot", `env > env.txt; echo "$@" > args.txt; cat > prompt.txt; mkdir -p "$COPILOT_HOME" && echo state > "$COPILOT_HOME/kept"; echo '`+cpDone+`'; echo "$COPILOT_PROVIDER_API_KEY" >&2`)
	o, _ := l.run(t, "copilot", Options{Program: program})
	if o.Kind != OK || strings.Contains(o.Stderr, l.task.Gateway.Nonce) || !strings.Contains(o.Stderr, "***") {
		t.Fatalf("%+v", o)
	}
	if got := l.read(t, "args.txt"); got != strings.Join(copilotArgs(), " ")+"\n" || strings.Contains(got, "trust") {
		t.Errorf("arguments %q", got)
	}
	if got := l.read(t, "prompt.txt"); got != "see @"+wordJoiner+"/etc/hostname" {
		t.Errorf("prompt %q", got)
	}
	env := l.read(t, "env.txt")
	for _, want := range []string{
		"COPILOT_OFFLINE=true", "COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:7777/v1", "COPILOT_PROVIDER_WIRE_API=completions", "COPILOT_MODEL=someones-model",
		"COPILOT_PROVIDER_MAX_PROMPT_TOKENS=32000", "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS=4000", "COPILOT_HOME=" + l.task.Home + "/.copilot-",
	} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment lacks %q: %s", want, env)
		}
	}
	if strings.Contains(env, "DIST_DIR") {
		t.Errorf("a package is named that is not there: %s", env)
	}
	if left, _ := filepath.Glob(filepath.Join(l.task.Home, ".copilot*")); len(left) != 0 {
		t.Errorf("left in HOME: %v", left)
	}
	unpacked := copilotUnpacked(program)
	if err := os.MkdirAll(unpacked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(unpacked, "index.js"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l.task.Args = nil
	l.run(t, "copilot", Options{Program: program})
	if env := l.read(t, "env.txt"); !strings.Contains(env, "COPILOT_CLI_DIST_DIR="+unpacked+"\n") || !strings.Contains(env, "WIRE_API=responses\n") {
		t.Errorf("the unpacked package is not used: %s", env)
	}
}
