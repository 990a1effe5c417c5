package gitlab

import "github.com/proctor-ci/proctor/internal/forge"

const protectedRef = "a protection rule covers this branch: allow the token's role to push at {web}/-/settings/repository → Protected branches, or change `publish.branch`, then add the label again"

// pushRules hold what GitLab's git server prints, and what git makes of its HTTP codes.
var pushRules = []forge.Refusal{
	{Says: "protected branch", Kind: forge.ErrForbidden, Next: protectedRef},
	{Says: "you are not allowed to push code", Kind: forge.ErrForbidden, Next: projectToken},
	{Says: "you are not allowed to upload code", Kind: forge.ErrForbidden, Next: projectToken},
	{Says: "push rule", Kind: forge.ErrForbidden, Next: "a push rule refuses it: see {web}/-/settings/repository → Push rules"},
	{Says: "archived", Kind: forge.ErrArchived, Next: "unarchive the project at {web}/edit → Advanced, then add the label again"},
	{Says: "read-only", Kind: forge.ErrUnavailable, Next: "the server takes no changes for now: add the label again when it does"},
	{Says: "larger than", Kind: forge.ErrTooLarge, Next: "take the large file out of the change, or use Git LFS"},
	{Says: "access denied", Kind: forge.ErrUnauthorized, Next: "the token was not accepted: " + projectToken},
	{Says: "authentication failed", Kind: forge.ErrUnauthorized, Next: "the token was not accepted: " + projectToken},
	{Says: "could not read username", Kind: forge.ErrUnauthorized, Next: projectToken},
	{Says: "could not be found or you don't have permission", Kind: forge.ErrNotFound, Next: "check that {web} still exists under this name and that the token may see it"},
	{Says: "returned error: 401", Kind: forge.ErrUnauthorized, Next: "the token was not accepted: " + projectToken},
	{Says: "returned error: 403", Kind: forge.ErrForbidden, Next: projectToken},
	{Says: "returned error: 404", Kind: forge.ErrNotFound, Next: "check that {web} still exists under this name and that the token may see it"},
}

// ExplainPush says why git's push of branch was refused; see [forge.ExplainPush].
func (c *Client) ExplainPush(branch, output string) error {
	k := call{what: c.in("push branch " + branch), head: branch}
	return forge.ExplainPush(k.what, output, pushRules, func(next string) string { return c.fill(next, k) })
}
