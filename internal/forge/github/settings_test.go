package github_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
)

// Each setting is put wrong alone, before the eyes of an administrator's token. The control is the repository with all of them right.
func TestEachSettingThatIsWrongIsNamedWithItsClick(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set   forgetest.Setting
		which string
		sight forge.Sight
		next  string
	}{
		"control":                 {func(*forgetest.GitHub) {}, "", forge.Right, ""},
		"no issues":               {forgetest.IssuesDisabled(true), "issues", forge.Wrong, "/settings → Features"},
		"disabled":                {forgetest.WorkflowDisabled("proctor.yml"), "workflow", forge.Wrong, "/actions/workflows/proctor.yml"},
		"no Actions":              {forgetest.ActionsAllowed(""), "actions", forge.Wrong, "/settings/actions"},
		"own actions only":        {forgetest.ActionsAllowed("local_only"), "actions", forge.Wrong, "allow proctor-ci/*"},
		"some actions":            {forgetest.ActionsAllowed("selected"), "actions", forge.Doubtful, "actions/checkout"},
		"no pull requests":        {forgetest.ActionsMayOpenPullRequests(false), "actions-pull-requests", forge.Wrong, "tick"},
		"no new branches":         {forgetest.Ruleset("creation", "proctor/*"), "branch-rules", forge.Wrong, "/rules"},
		"signatures":              {forgetest.Ruleset("required_signatures", "proctor/*"), "branch-rules", forge.Doubtful, "/rules"},
		"control: other branches": {forgetest.Ruleset("creation", "release/*"), "", forge.Right, ""},
		"another secret":          {forgetest.SecretNames("OTHER"), "secret", forge.Wrong, "/settings/secrets/actions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world(t, false, nil)
			g := w.Site.(*forgetest.GitHub)
			g.Set(forgetest.SecretNames("ANTHROPIC_API_KEY"), c.set)
			f, err := github.New(github.Config{BaseURL: g.APIURL(), ServerURL: g.URL(), Owner: g.Owner(), Repo: g.Repo(), Token: g.NewToken(forgetest.Token{Login: g.Owner()})})
			if err != nil {
				t.Fatal(err)
			}
			found, err := f.Settings(t.Context(), forge.Needs{Branch: "proctor/issue-1", Workflow: w.Workflow, JobToken: true, Secrets: []string{"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}})
			if err != nil || len(found) != 6 {
				t.Fatalf("%+v, %v", found, err)
			}
			i := slices.IndexFunc(found, func(s forge.Setting) bool { return s.Sight != forge.Right })
			if c.which == "" && i < 0 {
				return
			}
			if i < 0 || found[i].Name != c.which || found[i].Sight != c.sight || !strings.Contains(found[i].Next, c.next) || strings.Contains(found[i].Next, "{") {
				t.Errorf("want %s %s with %q: %+v", c.which, c.sight, c.next, found)
			}
		})
	}
}
