package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// atTheLastCheckpoint calls happens once, when the run has saved that it is done and the forge has taken it: between the proof
// and the push of the branch. The server's own hook waits meanwhile.
func (w *world) atTheLastCheckpoint(happens func()) {
	w.t.Helper()
	hooks := filepath.Join(w.hub.GitDir(), "hooks")
	waits, goes := filepath.Join(w.dir, "hook-waits"), filepath.Join(w.dir, "hook-goes")
	script := `#!/bin/sh
while read -r old new ref; do
	case "$ref" in refs/proctor/*/state) ;; *) continue ;; esac
	[ -e '` + goes + `' ] && continue
	git ls-tree -r "$new" | while read -r mode type id path; do git cat-file blob "$id"; done | grep -q '"terminal":"done"' || continue
	: > '` + waits + `'
	while [ ! -e '` + goes + `' ]; do sleep 0.02; done
done
`
	if err := os.WriteFile(filepath.Join(hooks, "post-receive"), []byte(script), 0o755); err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	w.t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for clock.Sleep(ctx, 10*time.Millisecond) == nil {
			if _, err := os.Stat(waits); err != nil {
				continue
			}
			happens()
			if err := os.WriteFile(goes, nil, 0o644); err != nil {
				w.t.Error(err)
			}
			return
		}
	}()
}

// INV-51: a whole job, from the label on. The forge turns its back between the proof and the push; what was proved is on the run's
// ref, the job is red with 6, and its log, summary and record say what to click. The control is the same wait with nothing happening.
func TestAForgeThatTurnsItsBackAfterTheProofLosesNothing(t *testing.T) {
	everything := func(status int, message string) func(*world) {
		return func(w *world) {
			f := forgetest.Refusal(status, message)
			f.Header = map[string]string{"WWW-Authenticate": `Basic realm="forge"`}
			w.must(w.hub.Fail("**", -1, f))
		}
	}
	for _, c := range []struct {
		name    string
		happens func(*world)
		says    []string
	}{
		{name: "control: nothing happens", happens: func(*world) {}},
		{name: "the token has expired", happens: everything(401, "Bad credentials"), says: []string{"the token was not accepted", "make a new token and store it in the secret"}},
		{name: "the repository was deleted", happens: everything(404, "Not Found"), says: []string{"not found", "/octo/shop exists and that the token may see it"}},
		{name: "the workflows permission is missing", happens: (*world).newBase, says: []string{"without `workflows` permission", "use an App's token with \"Workflows: Read and write\""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t, setting{plan: []tick{{spend(1000, 100), reply(allRight)}}, config: map[string]string{"gates": visibleGates}})
			w.atTheLastCheckpoint(func() { c.happens(w) })
			j := w.label()
			if c.says == nil {
				j.ended("done", 0, "proctor:review")
				if _, err := os.Stat(filepath.Join(j.reports, bundleFile)); err == nil {
					t.Error("a run that was published leaves a bundle")
				}
				return
			}
			if j.rec.Terminal != "publish_failed" || j.ExitCode != 6 || j.Conclusion != "failure" || len(w.hub.Pulls()) != 0 {
				t.Fatalf("ended %s (exit %d, job %s) with %d pull requests: %s\n%s", j.rec.Terminal, j.ExitCode, j.Conclusion, len(w.hub.Pulls()), j.rec.Reason, j.run.Log)
			}
			j.says(c.says...)
			for where, text := range map[string]string{"log": string(j.run.Log), "summary": j.Summary} {
				if !strings.Contains(strings.ReplaceAll(text, "\\", ""), c.says[1]) {
					t.Errorf("the %s does not say %q:\n%s", where, c.says[1], text)
				}
			}
			head := j.rec.Head.ID
			if got := strings.TrimSpace(w.git("rev-parse", j.rec.Kept+"^")); got != head {
				t.Errorf("%s is kept on %s, the proved commit is %s", got, j.rec.Kept, head)
			}
			// The forge may be gone, and its refs with it: what the job uploads is enough beside any old clone.
			clone := filepath.Join(t.TempDir(), "clone")
			d := &desk{t: t}
			d.git("", "clone", "-q", "--single-branch", "-b", base, "file://"+w.hub.GitDir(), clone)
			d.git(clone, "fetch", "-q", filepath.Join(j.reports, bundleFile), w.branch())
			if got := d.git(clone, "rev-parse", "FETCH_HEAD"); got != head || d.git(clone, "show", head+":app/answer.txt")+"\n" != allRight {
				t.Errorf("the bundle holds %s, the proved commit is %s", got, head)
			}
		})
	}
}

// newBase makes the forge see every commit of a branch as new, as after a rewrite of the default branch: those that the base has of
// workflow files as well, which a job's own token may not bring.
func (w *world) newBase() {
	hook := filepath.Join(w.hub.GitDir(), "hooks", "pre-receive")
	b, err := os.ReadFile(hook)
	if err != nil {
		w.t.Error(err)
		return
	}
	const known, branches = `-m "$new" --not --all`, "refs/heads); do"
	if !strings.Contains(string(b), known) || !strings.Contains(string(b), branches) {
		w.t.Error("the forge's hook looks for new workflow files in another way")
	}
	changed := strings.Replace(string(b), known, `-m "$new" $(case "$ref" in refs/heads/*) ;; *) echo --not --all ;; esac)`, 1)
	changed = strings.Replace(changed, branches, "refs/gone); do", 1)
	if err := os.WriteFile(hook+".new", []byte(changed), 0o755); err != nil {
		w.t.Error(err)
	}
	if err := os.Rename(hook+".new", hook); err != nil {
		w.t.Error(err)
	}
}
