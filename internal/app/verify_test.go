package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// desk is a maintainer's own machine: a clone, a token, a terminal.
type desk struct {
	t   *testing.T
	dir string
	env map[string]string
}

// desk clones the forge's repository.
func (w *world) desk() *desk {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "clone")
	d := &desk{t: w.t, dir: dir, env: map[string]string{
		"GITHUB_SERVER_URL": w.hub.URL(), "GITHUB_API_URL": w.hub.APIURL(), "GITHUB_TOKEN": w.hub.NewToken(forgetest.Token{Login: asker}),
		"PATH": os.Getenv("PATH"), "HOME": w.t.TempDir(),
	}}
	d.git("", "clone", "-q", "-b", base, "file://"+w.hub.GitDir(), dir)
	d.git(dir, "remote", "set-url", "origin", w.hub.URL()+"/"+w.repo()+".git")
	return d
}

// repo is the full name of the world's repository.
func (w *world) repo() string {
	rel, err := filepath.Rel(filepath.Dir(filepath.Dir(w.hub.GitDir())), w.hub.GitDir())
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSuffix(filepath.ToSlash(rel), ".git")
}

func (d *desk) git(dir string, args ...string) string {
	d.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ALLOW_PROTOCOL=file",
		"GIT_AUTHOR_NAME=M", "GIT_AUTHOR_EMAIL=m@example.com", "GIT_COMMITTER_NAME=M", "GIT_COMMITTER_EMAIL=m@example.com"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// answer is what a command said.
type answered struct {
	code     int
	out, err string
}

// run calls the command line in this process, as main does.
func (d *desk) run(args ...string) answered { return d.runContext(d.t.Context(), args...) }

func (d *desk) runContext(ctx context.Context, args ...string) answered {
	d.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := CLI(ctx, Env{
		Args: args, Getenv: func(n string) string { return d.env[n] }, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Now: time.Now, Random: rand.Reader, Sleep: clock.Sleep, Exe: exe, Dir: d.dir,
	})
	return answered{code, out.String(), errs.String()}
}

// verify calls `proctor verify --json`.
func (d *desk) verify(args ...string) comparison {
	d.t.Helper()
	a := d.run(append([]string{"verify", "--json"}, args...)...)
	var c comparison
	if err := json.Unmarshal([]byte(a.out), &c); err != nil || a.err != "" || a.code != c.ExitCode {
		d.t.Fatalf("verify %v: exit %d, %v, stderr %q\n%s", args, a.code, err, a.err, a.out)
	}
	return c
}

// differing are the names of what was not as claimed.
func (c comparison) differing() []string {
	out := []string{}
	for _, k := range c.Checks {
		if !k.Same {
			out = append(out, k.Name)
		}
	}
	return out
}

// want asserts the result and what differs.
func (c comparison) want(t *testing.T, result string, differing ...string) comparison {
	t.Helper()
	if differing == nil {
		differing = []string{}
	}
	if d := cmp.Diff(differing, c.differing()); c.Result != result || d != "" {
		t.Errorf("%s (%s), want %s; differing (-want +got):\n%s\nchecks %+v\nnotes %q", c.Result, c.Reason, result, d, c.Checks, c.Notes)
	}
	return c
}

// loudExam prints on both outcomes, so that a test can see who is shown it.
const loudExam = "# " + sealedMark + "\n. ./app/lib.sh\necho 'the sealed exam says " + sealedMark + "'\ngrep -qx 'right for sure' app/answer.txt\n"

func proved(t *testing.T) job {
	t.Helper()
	w := open(t, setting{plan: []tick{{reply(halfRight)}, {reply(allRight)}}, files: map[string]string{"sealed/check.sh": loudExam}})
	return w.label().ended("done", 0, "proctor:review")
}

func TestAPullRequestIsVerifiedFromItsNumber(t *testing.T) {
	j := proved(t)
	d := j.desk()
	number := j.out["pull-request"]
	for _, target := range []string{number, "#" + number, j.out["pull-request-url"]} {
		c := d.verify(target).want(t, reproduced)
		if c.Head != j.rec.Head.ID || c.Base != j.rec.Base.ID || c.Run != j.rec.Run {
			t.Errorf("verified %+v, the record says %s on %s", c, j.rec.Head.ID, j.rec.Base.ID)
		}
		if names := strings.Join(checked(c), ","); !strings.Contains(names, "gate iteration,gate acceptance") || !strings.Contains(names, "patch policy") {
			t.Errorf("compared only %s", names)
		}
	}
	// Without any checkout, from the address alone.
	d.dir = t.TempDir()
	d.verify(j.out["pull-request-url"]).want(t, reproduced)
}

// INV-27: a held-out gate's code runs beside the sealed files and chooses its exit code; where a comment asked, nobody reads more of it than
// passed or not.
func TestAHeldOutGatesExitCodeIsNotToldWhereACommentAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		told          bool
		class, status string
		want          string
	}{
		{true, "acceptance", "failed", "did not pass"}, {true, "acceptance", "timed_out", "did not pass"}, {true, "acceptance", "passed", "passed"},
		{true, "iteration", "failed", "failed (exit 7)"}, {false, "acceptance", "failed", "failed (exit 7)"},
	} {
		if got := (&verification{told: c.told}).ending(c.class, c.status, 7); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func checked(c comparison) []string {
	var out []string
	for _, k := range c.Checks {
		out = append(out, k.Name)
	}
	return out
}

func TestTheHeldOutOutputIsShownToAPersonAndNotToACIJob(t *testing.T) {
	j := proved(t)
	d := j.desk()
	number := j.out["pull-request"]
	// INV-27: nothing that the run left for others holds it (job.check), and the maintainer sees it.
	if a := d.run("verify", number); a.code != 0 || !strings.Contains(a.out, "the sealed exam says "+sealedMark) || !strings.Contains(a.out, "REPRODUCED") {
		t.Errorf("exit %d: %s%s", a.code, a.out, a.err)
	}
	logs := filepath.Join(t.TempDir(), "logs")
	d.env["CI"] = "true"
	if a := d.run("verify", number, "--logs", logs); a.code != 0 || strings.Contains(a.out+a.err, sealedMark) {
		t.Errorf("INV-27 a CI job's log shows the sealed exam (exit %d):\n%s%s", a.code, a.out, a.err)
	}
	found := readAll(t, logs)
	if len(found) != 2 || !strings.Contains(found["02-acceptance.log"], sealedMark) {
		t.Errorf("--logs wrote %q", found)
	}
}

func TestARecordIsVerifiedWithItsStatement(t *testing.T) {
	j := proved(t)
	d := j.desk()
	c := d.verify(j.reports).want(t, reproduced)
	if !strings.Contains(strings.Join(checked(c), ","), "in-toto statement") {
		t.Errorf("compared only %q", checked(c))
	}
	d.verify(filepath.Join(j.reports, evidence.RecordFile)).want(t, reproduced)

	edited := copyOf(t, j.reports)
	replaceIn(t, filepath.Join(edited, evidence.RecordFile), j.rec.Trigger.Actor, "mallory")
	d.verify(edited).want(t, differs, "in-toto statement")

	lied := copyOf(t, j.reports)
	if err := os.Remove(filepath.Join(lied, evidence.StatementFile)); err != nil {
		t.Fatal(err)
	}
	replaceIn(t, filepath.Join(lied, evidence.RecordFile), j.rec.Head.Tree, j.rec.Base.Tree)
	if c := d.verify(lied).want(t, differs, "tree of the head"); !strings.Contains(strings.Join(c.Notes, " "), "no in-toto statement") {
		t.Errorf("notes %q", c.Notes)
	}
}

func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func replaceIn(t *testing.T, file, from, to string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(from)) {
		t.Fatalf("%s does not hold %q", file, from)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(b, []byte(from), []byte(to)), 0o644); err != nil {
		t.Fatal(err)
	}
}
