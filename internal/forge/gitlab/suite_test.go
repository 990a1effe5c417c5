package gitlab_test

import (
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgesuite"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/gitlab"
)

// INV-53: GitLab shows the same behaviour as GitHub, through the same suite.
func TestGitLabBehavesAsAForgeMust(t *testing.T) {
	t.Parallel()
	forgesuite.Run(t, func(t *testing.T) forgesuite.World {
		return forgesuite.GitLab(t, func(t *testing.T, g *forgetest.GitLab, token string, clock *forgesuite.Clock) forge.Forge {
			t.Helper()
			c, err := gitlab.New(gitlab.Config{ServerURL: g.URL(), Project: g.Project(), Token: token, Now: clock.Now, Sleep: clock.Sleep})
			if err != nil {
				t.Fatal(err)
			}
			return c
		})
	})
}
