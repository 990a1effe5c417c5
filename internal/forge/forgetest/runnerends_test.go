package forgetest_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

func TestACancelledRunGetsTheSignalsInOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		want   string
		code   int
		waits  int
	}{
		"it stops on SIGINT":   {`trap 'echo int; exit 130' INT; echo ready; while :; do sleep 0.05; done`, "int", 130, 1},
		"it stops on SIGTERM":  {`trap 'echo int' INT; trap 'echo term; exit 143' TERM; echo ready; while :; do sleep 0.05; done`, "int\nterm", 143, 2},
		"it stops only killed": {`trap 'echo int' INT; trap 'echo term' TERM; echo ready; while :; do sleep 0.05; done`, "int\nterm", 137, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, checkoutOnly, c.script)
			var waits []time.Duration
			b.runner.After = func(d time.Duration) <-chan time.Time {
				waits = append(waits, d)
				return time.After(300 * time.Millisecond) // the order is tested, not the length
			}
			dispatch(t, b, map[string]string{"issue": "1"})
			run, err := b.NextRun(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ready := b.whenLogged("ready\n")
			go func() {
				defer cancel()
				<-ready
			}()
			res, err := b.runner.Run(ctx, run)
			if err != nil {
				t.Fatal(err)
			}
			if res.Run.Conclusion != "cancelled" || res.Jobs[0].ExitCode != c.code || !strings.Contains(string(res.Run.Log), c.want) {
				t.Errorf("conclusion %s, code %d:\n%s", res.Run.Conclusion, res.Jobs[0].ExitCode, res.Run.Log)
			}
			full := []time.Duration{7500 * time.Millisecond, 2500 * time.Millisecond}
			if d := cmp.Diff(full[:c.waits], waits); d != "" {
				t.Errorf("waits (-want +got):\n%s", d)
			}
		})
	}
}

func glob(p string) []string {
	found, _ := filepath.Glob(p)
	return found
}

func TestWhatTheRunnerCannotDoItNames(t *testing.T) {
	t.Parallel()
	b := newBench(t, strings.Replace(checkoutOnly, "proctor-ci/proctor@v1", "somebody/else@v3", 1), "true")
	dispatch(t, b, map[string]string{"issue": "1"})
	run, err := b.NextRun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.runner.Run(t.Context(), run)
	if err == nil || !strings.Contains(err.Error(), "somebody/else@v3") || res.Run.Conclusion != "failure" {
		t.Errorf("run ended %s, error %v", res.Run.Conclusion, err)
	}
}

func TestAGitLabJobGetsItsVariablesAndAJobTokenThatCannotPush(t *testing.T) {
	t.Parallel()
	g, err := forgetest.NewGitLab(forgetest.GitLabOptions{Dir: t.TempDir(), Files: fstest.MapFS{".gitlab-ci.yml": {Data: []byte("job: {script: [x]}\n")}}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	g.AddUser("maria", "maintainer")
	trigger := g.NewTriggerToken()
	status, answer := callGitLab(t, g, "", "POST", "/projects/group%2Fsub%2Fshop/trigger/pipeline", `{"ref":"main","token":"`+trigger+`","variables":{"PROCTOR_ISSUE":"3"}}`)
	if status != 201 {
		t.Fatalf("trigger = %d %s", status, answer)
	}
	r := &forgetest.GitLabRunner{GitLab: g, Dir: t.TempDir(), Variables: map[string]string{"GITLAB_TOKEN": "canary-token-9"},
		Binary: stub(t, `env > env.txt; git rev-parse HEAD > head.txt; echo "$GITLAB_TOKEN"; git push origin HEAD:refs/heads/x; echo "push $?"; exit 3`)}
	res, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	env := readEnv(t, filepath.Join(res.Workspace, "env.txt"))
	for name, want := range map[string]string{"CI_PROJECT_PATH": "group/sub/shop", "CI_SERVER_URL": g.URL(), "PROCTOR_ISSUE": "3", "CI_PIPELINE_SOURCE": "trigger", "CI_COMMIT_SHA": g.Branch("main"), "GITLAB_USER_LOGIN": "maria"} {
		if env[name] != want {
			t.Errorf("%s = %q, want %q", name, env[name], want)
		}
	}
	log := string(res.Pipeline.Log)
	if res.ExitCode != 3 || res.Pipeline.Status != "failed" || strings.Contains(log, "canary-token-9") || !strings.Contains(log, "not allowed to push") || !strings.Contains(log, "push 1") && !strings.Contains(log, "push 128") {
		t.Errorf("exit %d, status %s:\n%s", res.ExitCode, res.Pipeline.Status, log)
	}
	if _, err := r.Run(t.Context()); err != forgetest.ErrNoPipeline {
		t.Errorf("second run: %v, want ErrNoPipeline", err)
	}
}
