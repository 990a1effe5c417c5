package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

const corpus = "../../../shared/corpus/agent-streams"

type streamCase struct {
	ID, CLI, Stdout, Stderr string
	ExitCode                int    `json:"exit_code"`
	KilledByUs              string `json:"killed_by_us"`
	Want                    struct {
		Outcome       Kind
		AcceptOutcome []Kind `json:"accept_outcome"`
		Retry         Retry
		Final         *string   `json:"final_text"`
		AcceptFinal   []*string `json:"accept_final_text"`
		AnyFinal      bool      `json:"accept_any_final_text"`
		Cost          any       `json:"cost_usd"`
		Turns         *int      `json:"turns"`
		AcceptTurns   []int     `json:"accept_turns"`
		Denials       int
		Tokens        *struct {
			Input, Output int64
			CacheCreation int64 `json:"cache_creation"`
			CacheRead     int64 `json:"cache_read"`
			Cached        int64
		}
		Session string   `json:"session_id"`
		RetryAt *int64   `json:"retry_at"`
		Warn    []string `json:"warnings"`
	}
	Why string
}

// feed reads a stream as if a process had printed it in pieces and ended so.
func feed(t testing.TB, cli string, stdout []byte, step int, end ending) (Outcome, *stream) {
	t.Helper()
	var r reader = newClaudeReader(nil)
	switch cli {
	case "codex":
		r = newCodexReader(nil)
	case "gemini":
		r = newGeminiReader(nil)
	case "opencode":
		r = newOpenCodeReader(nil)
	}
	s := newStream(r, nil)
	for rest := stdout; len(rest) > 0; {
		n := min(step, len(rest))
		if _, err := s.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	s.close()
	return judge(s, end), s
}

// INV-7: every recorded way for a CLI to end has its own outcome.
func TestRecordedStreamsHaveTheirRightReading(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(corpus, "expected.json"))
	if err != nil {
		t.Skip("needs the corpus of agent streams beside the repository (../shared/corpus): put it there")
	}
	var file struct{ Cases []streamCase }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 70 {
		t.Fatalf("only %d cases", len(file.Cases))
	}
	for _, c := range file.Cases {
		for _, step := range []int{1 << 20, 1000, 7} {
			t.Run(fmt.Sprintf("%s by %d", c.ID, step), func(t *testing.T) {
				t.Parallel()
				checkStream(t, c, step)
			})
		}
	}
}

func checkStream(t *testing.T, c streamCase, step int) {
	stdout, err := os.ReadFile(filepath.Join(corpus, c.Stdout))
	if err != nil {
		t.Fatal(err)
	}
	end := ending{Result: sandbox.Result{ExitCode: c.ExitCode}}
	if c.Stderr != "" {
		b, err := os.ReadFile(filepath.Join(corpus, c.Stderr))
		if err != nil {
			t.Fatal(err)
		}
		end.stderr = string(b)
	}
	switch c.KilledByUs {
	case "timeout":
		end.TimedOut, end.ExitCode, end.Signal = true, -1, "terminated"
	case "grace_after_result":
		end.Cancelled, end.lateByUs, end.ExitCode, end.Signal = true, true, -1, "killed"
	}
	o, _ := feed(t, c.CLI, stdout, step, end)
	w := c.Want
	if o.Kind != w.Outcome && !slices.Contains(w.AcceptOutcome, o.Kind) {
		t.Errorf("outcome %s (%s), want %s: %s", o.Kind, o.Detail, w.Outcome, c.Why)
	}
	if o.Kind == w.Outcome && o.Advice() != w.Retry {
		t.Errorf("retry %s, want %s: %s", o.Advice(), w.Retry, c.Why)
	}
	checkFinal(t, c, o)
	if known, isNumber := w.Cost.(float64); isNumber != o.Usage.CostKnown || isNumber && o.Usage.CostUSD != usd(known) {
		t.Errorf("cost %s known %v, want %v: %s", o.Usage.CostUSD.Decimal(), o.Usage.CostKnown, w.Cost, c.Why)
	}
	if w.Turns != nil && o.Usage.Turns != *w.Turns && !slices.Contains(w.AcceptTurns, o.Usage.Turns) {
		t.Errorf("turns %d, want %d", o.Usage.Turns, *w.Turns)
	}
	if len(o.Denied) != w.Denials {
		t.Errorf("denied %v, want %d", o.Denied, w.Denials)
	}
	if k := w.Tokens; k != nil {
		want := Usage{InputTokens: k.Input, OutputTokens: k.Output, CacheRead: k.CacheRead + k.Cached, CacheWrite: k.CacheCreation}
		got := o.Usage
		got.CostUSD, got.CostKnown, got.Turns = 0, false, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if w.Session != "" && o.Session != w.Session {
		t.Errorf("session %q, want %q", o.Session, w.Session)
	}
	if w.RetryAt != nil && o.ResetAt.Unix() != *w.RetryAt || w.RetryAt == nil && !o.ResetAt.IsZero() {
		t.Errorf("reset %v, want %v", o.ResetAt, w.RetryAt)
	}
	for _, name := range w.Warn {
		if name != "cost_unknown" && name != "turns_over_limit" && !slices.Contains(o.Warnings, name) {
			t.Errorf("warnings %v, want %s", o.Warnings, name)
		}
	}
}

func checkFinal(t *testing.T, c streamCase, o Outcome) {
	t.Helper()
	accept := append(c.Want.AcceptFinal, c.Want.Final)
	if c.Want.AnyFinal || slices.ContainsFunc(accept, func(s *string) bool { return (s == nil && o.Final == "") || (s != nil && *s == o.Final) }) {
		return
	}
	t.Errorf("final %q, want %v: %s", o.Final, c.Want.Final, c.Why)
}

func usd(f float64) money.USD { return money.USD(f*1e9 + 0.5) }

const resultLine = `{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"done","total_cost_usd":0.01,"usage":{"input_tokens":1,"output_tokens":1}}`

func TestLinesOfAnySizePassAndOversizeOnesAreSkippedAndCounted(t *testing.T) {
	t.Parallel()
	big := func(n int) string {
		return `{"type":"user","message":{"content":[{"type":"tool_result","content":"` + strings.Repeat("y", n) + `"}]}}` + "\n"
	}
	for _, c := range []struct {
		name    string
		n       int
		skipped int
	}{{"2 MiB", 2 << 20, 0}, {"12 MiB", 12 << 20, 0}, {"over the cap", lineMax + 1, 1}} {
		o, s := feed(t, "claude", []byte(big(c.n)+resultLine+"\n"), 32<<10, ending{})
		if o.Kind != OK || o.Final != "done" || s.skipped != c.skipped {
			t.Errorf("%s: %+v, skipped %d", c.name, o, s.skipped)
		}
		if cap(s.lines.buf) > 2*lineMax {
			t.Errorf("%s: %d bytes are held", c.name, cap(s.lines.buf))
		}
	}
}

func TestAFieldOfAnUnexpectedTypeVoidsTheFieldOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, line string
		want       Outcome
	}{
		{"cost as text", `{"type":"result","subtype":"success","is_error":false,"result":"r","total_cost_usd":"0.5","num_turns":"3","usage":[]}`, Outcome{Kind: OK, Final: "r"}},
		{"negative counts", `{"type":"result","subtype":"success","is_error":false,"result":"r","total_cost_usd":-1,"num_turns":-3,"usage":{"input_tokens":-5,"output_tokens":1.5}}`, Outcome{Kind: OK, Final: "r"}},
		{"result as object", `{"type":"result","subtype":"success","is_error":false,"result":{"x":1},"permission_denials":{"a":1}}`, Outcome{Kind: OK}},
		{"other letters", `{"type":"result","subtype":"success","Is_Error":true,"IS_ERROR":true,"is_error":false}`, Outcome{Kind: OK}},
		{"no subtype", `{"type":"result","is_error":false}`, Outcome{Kind: AgentError}},
		{"an unknown subtype", `{"type":"result","subtype":"error_of_tomorrow","is_error":false}`, Outcome{Kind: AgentError, Detail: "error_of_tomorrow"}},
		{"an infinite cost", `{"type":"result","subtype":"success","is_error":false,"total_cost_usd":1e999}`, Outcome{Kind: OK}},
	} {
		o, _ := feed(t, "claude", []byte(c.line), 1000, ending{})
		if diff := cmp.Diff(c.want, o); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// The meter's own refusal is the run's budget, the provider's 402 is the user's bill.
func TestABudgetOfOursAndABillOfTheirsAreToldApart(t *testing.T) {
	t.Parallel()
	line := `{"type":"result","subtype":"success","is_error":true,"api_error_status":%s,"result":"API Error: 402 %s"}`
	for _, c := range []struct {
		status, text string
		kind         Kind
	}{
		{"402", "proctor: the budget of this run does not allow another model call", LimitBudget},
		{"null", "proctor: the budget of this run does not allow another model call", LimitBudget},
		{"402", "Your payment method was declined", LimitUsage},
	} {
		o, _ := feed(t, "claude", fmt.Appendf(nil, line, c.status, c.text), 1000, ending{Result: sandbox.Result{ExitCode: 1}})
		if o.Kind != c.kind {
			t.Errorf("%s %s: %s", c.status, c.text, o.Kind)
		}
	}
}

// What Codex 0.171.0 says of each failure, as it was seen with a stand-in for the API. The control is a failure that
// has no such word in it.
func TestCodexsWordsForFailuresHaveTheirOutcomes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Outcome{
		"unexpected status 401 Unauthorized: no, url: http://127.0.0.1:1/v1/responses":                                          {Kind: Auth},
		"exceeded retry limit, last status: 429 Too Many Requests":                                                              {Kind: LimitRate},
		"unexpected status 529 <unknown status code>: x, url: http://127.0.0.1:1/v1/responses":                                  {Kind: LimitRate},
		"unexpected status 503 Service Unavailable: x, url: http://127.0.0.1:1/v1/responses":                                    {Kind: LimitRate},
		"unexpected status 402 Payment Required: proctor: the budget of this run does not allow another model call: $1, url: u": {Kind: LimitBudget},
		"unexpected status 402 Payment Required: Your payment method was declined, url: u":                                      {Kind: LimitUsage, Lasting: true},
		"unexpected status 404 Not Found: proctor: model \"x\" has no known price, url: u":                                      {Kind: AgentError, Lasting: true},
		"Quota exceeded. Check your plan and billing details.":                                                                  {Kind: LimitUsage, Lasting: true},
		"stream disconnected before completion: Transport error: network error: error decoding response body":                   {Kind: AgentError},
		"something else": {Kind: AgentError},
	} {
		line, err := json.Marshal(map[string]any{"type": "turn.failed", "error": map[string]string{"message": text}})
		if err != nil {
			t.Fatal(err)
		}
		if o, _ := feed(t, "codex", line, 7, ending{Result: sandbox.Result{ExitCode: 1}}); o.Kind != want.Kind || o.Lasting != want.Lasting {
			t.Errorf("INV-7 %q: %s, lasting %v", text, o.Kind, o.Lasting)
		}
	}
}

func TestDetailsArePrintableOneLineAndBounded(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\nb\r\n\tc":                 "a b c",
		"\x1b[31mred\x1b[0m":          "[31mred [0m",
		"::set-output name=x::y":      "::set-output name=x::y",
		"\u202egnp.exe\u2066":         "gnp.exe",
		"bad \xff utf8":               "bad \uFFFD utf8",
		"  lead and trail  ":          "lead and trail",
		"zero\u200bwidth\ufeff\u2060": "zerowidth",
	} {
		if got := printable(in, 100); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := printable(strings.Repeat("é", 1000), 501); len(got) > 501 || !utf8.ValidString(got) {
		t.Errorf("%d bytes", len(got))
	}
}

func TestTheTailOfStderrIsBoundedAndMasked(t *testing.T) {
	t.Parallel()
	secret := "proctor-0123456789abcdef"
	w := &tail{max: 64}
	for range 1000 {
		_, _ = w.Write([]byte("noise "))
	}
	_, _ = w.Write([]byte("key " + secret + " \xff end"))
	if got := w.text(secret); len(got) > 70 || strings.Contains(got, secret) || !strings.HasSuffix(got, "key *** \uFFFD end") {
		t.Errorf("%q", got)
	}
	cutAt := &tail{max: 20}
	_, _ = cutAt.Write([]byte(secret + " end"))
	if got := cutAt.text(secret); strings.Contains(got, "456789") {
		t.Errorf("a secret whose head was cut off shows: %q", got)
	}
}

func FuzzStream(f *testing.F) {
	for _, pattern := range []string{"claude/C01*", "claude/C17*", "claude/C22*", "claude/C37*", "claude/C38*", "codex/X01*", "codex/X19*"} {
		names, _ := filepath.Glob(filepath.Join(corpus, pattern)) // the corpus may be absent; the seeds below are not
		for _, name := range names {
			if b, err := os.ReadFile(name); err == nil {
				f.Add(b, 13)
			}
		}
	}
	f.Add([]byte(resultLine), 5)
	f.Add([]byte("[{\"type\":\"result\"}]\n{\"type\":\"result\",\"subtype\":1}\n\xef\xbb\xbf{}"), 3)
	f.Add([]byte(`{"type":"message","role":"assistant","content":"a"}`+"\n"+`{"type":"result","status":"error","error":{"message":"x"},"stats":{"cached":-1}}`), 2)
	f.Add([]byte(`{"type":"turn.failed","error":{"message":"status 429"}}`), 1)
	f.Add([]byte(ocStart+"\n"+ocTool+"\n"+ocMore+"\n"+ocError("429", "slow down")+"\n"+ocDone), 7)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		for _, cli := range []string{"claude", "codex", "gemini", "opencode"} {
			whole, _ := feed(t, cli, b, len(b)+1, ending{})
			parts, _ := feed(t, cli, b, max(1, step), ending{})
			if diff := cmp.Diff(whole, parts); diff != "" {
				t.Fatalf("%s: read in parts it differs: %s", cli, diff)
			}
			if whole.Kind == "" || !utf8.ValidString(whole.Final) {
				t.Fatalf("%s: %+v", cli, whole)
			}
		}
	})
}
