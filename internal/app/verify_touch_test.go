package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// claim makes a commit that says of itself that a run proved it, as anybody can.
func (d *desk) claim(files map[string]string) string {
	d.t.Helper()
	d.git(d.dir, "checkout", "-q", "-B", "claimed", base)
	for path, content := range files {
		if err := os.WriteFile(filepath.Join(d.dir, path), []byte(content), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	d.git(d.dir, "add", "-A")
	d.git(d.dir, "commit", "-q", "-m", "Answer\n\nProctor-Run: 20260101-000000-00000000\nProctor-Base: "+d.git(d.dir, "rev-parse", base))
	return d.git(d.dir, "rev-parse", "HEAD")
}

// INV-5, INV-27: verify shows what the held-out gate prints, and all the same no pass counts over an exam that was rewritten
// while it ran. Without the stamp this commit passes: its code is read by the exam's first file, rewrites the second, and
// that puts itself back.
func TestACommitThatRewritesTheExamIsNotReproduced(t *testing.T) {
	const (
		exam = "# " + sealedMark + "\n. ./app/lib.sh\n. ./sealed/part.sh\n"
		part = "grep -qx 'right for sure' app/answer.txt\n"
		// The exam's own lines are kept where the fake can find them, and stand again before the gate ends.
		rewrite = "if [ -f sealed/part.sh ]; then cp sealed/part.sh \"$TMPDIR/was\"; echo 'mv \"$TMPDIR/was\" sealed/part.sh' > sealed/part.sh; fi\n"
		// The files stay as they are, in a directory that is moved away meanwhile.
		replace = "if [ -d sealed ]; then mv sealed .was; mkdir sealed; echo 'rm -r sealed; mv .was sealed' > sealed/part.sh; fi\n"
		// What an honest gate does: caches beside the exam, which come and go.
		cache = "mkdir -p sealed/__pycache__; echo x > sealed/__pycache__/check.pyc; rm sealed/__pycache__/check.pyc; mkdir -p .cache; mv .cache .cache2\n"
	)
	for _, c := range []struct {
		name, lib, answer, result, noted string
		differing                        []string
	}{
		{name: "control: an honest commit", lib: ":\n", answer: allRight, result: reproduced},
		{name: "control: caches beside the exam", lib: "if [ -d sealed ]; then " + strings.TrimSpace(cache) + "; fi\n", answer: allRight, result: reproduced},
		{name: "its directory is replaced and put back", lib: replace, answer: halfRight, result: differs, differing: []string{"gate acceptance"}, noted: "touched while the gate ran"},
		{name: "control: a wrong answer", lib: ":\n", answer: halfRight, result: differs, differing: []string{"gate acceptance"}},
		{name: "the exam is rewritten and put back", lib: rewrite, answer: halfRight, result: differs, differing: []string{"gate acceptance"}, noted: "touched while the gate ran"},
		{name: "and the answer is right", lib: rewrite, answer: allRight, result: differs, differing: []string{"gate acceptance"}, noted: "touched while the gate ran"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t, setting{files: map[string]string{"sealed/check.sh": exam, "sealed/part.sh": part}})
			d := w.desk()
			id := d.claim(map[string]string{"app/lib.sh": c.lib, "app/answer.txt": c.answer})
			for _, env := range []string{"", "true"} {
				d.env["CI"] = env
				got := d.verify(id).want(t, c.result, c.differing...)
				if notes := strings.Join(got.Notes, "\n"); c.noted != "" && !strings.Contains(notes, c.noted) {
					t.Errorf("nobody is told that the exam was touched: %q", notes)
				}
			}
		})
	}
}

// INV-24: in a proof too each gate runs on tracked files that equal the commit, so that one gate's code cannot write what the next
// wants to see. In a run the commit would have to pass without it; verify has the proof alone. The control has the right answer.
func TestAGateOfAProofCannotWriteForTheNext(t *testing.T) {
	gates := map[string]string{"gates": "{iteration: sh tests/run.sh, regression: grep -qx 'right for sure' app/answer.txt, timeout: 20s, stability: 1}"}
	for answer, want := range map[string]string{allRight: reproduced, halfRight: differs} {
		t.Run(want, func(t *testing.T) {
			d := open(t, setting{config: gates}).desk()
			id := d.claim(map[string]string{"app/lib.sh": "echo 'right for sure' > app/answer.txt\n", "app/answer.txt": answer})
			if want == reproduced {
				d.verify(id).want(t, want)
				return
			}
			got := d.verify(id).want(t, want, "gate regression")
			if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, "the iteration gate changed app/answer.txt") {
				t.Errorf("nobody is told: %q", notes)
			}
		})
	}
}
