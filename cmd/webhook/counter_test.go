package main

import (
	"errors"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
)

// INV-47's least permissions: what starts runs reads no pull requests, and an App without that right does without counting.
func TestPullRequestsAreCountedWithATokenOfTheirOwn(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]error{"granted": nil, "not granted": forge.ErrForbidden} {
		key, text := appKey(t)
		g := newGitHub(t, 34)
		rights := map[string]string{"metadata": "read", "issues": "write", "actions": "write"}
		if want == nil {
			rights["pull_requests"] = "read"
		}
		g.InstallApp(12, 34, "proctor-ci", &key.PublicKey, rights)
		g.OpenPull("Round half up", "proctor/issue-3", "main", "ann", false)
		g.OpenPull("Theirs", "proctor/issue-4", "main", "ann", true)
		var d doors
		var err error
		if d.github, d.pulls, _, err = githubDoor(env{getenv: settings("GITHUB_APP_ID", "12", "GITHUB_APP_PRIVATE_KEY", text, "GITHUB_API_URL", g.APIURL())}); err != nil {
			t.Fatal(err)
		}
		to := webhook.Target{Forge: trigger.GitHub, Repo: trigger.Repo{Owner: g.Owner(), Name: g.Repo()}, Install: 34}
		if _, err := d.connect(t.Context(), to); err != nil {
			t.Errorf("%s: to start runs: %v", name, err)
		}
		counter, err := d.counter(t.Context(), to)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if want != nil {
			continue
		}
		if heads, err := counter.OpenPulls(t.Context(), "proctor/"); err != nil || len(heads) != 1 {
			t.Errorf("%s: %q, %v", name, heads, err)
		}
	}
}

func TestMergeRequestsAreCounted(t *testing.T) {
	t.Parallel()
	g := newGitLab(t)
	g.AddUser("robot", "developer")
	g.OpenPull("Round half up", "proctor/issue-3", "main", "ann", false)
	var d doors
	var err error
	if d.gitlab, err = gitlabDoor(env{getenv: settings("GITLAB_TOKEN", g.NewToken(forgetest.GitLabToken{Login: "robot"}), "GITLAB_URL", g.URL())}); err != nil {
		t.Fatal(err)
	}
	counter, err := d.counter(t.Context(), webhook.Target{Forge: trigger.GitLab, Repo: trigger.Repo{Owner: "group/sub", Name: "shop"}})
	if err != nil {
		t.Fatal(err)
	}
	if heads, err := counter.OpenPulls(t.Context(), "proctor/"); err != nil || len(heads) != 1 {
		t.Errorf("%q, %v", heads, err)
	}
}
