// Package templates holds the files that `proctor init` writes and the demo runs, byte for byte. It
// must never hold anything that is not written to a user's repository.
package templates

import _ "embed"

// GitHubWorkflow is .github/workflows/proctor.yml.
//
//go:embed github/proctor.yml
var GitHubWorkflow []byte
