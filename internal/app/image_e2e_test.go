//go:build e2e

package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// gitLabInImage is how GitLab's Docker executor runs a job: the build directory mounted where it is, a shell of the image in
// place of its entrypoint, the script on its standard input.
const gitLabInImage = `#!/bin/bash
set -eu
args=()
while IFS= read -r -d '' pair; do
  case ${pair%%=*} in PATH|PWD|SHLVL|_|HOME) ;; *) args+=(-e "$pair");; esac
done </proc/$$/environ
export CONTAINERS_CONF=@CONF@ PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root
printf '%s\n' "$2" | exec podman run --rm -i --pull=never --network=host --entrypoint "" -v "$CI_PROJECT_DIR:$CI_PROJECT_DIR" -w "$CI_PROJECT_DIR" "${args[@]}" localhost/proctor-e2e/slim /bin/sh -e
`

func TestTheGitLabTemplateRunsInTheImage(t *testing.T) {
	w := openLab(t, setting{plan: twoAttempts()})
	w.asTemplate(t, nil)
	conf, err := filepath.Abs("../../bin/image/containers.conf")
	if err != nil {
		t.Fatal(err)
	}
	shim := filepath.Join(w.dir, "executor")
	if err := os.WriteFile(shim, []byte(strings.ReplaceAll(gitLabInImage, "@CONF@", conf)), 0o755); err != nil {
		t.Fatal(err)
	}
	w.runner.Binary = shim
	res, rec := w.label()
	if rec.Terminal != "done" || res.ExitCode != 0 || len(w.lab.Pulls()) != 1 {
		t.Fatalf("ended %s (exit %d): %s\n%s", rec.Terminal, res.ExitCode, rec.Reason, res.Pipeline.Log)
	}
}
