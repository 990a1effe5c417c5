package forge

import "context"

// NewCommit is a commit that the forge is asked to make of objects which it has. Author, committer and dates are the forge's to choose: it signs
// no others.
type NewCommit struct {
	Tree    string
	Parents []string
	Message string
}

// MadeCommit is a commit as the forge says that it made it. No ref points at it.
type MadeCommit struct {
	ID      string
	Tree    string
	Parents []string
	// Verified is the forge's word on its signature, Reason its word for why, "valid" or "unsigned" on GitHub.
	Verified  bool
	Reason    string
	Payload   string // what was signed: the commit without its signature
	Signature string // armoured
}

// CommitMaker makes commits in the forge's own name, which signs them where the token is an App's or a job's. GitLab has no such call: it signs
// commits that its own pages make, and the commits that its API makes of files begin a tree anew.
// https://docs.github.com/en/authentication/managing-commit-signature-verification/about-commit-signature-verification#signature-verification-for-bots
// https://docs.gitlab.com/user/project/repository/signed_commits/web_commits/
type CommitMaker interface {
	// Unsigned is why no commit of this token will be signed, where that is known without asking; "" where it may be.
	Unsigned() string
	// MakeCommit makes one commit. Asking again makes another one of the same content, or the same.
	MakeCommit(ctx context.Context, n NewCommit) (MadeCommit, error)
}
