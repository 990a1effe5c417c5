package github

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/wire"
)

// permission is what a call needs, in the two spellings people meet: the workflow's and the App's page.
type permission struct{ workflow, app string }

var (
	permMetadata     = permission{"metadata: read", "Metadata: Read"}
	permContents     = permission{"contents: write", "Contents: Read and write"}
	permContentsRead = permission{"contents: read", "Contents: Read"}
	permIssues       = permission{"issues: write", "Issues: Read and write"}
	permIssuesRead   = permission{"issues: read", "Issues: Read"}
	permPulls        = permission{"pull-requests: write", "Pull requests: Read and write"}
	permPullsRead    = permission{"pull-requests: read", "Pull requests: Read"}
	permActions      = permission{"actions: write", "Actions: Read and write"}
	permActionsRead  = permission{"actions: read", "Actions: Read"}
	permChecks       = permission{"checks: write", "Checks: Read and write"}
	permAdminRead    = permission{"administration: read", "Administration: Read"}
	permSecretsRead  = permission{"secrets: read", "Secrets: Read"}
)

// explain turns a failed call into words and a next step.
func (c *Client) explain(k call, f *wire.Failure) error {
	e := &forge.Error{Op: k.what, Kind: forge.ErrUnavailable}
	if f.Resp == nil {
		e.Said = forge.Said(reason(f.Err))
		e.Next = "check the network and " + c.api.BaseURL.Host + ", then run again"
		if errors.Is(f.Err, wire.ErrForeignHost) {
			e.Kind, e.Next = forge.ErrMoved, "check the API address (GITHUB_API_URL); the token was not sent on"
		}
		return e
	}
	e.Status = f.Resp.StatusCode
	e.Said = said(f.Err)
	if f.Limited {
		e.Kind, e.RetryAt = forge.ErrRateLimited, f.RetryAt
		e.Next = "run again after " + f.RetryAt.UTC().Format(time.RFC3339) + ", or use a token with a higher limit"
		return e
	}
	e.Next, e.Kind = c.match(k, e.Status, e.Said)
	return e
}

// reason drops the URL of a transport error, which may be long and says nothing the operation does not.
func reason(err error) string {
	type unwrapper interface{ Unwrap() error }
	if u, ok := err.(unwrapper); ok && u.Unwrap() != nil {
		return u.Unwrap().Error()
	}
	return err.Error()
}

// said joins the message and the details of a validation error.
func said(err error) string {
	var e *github.ErrorResponse
	if !errors.As(err, &e) {
		var limit *github.AbuseRateLimitError
		if errors.As(err, &limit) {
			return forge.Said(limit.Message)
		}
		return forge.Said(reason(err))
	}
	parts := []string{e.Message}
	for _, d := range e.Errors {
		switch {
		case d.Message != "":
			parts = append(parts, d.Message)
		case d.Code != "":
			parts = append(parts, strings.TrimSpace(d.Resource+" "+d.Field+" "+d.Code))
		}
	}
	return forge.Said(parts...)
}

func (c *Client) match(k call, status int, said string) (next string, kind error) {
	if r, ok := forge.FindRefusal(rules, status, said); ok {
		return c.fill(r.Next, k), r.Kind
	}
	switch {
	case status == http.StatusNotFound && k.workflow != "":
		return c.fill("commit .github/workflows/{workflow} to the default branch, where workflows are started from; and check that the token has `actions: write`", k), forge.ErrNotFound
	case status == http.StatusNotFound || status == http.StatusGone:
		return c.fill(notFound(k), k), forge.ErrNotFound
	case status == http.StatusUnauthorized:
		return "make a new token and store it in the secret the workflow reads", forge.ErrUnauthorized
	case status == http.StatusForbidden:
		return c.fill("give the token the permission `{needs}` in {web}", k), forge.ErrForbidden
	case status == http.StatusConflict:
		return "run again: it changed meanwhile", forge.ErrConflict
	case status >= http.StatusInternalServerError:
		return "see the forge's status page (githubstatus.com for GitHub.com) and run again", forge.ErrUnavailable
	case status < http.StatusMultipleChoices: // done, but the answer could not be read
		return "run again: the answer was cut off", forge.ErrUnavailable
	}
	return "read what the forge said; if it is about something the harness chose, report it as a bug", forge.ErrInvalid
}

func notFound(k call) string {
	const repo = "check that {web} exists and that the token may see it (a private repository answers 404 to a token without access)"
	if k.missing == "" {
		return repo
	}
	return k.missing + "; " + repo
}

// fill puts this call's names into a next step.
func (c *Client) fill(next string, k call) string {
	org := c.server.JoinPath("organizations", c.owner).String()
	return strings.NewReplacer(
		"{web}", c.web(), "{server}", c.server.String(), "{org}", org, "{owner}", c.owner, "{needs}", k.needs.workflow,
		"{app-needs}", k.needs.app, "{head}", k.head, "{base}", k.base, "{workflow}", k.workflow,
	).Replace(next)
}
