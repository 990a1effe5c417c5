// Command proctor is the developer's command line.
package main

import "github.com/proctor-ci/proctor/internal/app"

func main() { app.Main(app.CLI) }
