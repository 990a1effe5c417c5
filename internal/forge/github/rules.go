package github

import "github.com/proctor-ci/proctor/internal/forge"

// rule maps what GitHub says to a kind and to what a person can click. The first that fits wins, so
// the particular stand before the general. says is lower case.
type rule struct {
	status int // 0: any
	says   string
	kind   error
	next   string
}

// byHand is how to save the work of a run whose pull request was refused.
const byHand = "the branch is kept: open the pull request by hand at {web}/compare/{base}...{head}?expand=1"

// rules hold GitHub's own wording, as its API answers today; a wording that changed falls through to
// the status, which gives a blunter next step.
var rules = []rule{
	// Who is asking.
	{401, "bad credentials", forge.ErrUnauthorized,
		"make a new token and store it in the secret the workflow reads; a job's own token ends with its job, an App's after one hour"},
	{401, "requires authentication", forge.ErrUnauthorized, "give the action a token: `github-token: ${{ github.token }}`"},
	{403, "installation has been suspended", forge.ErrForbidden,
		"an owner of {owner} unsuspends the App at {org}/settings/installations (a personal account: {server}/settings/installations)"},
	{403, "saml enforcement", forge.ErrForbidden, "authorise the token for {owner}: {server}/settings/tokens → Configure SSO → Authorize"},
	{403, "ip allow list", forge.ErrForbidden, "an owner of {owner} adds the runner's address at {org}/settings/security → IP allow list"},
	{403, "personal access tokens with fine grained access", forge.ErrForbidden, "an owner of {owner} allows fine-grained tokens at {org}/settings/personal-access-tokens"},
	{403, "account was suspended", forge.ErrForbidden, "use a token of another account"},

	// What the repository or its owner allows.
	{0, "not permitted to create or approve pull requests", forge.ErrPullRequestsForbidden,
		"tick \"Allow GitHub Actions to create and approve pull requests\" at {web}/settings/actions (greyed out there: an owner ticks it at {org}/settings/actions), or give the action an App's token; then add the label again. Now, " + byHand},
	{0, "draft pull requests are not supported", forge.ErrDraftUnsupported,
		"drafts need a public repository or a paid plan; " + byHand},
	{0, "archived", forge.ErrArchived, "unarchive it at {web}/settings (Danger Zone), then add the label again"},
	{0, "actions has been disabled", forge.ErrForbidden, "allow Actions at {web}/settings/actions"},
	{0, "issues are disabled", forge.ErrNotFound, "turn Issues on at {web}/settings → Features"},
	{0, "issues has been disabled", forge.ErrNotFound, "turn Issues on at {web}/settings → Features"},
	{0, "upgrade to github pro", forge.ErrForbidden, "make the repository public or change its plan at {server}/settings/billing"},
	{451, "", forge.ErrForbidden, "the forge blocks access to this repository; its owner sees why at {web}"},
	{403, "issue is locked", forge.ErrForbidden, "unlock the conversation of the issue, or give the token write access"},
	{410, "was deleted", forge.ErrNotFound, "the issue was deleted: open a new one"},

	// What the token may do.
	{403, "not accessible by integration", forge.ErrForbidden,
		"add `{needs}` under `permissions:` of the job in the workflow, or, for an App, grant \"{app-needs}\" and accept the change at {org}/settings/installations"},
	{403, "not accessible by personal access token", forge.ErrForbidden,
		"edit the token at {server}/settings/tokens and give it \"{app-needs}\" on {owner}'s repository"},
	{403, "must have push access", forge.ErrForbidden, "give the token's account the Write role at {web}/settings/access"},
	{403, "must have admin rights", forge.ErrForbidden, "give the token's account the Admin role at {web}/settings/access"},
	{403, "without `workflow", forge.ErrForbidden, workflowsNext},

	// Pull requests.
	{422, "a pull request already exists", forge.ErrConflict, "the open one is used"},
	{422, "no commits between", forge.ErrInvalid, "the branch {head} holds nothing that {base} does not: check that the push arrived"},
	{422, "base invalid", forge.ErrInvalid, "the base branch {base} does not exist (any more): set `publish.base` to one that does"},
	{422, "head invalid", forge.ErrInvalid, "the branch {head} is not there: check that the push arrived"},
	{422, "head sha can't be blank", forge.ErrInvalid, "the branch {head} is not there: check that the push arrived"},
	{422, "reviews may only be requested from collaborators", forge.ErrInvalid, "take people without access out of `publish.reviewers`"},
	{422, "review cannot be requested from pull request author", forge.ErrInvalid, "take the token's own account out of `publish.reviewers`"},
	{422, "body is too long", forge.ErrTooLarge, "shorten it and point at the full report"},

	// Labels.
	{422, "already_exists", forge.ErrConflict, "the existing one is used"},

	// Starting workflows.
	{422, "no ref found", forge.ErrNotFound, "the branch or tag {base} does not exist: dispatch on the default branch"},
	{422, "does not have 'workflow_dispatch' trigger", forge.ErrInvalid, "add `workflow_dispatch:` with its inputs to .github/workflows/{workflow} on {base}"},
	{422, "unexpected inputs provided", forge.ErrInvalid, "update .github/workflows/{workflow} on {base}: it does not declare these inputs (`proctor init` writes the current one)"},
	{422, "required input", forge.ErrInvalid, "update .github/workflows/{workflow} on {base}: it requires an input that is not sent (`proctor init` writes the current one)"},
	{0, "disabled workflow", forge.ErrForbidden, "enable it at {web}/actions/workflows/{workflow}"},
	{422, "inputs are too large", forge.ErrTooLarge, "pass ids and hashes only"},
	{422, "you may only define up to", forge.ErrTooLarge, "pass fewer inputs"},
}
