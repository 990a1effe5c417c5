package main

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/gitlab"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/ghapp"
)

// INV-47: half a configuration exchanges nothing and says what is missing.
func TestTheExchangeIsSetUpWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	app, err := ghapp.New(ghapp.Config{AppID: 12, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	const here = "https://hook.example/token"
	for name, c := range map[string]struct {
		vars map[string]string
		app  *ghapp.App
		set  bool
		want string
	}{
		"nothing set":             {nil, app, false, ""},
		"set":                     {map[string]string{"PROCTOR_TOKEN_AUDIENCE": here}, app, true, ""},
		"Enterprise Server":       {map[string]string{"PROCTOR_TOKEN_AUDIENCE": here, "GITHUB_API_URL": "https://ghe.example/api/v3", "PROCTOR_OIDC_ISSUER": "https://ghe.example/_services/token"}, app, true, ""},
		"no App":                  {map[string]string{"PROCTOR_TOKEN_AUDIENCE": here}, nil, false, "GITHUB_APP_ID"},
		"no audience":             {map[string]string{"PROCTOR_TOKEN_ENVIRONMENT": "agents"}, app, false, "PROCTOR_TOKEN_AUDIENCE"},
		"Enterprise, its issuer":  {map[string]string{"PROCTOR_TOKEN_AUDIENCE": here, "GITHUB_API_URL": "https://ghe.example/api/v3"}, app, false, "PROCTOR_OIDC_ISSUER"},
		"GitLab":                  {map[string]string{"PROCTOR_TOKEN_AUDIENCE": here, "GITLAB_LENDER_TOKEN": "glpt-SAMPLE", "GITLAB_URL": "https://gitlab.example"}, nil, true, ""},
		"both forges":             {map[string]string{"PROCTOR_TOKEN_AUDIENCE": here, "GITLAB_LENDER_TOKEN": "glpt-SAMPLE"}, app, true, ""},
		"GitLab, no audience":     {map[string]string{"GITLAB_LENDER_TOKEN": "glpt-SAMPLE"}, nil, false, "PROCTOR_TOKEN_AUDIENCE"},
		"GitLab in plain HTTP":    {map[string]string{"PROCTOR_TOKEN_AUDIENCE": here, "GITLAB_LENDER_TOKEN": "glpt-SAMPLE", "GITLAB_URL": "http://gitlab.example"}, nil, false, "GITLAB_URL"},
		"an issuer in plain HTTP": {map[string]string{"PROCTOR_TOKEN_AUDIENCE": here, "PROCTOR_OIDC_ISSUER": "http://ghe.example"}, app, false, "https"},
	} {
		x, err := exchange(env{getenv: func(k string) string { return c.vars[k] }}, c.app)
		if (x != nil) != c.set || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, x, err)
		}
	}
}

// INV-47: a run on GitLab gets a token of its project's own, of a Developer's, which it can end itself; the lender's stays here.
func TestATokenOfAGitLabRunIsItsProjectsOwn(t *testing.T) {
	t.Parallel()
	g := newGitLab(t)
	g.AddUser("lender", "maintainer")
	g.AddUser("dev", "developer")
	to := webhook.Target{Forge: trigger.GitLab, Repo: trigger.Repo{Owner: "group/sub", Name: "shop", ID: 4200}}
	by := func(login string) (string, time.Time, error) {
		x, err := exchange(env{getenv: settings("PROCTOR_TOKEN_AUDIENCE", "https://hook.example/token", "GITLAB_URL", g.URL(), "GITLAB_LENDER_TOKEN", g.NewToken(forgetest.GitLabToken{Login: login}))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := x.Mint(t.Context(), webhook.Target{Forge: trigger.GitHub, Repo: to.Repo}, webhook.PurposeRun); !errors.Is(err, webhook.ErrNoInstallation) {
			t.Errorf("GitHub has nobody who lends: %v", err)
		}
		return x.Mint(t.Context(), to, webhook.PurposeRun)
	}
	token, ends, err := by("lender")
	if left := time.Until(ends); err != nil || token == "" || left < 23*time.Hour || left > 49*time.Hour || ends.UTC().Hour() != 0 {
		t.Fatalf("until %s, %v", ends, err)
	}
	c, err := gitlab.New(gitlab.Config{ServerURL: g.URL(), Project: "group/sub/shop", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	issue := g.OpenIssue("Round half up", "", "dev")
	if n, err := c.CreateComment(t.Context(), issue, "a run speaks"); err != nil || !strings.HasPrefix(n.Author.Login, "project_") {
		t.Errorf("it speaks as %+v, %v", n.Author, err)
	}
	// Each run's account is another: a run must not look for what its own one wrote.
	if self, err := c.Self(t.Context()); err != nil || !strings.HasPrefix(self.Login, "project_") {
		t.Errorf("control: %+v, %v", self, err)
	}
	lent, err := gitlab.New(gitlab.Config{ServerURL: g.URL(), Project: "group/sub/shop", Token: token, Lent: true})
	if err != nil {
		t.Fatal(err)
	}
	if self, err := lent.Self(t.Context()); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("it takes itself for %+v, %v", self, err)
	}
	if _, _, err := c.LendToken(t.Context()); err == nil {
		t.Error("a run's token makes others")
	}
	if _, _, err := by("dev"); !errors.Is(err, forge.ErrForbidden) {
		t.Errorf("control: a Developer's token makes none: %v", err)
	}
}
