package forgesuite

import (
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// checked is a branch with the check of a run that proved it, and who writes it.
func checked(t *testing.T, w World) (forge.Checker, forge.Check) {
	t.Helper()
	checker, ok := w.Forge.(forge.Checker)
	if !ok {
		t.Fatal("the client writes no checks")
	}
	const branch = "proctor/issue-1"
	return checker, forge.Check{
		Run: "r1", Commit: w.branch(t, branch), Branch: branch, Conclusion: forge.ConclusionSuccess, Title: strings.Repeat("é", forge.MaxCheckTitle),
		Summary: strings.Repeat("é", forge.MaxCheckSummary), URL: "https://ci.example.com/jobs/1", Started: w.Clock.Now().Add(-time.Minute), Ended: w.Clock.Now(),
	}
}

func checks(t *testing.T, w World) {
	ctx := t.Context()
	checker, c := checked(t, w)
	must(t, checker.SetCheck(ctx, c))
	got := w.Site.Checks(c.Commit)
	if len(got) != 1 || got[0].Name != forge.CheckName || got[0].State != "success" || got[0].Title != c.Title || got[0].Target != c.URL || got[0].By != w.Bot {
		t.Fatalf("checks: %+v", got)
	}
	if w.Forge.Name() == "github" && got[0].Summary != c.Summary {
		t.Error("the summary did not arrive whole")
	}
	// A further run has another word, and it is the newest that counts.
	c.Run, c.URL = "r2", "https://ci.example.com/"+strings.Repeat("x", 300)
	for conclusion, state := range map[forge.Conclusion]string{forge.ConclusionFailure: "fail", forge.ConclusionCancelled: "cancel", forge.ConclusionSuccess: "success"} {
		c.Conclusion = conclusion
		for range 2 { // the same word again is no error
			must(t, checker.SetCheck(ctx, c))
		}
		got := w.Site.Checks(c.Commit)
		if last := got[len(got)-1]; !strings.HasPrefix(last.State, state) {
			t.Errorf("%s is shown as %s", conclusion, last.State)
		}
	}
	c.Conclusion = forge.ConclusionUnproved
	must(t, checker.SetCheck(ctx, c))
	c.Commit = strings.Repeat("ab", 20)
	if err := checker.SetCheck(ctx, c); err == nil {
		t.Error("a commit that is not there has a check")
	}
}

func checkLost(t *testing.T, w World) {
	checker, c := checked(t, w)
	for i, f := range []forgetest.Fault{forgetest.LostAnswer(), forgetest.DoneBut502(), forgetest.LostCall()} {
		c.Run = "r" + string(rune('1'+i))
		if i > 0 { // on GitLab each further run's word has to be another
			c.Conclusion = map[forge.Conclusion]forge.Conclusion{forge.ConclusionSuccess: forge.ConclusionFailure, forge.ConclusionFailure: forge.ConclusionSuccess}[c.Conclusion]
		}
		must(t, w.Site.Fail(w.Paths["check"], 1, f))
		must(t, checker.SetCheck(t.Context(), c))
		want := i + 1
		if w.Forge.Name() == "gitlab" {
			want = 1
		}
		if n := len(w.Site.Checks(c.Commit)); n != want {
			t.Errorf("fault %+v: %d checks, want %d", f, n, want)
		}
	}
}
