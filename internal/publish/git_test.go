package publish_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/publish"
	"github.com/proctor-ci/proctor/internal/publish/publishtest"
)

// gitRepo runs real git in a throw-away repository with a bare remote beside it.
type gitRepo struct {
	t           *testing.T
	dir, remote string
}

func newGitRepo(t *testing.T) gitRepo {
	t.Helper()
	g := gitRepo{t, filepath.Join(t.TempDir(), "work"), filepath.Join(t.TempDir(), "remote.git")}
	g.run("", "init", "-q", "--bare", "-b", "main", g.remote)
	g.run("", "init", "-q", "-b", "main", g.dir)
	return g
}

func (g gitRepo) try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func (g gitRepo) run(dir string, args ...string) string {
	g.t.Helper()
	out, err := g.try(dir, args...)
	if err != nil {
		g.t.Fatal(err)
	}
	return out
}

// commit makes a commit with one file on top of parent, "" for a root.
func (g gitRepo) commit(parent, text string) string {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, "file"), []byte(text), 0o644); err != nil {
		g.t.Fatal(err)
	}
	g.run(g.dir, "add", "file")
	args := []string{"commit-tree", "-m", text, g.run(g.dir, "write-tree")}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	return g.run(g.dir, args...)
}

func (g gitRepo) head(branch string) (string, error) {
	out, err := g.try(g.remote, "rev-parse", "-q", "--verify", "refs/heads/"+branch)
	if err != nil {
		return "", publishtest.Error("look at branch", forge.ErrNotFound, 404, "", "")
	}
	return out, nil
}

// Push is what the program's adapter does: one refspec under a lease; blind is the control.
func (g gitRepo) Push(_ context.Context, branch, commit, expect string) error {
	ref := "refs/heads/" + branch
	_, err := g.try(g.dir, "push", "-q", "--force-with-lease="+ref+":"+expect, g.remote, commit+":"+ref)
	return err
}

type blindPusher struct{ gitRepo }

func (g blindPusher) Push(_ context.Context, branch, commit, _ string) error {
	_, err := g.try(g.dir, "push", "-q", "--force", g.remote, commit+":refs/heads/"+branch)
	return err
}

func TestWithRealGitOnlyTheProvedCommitArrivesAndNobodysWorkIsLost(t *testing.T) {
	t.Parallel()
	type outcome struct{ branch, main string }
	scenario := func(t *testing.T, pusher func(gitRepo) publish.Pusher, meddle bool) (gitRepo, outcome, string, string, error) {
		g := newGitRepo(t)
		root := g.commit("", "root")
		g.run(g.dir, "push", "-q", g.remote, root+":refs/heads/main", root+":refs/tags/v1")
		first, second := g.commit(root, "first"), g.commit(root, "second")
		human := g.commit(first, "by a person")
		f := publishtest.New()
		f.HeadsNow = g.head
		pub := &publish.Publisher{Forge: f, Push: pusher(g)}
		target, err := pub.Aim(t.Context(), branch, "main", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = pub.Publish(t.Context(), publish.Request{Record: proved(first), Target: target, Base: "main"}); err != nil {
			t.Fatal(err)
		}
		if target, err = pub.Aim(t.Context(), branch, "main", nil); err != nil {
			t.Fatal(err)
		}
		if meddle {
			g.run(g.dir, "push", "-q", g.remote, human+":refs/heads/"+branch)
		}
		_, err = pub.Publish(t.Context(), publish.Request{Record: proved(second), Target: target, Base: "main"})
		at, _ := g.head(branch)
		main, _ := g.head("main")
		if main != root || g.run(g.remote, "rev-parse", "refs/tags/v1") != root {
			t.Error("INV-20: main or the tag moved")
		}
		if refs := g.run(g.remote, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main\nrefs/heads/"+branch+"\nrefs/tags/v1" {
			t.Errorf("INV-20: refs of the remote:\n%s", refs)
		}
		return g, outcome{at, main}, second, human, err
	}
	lease := func(g gitRepo) publish.Pusher { return g }
	t.Run("INV-15 the second run replaces the first one's commit", func(t *testing.T) {
		t.Parallel()
		_, got, second, _, err := scenario(t, lease, false)
		if err != nil || got.branch != second {
			t.Errorf("branch at %s, want %s: %v", got.branch, second, err)
		}
	})
	t.Run("INV-20 a person's commit stays", func(t *testing.T) {
		t.Parallel()
		_, got, _, human, err := scenario(t, lease, true)
		if !errors.Is(err, publish.ErrMoved) || got.branch != human {
			t.Errorf("branch at %s, want %s: %v", got.branch, human, err)
		}
	})
	t.Run("INV-20 control: a push by force would have lost it", func(t *testing.T) {
		t.Parallel()
		_, got, second, _, err := scenario(t, func(g gitRepo) publish.Pusher { return blindPusher{g} }, true)
		if err != nil || got.branch != second {
			t.Errorf("branch at %s, want %s: %v", got.branch, second, err)
		}
	})
	t.Run("INV-51 a hook of the server refuses", func(t *testing.T) {
		t.Parallel()
		g := newGitRepo(t)
		hook := "#!/bin/sh\necho 'GH006: Protected branch update failed' >&2\nexit 1\n"
		if err := os.WriteFile(filepath.Join(g.remote, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
			t.Fatal(err)
		}
		f := publishtest.New()
		f.HeadsNow = g.head
		pub := &publish.Publisher{Forge: f, Push: g, Redact: evidence.NewRedactor()}
		_, err := pub.Publish(t.Context(), publish.Request{Record: proved(g.commit("", "x")), Target: publish.Target{Branch: branch}, Base: "main"})
		if fail := failure(t, err); !strings.Contains(fail.Next, "protection rule") {
			t.Errorf("next: %s (%v)", fail.Next, err)
		}
	})
}
