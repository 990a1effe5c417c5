//go:build e2e

package act

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorder takes the place of host/install: what it puts in PATH as the program writes down what it is handed.
const recorder = `#!/bin/sh
mkdir -p "$RUNNER_TEMP/bin"
printf '#!/bin/sh\nenv | grep "^PROCTOR_" | sort >"$HANDED"\necho terminal=done >>"$GITHUB_OUTPUT"\n' >"$RUNNER_TEMP/bin/proctor-action"
chmod 755 "$RUNNER_TEMP/bin/proctor-action"
echo "$RUNNER_TEMP/bin" >>"$GITHUB_PATH"
`

// What somebody writes in the form of the Actions tab, and what the webhook sends, is what the program is handed, by the workflow itself and by the reusable one.
func TestWhatIsDispatchedReachesTheProgram(t *testing.T) {
	payload := `{"inputs": {"issue": "7", "goal": "say \"$(id)\" and 'x'", "agent": "codex", "model": "gpt-5.6", "max_cost_usd": "1.5", "max_duration": "30m", "dry_run": "true", "request": "event=5&sha=aa", "proctor_id": "a1"}}`
	want := map[string]string{
		"PROCTOR_GITHUB_TOKEN": "e2e-token", "PROCTOR_ANTHROPIC_API_KEY": "e2e-anthropic", "PROCTOR_OPENAI_API_KEY": "e2e-openai", "PROCTOR_GEMINI_API_KEY": "e2e-gemini",
		"PROCTOR_CLAUDE_CODE_OAUTH_TOKEN": "", "PROCTOR_ISSUE": "7", "PROCTOR_GOAL": `say "$(id)" and 'x'`, "PROCTOR_AGENT": "codex", "PROCTOR_MODEL": "gpt-5.6",
		"PROCTOR_MAX_COST_USD": "1.5", "PROCTOR_MAX_DURATION": "30m", "PROCTOR_DRY_RUN": "true", "PROCTOR_REQUEST": "event=5&sha=aa", "PROCTOR_ID": "a1",
		// Inputs of the action that no workflow sets.
		"PROCTOR_MAX_TICKS": "", "PROCTOR_TOKEN_URL": "", "PROCTOR_MODEL_BASE_URL": "", "PROCTOR_OPENAI_BASE_URL": "", "PROCTOR_GEMINI_BASE_URL": "", "PROCTOR_ACCEPTANCE_DIR": "", "PROCTOR_DOCTOR": "false",
	}
	for _, name := range []string{"proctor.yml", "caller.yml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, _ := readTemplate(t, name)
			reusable, _ := readTemplate(t, "reusable.yml")
			repositories := idle(t, text+"\n"+reusable)
			own := ours(t)
			write(t, filepath.Join(own, "host", "install"), recorder)
			write(t, filepath.Join(own, "host", "agents"), "#!/bin/sh\n")
			repositories["proctor-ci/proctor@v0"] = own
			caller(t, repositories, reusable)
			handed := filepath.Join(t.TempDir(), "handed")
			o := session{
				workflow: text, event: "workflow_dispatch", payload: payload, repositories: repositories,
				secrets: map[string]string{"GITHUB_TOKEN": "e2e-token", "ANTHROPIC_API_KEY": "e2e-anthropic", "OPENAI_API_KEY": "e2e-openai", "GEMINI_API_KEY": "e2e-gemini"},
				env:     map[string]string{"HANDED": handed, "GITHUB_REPOSITORY": "octo/shop", "GITHUB_REF": "refs/heads/main", "SHA_REF": sha},
			}.run(t)
			raw, err := os.ReadFile(handed)
			if o.err != nil || err != nil {
				t.Fatalf("%v, %v\n%s", o.err, err, o.said())
			}
			got := map[string]string{}
			for line := range strings.Lines(string(raw)) {
				variable, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
				got[variable] = value
			}
			if !strings.HasSuffix(got["PROCTOR_REPORT_DIR"], "/proctor-report") || !filepath.IsAbs(got["PROCTOR_REPORT_DIR"]) {
				t.Errorf("reports go to %q", got["PROCTOR_REPORT_DIR"])
			}
			delete(got, "PROCTOR_REPORT_DIR")
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("handed (-want +act):\n%s", d)
			}
			if o.outputs()["terminal"] != "done" {
				t.Errorf("outputs: %v", o.outputs())
			}
		})
	}
}
