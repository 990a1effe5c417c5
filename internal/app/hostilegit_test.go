package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// planted is what the agents below write where they may not. A plan lies in the base commit, so no plan holds it whole.
const (
	planted     = "planted-by-the-agent-77c1"
	plantedText = `planted-by-$(echo the)-agent-77c1`
)

// brokenRules runs an agent that first does something good and then the steps, and asserts that the second tick
// halted the run for every one of the paths, and that nothing of it is anywhere on the forge.
func brokenRules(t *testing.T, script string, want map[string]string) {
	t.Helper()
	w := open(t, setting{plan: []tick{{reply("first\n")}, {sh("p=" + plantedText + "\n" + script), reply(allRight)}}})
	j := w.label().ended("safety_halt", 4, "proctor:needs-human")
	w.unpublished()
	got := map[string]string{}
	for _, f := range j.rec.Ticks[1].Guard {
		if f.Level == "halt" {
			got[f.Path] += f.Rule + " "
		}
	}
	for path, rule := range want {
		if !strings.Contains(got[path], rule) {
			t.Errorf("%s: rules %q, want %s; all: %q", path, got[path], rule, got)
		}
	}
	if strings.Contains(w.objects(), planted) {
		t.Error("INV-13 what the agent planted is in the forge's repository")
	}
	// INV-14: the checkpoint holds the tick before, and only that.
	if got := w.git("diff", "--name-only", base, "refs/proctor/1/state^"); got != "app/answer.txt\n" || w.git("show", "refs/proctor/1/state^:app/answer.txt") != "first\n" {
		t.Errorf("the last good commit changes\n%s", got)
	}
	if j.rec.Head == nil || j.rec.Head.ID != j.rec.Ticks[0].Commit.ID || len(j.rec.Ticks[1].Gates) != 0 {
		t.Errorf("the head is %v after gates %v, want the commit of tick 1 and none", j.rec.Head, j.rec.Ticks[1].Gates)
	}
}

func TestABrokenRuleHaltsTheRunAndNothingOfTheTickIsPushed(t *testing.T) {
	t.Run("INV-16 what steers this product, the forge or an agent", func(t *testing.T) {
		brokenRules(t, `
for f in .github/workflows/evil.yml .github/proctor.yml proctor.yaml app/CLAUDE.md .github/plan.yml sealed/check.sh SEALED/other.sh .gitattributes; do
	mkdir -p "$(dirname $f)"; echo "# $p" > $f
done
`, map[string]string{
			".github/workflows/evil.yml": "protected-path", ".github/proctor.yml": "protected-path", "proctor.yaml": "protected-path", "app/CLAUDE.md": "protected-path",
			".github/plan.yml": "protected-path", "sealed/check.sh": "sealed-path", "SEALED/other.sh": "sealed-path", ".gitattributes": "protected-path",
		})
	})
	t.Run("INV-13 by way of git and of odd names", func(t *testing.T) {
		brokenRules(t, `
git config user.email a@example.com; git config user.name a
echo "# $p" >> .github/plan.yml; git commit -qam mine
mkdir -p .github/workflows/deep; echo "# $p" > '.github/workflows/deep/é "q".yml'; git add .
printf '*\n' > .git/info/exclude; echo "# $p" > .github/workflows/excluded.yml
mkdir -p .GitHub/Workflows; echo "# $p" > .GitHub/Workflows/folded.yml
git update-index --skip-worktree .github/proctor.yml; echo "# $p" >> .github/proctor.yml
chmod +x .github/workflows/proctor.yml
ln -s /etc/passwd app/outside
git init -q app/nested; echo "$p" > app/nested/f; git -C app/nested -c user.name=a -c user.email=a add .
`, map[string]string{
			".github/plan.yml": "protected-path", `.github/workflows/excluded.yml`: "protected-path", ".GitHub/Workflows/folded.yml": "protected-path",
			".github/proctor.yml": "protected-path", ".github/workflows/proctor.yml": "protected-path", "app/outside": "escaping-symlink", "app/nested": "nested-repository",
		})
	})
	t.Run("INV-13 by taking away", func(t *testing.T) {
		brokenRules(t, `
git mv .github/plan.yml app/plan.yml; echo "$p" >> app/plan.yml
rm .github/proctor.yml
rm -r .github/workflows; ln -s ../app .github/workflows
`, map[string]string{
			".github/plan.yml": "protected-path", ".github/proctor.yml": "protected-path", ".github/workflows": "protected-path",
			".github/workflows/proctor.yml": "protected-path",
		})
	})
	t.Run("the control: other paths are published", func(t *testing.T) {
		w := open(t, setting{plan: []tick{{sh("p=" + plantedText + "\necho \"# $p\" > app/new.txt; ln -s answer.txt app/inside; chmod +x app/lib.sh"), reply(allRight)}}})
		w.label().ended("done", 0, "proctor:review")
		if w.file("app/new.txt") != "# "+planted+"\n" || !strings.Contains(w.objects(), planted) {
			t.Error("the branch lacks the file")
		}
	})
}

// gitTricks is an agent that works through git: whatever it sets up in its repository has no effect beyond its files.
const gitTricks = `
git config --global --add safe.directory '*'
git config user.email a@example.com; git config user.name a
mkdir -p .git/hooks .git/info .git/other .git/objects/info
for h in pre-commit post-commit post-checkout post-index-change reference-transaction pre-push post-merge pre-auto-gc fsmonitor-watchman update pre-receive; do
	printf '#!/bin/sh\necho %s >> @DIR@/a-program-ran\nexit 0\n' $h > .git/hooks/$h; chmod +x .git/hooks/$h
done
echo changed >> README.md; git add README.md; git commit -qm one; git commit -q --amend -m two --allow-empty
git checkout -q --orphan elsewhere; git commit -qm three --allow-empty; git branch -D master main >/dev/null 2>&1
git reset -q --hard; git tag -f v1; git replace -f HEAD "$(git commit-tree -m four HEAD^{tree})"
printf '*\n' > .git/info/exclude
git update-index --skip-worktree app/answer.txt; git update-index --assume-unchanged README.md
c="sh -c 'echo \"\$0 \$*\" >> @DIR@/a-program-ran' "
for k in core.pager core.editor core.sshCommand core.askPass core.fsmonitor diff.external credential.helper gpg.program filter.x.clean filter.x.smudge filter.x.process diff.x.textconv diff.x.command merge.x.driver uploadpack.packObjectsHook; do
	git config $k "$c$k"
done
git config filter.x.required true; git config commit.gpgSign true
git config alias.status "!$c alias"; git config alias.commit "!$c alias"
git config include.path other/config; printf '[core]\n\thooksPath = .git/hooks\n' > .git/other/config
git config remote.origin.url http://127.0.0.1:9/thief.git; git config remote.origin.pushurl http://127.0.0.1:9/thief.git
git config url.http://127.0.0.1:9/.insteadOf http://; git config url.http://127.0.0.1:9/.pushInsteadOf http://
printf '* filter=x diff=x merge=x\n' > .git/info/attributes
echo @DIR@/jobs > .git/objects/info/alternates
echo 'right for sure' > app/answer.txt; printf 'one more\n' >> README.md; echo new > app/extra.txt
git add -f app/extra.txt; git diff >/dev/null 2>&1
rm -f .git/index; printf 'ref: refs/heads/../../../x\n' > .git/HEAD; rm -rf .git/refs
`

func TestWhatAnAgentDoesWithGitHasNoEffectBeyondItsFiles(t *testing.T) {
	// INV-13, INV-21
	world := func(t *testing.T, sandbox string) *world {
		return open(t, setting{plan: []tick{{sh(gitTricks)}}, config: map[string]string{"sandbox": "{mode: " + sandbox + "}"}})
	}
	t.Run("confined", func(t *testing.T) {
		w := world(t, "auto")
		w.label().ended("done", 0, "proctor:review")
		want := "M\tREADME.md\nM\tapp/answer.txt\nA\tapp/extra.txt\n"
		if d := cmp.Diff(want, w.git("diff", "--name-status", "--no-renames", base, w.branch())); d != "" {
			t.Errorf("the branch (-want +got):\n%s", d)
		}
		if got := w.file("README.md"); got != "# Answers\nchanged\none more\n" {
			t.Errorf("README.md is %q", got)
		}
		if n := strings.TrimSpace(w.git("rev-list", "--count", base+".."+w.branch())); n != "1" {
			t.Errorf("the branch has %s commits of its own, want ours alone", n)
		}
		if b, err := os.ReadFile(filepath.Join(w.dir, "a-program-ran")); err == nil {
			t.Errorf("INV-21 the harness ran\n%s", b)
		}
	})
	t.Run("the control: the agent's own git runs its hooks", func(t *testing.T) {
		w := world(t, "off")
		w.label()
		b, err := os.ReadFile(filepath.Join(w.dir, "a-program-ran"))
		for _, want := range []string{"post-commit\n", "core.fsmonitor ", "filter.x.process "} {
			if err != nil || !strings.Contains(string(b), want) {
				t.Errorf("%s did not run by the agent's own git either, so this test shows nothing: %v\n%s", want, err, b)
			}
		}
	})
}

func TestWhoeverWritesAfterTheAgentsEndIsGone(t *testing.T) {
	// INV-13, INV-23. The second tick is the control: what the agent waits for is there.
	late := func(name string) string {
		return "(setsid sh -c 'sleep 0.4; echo late > app/" + name + "' >/dev/null 2>&1 &)\n"
	}
	w := open(t, setting{plan: []tick{{sh(late("never.txt")), reply(halfRight)}, {sh(late("waited-for.txt") + "sleep 1"), reply(allRight)}}})
	j := w.label().ended("done", 0, "proctor:review")
	if got := w.git("diff", "--name-only", base, w.branch()); got != "app/answer.txt\napp/waited-for.txt\n" {
		t.Errorf("the branch changes\n%s", got)
	}
	if n := j.rec.Ticks[0].Agent.Survivors; n == 0 {
		t.Error("the record does not say that a process outlived the agent")
	}
}

func TestWhatAGateWritesNeverReachesTheBranch(t *testing.T) {
	// INV-15, INV-24
	w := open(t, setting{plan: []tick{{write("app/lib.sh", "echo tampered >> README.md; echo x > app/made-by-a-gate.txt; echo '# "+planted+"' >> .github/proctor.yml; git add -A 2>/dev/null\n"), reply(allRight)}}})
	j := w.label().ended("done", 0, "proctor:review")
	if got := w.git("diff", "--name-only", base, w.branch()); got != "app/answer.txt\napp/lib.sh\n" {
		t.Errorf("the branch changes\n%s", got)
	}
	told := strings.Join(j.rec.Notes, "\n")
	if !strings.Contains(told, "README.md") || !strings.Contains(told, "put back") {
		t.Errorf("nobody is told that a gate changed tracked files: %q", j.rec.Notes)
	}
	// A reader of the pull request is told in the same words, once.
	if n := strings.Count(w.hub.Pulls()[0].Body, "the iteration gate changed"); n != 1 {
		t.Errorf("the pull request tells it %d times:\n%s", n, w.hub.Pulls()[0].Body)
	}
}
