package app

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/evidence"
)

// check holds every run, however it ended, to what is always promised.
func (j *job) check(environ string) {
	j.t.Helper()
	if j.out["report"] != j.reports {
		j.t.Errorf("INV-49 the job says that its report is in %q, not %s:\n%s", j.out["report"], j.reports, j.run.Log)
	}
	rec, err := evidence.Read(j.reports)
	if err != nil {
		if j.killed() {
			return
		}
		j.t.Fatalf("INV-49, INV-54 the record: %v\n%s", err, j.run.Log)
	}
	j.rec = rec
	if j.killed() {
		return
	}
	if _, err := evidence.Read(filepath.Join(filepath.Dir(j.Workspace), "artifacts", "proctor-report")); err != nil {
		j.t.Errorf("INV-49 the workflow did not upload the report: %v", err)
	}
	if rec.ExitCode != j.ExitCode {
		j.t.Errorf("the record says exit code %d, the process %d", rec.ExitCode, j.ExitCode)
	}
	if j.out["terminal"] != rec.Terminal || j.out["run"] != rec.Run || j.out["reason"] == "" || j.out["cost-usd"] != rec.Totals.CostUSD.Decimal() {
		j.t.Errorf("INV-49 outputs %q do not tell the record's %s of run %s", j.out, rec.Terminal, rec.Run)
	}
	if !strings.Contains(j.Summary, evidenceTitle(rec)) {
		j.t.Errorf("INV-49 the job's page does not say %q:\n%s", evidenceTitle(rec), j.Summary)
	}
	if rec.Terminal == evidence.Done && !rec.DryRun && rec.Trigger.Issue != 0 && (rec.Published == nil || rec.Published.Number == 0) {
		j.t.Error("INV-49 a green job has published nothing")
	}
	j.checkForge()
	j.checkLeaks(environ)
	if left, _ := filepath.Glob(filepath.Join(j.temp, "proctor-*")); len(left) > 0 {
		j.t.Errorf("the run left %s", left)
	}
	if alive := processesIn(filepath.Dir(j.Workspace)); len(alive) > 0 {
		j.t.Errorf("processes of the run are alive: %s", alive)
	}
}

// killed tells whether the job's process was ended by kill -9.
func (j *job) killed() bool { return j.ExitCode == 128+9 }

func evidenceTitle(rec evidence.Record) string {
	t, _ := evidence.FindTerminal(rec.Terminal)
	if rec.DryRun && rec.Terminal == evidence.Done && len(rec.Ticks) == 0 {
		return "Ready"
	}
	return t.Title
}

// checkForge: only our refs, only drafts, at most one status comment.
func (j *job) checkForge() {
	j.t.Helper()
	for _, ref := range j.refs() {
		if !slices.Contains(j.peoples, ref) && !strings.HasPrefix(ref, "refs/heads/proctor/") && !strings.HasPrefix(ref, "refs/proctor/") &&
			!strings.HasPrefix(ref, "refs/pull/") { // the forge's own
			j.t.Errorf("INV-20 the run made %s", ref)
		}
	}
	for _, p := range j.hub.Pulls() {
		if !p.Draft && p.Author == bot {
			j.t.Errorf("INV-50 pull request %d is no draft", p.Number)
		}
	}
	if n := len(j.statuses()); n > 1 {
		j.t.Errorf("INV-49 there are %d status comments", n)
	}
}

// checkLeaks looks for the job's secrets and the sealed text wherever somebody could read them.
func (j *job) checkLeaks(environ string) {
	j.t.Helper()
	canaries := map[string]string{"model key": j.key}
	b, err := os.ReadFile(environ)
	if err != nil {
		j.t.Fatal(err)
	}
	for _, kv := range strings.Split(string(b), "\n") {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains([]string{"INPUT_GITHUB-TOKEN", "ACTIONS_RUNTIME_TOKEN"}, name) && value != "" {
			canaries[name] = value
		}
	}
	if len(canaries) != 3 {
		j.t.Fatalf("the job's environment lacks a canary: %d of 3", len(canaries))
	}
	if j.mark != "" {
		canaries["sealed text"] = j.mark
	}
	for where, text := range j.told() {
		for name, value := range canaries {
			if strings.Contains(text, value) {
				j.t.Errorf("INV-27, INV-34 the %s is in %s", name, where)
			}
		}
	}
}

// told is every text that a run leaves for people: log, outputs, page, reports, comments, pull requests.
func (j *job) told() map[string]string {
	j.t.Helper()
	out := map[string]string{"the log": string(j.run.Log), "the summary": j.Summary, "the outputs": fmt.Sprint(j.out)}
	for _, number := range j.numbers() {
		is, _ := j.hub.Issue(number)
		for _, c := range is.Comments {
			out[fmt.Sprintf("comment %d", c.ID)] = c.Body
		}
		if number != j.issue {
			out[fmt.Sprintf("pull request %d", number)] = is.Title + is.Body
		}
	}
	for path, text := range readAll(j.t, j.reports) {
		out["report "+path] = text
	}
	return out
}

func (w *world) numbers() []int {
	out := []int{w.issue}
	for _, p := range w.hub.Pulls() {
		out = append(out, p.Number)
	}
	return out
}

// readAll reads every file below dir, unpacked.
func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".gz") {
			r, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				return err
			}
			if b, err = io.ReadAll(r); err != nil {
				return err
			}
		}
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ended asserts how the run ended and that the requester was told so by the status comment and label.
func (j job) ended(terminal string, exit int, label string) job {
	j.t.Helper()
	if j.rec.Terminal != terminal || j.ExitCode != exit {
		j.t.Fatalf("ended %s (exit %d): %s, want %s (exit %d)\n%s", j.rec.Terminal, j.ExitCode, j.rec.Reason, terminal, exit, j.run.Log)
	}
	all := j.statuses()
	if len(all) != 1 || !strings.Contains(all[0], evidenceTitle(j.rec)) {
		j.t.Errorf("INV-49 the status comments %q do not say %q", all, evidenceTitle(j.rec))
	}
	if is := j.labels(); !slices.Equal(is, []string{label}) {
		j.t.Errorf("the issue's labels are %q, want %q", is, label)
	}
	return j
}

// reason asserts words of the reason or the next step.
func (j job) says(words ...string) job {
	j.t.Helper()
	for _, word := range words {
		if !strings.Contains(j.rec.Reason+" "+j.rec.Next, word) {
			j.t.Errorf("reason %q, next %q do not say %q", j.rec.Reason, j.rec.Next, word)
		}
	}
	return j
}

// statuses are the comments of our account that begin with the marker.
func (w *world) statuses() []string {
	is, _ := w.hub.Issue(w.issue)
	var out []string
	for _, c := range is.Comments {
		if (c.Author == bot || c.Author == appBot) && strings.HasPrefix(c.Body, evidence.StatusMarker) {
			out = append(out, c.Body)
		}
	}
	return out
}

func (w *world) labels() []string {
	is, _ := w.hub.Issue(w.issue)
	return is.Labels
}

// git reads from the forge's bare repository.
func (w *world) git(args ...string) string {
	w.t.Helper()
	return w.gitIn("", args...)
}

func (w *world) gitIn(stdin string, args ...string) string {
	w.t.Helper()
	return gitAt(w.t, w.hub.GitDir(), stdin, args...)
}

// gitAt runs git in a forge's bare repository.
func gitAt(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=/nonexistent"}
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (w *world) refs() []string {
	w.t.Helper()
	return strings.Fields(w.git("for-each-ref", "--format=%(refname)"))
}

// leaves asserts the refs that a published run leaves: its branch, and what a later attempt and the day's other runs need.
func (w *world) leaves() {
	w.t.Helper()
	want := []string{"refs/heads/main", "refs/heads/" + w.branch(), "refs/proctor/1/lease", "refs/proctor/1/state", dayRef}
	if refs := w.refs(); !slices.Equal(refs, want) {
		w.t.Errorf("refs %q, want %q", refs, want)
	}
}

// branch is the run's branch.
func (w *world) branch() string { return fmt.Sprintf("proctor/issue-%d", w.issue) }

// writes are the requests that change something on the forge: the API's, queries aside, and pushes.
func (w *world) writes() []string {
	var out []string
	for _, r := range w.hub.Requests() {
		query := r.Path == "/graphql" && !bytes.Contains(r.Body, []byte("mutation"))
		if r.Method != http.MethodGet && !query && (!r.Git || strings.HasSuffix(r.Path, "/git-receive-pack")) {
			out = append(out, r.Method+" "+r.Path)
		}
	}
	return out
}

// file is a file of the run's branch.
func (w *world) file(path string) string {
	w.t.Helper()
	return w.git("show", w.branch()+":"+path)
}

// published tells whether anything but checkpoints was made on the forge.
func (w *world) unpublished() {
	w.t.Helper()
	if w.hub.Branch(w.branch()) != "" || len(w.hub.Pulls()) != 0 {
		w.t.Errorf("branch %q, pull requests %v: want none", w.hub.Branch(w.branch()), w.hub.Pulls())
	}
}

// objects is the content of every object that the forge's repository holds, pushed or not reachable.
func (w *world) objects() string {
	w.t.Helper()
	return w.git("cat-file", "--batch-all-objects", "--batch", "--buffer", "--unordered")
}

// processesIn are processes whose working directory lies below dir.
func processesIn(dir string) []string {
	all, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var out []string
	for _, link := range all {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, dir) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			out = append(out, fmt.Sprintf("%s %q in %s", filepath.Base(filepath.Dir(link)), line, at))
		}
	}
	return out
}
