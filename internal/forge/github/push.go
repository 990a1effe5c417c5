package github

import (
	"strings"

	"github.com/proctor-ci/proctor/internal/forge"
)

const workflowsNext = "a job's own token can never change .github/workflows: use an App's token with \"Workflows: Read and write\", or take the workflow change out"

// pushRules hold what GitHub's git server prints, lower case. The first that fits wins.
var pushRules = []rule{
	{0, "without `workflow", forge.ErrForbidden, workflowsNext},
	{0, "gh001", forge.ErrTooLarge, "take the file over 100 MB out of the change, or use Git LFS"},
	{0, "gh013", forge.ErrForbidden, "a ruleset refuses this branch: see {web}/rules, exempt the token's account or change `publish.branch`"},
	{0, "gh006", forge.ErrForbidden, "a protection rule covers this branch: change its pattern at {web}/settings/branches or change `publish.branch`"},
	{0, "protected branch hook declined", forge.ErrForbidden, "a protection rule covers this branch: change its pattern at {web}/settings/branches or change `publish.branch`"},
	{0, "secret scanning", forge.ErrForbidden, "push protection found a secret: take it out of the change"},
	{0, "archived so it is read-only", forge.ErrArchived, "unarchive it at {web}/settings (Danger Zone), then add the label again"},
	{0, "repository not found", forge.ErrNotFound, "check that {web} exists and that the token may see it"},
	{0, "write access to repository not granted", forge.ErrForbidden, "add `contents: write` under `permissions:` of the job in the workflow, or, for an App, grant \"Contents: Read and write\""},
	{0, "permission to", forge.ErrForbidden, "add `contents: write` under `permissions:` of the job in the workflow, or, for an App, grant \"Contents: Read and write\""},
	{0, "invalid username or", forge.ErrUnauthorized, "make a new token and store it in the secret the workflow reads; a job's own token ends with its job, an App's after one hour"},
	{0, "authentication failed", forge.ErrUnauthorized, "make a new token and store it in the secret the workflow reads; a job's own token ends with its job, an App's after one hour"},
	{0, "could not read username", forge.ErrUnauthorized, "give the action a token: `github-token: ${{ github.token }}`"},
	{0, "stale info", forge.ErrConflict, "somebody pushed to the branch meanwhile: their commits were kept; add the label again to build on them"},
	{0, "fetch first", forge.ErrConflict, "somebody pushed to the branch meanwhile: their commits were kept; add the label again to build on them"},
	{0, "non-fast-forward", forge.ErrConflict, "somebody pushed to the branch meanwhile: their commits were kept; add the label again to build on them"},
	{0, "cannot lock ref", forge.ErrConflict, "a branch whose name is a folder of this one exists: delete it or change `publish.branch`"},
	{0, "could not resolve host", forge.ErrUnavailable, "check the runner's network, then run again"},
	{0, "failed to connect", forge.ErrUnavailable, "check the runner's network, then run again"},
	{0, "the requested url returned error: 5", forge.ErrUnavailable, "see the forge's status page and run again"},
}

// ExplainPush says why git's push of branch was refused. An output no rule knows is ErrInvalid with
// the last line that a person could use.
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
