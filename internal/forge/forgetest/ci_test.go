package forgetest_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/trigger"
)

const follower = "name: After\non: {workflow_run: {workflows: [%], types: [completed]}}\njobs: {a: {runs-on: ubuntu-latest, steps: [{run: 'true'}]}}\n"

// What CI's end tells the hook reads as what it was, and GitHub starts the workflows of the default branch that name the one that ended.
func TestCIThatEndsIsToldToTheHookAndToWhatFollowsIt(t *testing.T) {
	t.Parallel()
	hook := httptest.NewServer(&mailbox{})
	defer hook.Close()
	g := newGitHub(t, forgetest.Options{WorkflowTriggers: true, Files: fstest.MapFS{
		".github/workflows/after.yml": {Data: []byte(strings.ReplaceAll(follower, "%", "CI"))},
		".github/workflows/other.yml": {Data: []byte(strings.ReplaceAll(follower, "%", "Deploy"))},
	}})
	g.SetHook(hook.URL, "a secret of the test")
	l, err := forgetest.NewGitLab(forgetest.GitLabOptions{Dir: t.TempDir(), Files: fstest.MapFS{"a": {Data: []byte("a")}}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.SetHook(hook.URL, "a secret of the test", nil)
	parse := map[string]func(string, []byte, trigger.Options) (trigger.Trigger, error){"github": trigger.ParseGitHub, "gitlab": trigger.ParseGitLab}
	for _, c := range []struct {
		ci   forgetest.CI
		asks bool
	}{
		{forgetest.CI{Branch: "main", Job: "unit", Log: "FAIL\n"}, true},
		{forgetest.CI{Branch: "main", Job: "unit", Log: "FAIL\n", Pull: 1}, true},
		{forgetest.CI{Branch: "main", Job: "unit", Log: "FAIL\n", Pull: 1, Fork: true}, false},
		{forgetest.CI{Branch: "main"}, false},
	} {
		for name, site := range map[string]interface {
			EndCI(forgetest.CI) error
			Settle()
			Deliveries() []forgetest.Delivery
			Branch(string) string
		}{"github": g, "gitlab": l} {
			if err := site.EndCI(c.ci); err != nil {
				t.Fatal(err)
			}
			site.Settle()
			all := site.Deliveries()
			d := all[len(all)-1]
			got, err := parse[name](d.Event, d.Body, trigger.Options{})
			if asks := err == nil && got.Kind == trigger.KindCheck && got.Change.Head == "main" && got.Check.SHA == site.Branch("main"); asks != c.asks || d.Status != 202 {
				t.Errorf("%s, %+v: read as %+v, %v; answered %d", name, c.ci, got, err, d.Status)
			}
		}
	}
	started := map[string]int{}
	for _, r := range g.Runs() {
		started[r.File]++
	}
	if started[".github/workflows/after.yml"] != 4 || started[".github/workflows/other.yml"] != 0 {
		t.Errorf("started %v", started)
	}
}
