// Command proctor is the developer's command line. Started as proctor-action, which is a link to it in the image and on a
// runner, it is the CI entry point: one file to download and to check instead of two.
package main

import (
	"os"
	"path/filepath"

	"github.com/proctor-ci/proctor/internal/app"
)

func main() {
	if filepath.Base(os.Args[0]) == app.ActionLink {
		app.Main(app.Action)
	}
	app.Main(app.CLI)
}
