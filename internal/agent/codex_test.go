package agent

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

const codexDone = `{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}`

// INV-33: Codex's environment is built from nothing, all its configuration is in its arguments, and its state is in
// a directory that is new for the call and gone after it. The prompt comes on stdin, whole.
func TestCodexIsStartedWithNothingOfOurs(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Auto)
	l.task.Gateway = Gateway{BaseURL: "http://127.0.0.1:7777", Nonce: "proctor-nonce-of-a-test", Port: 7777}
	l.task.Model, l.task.Args = "gpt-5.6", []string{"-c", "model_reasoning_effort=high", "--config=model_verbosity=low"}
	l.task.Prompt = "--help\n" + strings.Repeat("a long prompt ", 20_000) + "@/etc/hostname \xff"
	program := standIn(t, "codex", `env > env.txt; for a in "$@"; do printf '%s\n' "[$a]"; done > args.txt; cat > prompt.txt; echo state > "$CODEX_HOME/kept"; echo '`+codexDone+`'; echo "$PROCTOR_MODEL_KEY" >&2`)
	o, _ := l.run(t, "codex", Options{Program: program})
	if o.Kind != OK || strings.Contains(o.Stderr, l.task.Gateway.Nonce) || !strings.Contains(o.Stderr, "***") {
		t.Fatalf("%+v", o)
	}
	var names []string
	for _, line := range strings.Split(strings.TrimSpace(l.read(t, "env.txt")), "\n") {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"CI", "CODEX_HOME", "GIT_CONFIG_NOSYSTEM", "GIT_TERMINAL_PROMPT", "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "PROCTOR_MODEL_KEY",
		"PWD", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "USER"}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "_" || n == "OLDPWD" || n == "SHLVL" })
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("environment (-want +got) %s", diff)
	}
	args := l.read(t, "args.txt")
	for _, want := range []string{
		"[exec]\n[--json]\n", "[--ignore-user-config]\n", "[--ephemeral]\n", "[--sandbox]\n[danger-full-access]\n", "[web_search=\"disabled\"]\n", "[features.hooks=false]\n",
		`base_url="http://127.0.0.1:7777/v1",env_key="PROCTOR_MODEL_KEY",wire_api="responses"`, `[shell_environment_policy.exclude=["PROCTOR_MODEL_KEY"]]`,
		"[-c]\n[model_reasoning_effort=high]\n[-c]\n[model_verbosity=low]\n[--model]\n[gpt-5.6]\n[-]\n",
	} {
		if !strings.Contains(args, want) {
			t.Errorf("arguments lack %q: %s", want, args)
		}
	}
	if strings.Contains(args, l.task.Gateway.Nonce) {
		t.Error("the nonce is in the arguments, where every process sees it")
	}
	if prompt := l.read(t, "prompt.txt"); !strings.HasPrefix(prompt, "--help\n") || !strings.HasSuffix(prompt, "@/etc/hostname \uFFFD") || len(prompt) < 250_000 {
		t.Errorf("prompt of %d bytes: %.40q", len(prompt), prompt)
	}
	if left, _ := filepath.Glob(filepath.Join(l.task.Home, ".codex*")); len(left) != 0 {
		t.Errorf("left in HOME: %v", left)
	}
}

func TestCodexTakesSettingsOfTheModelOnly(t *testing.T) {
	t.Parallel()
	for _, bad := range [][]string{
		{"--sandbox", "read-only"}, {"-s=read-only"}, {"-p", "mine"}, {"--oss"}, {"do this instead"}, {"-"}, {"--"}, {"-c"}, {"-c", "model_provider=x"},
		{"-c", "model_providers.proctor.base_url=http://x"}, {"--config=web_search=live"}, {"-c", "model_reasoning_effort={a=1}"}, {"-c", "model_reasoning_effort=high\nweb_search=\"live\""},
		{"-c", "model_reasoning_effort"}, {"--enable", "hooks"}, {"--add-dir", "/"}, {"-i", "/etc/shadow"},
	} {
		l := newLab(t, sandbox.Off)
		l.task.Args = bad
		o, _ := l.run(t, "codex", Options{Program: standIn(t, "codex", "echo started > started")})
		if o.Kind != RefusedStart || !o.Lasting || !strings.Contains(o.Detail, "agent.args[") || !strings.HasPrefix(l.read(t, "started"), "(") {
			t.Errorf("%q: %+v", bad, o)
		}
	}
	for _, good := range [][]string{nil, {"-c", "model_reasoning_effort=high"}, {"--config=model_verbosity=low"}, {"--config", "model_context_window=100000"}} {
		if _, err := checkCodexArgs(good); err != nil {
			t.Errorf("control %q: %v", good, err)
		}
	}
}
