// Package templates holds the files that `proctor init` writes and the demo runs, byte for byte. It
// must never hold anything that is not written to a user's repository.
package templates

import _ "embed"

// GitHubWorkflow is .github/workflows/proctor.yml.
//
//go:embed github/proctor.yml
var GitHubWorkflow []byte

// GitHubStaged is .github/workflows/proctor.yml for runs that are split into jobs.
//
//go:embed github/staged.yml
var GitHubStaged []byte

// GitHubDoctor is .github/workflows/proctor-doctor.yml.
//
//go:embed github/doctor.yml
var GitHubDoctor []byte

// GitLab is .gitlab/ci/proctor.yml. It lies where GitLab looks for a component in a mirror of this repository.
//
//go:embed proctor.yml
var GitLab []byte
