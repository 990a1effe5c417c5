package gitlab

import (
	"context"
	"net/http"
	"strings"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/wire"
)

var _ forge.Checker = (*Client)(nil)

// maxTargetURL is GitLab's bound of a status's address.
const maxTargetURL = 255

var states = map[forge.Conclusion]gitlab.BuildStateValue{
	forge.ConclusionSuccess: gitlab.Success, forge.ConclusionFailure: gitlab.Failed, forge.ConclusionUnproved: gitlab.Canceled, forge.ConclusionCancelled: gitlab.Canceled,
}

// SetCheck sets a commit status. GitLab keeps one of each name in the commit's newest pipeline of the branch, so nothing is made twice;
// it refuses the state that one has already, which is then as it should be.
func (c *Client) SetCheck(ctx context.Context, check forge.Check) error {
	k := call{what: c.in("write the status of " + check.Commit), missing: "check that the commit was pushed"}
	state := states[check.Conclusion]
	opt := &gitlab.SetCommitStatusOptions{State: state, Ref: &check.Branch, Name: gitlab.Ptr(forge.CheckName), Description: &check.Title}
	if check.URL != "" && len(check.URL) <= maxTargetURL {
		opt.TargetURL = &check.URL
	}
	return c.do(ctx, k, func(_ int, o gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		_, resp, err := c.api.Commits.SetCommitStatus(c.project, check.Commit, opt, o)
		if err != nil && resp != nil && resp.StatusCode == http.StatusBadRequest && strings.Contains(wire.ErrorText(resp.Response), "from :"+string(state)) {
			return resp, nil
		}
		return resp, err
	})
}
