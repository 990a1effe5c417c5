package github_test

import (
	"net/http"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgesuite"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
)

// INV-53: the same behaviour on GitHub and on Enterprise Server; package gitlab runs the same suite.
func TestGitHubBehavesAsAForgeMust(t *testing.T) {
	t.Parallel()
	forgesuite.Run(t, func(t *testing.T) forgesuite.World { return world(t, false, nil) })
}

func TestEnterpriseServerBehavesAsAForgeMust(t *testing.T) {
	t.Parallel()
	forgesuite.Run(t, func(t *testing.T) forgesuite.World { return world(t, true, nil) })
}

func world(t *testing.T, enterprise bool, client *http.Client) forgesuite.World {
	t.Helper()
	return forgesuite.GitHub(t, enterprise, func(t *testing.T, g *forgetest.GitHub, token string, clock *forgesuite.Clock) forge.Forge {
		t.Helper()
		c, err := github.New(github.Config{BaseURL: g.APIURL(), ServerURL: g.URL(), Owner: g.Owner(), Repo: g.Repo(), Token: token,
			HTTP: client, Now: clock.Now, Sleep: clock.Sleep})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}
