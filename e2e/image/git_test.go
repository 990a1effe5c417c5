//go:build e2e

package image

import (
	"bytes"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// everyday is what agents, setup scripts and gates do with git, one use a line. Each has to work though some of Debian's programs were left out.
const everyday = `set -eu
export HOME=$(mktemp -d) GIT_SSL_CAINFO=/in/ca.pem GIT_TERMINAL_PROMPT=0; cd $HOME
git config --global user.name A; git config --global user.email a@example.com; git config --global init.defaultBranch main
use() { printf 'use %s\n' "$*"; "$@"; }
change() { echo "$2" >>"$1"; git add "$1"; git commit -qm "$2"; }
git init -q part; (cd part; change p.txt part; use git push -q "$AT/part.git" main)
use git clone -q "$AT/shop.git" shop; cd shop; change a.txt one; use git push -q origin HEAD:main
use git submodule add -q "$AT/part.git" part; git commit -qm submodule; git push -q origin HEAD:main
use git clone -q --depth=1 --recurse-submodules "$AT/shop.git" ../shallow; test -f ../shallow/part/p.txt
use git -C ../shallow fetch -q --unshallow; use git -C ../shallow submodule update --init --recursive --remote
use git log --oneline --stat; use git diff HEAD~1; use git show --format=fuller; use git blame a.txt; use git grep one
git switch -qc topic; change b.txt two; change b.txt three; git switch -q main; change a.txt four
use git rebase -q main topic; GIT_SEQUENCE_EDITOR=: use git rebase -q -i HEAD~2
git switch -q main; use git merge -q --no-ff topic; use git revert --no-edit -m1 HEAD; use git cherry-pick topic~1 topic
git branch left topic; git branch right topic~1; use git merge-base left right; use git merge-tree --write-tree left right
echo five >>a.txt; use git stash -q; use git stash pop -q; printf 'y\n' | use git add -p; use git commit -qm five
use git bisect start HEAD HEAD~2; use git bisect run true; use git bisect reset
use git worktree add -q ../tree topic; use git format-patch -q -1 topic -o ../mail; git -C ../tree reset -q --hard HEAD~1; use git -C ../tree am -q "$PWD"/../mail/*
use git archive --format=tar -o ../all.tar HEAD; use git gc -q; use git fsck; use git tag -a -m v1 v1; use git describe
use git bundle create -q ../all.bundle --all; use git ls-remote --exit-code origin main; use git rev-parse --show-toplevel
printf 'all of it worked\n'
`

func TestGitDoesWhatAgentsAndScriptsAskOfIt(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"shop", "part"} {
		for _, args := range [][]string{{"init", "-q", "--bare", "--initial-branch=main", name + ".git"}, {"-C", name + ".git", "config", "http.receivepack", "true"}} {
			cmd := exec.CommandContext(t.Context(), "git", args...)
			cmd.Dir = root
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v %s", args, err, out)
			}
		}
	}
	path, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"), Env: []string{
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}}
	served := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // CGI needs a length
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(served.Close)
	in := t.TempDir()
	if err := os.WriteFile(filepath.Join(in, "ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: served.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	play := func(script string) (string, error) {
		return podman(t, script, "run", "--rm", "-i", "--network=host", "--entrypoint", "", "-e", "AT="+served.URL, "-v", in+":/in:ro", slim, "/bin/sh")
	}
	if out, err := play(everyday); err != nil || !strings.Contains(out, "all of it worked") {
		t.Errorf("%v\n%s", err, out)
	}
	// The control: without the helper that speaks https nothing of it works.
	if out, err := play("rm /usr/lib/git-core/git-remote-http\n" + everyday); err == nil || !strings.Contains(out, "use git push") {
		t.Errorf("control: %v\n%s", err, out)
	}
}
