package github

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

var _ forge.Talker = (*Client)(nil)

// CommentAt reads one comment. The API finds it by its id alone, so its place is compared: a number that somebody
// made up must not vouch for a comment on another issue.
func (c *Client) CommentAt(ctx context.Context, at forge.Place, id int64) (forge.Comment, error) {
	k := call{what: c.in("read a comment on " + hash(at.Number)), needs: permIssuesRead, missing: "the comment was deleted; write it again if it still counts"}
	var m *github.IssueComment
	err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
		m, resp, err = c.api.Issues.GetComment(ctx, c.owner, c.repo, id)
		return resp, err
	})
	if err != nil {
		return forge.Comment{}, err
	}
	if !strings.HasSuffix(m.GetIssueURL(), "/issues/"+strconv.Itoa(at.Number)) {
		return forge.Comment{}, &forge.Error{Op: k.what, Kind: forge.ErrNotFound, Said: forge.Said("the comment stands elsewhere"), Next: k.missing}
	}
	return comment(m), nil
}

// Answer writes one comment.
func (c *Client) Answer(ctx context.Context, at forge.Place, body string) (forge.Comment, error) {
	return c.CreateComment(ctx, at.Number, body)
}

// Acknowledge reacts to a comment.
func (c *Client) Acknowledge(ctx context.Context, at forge.Place, id int64, r forge.Reaction) error {
	return c.React(ctx, at.Number, id, r)
}
