package agent

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// ocStep and others are lines as OpenCode 1.18.33 printed them, without ids.
const (
	ocStart = `{"type":"step_start","sessionID":"ses_1","part":{"type":"step-start"}}`
	ocText  = `{"type":"text","sessionID":"ses_1","part":{"type":"text","text":"Hello."}}`
	ocTool  = `{"type":"tool_use","sessionID":"ses_1","part":{"type":"tool","tool":"bash","state":{"status":"completed","input":{"command":"true"}}}}`
	ocMore  = `{"type":"step_finish","sessionID":"ses_1","part":{"reason":"tool-calls","tokens":{"input":10,"output":3,"cache":{"write":0,"read":5}}}}`
	ocDone  = `{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop","tokens":{"input":10,"output":3,"cache":{"write":0,"read":5}}}}`
)

func ocError(status, message string) string {
	return `{"type":"error","sessionID":"ses_1","error":{"name":"APIError","data":{"message":"` + message + `","statusCode":` + status + `,"isRetryable":false}}}`
}

// INV-7: the CLI tells no result, so that only a last step that stopped by itself, behind which the process ended well, is one.
func TestOpenCodesStreamAndEndAreReadTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lines []string
		exit  string
		want  Kind
	}{
		{"done", []string{ocStart, ocTool, ocMore, ocStart, ocText, ocDone}, "0", OK},
		{"ended behind a tool", []string{ocStart, ocTool, ocMore}, "0", Incomplete},
		{"ended within a step", []string{ocStart, ocText, ocDone, ocStart}, "0", Incomplete},
		{"failed behind its last step", []string{ocStart, ocText, ocDone}, "1", Incomplete},
		{"cut at the token limit", []string{ocStart, ocText, strings.Replace(ocDone, `"stop"`, `"length"`, 1)}, "0", Incomplete},
		{"no event", []string{"hello"}, "0", Incomplete},
		{"401", []string{ocStart, ocError("401", "no such key")}, "1", Auth},
		{"429", []string{ocStart, ocError("429", "slow down")}, "1", LimitRate},
		{"503", []string{ocStart, ocError("503", "busy")}, "1", LimitRate},
		{"the meter's budget", []string{ocStart, ocError("402", "proctor: the budget of this run does not allow another model call")}, "1", LimitBudget},
		{"the provider's bill", []string{ocStart, ocError("402", "pay first")}, "1", LimitUsage},
		{"words of success behind an error", []string{ocStart, ocError("400", "bad"), ocText}, "0", AgentError},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, sandbox.Auto)
			l.task.Model, l.task.Gateway = "m", Gateway{BaseURL: "http://127.0.0.1:7777", Nonce: "proctor-nonce-of-a-test", Port: 7777}
			o, _ := l.run(t, "opencode", Options{Program: standIn(t, "opencode", "cat >/dev/null\ncat <<'END'\n"+strings.Join(c.lines, "\n")+"\nEND\nexit "+c.exit)})
			if o.Kind != c.want || o.Kind != OK && o.Detail == "" {
				t.Errorf("%+v", o)
			}
			if c.want == OK && (o.Usage.InputTokens != 20 || o.Usage.OutputTokens != 6 || o.Usage.CacheRead != 10 || o.Usage.Turns != 2 || o.Final != "Hello." || o.Session != "ses_1") {
				t.Errorf("%+v", o)
			}
		})
	}
}

// INV-33: OpenCode's environment is built from nothing and holds all its configuration; its state is in a directory that
// is new for the call and gone after it. The prompt is on stdin and inert.
func TestOpenCodeIsStartedWithNothingOfOurs(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Auto)
	l.task.Gateway = Gateway{BaseURL: "http://127.0.0.1:7777", Nonce: "proctor-nonce-of-a-test", Port: 7777}
	l.task.Model, l.task.Args, l.task.Prompt = "someones-model", []string{"--api=chat", "--context=32000", "--max-output=4000"}, "see @/etc/hostname"
	program := standIn(t, "opencode", `env > env.txt; echo "$@" > args.txt; cat > prompt.txt; mkdir -p "$XDG_DATA_HOME" && echo state > "$XDG_DATA_HOME/kept"; echo '`+ocDone+`'; echo "$OPENCODE_CONFIG_CONTENT" >&2`)
	o, _ := l.run(t, "opencode", Options{Program: program})
	if o.Kind != OK || strings.Contains(o.Stderr, l.task.Gateway.Nonce) || !strings.Contains(o.Stderr, "***") {
		t.Fatalf("%+v", o)
	}
	if got := l.read(t, "args.txt"); got != "run --format json --pure --auto --title run\n" {
		t.Errorf("arguments %q", got)
	}
	if got := l.read(t, "prompt.txt"); got != "see @"+wordJoiner+"/etc/hostname" {
		t.Errorf("prompt %q", got)
	}
	var config struct {
		Model      string
		Permission map[string]string
		Provider   map[string]struct {
			NPM     string
			Options map[string]string
			Models  map[string]struct{ Limit map[string]int }
		}
	}
	for line := range strings.Lines(l.read(t, "env.txt")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch {
		case name == "OPENCODE_CONFIG_CONTENT":
			if err := json.Unmarshal([]byte(value), &config); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(value, l.task.Home+"/.opencode-"):
			t.Errorf("%s is %s", name, value)
		}
	}
	p := config.Provider["proctor"]
	if config.Model != "proctor/someones-model" || p.NPM != "@ai-sdk/openai-compatible" || p.Options["baseURL"] != "http://127.0.0.1:7777/v1" || p.Options["apiKey"] != l.task.Gateway.Nonce ||
		p.Models["someones-model"].Limit["context"] != 32000 || p.Models["someones-model"].Limit["output"] != 4000 || config.Permission["webfetch"] != "deny" {
		t.Errorf("%+v", config)
	}
	if !strings.Contains(l.read(t, "env.txt"), "OPENCODE_DISABLE_PROJECT_CONFIG=1\n") {
		t.Error("the repository's configuration would be read")
	}
	if left, _ := filepath.Glob(filepath.Join(l.task.Home, ".opencode*")); len(left) != 0 {
		t.Errorf("left in HOME: %v", left)
	}
}

func TestArgumentsOfCLIsForAnyModelAreHeldToWhatIsKnown(t *testing.T) {
	t.Parallel()
	for agent, done := range map[string]string{"opencode": ocDone, "copilot": cpDone} {
		for _, c := range []struct {
			model string
			args  []string
			want  string // "": it is started
		}{
			{"m", nil, ""},
			{"m", []string{"--api=responses", "--max-output=1000"}, ""},
			{"", nil, "agent " + agent + " has no model of its own: set agent.model"},
			{"m", []string{"--share"}, "agent.args[0]: --share"},
			{"m", []string{"--api=chat", "do this"}, "agent.args[1]: do this"},
			{"m", []string{"--context=1"}, "agent.args[0]"},
		} {
			l := newLab(t, sandbox.Off)
			l.task.Model, l.task.Args, l.task.Gateway = c.model, c.args, Gateway{BaseURL: "http://127.0.0.1:7777", Nonce: "n", Port: 7777}
			o, _ := l.run(t, agent, Options{Program: standIn(t, agent, "cat >/dev/null; echo '"+done+"'")})
			if (o.Kind == OK) != (c.want == "") || c.want != "" && (!o.Lasting || !strings.Contains(o.Detail, c.want)) {
				t.Errorf("%s %q %q: %+v", agent, c.model, c.args, o)
			}
		}
	}
}
