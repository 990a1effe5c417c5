package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// onTheSecond answers right in the first tick, and does what a review asks in the second: the first tick of a round changes nothing.
func onTheSecond(more ...any) []tick {
	return []tick{{spend(1000, 100), reply(allRight)}, {spend(1000, 100), write("app/more.txt", "more\n")}}
}

func TestAFixWorksOnThePullRequestsOwnBranch(t *testing.T) {
	w := open(t, setting{plan: onTheSecond(), byLabel: true})
	first := w.command("/proctor run").ended("done", 0, "proctor:review")
	pull := w.hub.Pulls()[0]
	theirs := w.onTop(w.branch(), "by-hand.txt", "theirs\n")
	_, err := w.hub.ReviewPull(pull.Number, asker, "commented", "", forgetest.ReviewLine{Path: "app/more.txt", Line: 1, Body: "There should be more."}, forgetest.ReviewLine{Path: "app/answer.txt", Line: 1, Body: "Why?"})
	w.must(err)
	j, id := w.commandOn(pull.Number, asker, "/proctor fix and be quick")
	j.ended("done", 0, "proctor:review").heard(pull.Number, id, "done", "eyes rocket")
	_ = first
	_ = theirs
	_ = fmt.Sprint
	_ = slices.Contains[[]string]
	_ = strings.Contains
	_ = forge.ChangesRequested
	t.Logf("%s\n%+v\n%s", j.rec.Notes, w.hub.Threads(pull.Number), w.git("log", "--graph", "--format=%h %s", w.branch()))
}

// onTop is a person's commit on a branch, with one file more at the top of its tree.
func (w *world) onTop(branch, file, content string) string {
	w.t.Helper()
	return onTop(w.t, w.hub.GitDir(), branch, file, content)
}

func onTop(t *testing.T, dir, branch, file, content string) string {
	t.Helper()
	git := func(stdin string, args ...string) string { return strings.TrimSpace(gitAt(t, dir, stdin, args...)) }
	blob := git(content, "hash-object", "-w", "--stdin")
	tree := git(git("", "ls-tree", branch)+"\n100644 blob "+blob+"\t"+file+"\n", "mktree")
	id := git("", "-c", "user.name=Maya", "-c", "user.email=maya@example.com", "commit-tree", "-p", branch, "-m", "By hand", tree)
	git("", "update-ref", "refs/heads/"+branch, id)
	return id
}
