package gitlab

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/wire"
)

const (
	// projectToken is what almost every refusal on GitLab comes down to.
	projectToken = "make a project access token at {web}/-/settings/access_tokens (scopes api and write_repository, role Developer or more) and store it as the masked CI/CD variable that the job reads (GITLAB_TOKEN)"
	byHand       = "the branch is kept: open the merge request by hand at {web}/-/merge_requests/new?merge_request%5Bsource_branch%5D={head}"
)

// rules hold GitLab's wording, lower case; the first that fits wins.
var rules = []forge.Refusal{
	{Status: 403, Says: "insufficient_scope", Kind: forge.ErrForbidden, Next: "the token lacks the api scope: " + projectToken},
	{Status: 401, Says: "token is expired", Kind: forge.ErrUnauthorized, Next: "the token has expired: " + projectToken},
	{Status: 401, Says: "token was revoked", Kind: forge.ErrUnauthorized, Next: "the token was revoked: " + projectToken},
	{Status: 409, Says: "another open merge request already exists", Kind: forge.ErrConflict, Next: "the open one is used"},
	{Says: "source_branch", Kind: forge.ErrInvalid, Next: "the branch {head} is not there: check that the push arrived"},
	{Says: "source branch", Kind: forge.ErrInvalid, Next: "the branch {head} is not there: check that the push arrived"},
	{Says: "target_branch", Kind: forge.ErrInvalid, Next: "the base branch {base} does not exist (any more): set `publish.base` to one that does"},
	{Says: "target branch", Kind: forge.ErrInvalid, Next: "the base branch {base} does not exist (any more): set `publish.base` to one that does"},
	{Says: "merge requests are disabled", Kind: forge.ErrPullRequestsForbidden, Next: "turn merge requests on at {web}/edit → Visibility, project features, permissions; " + byHand},
	{Says: "archived", Kind: forge.ErrArchived, Next: "unarchive the project at {web}/edit → Advanced, then add the label again"},
	{Says: "is too long", Kind: forge.ErrTooLarge, Next: "shorten it and point at the full report"},
	{Status: 400, Says: "reference not found", Kind: forge.ErrNotFound, Next: "the branch or tag {base} does not exist: start the pipeline on the default branch"},
	{Status: 400, Says: "missing ci config file", Kind: forge.ErrNotFound, Next: "commit .gitlab-ci.yml with the proctor component to {base}"},
	{Status: 400, Says: "no stages / jobs", Kind: forge.ErrInvalid, Next: "the rules of .gitlab-ci.yml leave no job: let the proctor job run for triggers and API pipelines"},
	{Status: 400, Says: "does not exist in this project", Kind: forge.ErrNotFound, Next: "check the branch name and the trigger token"},
	{Says: "pipelines are disabled", Kind: forge.ErrForbidden, Next: "turn CI/CD on at {web}/edit → Visibility, project features, permissions"},
	{Says: "insufficient permissions to set pipeline variables", Kind: forge.ErrForbidden, Next: "allow pipeline variables for Developers at {web}/-/settings/ci_cd → Variables → Minimum role to use pipeline variables"},
	{Status: 403, Says: "identity verification", Kind: forge.ErrForbidden, Next: "the account must verify its identity on GitLab before it may run pipelines"},
	{Status: 403, Says: "ip address", Kind: forge.ErrForbidden, Next: "a group owner adds the runner's address under Settings → General → Permissions → Restrict access by IP address"},
	{Status: 404, Says: "project not found", Kind: forge.ErrNotFound, Next: "check that {web} exists and that the token may see it (a private project answers 404 to a token without access)"},
}

func (c *Client) explain(k call, f *wire.Failure) error {
	e := &forge.Error{Op: k.what, Kind: forge.ErrUnavailable, Said: said(f.Err, f.Resp)}
	if f.Resp == nil {
		e.Next = "check the network and " + c.server.Host + ", then run again"
		if errors.Is(f.Err, wire.ErrForeignHost) {
			e.Kind, e.Next = forge.ErrMoved, "check the server address (CI_SERVER_URL) and the project's path; the token was not sent on"
		}
		return e
	}
	e.Status = f.Resp.StatusCode
	if f.Limited {
		e.Kind, e.RetryAt = forge.ErrRateLimited, f.RetryAt
		e.Next = "run again after " + f.RetryAt.UTC().Format(time.RFC3339)
		return e
	}
	if r, ok := forge.FindRefusal(rules, e.Status, e.Said); ok {
		e.Kind, e.Next = r.Kind, c.fill(r.Next, k)
		return e
	}
	e.Next, e.Kind = c.byStatus(k, e.Status)
	return e
}

func (c *Client) byStatus(k call, status int) (next string, kind error) {
	switch {
	case c.job && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		return c.fill("CI_JOB_TOKEN cannot do this: "+projectToken, k), forge.ErrForbidden
	case status == http.StatusUnauthorized:
		return c.fill("the token is wrong, expired or revoked: "+projectToken, k), forge.ErrUnauthorized
	case status == http.StatusForbidden:
		return c.fill("the token's role is too low or the project forbids it: "+projectToken, k), forge.ErrForbidden
	case status == http.StatusNotFound && k.missing != "":
		return k.missing + c.fill("; check that {web} exists and that the token may see it", k), forge.ErrNotFound
	case status == http.StatusNotFound:
		return c.fill("check that {web} exists and that the token may see it", k), forge.ErrNotFound
	case status == http.StatusConflict:
		return "run again: it changed meanwhile", forge.ErrConflict
	case status >= http.StatusInternalServerError:
		return "see the forge's status page (status.gitlab.com for GitLab.com) and run again", forge.ErrUnavailable
	case status < http.StatusMultipleChoices:
		return "run again: the answer was cut off", forge.ErrUnavailable
	}
	return "read what the forge said; if it is about something the harness chose, report it as a bug", forge.ErrInvalid
}

func (c *Client) fill(next string, k call) string {
	return strings.NewReplacer("{web}", c.web(), "{head}", k.head, "{base}", k.base).Replace(next)
}

// said reads GitLab's several shapes of an error: a word, a list, or a mapping of fields to lists. The
// answer is read from the response: the library keeps nothing of a 404.
func said(err error, resp *http.Response) string {
	text := wire.ErrorText(resp)
	if text == "" {
		type unwrapper interface{ Unwrap() error }
		if u, ok := err.(unwrapper); ok && u.Unwrap() != nil {
			err = u.Unwrap()
		}
		return forge.Said(err.Error())
	}
	var body struct {
		Message          any    `json:"message"`
		Error            string `json:"error"`
		ErrorDescription string `json:"error_description"`
	}
	if json.Unmarshal([]byte(text), &body) != nil {
		return forge.Said(text)
	}
	var parts []string
	for _, p := range []string{flat(body.Message), body.Error, body.ErrorDescription} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return forge.Said(parts...)
}

func flat(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []any:
		var parts []string
		for _, x := range v {
			parts = append(parts, flat(x))
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, strings.TrimSpace(k+" "+flat(v[k])))
		}
		return strings.Join(parts, "; ")
	}
	return fmt.Sprint(v)
}
