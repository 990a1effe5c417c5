package github

import "github.com/proctor-ci/proctor/internal/forge"

const (
	workflowsNext = "a job's own token can never change .github/workflows: use an App's token with \"Workflows: Read and write\", or take the workflow change out"
	protectedNext = "a protection rule covers this branch: change its pattern at {web}/settings/branches or change `publish.branch`, then add the label again"
	writeNext     = "add `contents: write` under `permissions:` of the job in the workflow, or, for an App, grant \"Contents: Read and write\", or, for a person's token, give its account the Write role at {web}/settings/access"
	newTokenNext  = "make a new token and store it in the secret the workflow reads; a job's own token ends with its job, an App's after one hour"
	existsNext    = "check that {web} still exists under this name and that the token may see it"
)

// pushRules hold what GitHub's git server prints, and what git makes of its HTTP codes.
var pushRules = []forge.Refusal{
	{Says: "without `workflow", Kind: forge.ErrForbidden, Next: workflowsNext},
	{Says: "push protection", Kind: forge.ErrForbidden, Next: "push protection found a secret: take it out of the change"}, // it says GH013 too
	{Says: "gh001", Kind: forge.ErrTooLarge, Next: "take the file over 100 MB out of the change, or use Git LFS"},
	{Says: "gh013", Kind: forge.ErrForbidden, Next: "a ruleset refuses this branch: see {web}/rules, exempt the token's account or change `publish.branch`, then add the label again"},
	{Says: "gh006", Kind: forge.ErrForbidden, Next: protectedNext},
	{Says: "protected branch hook declined", Kind: forge.ErrForbidden, Next: protectedNext},
	{Says: "archived so it is read-only", Kind: forge.ErrArchived, Next: "unarchive it at {web}/settings (Danger Zone), then add the label again"},
	{Says: "repository not found", Kind: forge.ErrNotFound, Next: existsNext},
	{Says: "write access to repository not granted", Kind: forge.ErrForbidden, Next: writeNext},
	{Says: "permission to", Kind: forge.ErrForbidden, Next: writeNext},
	{Says: "invalid username or", Kind: forge.ErrUnauthorized, Next: newTokenNext},
	{Says: "authentication failed", Kind: forge.ErrUnauthorized, Next: newTokenNext},
	{Says: "could not read username", Kind: forge.ErrUnauthorized, Next: "make a new token, or give the action one: `github-token: ${{ github.token }}` is the job's own"},
	{Says: "returned error: 401", Kind: forge.ErrUnauthorized, Next: newTokenNext},
	{Says: "returned error: 403", Kind: forge.ErrForbidden, Next: writeNext},
	{Says: "returned error: 404", Kind: forge.ErrNotFound, Next: existsNext},
}

// ExplainPush says why git's push of branch was refused; see [forge.ExplainPush].
func (c *Client) ExplainPush(branch, output string) error {
	k := call{what: c.in("push branch " + branch), head: branch}
	return forge.ExplainPush(k.what, output, pushRules, func(next string) string { return c.fill(next, k) })
}
