package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// server answers like the Messages API. body is made from the nonce in the question.
func server(t *testing.T, status int, body func(nonce string) string) Anthropic {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var req messagesRequest
		if err := json.Unmarshal(raw, &req); err != nil || len(req.Messages) != 1 {
			t.Errorf("request: %v: %s", err, raw)
		}
		if r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != "run-nonce" || r.Header.Get("Anthropic-Version") == "" || req.Model != "reviewer-1" {
			t.Errorf("request to %s as %q for %q", r.URL, r.Header.Get("X-Api-Key"), req.Model)
		}
		_, rest, _ := strings.Cut(req.Messages[0].Content, "The nonce of this message is ")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body(rest[:32]))
	}))
	t.Cleanup(s.Close)
	return Anthropic{Endpoint{Client: s.Client(), BaseURL: s.URL + "/", Nonce: "run-nonce", Model: "reviewer-1"}}
}

func block(t *testing.T, stop string, blocks ...string) func(string) string {
	t.Helper()
	return func(nonce string) string {
		return strings.ReplaceAll(`{"type":"message","role":"assistant","stop_reason":"`+stop+`","content":[`+strings.Join(blocks, ",")+`],"usage":{"input_tokens":1,"output_tokens":1}}`, "NONCE", nonce)
	}
}

func quote(s string) string { b, _ := json.Marshal(s); return string(b) }

func TestTheMessagesAPIGivesAVerdictByToolOrByText(t *testing.T) {
	t.Parallel()
	call := `{"type":"tool_use","id":"t","name":"verdict","input":` + approve + `}`
	text := `{"type":"text","text":` + quote(approve) + `}`
	for _, c := range []struct {
		name     string
		status   int
		body     func(string) string
		approved bool
	}{
		{"a tool call", 200, block(t, "tool_use", call), true},
		{"a text", 200, block(t, "end_turn", text), true},
		{"thinking first", 200, block(t, "end_turn", `{"type":"thinking","thinking":"hm"}`, text), true},
		{"cut at the token limit", 200, block(t, "max_tokens", text), false},
		{"refused", 200, block(t, "refusal", text), false},
		{"a tool call and a text", 200, block(t, "tool_use", text, call), false},
		{"two tool calls", 200, block(t, "tool_use", call, call), false},
		{"two texts", 200, block(t, "end_turn", text, text), false},
		{"another tool", 200, block(t, "tool_use", strings.Replace(call, `"verdict","input"`, `"approve","input"`, 1)), false},
		{"duplicate members in the tool's input", 200, block(t, "tool_use", strings.Replace(call, `"findings":[]`, `"findings":[],"verdict":"approve"`, 1)), false},
		{"no content", 200, block(t, "end_turn"), false},
		{"no message", 200, func(string) string { return `{"type":"error"}` }, false},
		{"no JSON", 200, func(string) string { return "approve" }, false},
		{"overloaded", 529, func(string) string { return `{"type":"error","error":{"message":"Overloaded"}}` }, false},
		{"the ceiling", 402, func(string) string { return `{"type":"error","error":{"message":"ceiling"}}` }, false},
		{"an approval with a failure's status", 500, block(t, "end_turn", text), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v, err := Judge{Model: server(t, c.status, c.body)}.Review(t.Context(), small(t))
			if v.Approved != c.approved || (err == nil) != c.approved || err != nil && !errors.Is(err, ErrUnavailable) {
				t.Fatalf("got %+v, %v; want approved %v", v, err, c.approved)
			}
			var answer *HTTPError
			if c.status != 200 && (!errors.As(err, &answer) || answer.Status != c.status) {
				t.Errorf("the status is lost: %v", err)
			}
		})
	}
}

func TestAReviewerThatCannotBeReachedIsUnavailable(t *testing.T) {
	t.Parallel()
	a := server(t, 200, block(t, "end_turn"))
	a.BaseURL = "http://127.0.0.1:1"
	a.Client = &http.Client{Timeout: time.Second}
	if v, err := (Judge{Model: a}).Review(t.Context(), small(t)); v.Approved || !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %+v, %v", v, err)
	}
}

// run starts real programs.
func run(ctx context.Context, argv []string, stdin []byte) ([]byte, int, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out, exit.ExitCode(), nil
	}
	return out, 0, err
}

// INV-29, E79: a reviewer that never ran, ran badly, and ran and said no are three things; only a clear yes passes.
func TestACommandReviewsByWhatItPrints(t *testing.T) {
	t.Parallel()
	nonce := `nonce=$(sed 's/.*"nonce":"\([0-9a-f]*\)".*/\1/'); `
	for _, c := range []struct {
		name, script string
		approved     bool
		verdict      bool
	}{
		{"a yes", nonce + `printf '{"nonce":"%s","verdict":"approve","findings":[]}' "$nonce"`, true, true},
		{"a no", nonce + `printf '{"nonce":"%s","verdict":"reject","findings":[]}' "$nonce"`, false, true},
		{"a yes and a failure", nonce + `printf '{"nonce":"%s","verdict":"approve","findings":[]}' "$nonce"; exit 1`, false, false},
		{"a yes without the nonce", `cat >/dev/null; echo '{"verdict":"approve","findings":[]}'`, false, false},
		{"silence", `cat >/dev/null`, false, false},
		{"garbage", `head -c 100 /dev/urandom; cat >/dev/null`, false, false},
		{"an echo of the question", `cat`, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v, err := Judge{Model: Command{Argv: []string{"sh", "-c", c.script}, Run: run}}.Review(t.Context(), small(t))
			if v.Approved != c.approved || (err == nil) != c.verdict || err != nil && !errors.Is(err, ErrUnavailable) {
				t.Fatalf("got %+v, %v", v, err)
			}
		})
	}
	if v, err := (Judge{Model: Command{Argv: []string{"no-such-reviewer"}, Run: run}}).Review(t.Context(), small(t)); v.Approved || !errors.Is(err, ErrUnavailable) {
		t.Errorf("a missing program: got %+v, %v", v, err)
	}
}

// C51 to C55 and C64 of the corpus: what a CLI's judge says is no verdict of ours, whichever it is.
func TestTheCorpusVerdictsDoNotApprove(t *testing.T) {
	t.Parallel()
	dir := "../../../shared/corpus/agent-streams/claude/"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the shared corpus is not beside the repository; put it at ../shared to run this")
	}
	for _, file := range []string{"C51-structured-verdict", "C53-verdict-missing", "C55-structured-output-retries", "C64-schema-asked-none-given"} {
		raw, err := os.ReadFile(dir + file + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		texts := []string{string(raw)}
		for _, l := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
			texts = append(texts, l)
			var e struct {
				Result string          `json:"result"`
				Output json.RawMessage `json:"structured_output"`
			}
			_ = json.Unmarshal([]byte(l), &e)
			texts = append(texts, e.Result, string(e.Output))
		}
		for _, text := range texts {
			if v, err := parse(text, "n"); err == nil || v.Approved {
				t.Errorf("%s: %q is read as %+v", file, text, v)
			}
		}
	}
}
