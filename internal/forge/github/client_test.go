package github_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgesuite"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
)

func TestAddressesAreDerivedForEveryKindOfServer(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                                "https://github.com/octo/shop.git",
		"https://api.github.com/":         "https://github.com/octo/shop.git",
		"https://ghe.example.com/api/v3":  "https://ghe.example.com/octo/shop.git",
		"https://ghe.example.com/api/v3/": "https://ghe.example.com/octo/shop.git",
		"https://api.corp.ghe.com":        "https://corp.ghe.com/octo/shop.git",
	} {
		c, err := github.New(github.Config{BaseURL: base, Owner: "octo", Repo: "shop"})
		if err != nil || c.Remote().URL != want {
			t.Errorf("remote for %q = %v, %v, want %s", base, c.Remote(), err, want)
		}
	}
	for _, bad := range []github.Config{
		{}, {Owner: "octo"}, {Owner: "..", Repo: "x"}, {Owner: "a/b", Repo: "c"}, {Owner: "a", Repo: "b?c"}, {Owner: "a", Repo: "b#"},
		{Owner: "a", Repo: "b", BaseURL: "ghe.example.com"}, {Owner: "a", Repo: "b", BaseURL: "https://u:p@ghe.example.com"}, {Owner: "a", Repo: "b", BaseURL: "ftp://x"},
	} {
		if _, err := github.New(bad); err == nil || strings.Contains(err.Error(), "u:p") {
			t.Errorf("config %+v: error %v", bad, err)
		}
	}
}

// INV-21: the token reaches only the configured host, whatever the forge answers.
func TestARedirectToAnotherHostNeverCarriesTheToken(t *testing.T) {
	t.Parallel()
	const token = "canary-token"
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen = append(stolen, r.Header.Get("Authorization"))
		io.WriteString(w, `{}`)
	}))
	defer thief.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("the configured host got %q", r.Header.Get("Authorization"))
		}
		http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	c, err := github.New(github.Config{BaseURL: srv.URL, Owner: "octo", Repo: "shop", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Issue(t.Context(), 1)
	if !errors.Is(err, forge.ErrMoved) {
		t.Errorf("error = %v, want ErrMoved", err)
	}
	if _, err := c.CreateComment(t.Context(), 1, "x"); !errors.Is(err, forge.ErrMoved) {
		t.Errorf("error = %v, want ErrMoved", err)
	}
	if len(stolen) != 0 {
		t.Errorf("the other host got %q", stolen)
	}
	// Control: a client that sets the header on every request, as token helpers do, hands it over.
	careless := &http.Client{Transport: setHeader{token}}
	resp, err := careless.Get(srv.URL + "/repos/octo/shop/issues/1")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(stolen) != 1 || stolen[0] != "Bearer "+token {
		t.Errorf("the careless client's token was not taken (%q): this test proves nothing", stolen)
	}
}

type setHeader struct{ token string }

func (s setHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+s.token)
	return http.DefaultTransport.RoundTrip(r)
}

func TestARenamedRepositoryStillAnswers(t *testing.T) {
	t.Parallel()
	var site *forgetest.GitHub
	w := forgesuite.GitHub(t, false, func(t *testing.T, g *forgetest.GitHub, token string, clock *forgesuite.Clock) forge.Forge {
		t.Helper()
		site = g
		c, err := github.New(github.Config{BaseURL: g.APIURL(), ServerURL: g.URL(), Owner: "octo", Repo: "shop", Token: token, Now: clock.Now, Sleep: clock.Sleep})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
	n := w.Site.OpenIssue("A", "b", "alice")
	site.Set(forgetest.Renamed("store"))
	ctx := t.Context()
	if is, err := w.Forge.Issue(ctx, n); err != nil || is.Title != "A" {
		t.Errorf("issue = %+v, %v", is, err)
	}
	if _, err := w.Forge.CreateComment(ctx, n, "after the rename"); err != nil {
		t.Errorf("comment: %v", err)
	}
	if r, err := w.Forge.Repository(ctx); err != nil || r.Name != "store" {
		t.Errorf("repository = %+v, %v", r, err)
	}
}

// E50: with the check box off the job's own token may not open pull requests; a user's may.
func TestTheCheckBoxOfActionsBindsOnlyAJobsToken(t *testing.T) {
	t.Parallel()
	g, err := forgetest.NewGitHub(forgetest.Options{Dir: t.TempDir(), Files: forgesuite.Files()})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	g.AddUser("alice", "write")
	g.Set(forgetest.ActionsMayOpenPullRequests(false))
	if _, err := g.Commit(t.Context(), "proctor/issue-1", forgesuite.Files(), "x"); err != nil {
		t.Fatal(err)
	}
	open := func(tok forgetest.Token) error {
		c, err := github.New(github.Config{BaseURL: g.APIURL(), ServerURL: g.URL(), Owner: "octo", Repo: "shop", Token: g.NewToken(tok)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.CreatePullRequest(t.Context(), forge.NewPullRequest{Head: "proctor/issue-1", Base: "main", Title: "t", Body: "b"})
		return err
	}
	if err := open(forgetest.Token{Job: true}); !errors.Is(err, forge.ErrPullRequestsForbidden) || g.Branch("proctor/issue-1") == "" {
		t.Errorf("by a job: %v", err)
	}
	if err := open(forgetest.Token{Login: "alice"}); err != nil {
		t.Errorf("control, by a user: %v", err)
	}
}

// What an owner turned off is told with the page where it is turned on; the control is the same call before.
func TestWhatAnOwnerTurnedOffIsNamed(t *testing.T) {
	t.Parallel()
	g, err := forgetest.NewGitHub(forgetest.Options{Dir: t.TempDir(), Files: forgesuite.Files()})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	token := g.NewToken(forgetest.Token{Job: true, Permissions: map[string]string{"issues": "write", "actions": "write"}})
	c, err := github.New(github.Config{BaseURL: g.APIURL(), ServerURL: g.URL(), Owner: "octo", Repo: "shop", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	issue := g.OpenIssue("A title", "A body", "octo")
	for name, x := range map[string]struct {
		off   forgetest.Setting
		call  func() error
		kind  error
		click string
	}{
		"the issues": {forgetest.IssuesDisabled(true), func() error { _, err := c.Issue(t.Context(), issue); return err }, forge.ErrNotFound, "settings → Features"},
		"the workflow": {forgetest.WorkflowDisabled("proctor.yml"), func() error {
			return c.Dispatch(t.Context(), "proctor.yml", "main", map[string]string{"issue": "1"})
		}, forge.ErrForbidden, "actions/workflows/proctor.yml"},
	} {
		if err := x.call(); err != nil {
			t.Errorf("control, %s on: %v", name, err)
		}
		g.Set(x.off)
		if err := x.call(); !errors.Is(err, x.kind) || !strings.Contains(err.Error(), x.click) {
			t.Errorf("%s off: %v", name, err)
		}
	}
}

func TestATokenThatExpiresInMidRunIsNamed(t *testing.T) {
	t.Parallel()
	clock := forgesuite.NewClock()
	g, err := forgetest.NewGitHub(forgetest.Options{Dir: t.TempDir(), Files: forgesuite.Files(), Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	n := g.OpenIssue("A", "b", "alice")
	token := g.NewToken(forgetest.Token{Installation: true, Login: "app[bot]", Expires: clock.Now().Add(time.Hour)})
	c, err := github.New(github.Config{BaseURL: g.APIURL(), Owner: "octo", Repo: "shop", Token: token, Now: clock.Now, Sleep: clock.Sleep})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateComment(t.Context(), n, "x"); err != nil {
		t.Fatal(err)
	}
	if err := clock.Sleep(context.Background(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateComment(t.Context(), n, "x"); !errors.Is(err, forge.ErrUnauthorized) || !strings.Contains(err.Error(), "after one hour") {
		t.Errorf("error = %v", err)
	}
}
