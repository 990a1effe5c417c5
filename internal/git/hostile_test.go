package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plant fills a repository's own files with everything that makes git run programs or go elsewhere.
// Each program leaves a file in the marker directory.
func plant(t *testing.T, repo, marker string) {
	t.Helper()
	git := filepath.Join(repo, ".git")
	run := func(name string) string {
		file := filepath.Join(marker+".bin", name)
		put(t, marker+".bin", name, fmt.Sprintf("#!/bin/sh\nmkdir -p %[1]s\ntouch %[1]s/%[2]s\ncat\n", marker, name))
		return file
	}
	for _, hook := range []string{"pre-commit", "commit-msg", "post-commit", "pre-push", "post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc", "post-merge"} {
		put(t, git, "hooks/"+hook, fmt.Sprintf("#!/bin/sh\nmkdir -p %[1]s\ntouch %[1]s/hook-%[2]s\n", marker, hook))
	}
	put(t, git, "included", "[alias]\n\tstatus = !"+run("included-alias")+"\n[core]\n\tpager = "+run("included-pager")+"\n")
	put(t, git, "info/attributes", "* filter=evil diff=evil merge=evil\n")
	config := `[core]
	fsmonitor = %[1]s
	hooksPath = %[2]s
	sshCommand = %[3]s
	pager = %[4]s
	editor = %[4]s
	askPass = %[5]s
	gitProxy = %[5]s
	alternateRefsCommand = %[6]s
[filter "evil"]
	clean = %[7]s
	smudge = %[7]s
	required = true
[diff]
	external = %[8]s
[diff "evil"]
	textconv = %[9]s
	command = %[8]s
[credential]
	helper = !%[10]s
[gpg]
	program = %[11]s
[commit]
	gpgSign = true
[push]
	gpgSign = if-asked
[alias]
	status = !%[12]s
	config = !%[12]s
	cat-file = !%[12]s
	push = !%[12]s
[url "http://127.0.0.1:1/"]
	insteadOf = http://
	insteadOf = file://
	pushInsteadOf = http://
[remote "origin"]
	pushurl = http://127.0.0.1:1/x
	uploadpack = %[13]s
	receivepack = %[13]s
	url = http://127.0.0.1:1/x
[include]
	path = included
[http]
	proxy = http://127.0.0.1:1
	followRedirects = true
[protocol]
	allow = always
[gc]
	auto = 1
[submodule]
	recurse = true
[user]
	name = Forged
	email = forged@example.invalid
`
	old, err := os.ReadFile(git + "/config")
	if err != nil {
		t.Fatal(err)
	}
	put(t, git, "config", string(old)+fmt.Sprintf(config, run("fsmonitor"), git+"/hooks", run("ssh"), run("pager"), run("askpass"),
		run("alternates"), run("filter"), run("external-diff"), run("textconv"), run("credential"), run("gpg"), run("alias"), run("pack")))
}

// INV-21: nothing set in the checkout or in the agent's repository runs in, or steers, the harness,
// over a whole tick with its push. The control runs plain git in the same repositories.
func TestNothingARepositorySetsRunsOrSteersTheHarness(t *testing.T) {
	t.Parallel()
	checkout := initRepo(t, with(sample(), files{".gitattributes": "* filter=evil diff=evil text ident\n"}))
	f := newForge(t, checkout)
	marker := filepath.Join(t.TempDir(), "ran")
	plant(t, checkout, marker)

	sp := newSpace(t, checkout, heldOut)
	plant(t, sp.agent.Dir(), marker)
	put(t, sp.agent.Dir(), "pkg/sum.go", "changed\n")
	snap := sp.snapshot(t, "")
	if diff := cmp.Diff([]string{"M pkg/sum.go"}, paths(snap.Changes)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	s := sp.store
	if err := sp.gate.Sync(t.Context(), snap.Commit); err != nil {
		t.Fatal(err)
	}
	if err := s.Push(t.Context(), f.remote(), []RefUpdate{{Name: "refs/heads/proctor/issue-7", New: snap.Commit}}); err != nil {
		t.Errorf("push: %v", err)
	}
	if _, err := s.LsRemote(t.Context(), f.remote()); err != nil {
		t.Errorf("ls-remote: %v", err)
	}
	if _, err := s.SaveState(t.Context(), f.remote(), "refs/proctor/7/state", snap.Commit, []byte("{}"), ""); err != nil {
		t.Errorf("save state: %v", err)
	}
	if _, err := s.LoadState(t.Context(), f.remote(), "refs/proctor/7/state"); err != nil {
		t.Errorf("load state: %v", err)
	}
	proof, err := s.NewProof(t.Context(), filepath.Join(t.TempDir(), "proof"), snap.Commit)
	if err != nil {
		t.Fatal(err)
	}
	if err := proof.Remove(); err != nil {
		t.Error(err)
	}
	if err := sp.agent.Restore(t.Context(), s.Base()); err != nil {
		t.Error(err)
	}
	if ran, err := os.ReadDir(marker); err == nil {
		t.Errorf("planted programs ran: %v", ran)
	}
	if out := plain(t, f.bare, "log", "-1", "--format=%an", string(snap.Commit)); out != "Proctor\n" {
		t.Errorf("the author is %q", out)
	}

	// Control: the same traps catch plain git.
	_, _ = tryPlain(checkout, "add", "-A")
	put(t, checkout, "pkg/sum.go", "by hand\n")
	_, _ = tryPlain(checkout, "commit", "-qam", "by hand")
	_, _ = tryPlain(checkout, "diff", "HEAD")
	_, _ = tryPlain(checkout, "push", f.URL+"/o/r.git", "HEAD:refs/heads/x")
	for _, name := range []string{"fsmonitor", "filter", "hook-pre-commit", "gpg", "external-diff"} {
		if !exists(filepath.Join(marker, name)) {
			t.Errorf("control: %s should run in plain git", name)
		}
	}
}

// INV-21: variables of the harness's own environment do not reach git either.
func TestTheHarnessesEnvironmentDoesNotReachGit(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	program := filepath.Join(t.TempDir(), "program")
	put(t, filepath.Dir(program), "program", "#!/bin/sh\ntouch "+marker+"\n")
	checkout := initRepo(t, sample())
	f := newForge(t, checkout)
	for name, value := range map[string]string{
		"GIT_DIR": "/nonexistent", "GIT_WORK_TREE": "/nonexistent", "GIT_INDEX_FILE": "/nonexistent", "GIT_OBJECT_DIRECTORY": "/nonexistent",
		"GIT_EXTERNAL_DIFF": program, "GIT_SSH_COMMAND": program, "GIT_ASKPASS": program, "GIT_PAGER": program, "GIT_TRACE": marker,
		"GIT_CONFIG_PARAMETERS": "'core.fsmonitor'='" + program + "'", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "diff.external", "GIT_CONFIG_VALUE_0": program,
		"GIT_EXEC_PATH": "/nonexistent", "LD_PRELOAD": "/nonexistent.so", "HOME": "/nonexistent",
	} {
		t.Setenv(name, value)
	}
	sp := newSpace(t, checkout, nil)
	put(t, sp.agent.Dir(), "pkg/sum.go", "changed\n")
	snap := sp.snapshot(t, "")
	if err := sp.store.Push(t.Context(), f.remote(), []RefUpdate{{Name: "refs/heads/proctor/issue-7", New: snap.Commit}}); err != nil {
		t.Error(err)
	}
	if exists(marker) {
		t.Error("a variable of the harness ran a program")
	}
}

// INV-27 and INV-13: sealed files are nowhere the agent can read, not even as objects; everything else is.
func TestTheAgentsRepositoryHoldsNoSealedObject(t *testing.T) {
	t.Parallel()
	checkout := initRepo(t, with(sample(), files{"tests/acceptance/deep/secret.txt": "held out\n", "copy.txt": "shown\n"}))
	sp := newSpace(t, checkout, heldOut)
	dir := sp.agent.Dir()
	objects := plain(t, dir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
	sealed, err := sp.store.Entry(t.Context(), sp.store.Base(), "tests/acceptance/deep/secret.txt")
	if err != nil || sealed.Mode == 0 {
		t.Fatal(sealed, err)
	}
	if strings.Contains(objects, string(sealed.ID)) {
		t.Error("a sealed blob is in the agent's objects")
	}
	for _, id := range []ID{sp.store.Base(), sp.store.BaseTree()} {
		if strings.Contains(objects, string(id)) {
			t.Errorf("object %s, which names sealed files, is in the agent's objects", id)
		}
	}
	if exists(dir + "/.git/objects/info/alternates") {
		t.Error("the agent's objects reach further")
	}
	plain(t, dir, "fsck", "--strict")
	if out := plain(t, dir, "status", "--porcelain"); out != "" {
		t.Errorf("git status for the agent:\n%s", out)
	}
	if out := plain(t, dir, "log", "--oneline"); strings.Count(out, "\n") != 1 {
		t.Errorf("the agent's history:\n%s", out)
	}
	if diff := cmp.Diff(with(without(sample(), "tests/acceptance/sum_test.txt"), files{"copy.txt": "shown\n"}), contents(t, dir)); diff != "" {
		t.Errorf("the agent's files (-want +got):\n%s", diff)
	}
	if out := plain(t, dir, "remote", "-v"); out != "" {
		t.Errorf("remotes: %s", out)
	}
	// Control: with nothing held out the same object is there.
	open := newSpace(t, checkout, nil)
	all := plain(t, open.agent.Dir(), "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
	if !strings.Contains(all, string(sealed.ID)) {
		t.Error("control: without sealing the blob should be there")
	}
}

func TestTheAgentGetsTheWholeHistoryWhenNothingIsHeldOut(t *testing.T) {
	t.Parallel()
	checkout := initRepo(t, sample())
	put(t, checkout, "more", "x")
	plain(t, checkout, "add", "-A")
	plain(t, checkout, "commit", "-qm", "second")
	sp := newSpace(t, checkout, nil)
	if out := plain(t, sp.agent.Dir(), "log", "--format=%s"); out != "second\nbase\n" {
		t.Errorf("history: %q", out)
	}
	if out := plain(t, sp.agent.Dir(), "status", "--porcelain"); out != "" {
		t.Errorf("git status for the agent:\n%s", out)
	}
}
