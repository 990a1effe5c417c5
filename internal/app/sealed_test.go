package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/agent"
)

// searching is an agent's look at all it can reach for a text that is no part of the plan as a whole: its directory and
// everything around it, the checkout, every object store, processes, and the places that programs leave things in. What it
// finds goes by name into found.txt, which is pushed like any file.
func searching(first, rest string) agent.Step {
	return sh(fmt.Sprintf(`
m='%s'; m="$m"'%s'
: > found.txt
look() { grep -rlaE -D skip -e "$m" "$1" 2>/dev/null | grep -v 'found\.txt$' | sed 's|^|file |' >> found.txt; }
for d in . "$HOME" "$TMPDIR" .. '@DIR@' /var/tmp /dev/shm /tmp/leak-*; do look "$d"; done
for d in . ../store ../gate '@DIR@'/jobs/*/workspace '@DIR@'/jobs/*/temp/proctor-*/store '@DIR@'/forge/git-*/octo/shop.git; do
  git -c safe.directory='*' -C "$d" cat-file --batch-all-objects --batch 2>/dev/null | grep -qaE -e "$m" && echo "objects $d" >> found.txt
  git -c safe.directory='*' -C "$d" log --all -p 2>/dev/null | grep -qaE -e "$m" && echo "history $d" >> found.txt
done
for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do grep -qaE -e "$m" "$f" 2>/dev/null && echo "process $f" >> found.txt; done
for f in /proc/[0-9]*/fd/*; do [ -f "$f" ] && grep -qaE -e "$m" "$f" 2>/dev/null && echo "open $f" >> found.txt; done
env | grep -qE -e "$m" && echo environment >> found.txt
grep -v found.txt found.txt > found.new; sort -u found.new > found.txt; rm found.new
echo looked >> found.txt
`, first, rest))
}

const nothingFound = "looked\n"

func TestTheSealedFileIsNowhereThatTheAgentCanLook(t *testing.T) {
	// INV-27
	world := func(t *testing.T, mark, sealed, sandbox string) *world {
		return open(t, setting{
			plan: []tick{{searching(mark[:9], mark[9:]), reply(allRight)}}, mark: mark, leaks: sealed == "",
			config: map[string]string{
				"gates":   "{iteration: sh tests/run.sh, acceptance: {run: sh sealed/check.sh" + sealed + "}, stability: 1}",
				"sandbox": "{mode: " + sandbox + "}",
			},
		})
	}
	t.Run("sealed and confined", func(t *testing.T) {
		w := world(t, "sealed-and-confined-text-9d01", ", sealed: [sealed/**]", "auto")
		w.label().ended("done", 0, "proctor:review")
		if got := w.file("found.txt"); got != nothingFound {
			t.Errorf("INV-27 the agent found\n%s", got)
		}
		if !strings.Contains(w.file("sealed/check.sh"), w.mark) {
			t.Error("the branch lacks the sealed file")
		}
	})
	t.Run("the control: neither sealed nor confined", func(t *testing.T) {
		w := world(t, "open-to-everybody-text-9d02", "", "off")
		w.label().ended("done", 0, "proctor:review")
		for _, want := range []string{"file ./sealed/check.sh\n", "objects .\n", "file " + w.dir + "/jobs/"} {
			if got := w.file("found.txt"); !strings.Contains(got, want) {
				t.Errorf("the probe does not find %q, so it shows nothing; it found\n%s", want, got)
			}
		}
	})
	t.Run("hidden and not confined is called hidden", func(t *testing.T) {
		// INV-38: here only the confinement is off, and the agent finds the job's checkout.
		w := world(t, "hidden-but-not-sealed-text-9d03", ", sealed: [sealed/**]", "off")
		j := w.label().ended("done", 0, "proctor:review")
		if got := w.file("found.txt"); strings.Contains(got, "./sealed/check.sh") || strings.Contains(got, "objects .\n") || !strings.Contains(got, "/workspace/sealed/check.sh\n") {
			t.Errorf("the agent found\n%s", got)
		}
		for where, text := range map[string]string{"draft": w.hub.Pulls()[0].Body, "summary": j.Summary} {
			if !strings.Contains(text, "hidden, not sealed") {
				t.Errorf("the %s does not say that the sealed files were only hidden", where)
			}
		}
	})
}

func TestTheJobsSecretsAreNowhereThatTheAgentCanLook(t *testing.T) {
	// INV-33: the job's token, plain and as the checkout's header holds it, the runner's own token and the model key.
	secrets := searching("gh[s]_[0-9a-f]{40}|eC1hY2Nlc3M", "tdG9rZW46|runtime[-][0-9a-f]{16}|sk-[e]2e-k3y")
	keep := func(y string) string {
		return strings.Replace(y, "persist-credentials: false", "persist-credentials: true", 1)
	}
	t.Run("confined", func(t *testing.T) {
		w := open(t, setting{plan: []tick{{secrets, reply(allRight)}}, workflow: keep})
		w.label().ended("done", 0, "proctor:review")
		if got := w.file("found.txt"); got != nothingFound {
			t.Errorf("INV-33 the agent found\n%s", got)
		}
	})
	t.Run("a gate", func(t *testing.T) {
		// The code under test looks from inside the visible gate, where it could print what it finds.
		run := *secrets.Run + "\ncat found.txt; rm -f found.txt\n"
		w := open(t, setting{plan: []tick{{write("app/lib.sh", "cat app/probe.sh >/dev/null && sh app/probe.sh\n"), sh(". .github/probe.sh"), reply(allRight)}}, workflow: keep,
			files: map[string]string{".github/probe.sh": "cp .github/probe.txt app/probe.sh\n", ".github/probe.txt": run}})
		j := w.label().ended("done", 0, "proctor:review")
		got := ""
		for path, text := range readAll(t, j.reports) {
			if strings.HasSuffix(path, ".log.gz") {
				got += text
			}
		}
		if !strings.Contains(got, nothingFound) || strings.Contains(got, "file ") || strings.Contains(got, "process ") || strings.Contains(got, "environment") {
			t.Errorf("INV-33 a gate found\n%s", got)
		}
	})
	t.Run("the control: not confined", func(t *testing.T) {
		w := open(t, setting{plan: []tick{{secrets, reply(allRight)}}, workflow: keep, config: map[string]string{"sandbox": "{mode: off}"}})
		w.label().ended("done", 0, "proctor:review")
		if got := w.file("found.txt"); !strings.Contains(got, "/workspace/.git/config\n") {
			t.Errorf("the probe does not find the checkout's credential, so it shows nothing; it found\n%s", got)
		}
	})
}

func TestNothingThatRanInAProofCanBeReadInTheNextTick(t *testing.T) {
	// INV-27: the agent's code runs beside the sealed file and leaves copies wherever it can.
	world := func(t *testing.T, mark, sandbox string) *world {
		name := "leak-" + mark[len(mark)-4:]
		leak := fmt.Sprintf(`
if [ -f sealed/check.sh ]; then
	cat sealed/check.sh; cat sealed/check.sh >&2
	mkdir -p ignored
	for d in "$HOME" "$TMPDIR" /tmp /var/tmp /dev/shm ./ignored . .. ../.. ../../gate ../../gate-home ../../gate-tmp ../../agent ../../agent-tmp; do
		cp sealed/check.sh "$d/%[1]s" 2>/dev/null
	done
	git hash-object -w sealed/check.sh 2>/dev/null
	text=$(cat sealed/check.sh)
	LEAK="$text" setsid sh -c 'sleep 60; : "$0"' "$text" >/dev/null 2>&1 &
fi
:
`, name)
		for _, d := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
			t.Cleanup(func() { _ = os.Remove(filepath.Join(d, name)) })
		}
		return open(t, setting{
			plan: []tick{{write("app/lib.sh", leak), reply(halfRight)}, {searching(mark[:9], mark[9:]), reply(allRight)}}, mark: mark,
			config: map[string]string{"sandbox": "{mode: " + sandbox + "}"},
		})
	}
	t.Run("confined", func(t *testing.T) {
		w := world(t, "leaked-by-a-proof-text-7e01", "auto")
		j := w.label().ended("done", 0, "proctor:review")
		if len(j.rec.Ticks) != 2 || j.rec.Ticks[0].Proof[1].Status != "failed" {
			t.Fatalf("the first tick's proof did not run beside the sealed file: %+v", j.rec.Ticks[0].Proof)
		}
		if got := w.file("found.txt"); got != nothingFound {
			t.Errorf("INV-27 the next tick's agent found\n%s", got)
		}
		for path := range readAll(t, j.reports) {
			if strings.Contains(path, "proof") || strings.Contains(path, "acceptance") {
				t.Errorf("INV-27 the proof's output was kept as %s", path)
			}
		}
	})
	t.Run("the control: not confined", func(t *testing.T) {
		w := world(t, "leaked-to-everybody-text-7e02", "off")
		w.label().ended("done", 0, "proctor:review")
		if got := w.file("found.txt"); !strings.Contains(got, "file /tmp/leak-7e02\n") {
			t.Errorf("the copies are not found without confinement either, so this shows nothing; found\n%s", got)
		}
	})
}
