package github

import (
	"context"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

var _ forge.CommitMaker = (*Client)(nil)

// personal are the beginnings of tokens that act as a person: GitHub signs what bots commit. A job's and an installation's begin with ghs_.
// https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github#githubs-token-formats
var personal = []string{"ghp_", "github_pat_", "gho_", "ghu_"}

// Unsigned goes by the token's form. One of another form may be an older server's: asking shows.
func (c *Client) Unsigned() string {
	for _, p := range personal {
		if strings.HasPrefix(c.token, p) {
			return "GitHub signs commits for a job's own token and for an App's, and this token is a person's"
		}
	}
	return ""
}

// MakeCommit names no author, committer or signature: with one of them GitHub would sign nothing.
func (c *Client) MakeCommit(ctx context.Context, n forge.NewCommit) (forge.MadeCommit, error) {
	ask := &github.Commit{Message: &n.Message, Tree: &github.Tree{SHA: &n.Tree}}
	for _, p := range n.Parents {
		ask.Parents = append(ask.Parents, &github.Commit{SHA: github.String(p)})
	}
	var made *github.Commit
	k := call{what: c.in("have a commit signed"), needs: permContents, missing: "check that the commit's tree and parents were pushed"}
	err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
		made, resp, err = c.api.Git.CreateCommit(ctx, c.owner, c.repo, ask, nil)
		return resp, err
	})
	if err != nil {
		return forge.MadeCommit{}, err
	}
	v := made.GetVerification()
	out := forge.MadeCommit{ID: made.GetSHA(), Tree: made.GetTree().GetSHA(), Verified: v.GetVerified(), Reason: forge.Said(v.GetReason()), Payload: v.GetPayload(), Signature: v.GetSignature()}
	for _, p := range made.Parents {
		out.Parents = append(out.Parents, p.GetSHA())
	}
	return out, nil
}
