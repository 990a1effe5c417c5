package gitlab_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgesuite"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/gitlab"
)

// Each setting is put wrong alone, before the eyes of a maintainer's token. The control is the project with all of them right.
func TestEachSettingThatIsWrongIsNamedWithItsClick(t *testing.T) {
	t.Parallel()
	type rules = map[string]any
	right := func() forgetest.GitLabSettings {
		return forgetest.GitLabSettings{Variables: []forgetest.GitLabVariable{{Key: "TOKEN", Masked: true, Protected: true}, {Key: "KEY", Masked: true}}}
	}
	for name, c := range map[string]struct {
		set   func(*forgetest.GitLabSettings)
		which string
		sight forge.Sight
		next  string
	}{
		"control":                   {func(*forgetest.GitLabSettings) {}, "", forge.Right, ""},
		"no issues":                 {func(s *forgetest.GitLabSettings) { s.IssuesOff = true }, "issues", forge.Wrong, "/edit"},
		"no merge requests":         {func(s *forgetest.GitLabSettings) { s.MergesOff = true }, "merge-requests", forge.Wrong, "/edit"},
		"no CI":                     {func(s *forgetest.GitLabSettings) { s.CIOff = true }, "ci", forge.Wrong, "/edit"},
		"another file":              {func(s *forgetest.GitLabSettings) { s.ConfigPath = "ci/main.yml" }, "pipeline-file", forge.Doubtful, "include"},
		"nobody's variables":        {func(s *forgetest.GitLabSettings) { s.VariablesRole = "no_one_allowed" }, "pipeline-variables", forge.Wrong, "/-/settings/ci_cd"},
		"maintainers' variables":    {func(s *forgetest.GitLabSettings) { s.VariablesRole = "maintainer" }, "pipeline-variables", forge.Doubtful, "Developer"},
		"a pattern":                 {func(s *forgetest.GitLabSettings) { s.Protected = rows("main", "maintainer", "pro*", "maintainer") }, "protected-branches", forge.Wrong, "unprotect pro*"},
		"nobody's branches":         {func(s *forgetest.GitLabSettings) { s.Protected = rows("main", "maintainer", "*", "") }, "protected-branches", forge.Wrong, "unprotect *"},
		"control: for developers":   {func(s *forgetest.GitLabSettings) { s.Protected = rows("main", "maintainer", "*", "developer") }, "", forge.Right, ""},
		"control: others":           {func(s *forgetest.GitLabSettings) { s.Protected = rows("main", "maintainer", "x/*", "") }, "", forge.Right, ""},
		"signatures":                {func(s *forgetest.GitLabSettings) { s.PushRules = rules{"reject_unsigned_commits": true} }, "push-rules", forge.Wrong, "Push rules"},
		"verified committers":       {func(s *forgetest.GitLabSettings) { s.PushRules = rules{"commit_committer_check": true} }, "push-rules", forge.Wrong, "Push rules"},
		"names":                     {func(s *forgetest.GitLabSettings) { s.PushRules = rules{"branch_name_regex": "^feature/"} }, "push-rules", forge.Wrong, "proctor/*"},
		"messages":                  {func(s *forgetest.GitLabSettings) { s.PushRules = rules{"commit_message_regex": "JIRA"} }, "push-rules", forge.Doubtful, "meet them"},
		"control: rules that let":   {func(s *forgetest.GitLabSettings) { s.PushRules = rules{"branch_name_regex": "^proctor/"} }, "", forge.Right, ""},
		"in clear":                  {func(s *forgetest.GitLabSettings) { s.Variables[1].Masked = false }, "variables", forge.Wrong, "Masked"},
		"for no job":                {func(s *forgetest.GitLabSettings) { s.Protected = rows("x", "") }, "variables", forge.Wrong, "protect main"},
		"for an environment":        {func(s *forgetest.GitLabSettings) { s.Variables[0].Environment = "production" }, "variables", forge.Wrong, "All"},
		"not in the project itself": {func(s *forgetest.GitLabSettings) { s.Variables = s.Variables[:1] }, "variables", forge.Doubtful, "add what is nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lab *forgetest.GitLab
			w := forgesuite.GitLab(t, func(t *testing.T, g *forgetest.GitLab, _ string, clock *forgesuite.Clock) forge.Forge {
				lab = g
				g.AddUser("olga", "maintainer")
				f, err := gitlab.New(gitlab.Config{ServerURL: g.URL(), Project: g.Project(), Token: g.NewToken(forgetest.GitLabToken{Login: "olga"}), Now: clock.Now, Sleep: clock.Sleep})
				if err != nil {
					t.Fatal(err)
				}
				return f
			})
			s := right()
			c.set(&s)
			lab.Set(s)
			found, err := w.Forge.(forge.SettingsReader).Settings(t.Context(), forge.Needs{Branch: "proctor/issue-1", Variables: []string{"TOKEN", "KEY"}})
			if err != nil || len(found) != 8 {
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

func rows(pairs ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}
