package gitlab

import (
	"context"
	"time"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge/wire"
)

// lent is the least that a token of GitLab's lasts: it ends with a day, and a run that begins before midnight needs the next one.
const lent = 48 * time.Hour

// LendToken makes a project access token for a run: role Developer, scopes api and write_repository, for this project alone. It ends by itself at
// expires, midnight in one to two days, or when it is revoked. Making one needs a token of a Maintainer that is no project's own.
// https://docs.gitlab.com/api/project_access_tokens/#create-a-project-access-token
func (c *Client) LendToken(ctx context.Context) (token string, expires time.Time, err error) {
	expires = c.now().UTC().Add(lent).Truncate(24 * time.Hour)
	day := gitlab.ISOTime(expires)
	opt := &gitlab.CreateProjectAccessTokenOptions{
		Name: gitlab.Ptr("proctor run"), Scopes: &[]string{"api", "write_repository"}, AccessLevel: gitlab.Ptr(gitlab.DeveloperPermissions), ExpiresAt: &day,
	}
	k := call{what: c.in("make a run's token"), safety: wire.Once, missing: "check that the token that makes tokens is a Maintainer's, and not a project's own"}
	err = c.do(ctx, k, func(_ int, o gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		t, resp, err := c.api.ProjectAccessTokens.CreateProjectAccessToken(c.project, opt, o)
		if err == nil {
			token = t.Token
		}
		return resp, err
	})
	return token, expires, err
}
