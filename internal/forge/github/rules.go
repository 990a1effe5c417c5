package github

import "github.com/proctor-ci/proctor/internal/forge"

// byHand is how to save the work of a run whose pull request was refused.
const byHand = "the branch is kept: open the pull request by hand at {web}/compare/{base}...{head}?expand=1"

// rules hold GitHub's own wording, as its API answers today; a wording that changed falls through to
// the status, which gives a blunter next step.
var rules = []forge.Refusal{
	// Who is asking.
	{Status: 401, Says: "bad credentials", Kind: forge.ErrUnauthorized,
		Next: "make a new token and store it in the secret the workflow reads; a job's own token ends with its job, an App's after one hour"},
	{Status: 401, Says: "requires authentication", Kind: forge.ErrUnauthorized, Next: "give the action a token: `github-token: ${{ github.token }}`"},
	{Status: 403, Says: "installation has been suspended", Kind: forge.ErrForbidden,
		Next: "an owner of {owner} unsuspends the App at {org}/settings/installations (a personal account: {server}/settings/installations)"},
	{Status: 403, Says: "saml enforcement", Kind: forge.ErrForbidden, Next: "authorise the token for {owner}: {server}/settings/tokens → Configure SSO → Authorize"},
	{Status: 403, Says: "ip allow list", Kind: forge.ErrForbidden, Next: "an owner of {owner} adds the runner's address at {org}/settings/security → IP allow list"},
	{Status: 403, Says: "personal access tokens with fine grained access", Kind: forge.ErrForbidden, Next: "an owner of {owner} allows fine-grained tokens at {org}/settings/personal-access-tokens"},
	{Status: 403, Says: "account was suspended", Kind: forge.ErrForbidden, Next: "use a token of another account"},

	// What the repository or its owner allows.
	{Says: "not permitted to create or approve pull requests", Kind: forge.ErrPullRequestsForbidden,
		Next: "tick \"Allow GitHub Actions to create and approve pull requests\" at {web}/settings/actions (greyed out there: an owner ticks it at {org}/settings/actions), or give the action an App's token; then add the label again. Now, " + byHand},
	{Says: "draft pull requests are not supported", Kind: forge.ErrDraftUnsupported,
		Next: "drafts need a public repository or a paid plan; " + byHand},
	{Says: "archived", Kind: forge.ErrArchived, Next: "unarchive it at {web}/settings (Danger Zone), then add the label again"},
	{Says: "actions has been disabled", Kind: forge.ErrForbidden, Next: "allow Actions at {web}/settings/actions"},
	{Says: "issues are disabled", Kind: forge.ErrNotFound, Next: "turn Issues on at {web}/settings → Features"},
	{Says: "issues has been disabled", Kind: forge.ErrNotFound, Next: "turn Issues on at {web}/settings → Features"},
	{Says: "upgrade to github pro", Kind: forge.ErrForbidden, Next: "make the repository public or change its plan at {server}/settings/billing"},
	{Status: 451, Says: "", Kind: forge.ErrForbidden, Next: "the forge blocks access to this repository; its owner sees why at {web}"},
	{Status: 403, Says: "issue is locked", Kind: forge.ErrForbidden, Next: "unlock the conversation of the issue, or give the token write access"},
	{Status: 410, Says: "was deleted", Kind: forge.ErrNotFound, Next: "the issue was deleted: open a new one"},

	// What the token may do.
	{Status: 403, Says: "not accessible by integration", Kind: forge.ErrForbidden,
		Next: "add `{needs}` under `permissions:` of the job in the workflow, or, for an App, grant \"{app-needs}\" and accept the change at {org}/settings/installations"},
	{Status: 403, Says: "not accessible by personal access token", Kind: forge.ErrForbidden,
		Next: "edit the token at {server}/settings/tokens and give it \"{app-needs}\" on {owner}'s repository"},
	{Status: 403, Says: "must authenticate via a github app", Kind: forge.ErrForbidden, Next: "use the job's own token or an App's: nobody else may write checks"},
	{Status: 403, Says: "must have push access", Kind: forge.ErrForbidden, Next: "give the token's account the Write role at {web}/settings/access"},
	{Status: 403, Says: "must have admin rights", Kind: forge.ErrForbidden, Next: "give the token's account the Admin role at {web}/settings/access"},
	{Status: 403, Says: "without `workflow", Kind: forge.ErrForbidden, Next: workflowsNext},

	// Pull requests.
	{Status: 422, Says: "a pull request already exists", Kind: forge.ErrConflict, Next: "the open one is used"},
	{Status: 422, Says: "no commits between", Kind: forge.ErrInvalid, Next: "the branch {head} holds nothing that {base} does not: check that the push arrived"},
	{Status: 422, Says: "base invalid", Kind: forge.ErrInvalid, Next: "the base branch {base} does not exist (any more): set `publish.base` to one that does"},
	{Status: 422, Says: "head invalid", Kind: forge.ErrInvalid, Next: "the branch {head} is not there: check that the push arrived"},
	{Status: 422, Says: "head sha can't be blank", Kind: forge.ErrInvalid, Next: "the branch {head} is not there: check that the push arrived"},
	{Status: 422, Says: "reviews may only be requested from collaborators", Kind: forge.ErrInvalid, Next: "take people without access out of `publish.reviewers`"},
	{Status: 422, Says: "review cannot be requested from pull request author", Kind: forge.ErrInvalid, Next: "take the token's own account out of `publish.reviewers`"},
	{Status: 422, Says: "body is too long", Kind: forge.ErrTooLarge, Next: "shorten it and point at the full report"},

	// Labels.
	{Status: 422, Says: "already_exists", Kind: forge.ErrConflict, Next: "the existing one is used"},

	// Starting workflows.
	{Status: 422, Says: "no ref found", Kind: forge.ErrNotFound, Next: "the branch or tag {base} does not exist: dispatch on the default branch"},
	{Status: 422, Says: "does not have 'workflow_dispatch' trigger", Kind: forge.ErrInvalid, Next: "add `workflow_dispatch:` with its inputs to .github/workflows/{workflow} on {base}"},
	{Status: 422, Says: "unexpected inputs provided", Kind: forge.ErrInvalid, Next: "update .github/workflows/{workflow} on {base}: it does not declare these inputs (`proctor init` writes the current one)"},
	{Status: 422, Says: "required input", Kind: forge.ErrInvalid, Next: "update .github/workflows/{workflow} on {base}: it requires an input that is not sent (`proctor init` writes the current one)"},
	{Says: "disabled workflow", Kind: forge.ErrForbidden, Next: "enable it at {web}/actions/workflows/{workflow}"},
	{Status: 422, Says: "inputs are too large", Kind: forge.ErrTooLarge, Next: "pass ids and hashes only"},
	{Status: 422, Says: "you may only define up to", Kind: forge.ErrTooLarge, Next: "pass fewer inputs"},
}
