package app

import (
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

func TestAProvedCommitThatCannotBePublishedIsKeptAndPublishedLater(t *testing.T) {
	// INV-51: each ends publish_failed with what to click; asked again after the click, no agent is called again.
	for _, c := range []struct {
		name   string
		refuse func(*world)
		mend   func(*world)
		says   []string
		pushed bool // the branch was, and only the pull request was refused
		squash bool // the change is made in two ticks and pushed as one commit
	}{
		{
			name:   "Actions may not open pull requests",
			refuse: func(w *world) { w.hub.Set(forgetest.ActionsMayOpenPullRequests(false)) },
			mend:   func(w *world) { w.hub.Set(forgetest.ActionsMayOpenPullRequests(true)) },
			says:   []string{"Allow GitHub Actions to create and approve pull requests", "/octo/shop/settings/actions", "/octo/shop/compare/main...proctor/issue-1"}, pushed: true,
		},
		{
			name:   "the branch is protected",
			refuse: func(w *world) { w.hub.Set(forgetest.Protected("proctor/issue-1")) },
			mend:   func(w *world) { w.hub.Set(forgetest.Protected()) },
			says:   []string{"protection rule", "/octo/shop/settings/branches"},
		},
		{
			name:   "the branch is protected and the history squashed",
			refuse: func(w *world) { w.hub.Set(forgetest.Protected("proctor/issue-1")) },
			mend:   func(w *world) { w.hub.Set(forgetest.Protected()) },
			says:   []string{"protection rule", "/octo/shop/settings/branches"}, squash: true,
		},
		{
			name:   "the plan has no drafts",
			refuse: func(w *world) { w.hub.Set(forgetest.DraftsUnsupported(true)) },
			mend:   func(w *world) { w.hub.Set(forgetest.DraftsUnsupported(false)) },
			says:   []string{"no draft pull requests", "open it by hand"}, pushed: true,
		},
		{
			name: "the API is down for pull requests",
			refuse: func(w *world) {
				w.must(w.hub.Fail("POST /repos/*/*/pulls", 1, forgetest.Refusal(422, "Validation Failed")))
			},
			mend: func(*world) {}, says: []string{"open it by hand"}, pushed: true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := setting{plan: []tick{{spend(1000, 100), reply(allRight)}}, config: map[string]string{"gates": visibleGates}}
			if c.squash {
				s.plan, s.config["publish"] = []tick{{spend(1000, 100), reply("one\n")}, {reply(allRight)}}, "{history: squash}"
			}
			w := open(t, s)
			c.refuse(w)
			first := w.label().ended("publish_failed", 6, "proctor:failed").says(c.says...)
			proved := first.rec.Head.ID
			if got := strings.TrimSpace(w.git("rev-parse", first.rec.Kept+"^")); got != proved || !strings.Contains(w.statuses()[0], proved) {
				t.Errorf("the proved commit %s is not kept on %s (%s) or not said so:\n%s", proved, first.rec.Kept, got, w.statuses()[0])
			}
			if branch := w.hub.Branch(w.branch()); c.pushed != (branch == proved) || len(w.hub.Pulls()) != 0 {
				t.Errorf("the branch is at %q, %d pull requests", branch, len(w.hub.Pulls()))
			}
			for _, words := range c.says {
				if !strings.Contains(w.statuses()[0], strings.ReplaceAll(words, "/", "\\/")) && !strings.Contains(w.statuses()[0], words) {
					t.Errorf("the status comment does not say %q:\n%s", words, w.statuses()[0])
				}
			}
			c.mend(w)
			second := w.label().ended("done", 0, "proctor:review")
			if n := len(w.model.Calls()); n != 1 {
				t.Errorf("%d model calls: publishing again must cost nothing", n)
			}
			if w.hub.Branch(w.branch()) != proved || second.rec.Head.ID != proved || second.rec.Totals.IssueUSD != first.rec.Totals.CostUSD {
				t.Errorf("the second run published %s (branch %s) at %s, proved was %s at %s", second.rec.Head.ID, w.hub.Branch(w.branch()), second.rec.Totals.IssueUSD, proved, first.rec.Totals.CostUSD)
			}
			w.nothingTwice()
		})
	}
}

func TestATokenThatMayNotPushIsToldBeforeTheAgentIsPaid(t *testing.T) {
	w := open(t, setting{plan: []tick{{spend(1000, 100), reply(allRight)}}, workflow: func(y string) string { return strings.Replace(y, "contents: write", "contents: read", 1) }})
	j := w.label()
	if j.ExitCode == 0 || len(w.model.Calls()) != 0 {
		t.Errorf("ended %s (exit %d) after %d model calls", j.rec.Terminal, j.ExitCode, len(w.model.Calls()))
	}
	j.says("contents: write")
	if len(w.statuses()) != 1 || !strings.Contains(w.statuses()[0], "contents: write") {
		t.Errorf("the issue is not told: %q", w.statuses())
	}
}

func TestAPersonsCommitOnTheBranchIsNeverLost(t *testing.T) {
	// INV-20
	w := open(t, setting{plan: []tick{{spend(10, 10), reply(allRight)}}})
	w.label().ended("done", 0, "proctor:review")
	tree := strings.TrimSpace(w.git("rev-parse", w.branch()+"^{tree}"))
	theirs := strings.TrimSpace(w.gitIn("By hand\n", "-c", "user.name=maya", "-c", "user.email=maya@example.com", "commit-tree", tree, "-p", w.branch()))
	w.git("update-ref", "refs/heads/"+w.branch(), theirs)
	j := w.label()
	if got := w.hub.Branch(w.branch()); got != theirs || j.ExitCode == 0 {
		t.Errorf("ended %s (exit %d); the branch is at %s, the person's commit is %s", j.rec.Terminal, j.ExitCode, got, theirs)
	}
	j.says("commits")
	if n := len(w.model.Calls()); n != 1 {
		t.Errorf("%d model calls: the second run could know at its start that it may not publish", n)
	}
}

func TestAskedAgainAfterADraftTheSameDraftIsUpdated(t *testing.T) {
	// INV-50. The plan's second tick answers in another way; the base is as it was.
	w := open(t, setting{plan: []tick{{reply(allRight)}}})
	first := w.label().ended("done", 0, "proctor:review")
	second := w.label().ended("done", 0, "proctor:review")
	if first.rec.Published.Number != second.rec.Published.Number || !second.rec.Published.Updated || w.hub.Branch(w.branch()) != second.rec.Head.ID {
		t.Errorf("published %+v, then %+v; the branch is at %s", first.rec.Published, second.rec.Published, w.hub.Branch(w.branch()))
	}
	w.nothingTwice()
}

func TestASquashedHistoryIsProvedAsItIsPushed(t *testing.T) {
	// INV-15: the one commit is made before the proof.
	w := open(t, setting{plan: twoAttempts(), config: map[string]string{"publish": "{history: squash}"}})
	j := w.label().ended("done", 0, "proctor:review")
	ids := []string{w.hub.Branch(w.branch()), j.rec.Head.ID, j.rec.Published.Commit, provedCommit(t, j)}
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("commits differ: %q", ids)
		}
	}
	if n := strings.TrimSpace(w.git("rev-list", "--count", base+".."+w.branch())); n != "1" {
		t.Errorf("the branch has %s commits", n)
	}
	w.label().ended("done", 0, "proctor:review")
	w.nothingTwice()
}
