package ci

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func host(t *testing.T, extra map[string]string) (Host, *bytes.Buffer, string) {
	t.Helper()
	dir := t.TempDir()
	env := map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "octo/till", "GITHUB_EVENT_NAME": "issues", "GITHUB_WORKSPACE": dir,
		"GITHUB_API_URL": "http://127.0.0.1/api", "GITHUB_SERVER_URL": "http://127.0.0.1", "GITHUB_RUN_ID": "7",
		"GITHUB_OUTPUT": filepath.Join(dir, "out"), "GITHUB_STEP_SUMMARY": filepath.Join(dir, "sum"),
		"INPUT_MAX-COST-USD": " 1.5 ",
	}
	for k, v := range extra {
		env[k] = v
	}
	for _, f := range []string{"out", "sum"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	h, err := Detect(func(k string) string { return env[k] }, &log, func(b []byte) { _, _ = rand.Read(b) })
	if err != nil {
		t.Fatal(err)
	}
	return h, &log, dir
}

func TestHostileTextStaysInertInTheLog(t *testing.T) {
	t.Parallel()
	// INV-43. The control is the first case: a command that we mean is written as one.
	h, log, _ := host(t, nil)
	h.Error("title", "a: broken")
	if !strings.HasPrefix(log.String(), "::error title=title::a: broken\n") {
		t.Fatalf("an annotation of ours is not one: %q", log.String())
	}
	for _, text := range []string{
		"::set-output name=x::y", "  ::add-mask::secret", "x\n::error::forged", "x\r::error::forged", "##[error]forged", "\x1b]8;;http://x\x07link", "a\u2028::warning::b",
		"\u202e::error::x", "section_start:1:x", "a ##[command]x",
	} {
		log.Reset()
		h.Line(text)
		got := log.String()
		if strings.Count(got, "\n") != 1 || strings.HasPrefix(strings.TrimLeft(got, " "), "::") || strings.Contains(got, "##[") || strings.ContainsAny(got, "\r\x1b\u2028\u202e") {
			t.Errorf("Line(%q) printed %q", text, got)
		}
		log.Reset()
		h.Error(text, text)
		if got := log.String(); strings.Count(got, "\n") != 1 || strings.ContainsAny(got, "\r\x1b") {
			t.Errorf("Error(%q) printed %q", text, got)
		}
	}
}

func TestAnOutputCannotEndItself(t *testing.T) {
	t.Parallel()
	// INV-43: the value holds the delimiter that the library uses for everybody.
	h, _, dir := host(t, nil)
	evil := "x\n_GitHubActionsFileCommandDelimeter_\nforged=1\nproctor_\n"
	if err := h.Output(map[string]string{"reason": evil}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	name, mark, ok := strings.Cut(strings.SplitN(string(raw), "\n", 2)[0], "<<")
	if !ok || name != "reason" || len(mark) < 32 {
		t.Fatalf("output file begins %q", raw)
	}
	if want := "reason<<" + mark + "\n" + evil + "\n" + mark + "\n"; string(raw) != want {
		t.Errorf("output file %q, want %q", raw, want)
	}
}

func TestAMissingCommandFileIsAnErrorThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/nonexistent/output"} {
		h, _, _ := host(t, map[string]string{"GITHUB_OUTPUT": path})
		err := h.Output(map[string]string{"a": "b"})
		if err == nil || !strings.Contains(err.Error(), "GITHUB_OUTPUT") || !strings.Contains(err.Error(), "Next:") {
			t.Errorf("with GITHUB_OUTPUT=%q: %v", path, err)
		}
	}
}

func TestInputsAreReadAsTheRunnerGivesThem(t *testing.T) {
	t.Parallel()
	h, _, _ := host(t, nil)
	if got := h.Input("max-cost-usd"); got != "1.5" {
		t.Errorf("Input = %q", got)
	}
	h, _, _ = host(t, map[string]string{"PROCTOR_MAX_COST_USD": "3", "PROCTOR_MAX_TICKS": "4", "PROCTOR_ID": "claim"})
	for name, want := range map[string]string{"max-cost-usd": "1.5", "max-ticks": "4", "proctor-id": "claim"} {
		if got := h.Input(name); got != want {
			t.Errorf("in a composite action %s = %q, want %q", name, got, want)
		}
	}
	gl, err := Detect(func(k string) string {
		return map[string]string{"GITLAB_CI": "true", "CI_PROJECT_PATH": "g/p", "CI_PROJECT_DIR": "d", "CI_API_V4_URL": "u", "PROCTOR_MAX_COST_USD": "2"}[k]
	}, &bytes.Buffer{}, nil)
	if err != nil || gl.Input("max-cost-usd") != "2" {
		t.Errorf("GitLab: %v", err)
	}
}

func TestSecretsAreMaskedLineByLine(t *testing.T) {
	t.Parallel()
	h, log, _ := host(t, nil)
	h.Mask("first-line\nsecond-line\nab\n", "")
	if got, want := log.String(), "::add-mask::first-line\n::add-mask::second-line\n"; got != want {
		t.Errorf("masks %q, want %q", got, want)
	}
}

func TestOutsideACIJobTheErrorNamesTheLocalCommand(t *testing.T) {
	t.Parallel()
	_, err := Detect(func(string) string { return "" }, &bytes.Buffer{}, nil)
	if err == nil || !strings.Contains(err.Error(), "proctor run --issue") {
		t.Errorf("err = %v", err)
	}
}
