// Command action is the entry point of a CI job: the container action, the host action, the GitLab job.
package main

import "github.com/proctor-ci/proctor/internal/app"

func main() { app.Main(app.Action) }
