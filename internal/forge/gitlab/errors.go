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
	protectedRef = "a protection rule covers this branch: allow the token's role to push at {web}/-/settings/repository → Protected branches, or change `publish.branch`"
	humanPushed  = "somebody pushed to the branch meanwhile: their commits were kept; add the label again to build on them"
)

type rule struct {
	status int // 0: any
	says   string
	kind   error
	next   string
}

// rules hold GitLab's wording, lower case; the first that fits wins.
var rules = []rule{
	{403, "insufficient_scope", forge.ErrForbidden, "the token lacks the api scope: " + projectToken},
	{401, "token is expired", forge.ErrUnauthorized, "the token has expired: " + projectToken},
	{401, "token was revoked", forge.ErrUnauthorized, "the token was revoked: " + projectToken},
	{409, "another open merge request already exists", forge.ErrConflict, "the open one is used"},
	{0, "source_branch", forge.ErrInvalid, "the branch {head} is not there: check that the push arrived"},
	{0, "source branch", forge.ErrInvalid, "the branch {head} is not there: check that the push arrived"},
	{0, "target_branch", forge.ErrInvalid, "the base branch {base} does not exist (any more): set `publish.base` to one that does"},
	{0, "target branch", forge.ErrInvalid, "the base branch {base} does not exist (any more): set `publish.base` to one that does"},
	{0, "merge requests are disabled", forge.ErrPullRequestsForbidden, "turn merge requests on at {web}/edit → Visibility, project features, permissions; " + byHand},
	{0, "archived", forge.ErrArchived, "unarchive the project at {web}/edit → Advanced, then add the label again"},
	{0, "is too long", forge.ErrTooLarge, "shorten it and point at the full report"},
	{400, "reference not found", forge.ErrNotFound, "the branch or tag {base} does not exist: start the pipeline on the default branch"},
	{400, "missing ci config file", forge.ErrNotFound, "commit .gitlab-ci.yml with the proctor component to {base}"},
	{400, "no stages / jobs", forge.ErrInvalid, "the rules of .gitlab-ci.yml leave no job: let the proctor job run for triggers and API pipelines"},
	{400, "does not exist in this project", forge.ErrNotFound, "check the branch name and the trigger token"},
	{403, "pipelines are disabled", forge.ErrForbidden, "turn CI/CD on at {web}/edit → Visibility, project features, permissions"},
	{403, "insufficient permissions to set pipeline variables", forge.ErrForbidden, "allow pipeline variables for Developers at {web}/-/settings/ci_cd → Variables → Minimum role to use pipeline variables"},
	{403, "identity verification", forge.ErrForbidden, "the account must verify its identity on GitLab before it may run pipelines"},
	{403, "ip address", forge.ErrForbidden, "a group owner adds the runner's address under Settings → General → Permissions → Restrict access by IP address"},
	{404, "project not found", forge.ErrNotFound, "check that {web} exists and that the token may see it (a private project answers 404 to a token without access)"},
}

// pushRules hold what GitLab's git server prints.
var pushRules = []rule{
	{0, "protected branch", forge.ErrForbidden, protectedRef},
	{0, "you are not allowed to push code", forge.ErrForbidden, projectToken},
	{0, "you are not allowed to upload code", forge.ErrForbidden, projectToken},
	{0, "push rule", forge.ErrForbidden, "a push rule refuses it: see {web}/-/settings/repository → Push rules"},
	{0, "archived", forge.ErrArchived, "unarchive the project at {web}/edit → Advanced, then add the label again"},
	{0, "larger than", forge.ErrTooLarge, "take the large file out of the change, or use Git LFS"},
	{0, "access denied", forge.ErrUnauthorized, "the token was not accepted: " + projectToken},
	{0, "authentication failed", forge.ErrUnauthorized, "the token was not accepted: " + projectToken},
	{0, "could not read username", forge.ErrUnauthorized, projectToken},
	{0, "could not be found or you don't have permission", forge.ErrNotFound, "check that {web} exists and that the token may see it"},
	{0, "stale info", forge.ErrConflict, humanPushed},
	{0, "fetch first", forge.ErrConflict, humanPushed},
	{0, "non-fast-forward", forge.ErrConflict, humanPushed},
	{0, "could not resolve host", forge.ErrUnavailable, "check the runner's network, then run again"},
	{0, "failed to connect", forge.ErrUnavailable, "check the runner's network, then run again"},
	{0, "the requested url returned error: 5", forge.ErrUnavailable, "see the forge's status page and run again"},
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
	low := strings.ToLower(e.Said)
	for _, r := range rules {
		if (r.status == 0 || r.status == e.Status) && strings.Contains(low, r.says) {
			e.Kind, e.Next = r.kind, c.fill(r.next, k)
			return e
		}
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

// ExplainPush says why git's push of branch was refused.
func (c *Client) ExplainPush(branch, output string) error {
	k := call{what: c.in("push branch " + branch), head: branch}
	e := &forge.Error{Op: k.what, Said: forge.Said(forge.TellingLine(output)), Kind: forge.ErrInvalid,
		Next: "read what git said; the commit is kept on the run's own ref"}
	low := strings.ToLower(output)
	for _, r := range pushRules {
		if strings.Contains(low, r.says) {
			e.Kind, e.Next = r.kind, c.fill(r.next, k)
			return e
		}
	}
	return e
}
