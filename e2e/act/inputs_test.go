//go:build e2e

package act

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// install takes the place of host/install: it puts a program of the test's in PATH, a shell script.
const install = `#!/bin/sh
mkdir -p "$RUNNER_TEMP/bin"
printf '#!/bin/sh\n%s\n' "$PROGRAM" >"$RUNNER_TEMP/bin/proctor-action"
chmod 755 "$RUNNER_TEMP/bin/proctor-action"
echo "$RUNNER_TEMP/bin" >>"$GITHUB_PATH"
`

// played is a template with a program of the test's in the place of ours, a shell script, and idle actions around it.
func played(t *testing.T, name, program, payload string, env map[string]string) session {
	t.Helper()
	text, _ := readTemplate(t, name)
	reusable, _ := readTemplate(t, "reusable.yml")
	repositories := idle(t, text+"\n"+reusable)
	own := ours(t)
	write(t, filepath.Join(own, "host", "install"), install)
	write(t, filepath.Join(own, "host", "agents"), "#!/bin/sh\n")
	repositories["proctor-ci/proctor@v0"] = own
	caller(t, repositories, reusable)
	all := map[string]string{"PROGRAM": program, "GITHUB_REPOSITORY": "octo/shop", "GITHUB_REF": "refs/heads/main", "SHA_REF": sha}
	maps.Copy(all, env)
	return session{workflow: text, event: "workflow_dispatch", payload: payload, repositories: repositories, env: all,
		secrets: map[string]string{"GITHUB_TOKEN": "e2e-token", "ANTHROPIC_API_KEY": "e2e-anthropic", "OPENAI_API_KEY": "e2e-openai", "GEMINI_API_KEY": "e2e-gemini"}}
}

// What somebody writes in the form of the Actions tab, and what the webhook sends, is what the program is handed, by the workflow itself and by the reusable one.
func TestWhatIsDispatchedReachesTheProgram(t *testing.T) {
	payload := `{"inputs": {"issue": "7", "goal": "say \"$(id)\" and 'x'", "agent": "codex", "model": "gpt-5.6", "max_cost_usd": "1.5", "max_duration": "30m", "dry_run": "true", "request": "event=5&sha=aa", "proctor_id": "a1"}}`
	want := map[string]string{
		"PROCTOR_GITHUB_TOKEN": "e2e-token", "PROCTOR_ANTHROPIC_API_KEY": "e2e-anthropic", "PROCTOR_OPENAI_API_KEY": "e2e-openai", "PROCTOR_GEMINI_API_KEY": "e2e-gemini",
		"PROCTOR_CLAUDE_CODE_OAUTH_TOKEN": "", "PROCTOR_ISSUE": "7", "PROCTOR_GOAL": `say "$(id)" and 'x'`, "PROCTOR_AGENT": "codex", "PROCTOR_MODEL": "gpt-5.6",
		"PROCTOR_MAX_COST_USD": "1.5", "PROCTOR_MAX_DURATION": "30m", "PROCTOR_DRY_RUN": "true", "PROCTOR_REQUEST": "event=5&sha=aa", "PROCTOR_ID": "a1",
		// Inputs of the action that no workflow sets.
		"PROCTOR_MAX_TICKS": "", "PROCTOR_TOKEN_URL": "", "PROCTOR_MODEL_BASE_URL": "", "PROCTOR_OPENAI_BASE_URL": "", "PROCTOR_GEMINI_BASE_URL": "", "PROCTOR_ACCEPTANCE_DIR": "", "PROCTOR_DOCTOR": "false",
		"PROCTOR_STAGE": "all", "PROCTOR_HANDOVER": "", "PROCTOR_VERIFIED": "",
	}
	for _, name := range []string{"proctor.yml", "caller.yml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handed := filepath.Join(t.TempDir(), "handed")
			o := played(t, name, `env | grep "^PROCTOR_" | sort >"$HANDED"; echo terminal=done >>"$GITHUB_OUTPUT"`, payload, map[string]string{"HANDED": handed}).run(t)
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

func TestAJobIsRedWhenItsRunIsAndNotForItsReport(t *testing.T) {
	// INV-49. Enterprise Server has no place for what this version of actions/upload-artifact uploads, and a full one is found everywhere.
	failing := t.TempDir()
	write(t, filepath.Join(failing, "action.yml"), "name: fails\nruns: {using: composite, steps: [{shell: bash, run: 'echo no room; exit 1'}]}\n")
	reusable, _ := readTemplate(t, "reusable.yml")
	for _, name := range []string{"proctor.yml", "caller.yml"} {
		for end, green := range map[string]bool{"exit 0": true, "exit 4": false} {
			t.Run(name+"/"+end, func(t *testing.T) {
				t.Parallel()
				s := played(t, name, `echo report=/tmp >>"$GITHUB_OUTPUT"; `+end, `{"inputs": {"goal": "x"}}`, nil)
				for ref, action := range named(s.workflow + "\n" + reusable) {
					if action == "actions/upload-artifact" {
						s.repositories[ref] = failing
					}
				}
				o := s.run(t)
				if !strings.Contains(o.said(), "no room") {
					t.Fatalf("the upload was not tried:\n%s", o.said())
				}
				if got := o.err == nil; got != green {
					t.Errorf("green: %v\n%s", got, o.said())
				}
			})
		}
	}
}

// A split run has a job for each step, and what only reports stops none of them. What is handed over has to be.
func TestASplitRunIsPublishedWithoutItsReports(t *testing.T) {
	const program = `for out in report=/tmp commit=aa verified=bb terminal=done; do echo "$out" >>"$GITHUB_OUTPUT"; done`
	for name, c := range map[string]struct {
		refused string // whose upload fails
		ended   map[string]string
	}{
		"reports": {"verified report", map[string]string{"agent": "success", "verify": "success", "publish": "success"}},
		"control": {"handover", map[string]string{"agent": "failure"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusing := t.TempDir()
			write(t, filepath.Join(refusing, "action.yml"), `name: refuses some
inputs: {name: {required: true}}
runs: {using: composite, steps: [{shell: bash, env: {NAME: "${{ inputs.name }}"}, run: 'for w in `+c.refused+`; do case $NAME in *$w*) echo "no room for $w"; exit 1;; esac; done'}]}
`)
			s := played(t, "staged.yml", program, `{"inputs": {"goal": "x"}}`, nil)
			for ref, action := range named(s.workflow) {
				if action == "actions/upload-artifact" {
					s.repositories[ref] = refusing
				}
			}
			o := s.run(t)
			for _, w := range strings.Fields(c.refused) {
				if !strings.Contains(o.said(), "no room for "+w) {
					t.Errorf("the upload of %s was not tried", w)
				}
			}
			if d := cmp.Diff(c.ended, o.jobs()); d != "" {
				t.Errorf("jobs (-want +act):\n%s%s", d, o.said())
			}
		})
	}
}

func TestDoctorsWorkflowAsksModelsOnlyWhenItIsTold(t *testing.T) {
	for name, c := range map[string]struct{ event, payload, want string }{
		"ticked":     {"workflow_dispatch", `{"inputs": {"live": "true"}}`, "live"},
		"not ticked": {"workflow_dispatch", `{"inputs": {"live": "false"}}`, "true"},
		"every week": {"schedule", `{}`, "true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := played(t, "doctor.yml", `echo "doctor: $PROCTOR_DOCTOR."`, c.payload, nil)
			s.event = c.event
			if o := s.run(t); o.err != nil || !strings.Contains(o.said(), "doctor: "+c.want+".") {
				t.Errorf("%v, want doctor: %s\n%s", o.err, c.want, o.said())
			}
		})
	}
}
