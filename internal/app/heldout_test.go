package app

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// examScript is the held-out file where it is not the repository's own.
func examScript(mark string) string {
	return "# " + mark + "\n. ./app/lib.sh\ngrep -qx 'right for sure' app/answer.txt\n"
}

// leaksExam is code under test that prints and copies an exam that lies beside it.
const leaksExam = `[ -f exam/check.sh ] && { cat exam/check.sh; mkdir -p ignored; cp exam/check.sh ignored/kept; cp exam/check.sh "$HOME/kept"; cp exam/check.sh "$TMPDIR/kept"; }
:
`

// examined is a repository without sealed files whose agent leaks the exam in its first tick and looks for it in its second.
func examined(mark, acceptance string, workflow func(string) string) setting {
	return setting{
		mark: mark, files: map[string]string{"sealed/check.sh": ""}, workflow: workflow,
		plan:   []tick{{write("app/lib.sh", leaksExam), reply(halfRight)}, {searching(mark[:9], mark[9:]), reply(allRight)}},
		config: map[string]string{"gates": "{iteration: sh tests/run.sh, acceptance: {run: sh exam/check.sh, " + acceptance + ", attempts: 2}, timeout: 20s, stability: 1}"},
	}
}

// heldOutRight checks a run that was done behind one failed attempt.
func heldOutRight(t *testing.T, j job, want evidence.HeldOut) {
	t.Helper()
	if got := j.file("found.txt"); got != nothingFound {
		t.Errorf("INV-27 the agent found\n%s", got)
	}
	if got := j.git("ls-tree", "-r", "--name-only", j.branch()); strings.Contains(got, "exam/") {
		t.Errorf("INV-27 the branch has the exam:\n%s", got)
	}
	if j.rec.HeldOut == nil {
		t.Fatal("the record does not say where the held-out files came from")
	}
	got := *j.rec.HeldOut
	if !strings.Contains(j.hub.Pulls()[0].Body, got.Tree[:8]) && !strings.Contains(j.hub.Pulls()[0].Body, short(got.Commit)) {
		t.Error("the pull request does not say where the held-out files came from")
	}
	got.Commit, got.Tree = "", ""
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("held-out files (-want +got):\n%s", d)
	}
	var said []string
	for _, tick := range j.rec.Ticks {
		for _, g := range tick.Proof {
			said = append(said, fmt.Sprintf("%d %s %s", tick.N, g.Name, g.Status))
		}
	}
	if d := cmp.Diff([]string{"1 iteration passed", "1 acceptance failed", "2 iteration passed", "2 acceptance passed"}, said); d != "" {
		t.Errorf("proofs (-want +got):\n%s", d)
	}
}

// brokenUnspent is a run that ended before its first call.
func (j job) brokenUnspent(words ...string) {
	j.t.Helper()
	j.ended("gate_broken", 5, "proctor:failed").says(words...)
	if len(j.rec.Ticks) != 0 || len(j.model.Calls()) != 0 {
		j.t.Errorf("%d ticks, %d calls", len(j.rec.Ticks), len(j.model.Calls()))
	}
}

func TestAnExamComesFromAnotherRepository(t *testing.T) {
	// INV-5, INV-27
	const source = "source: {repo: octo/exams, ref: main, path: shop}"
	world := func(t *testing.T, mark string, private bool, workflow func(string) string) *world {
		w := open(t, examined(mark, source, workflow))
		err := w.hub.AddRepository("exams", fstest.MapFS{
			"shop/exam/check.sh": {Data: []byte(examScript(mark))}, "other/exam/check.sh": {Data: []byte("exit 1\n")},
		}, private)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	want := evidence.HeldOut{Form: "source", Repo: "octo/exams", Ref: "main", Files: 1}
	t.Run("that everybody may read", func(t *testing.T) {
		heldOutRight(t, world(t, "exam-of-a-public-place-3a01", false, nil).label().ended("done", 0, "proctor:review"), want)
	})
	t.Run("that an App's token may read", func(t *testing.T) {
		w := world(t, "exam-of-a-private-place-3a02", true, func(y string) string {
			return strings.Replace(y, "github-token: ${{ github.token }}", "github-token: ${{ secrets.APP_TOKEN }}", 1)
		})
		w.hub.AddBot(appBot, "write")
		w.runner.Secrets["APP_TOKEN"] = w.hub.NewToken(forgetest.Token{Login: appBot, Installation: true, Permissions: map[string]string{
			"contents": "write", "issues": "write", "pull_requests": "write", "metadata": "read",
		}})
		heldOutRight(t, w.label().ended("done", 0, "proctor:review"), want)
	})
	t.Run("that the job's own token may not read", func(t *testing.T) {
		world(t, "exam-that-is-not-found-3a03", true, nil).label().brokenUnspent("octo/exams", "contents: read")
	})
	t.Run("without the folder", func(t *testing.T) {
		w := open(t, examined("exam-without-a-folder-3a04", "source: {repo: octo/exams, path: shop}", nil))
		if err := w.hub.AddRepository("exams", fstest.MapFS{"README.md": {Data: []byte("none yet\n")}}, false); err != nil {
			t.Fatal(err)
		}
		w.label().brokenUnspent("gates.acceptance.source.path", "shop")
	})
	t.Run("that would replace a visible file", func(t *testing.T) {
		s := examined("exam-over-a-visible-file-3a05", source, nil)
		s.files["exam/check.sh"] = "exit 1\n"
		w := open(t, s)
		if err := w.hub.AddRepository("exams", fstest.MapFS{"shop/exam/check.sh": {Data: []byte(examScript(s.mark))}}, false); err != nil {
			t.Fatal(err)
		}
		w.label().brokenUnspent("would replace", "gates.acceptance.overwrite")
	})
}

func TestAnExamComesFromADirectoryOfTheJob(t *testing.T) {
	// INV-5, INV-27
	step := func(mark, dir, with string) func(string) string {
		return func(y string) string {
			make := "      - run: |\n          mkdir -p \"" + dir + "/exam\"\n"
			for _, line := range strings.Split(strings.TrimSpace(examScript(mark)), "\n") {
				make += "          echo \"" + line + "\" >> \"" + dir + "/exam/check.sh\"\n"
			}
			y = strings.Replace(y, "      - id: proctor\n", make+"      - id: proctor\n", 1)
			return strings.Replace(y, "          issue: ${{ inputs.issue }}\n", "          issue: ${{ inputs.issue }}\n"+with, 1)
		}
	}
	const outside, input = "${{ runner.temp }}/held", "          acceptance-dir: ${{ runner.temp }}/held\n"
	t.Run("outside the checkout", func(t *testing.T) {
		mark := "exam-of-a-directory-3b01"
		s := examined(mark, "dir: input", step(mark, outside, input))
		s.workflow = hidden(s.workflow)
		heldOutRight(t, open(t, s).label().ended("done", 0, "proctor:review"), evidence.HeldOut{Form: "dir", Files: 1})
	})
	t.Run("that nobody named", func(t *testing.T) {
		mark := "exam-that-nobody-named-3b02"
		s := examined(mark, "dir: input", nil)
		open(t, s).label().brokenUnspent("acceptance-dir")
	})
	t.Run("inside the checkout", func(t *testing.T) {
		mark := "exam-inside-the-checkout-3b03"
		s := examined(mark, "dir: input", hidden(step(mark, "held", "          acceptance-dir: ${{ github.workspace }}/held\n")))
		open(t, s).label().brokenUnspent("lie in one another", "outside the checkout")
	})
	t.Run("that is empty", func(t *testing.T) {
		mark := "exam-of-no-file-3b04"
		s := examined(mark, "dir: input", func(y string) string {
			y = strings.Replace(y, "      - id: proctor\n", "      - run: mkdir -p \""+outside+"\"\n      - id: proctor\n", 1)
			return strings.Replace(y, "          issue: ${{ inputs.issue }}\n", "          issue: ${{ inputs.issue }}\n"+input, 1)
		})
		open(t, s).label().brokenUnspent("it holds no file")
	})
}

// hidden makes a workflow's text say the mark in two pieces, since the repository holds the workflow.
func hidden(change func(string) string) func(string) string {
	return func(y string) string {
		return strings.ReplaceAll(change(y), "exam-", "ex\"\"am-")
	}
}

// listening is an agent that keeps what it is told: each tick's prompt lands in a file of the change.
const listening = `n=$(cat heard/n 2>/dev/null || echo 0); n=$((n + 1))
mkdir -p heard; echo $n > heard/n; cat > heard/$n.txt
[ $n = 1 ] && echo 'right, half' > app/answer.txt
[ $n = 2 ] && echo 'right, more' > app/answer.txt
[ $n -ge 3 ] && echo 'right for sure' > app/answer.txt
:
`

// INV-5, INV-27: with feedback: count the agent hears how many of the held-out gates failed and nothing else; with none not
// even that. attempts ends both.
func TestOfHeldOutGatesTheAgentHearsACountAtMost(t *testing.T) {
	files := map[string]string{
		"sealed/second.sh": "# second " + sealedMark + "\necho whispered; grep -q 'right,\\|sure' app/answer.txt\n",
		"sealed/third.sh":  "# third " + sealedMark + "\ngrep -q 'more\\|sure' app/answer.txt\n",
		".github/agent.sh": listening,
	}
	world := func(t *testing.T, feedback string, attempts int) *world {
		return open(t, setting{files: files, config: map[string]string{
			"agent": "{name: command, args: [sh, .github/agent.sh], timeout: 30s}", "stops": "{max_ticks: 6, no_progress_after: 6, max_cost_usd: 1, max_duration: 5m}",
			"gates": fmt.Sprintf("{iteration: sh tests/run.sh, acceptance: {run: sh sealed/check.sh, parts: [sh sealed/second.sh, sh sealed/third.sh], sealed: [sealed/**], attempts: %d, feedback: %s}, timeout: 20s, stability: 1}", attempts, feedback),
		}})
	}
	t.Run("count", func(t *testing.T) {
		j := world(t, "count", 3).label().ended("done", 0, "proctor:review")
		for n, want := range map[int]string{2: "2 of 3 failed", 3: "1 of 3 failed"} {
			heard := j.file(fmt.Sprintf("heard/%d.txt", n))
			if !strings.Contains(heard, want) {
				t.Errorf("tick %d was not told %q:\n%s", n, want, heard)
			}
			for _, secret := range []string{sealedMark, "whispered", "second", "third", "acceptance-1", "acceptance-2"} {
				if strings.Contains(heard, secret) {
					t.Errorf("INV-27 tick %d was told %q", n, secret)
				}
			}
		}
	})
	t.Run("none", func(t *testing.T) {
		j := world(t, "none", 3).label().ended("done", 0, "proctor:review")
		for n := 2; n <= 3; n++ {
			heard := j.file(fmt.Sprintf("heard/%d.txt", n))
			if !strings.Contains(heard, "the gate \"acceptance\" failed. It is held out, so nothing more is told.") || strings.Contains(heard, "of 3") || strings.Contains(heard, "whispered") {
				t.Errorf("tick %d was told\n%s", n, heard)
			}
		}
		// Without a count the first failure is all that there is to know, so no further held-out gate runs.
		if got := len(j.rec.Ticks[0].Proof); got != 2 {
			t.Errorf("the first proof ran %d gates", got)
		}
	})
	t.Run("attempts end it, count or not", func(t *testing.T) {
		j := world(t, "count", 2).label().ended("overfit", 2, "proctor:needs-human").says("2 of 2 times")
		if len(j.rec.Ticks) != 2 || len(j.rec.Ticks[1].Proof) != 4 {
			t.Errorf("%d ticks", len(j.rec.Ticks))
		}
		j.unpublished()
	})
}
