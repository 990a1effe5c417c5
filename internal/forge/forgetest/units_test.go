package forgetest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpressionsEvaluateAsGitHubSays(t *testing.T) {
	t.Parallel()
	sc := scope{status: "success", contexts: map[string]any{
		"github": map[string]any{"event_name": "issues", "token": "T", "event": map[string]any{
			"label": map[string]any{"name": "Proctor"}, "issue": map[string]any{"number": float64(7), "labels": []any{
				map[string]any{"name": "bug"}, map[string]any{"name": "proctor"}}}}},
		"inputs": map[string]any{"issue": "", "n": "12"}, "env": map[string]any{"A-B": "c"},
	}}
	for in, want := range map[string]any{
		"github.event_name == 'issues'":                                     true,
		"github.event.label.name == 'proctor'":                              true, // strings are compared without case
		"github.event_name != 'issues' || github.event.label.name == 'x'":   false,
		"inputs.issue || github.event.issue.number":                         float64(7),
		"github.event.pull_request.number":                                  nil,
		"contains(github.event.issue.labels.*.name, 'proctor')":             true,
		"contains(github.event.label.name, 'ROC')":                          true,
		"startsWith('proctor:running', 'proctor') && endsWith('abc', 'bc')": true,
		"!(1 < 2) || 3 >= 3":                                                true,
		"inputs.n == 12":                                                    true,
		"env['A-B']":                                                        "c",
		"format('{0}-{1} {{x}}', 'a', github.event.issue.number)":           "a-7 {x}",
		"'it''s'":                          "it's",
		"fromJSON('{\"a\": [1, 2]}').a[1]": float64(2),
		"null == ''":                       true,
		"true && 'yes' || 'no'":            "yes",
		"-1.5 < 0":                         true,
		"failure() || success()":           true,
	} {
		got, err := eval(in, sc)
		if err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", in, d)
		}
	}
	for _, in := range []string{"", "github.", "a == 'b'", "(1", "'x", "1 2", "hashFiles('x')", "contains(", "1..2", "&& 1"} {
		if v, err := eval(in, sc); err == nil && in != "github." {
			t.Errorf("%q = %v, want an error", in, v)
		}
	}
	if s, err := expand("a ${{ inputs.n }} b ${{ github.token }}", sc); s != "a 12 b T" || err != nil {
		t.Errorf("expand = %q, %v", s, err)
	}
}

func TestConditionsImplySuccessUnlessTheyAskForAStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, status string
		want       bool
	}{
		{"", "success", true}, {"", "failure", false}, {"always()", "failure", true}, {"failure()", "failure", true}, {"true", "failure", false},
		{"${{ always() && true }}", "cancelled", true}, {"cancelled()", "cancelled", true}, {"success() || failure()", "cancelled", false},
	} {
		if got, err := condition(c.in, scope{status: c.status}); got != c.want || err != nil {
			t.Errorf("if: %q after %s = %v, %v, want %v", c.in, c.status, got, err, c.want)
		}
	}
}

func FuzzExpressionsDoNotPanic(f *testing.F) {
	for _, s := range []string{"a.b['c'] == 'd'", "contains(x.*.y, 'z') && !w", "format('{0}', 1)", "((((", "'", "1e999", "*", "a[", ".5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sc := scope{status: "success", contexts: map[string]any{"a": map[string]any{"b": []any{"c"}}}}
		eval(s, sc)
		expand(s, sc)
		condition(s, sc)
	})
}

func TestARefusalsReasonReplacesGitsOwn(t *testing.T) {
	t.Parallel()
	report := append(pkt([]byte("unpack ok\n")), pkt([]byte("ng refs/heads/a pre-receive hook declined\n"))...)
	report = append(append(report, pkt([]byte("ok refs/heads/b\n"))...), "0000"...)
	answer := append(append(pkt([]byte("\x02a message\n")), sideband(report)...), "0000"...)
	got := rewriteReasons(answer, map[string]string{"refs/heads/a": "protected branch hook declined"})
	for _, want := range []string{"\x02a message\n", "ng refs/heads/a protected branch hook declined\n", "ok refs/heads/b\n", "unpack ok\n"} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if !bytes.Equal(rewriteReasons(answer, nil), answer) {
		t.Error("an answer without refusals was changed")
	}
}

func FuzzRewritingAnAnswerKeepsWhatItCannotRead(f *testing.F) {
	f.Add([]byte("0000"))
	f.Add([]byte("000bunpack ok0000"))
	f.Add(append(sideband([]byte("001eng refs/heads/a declined\n0000")), "0000"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		rewriteReasons(b, map[string]string{"refs/heads/a": "no"})
	})
}

func TestSecretsOverSeveralWritesStayOutOfTheLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := &logWriter{out: &out}
	l.mask("canary-value")
	for _, c := range "a canary-value here\n::add-mask::later\nlater it is\n::stop-commands::tok\n::add-mask::here\n::tok::\nno newline canary-value" {
		fmt.Fprint(l, string(c))
	}
	l.flush()
	want := "a *** here\n::add-mask::***\n*** it is\n::stop-commands::tok\n::add-mask::here\n::tok::\nno newline ***\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("log (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want, string(l.kept())); d != "" {
		t.Errorf("kept (-want +got):\n%s", d)
	}
}

func TestDispatchInputsAreCheckedInGitHubsWords(t *testing.T) {
	t.Parallel()
	w, err := parseWorkflow([]byte("on: {workflow_dispatch: {inputs: {issue: {required: true}, mode: {default: fast}, note: {}}}}\njobs: {j: {steps: []}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.dispatchInputs(map[string]any{"issue": float64(7)})
	if d := cmp.Diff(map[string]string{"issue": "7", "mode": "fast", "note": ""}, got); d != "" || err != nil {
		t.Errorf("inputs (-want +got): %v\n%s", err, d)
	}
	many := map[string]any{}
	for i := range 26 {
		many[fmt.Sprint(i)] = "x"
	}
	for name, c := range map[string]struct {
		in   map[string]any
		want string
	}{
		"required": {map[string]any{}, "Required input 'issue' not provided"},
		"unknown":  {map[string]any{"issue": "1", "b": 1, "a": 1}, `Unexpected inputs provided: ["a", "b"]`},
		"too many": {many, "you may only define up to 25 `inputs` for a `workflow_dispatch` event"},
	} {
		_, err := w.dispatchInputs(c.in)
		refused, ok := err.(*apiError)
		if !ok || refused.status != 422 || refused.body["message"] != c.want {
			t.Errorf("%s: %v, want 422 %s", name, err, c.want)
		}
	}
	for _, on := range []string{"issues", "[issues, push]", "{issues: {types: [labeled]}}", "{issues: }"} {
		w, err := parseWorkflow([]byte("on: " + on + "\njobs: {j: {steps: []}}\n"))
		if err != nil || !w.listens("issues", "labeled") || w.listens("pull_request", "labeled") {
			t.Errorf("on: %s: %v", on, err)
		}
	}
}
