package gitlab_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgesuite"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/gitlab"
)

func TestConfigurationIsCheckedAndRemotesFollowTheTokensKind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in        gitlab.Config
		url, user string
	}{
		{gitlab.Config{Project: "g/s/p", Token: "t"}, "https://gitlab.com/g/s/p.git", "oauth2"},
		{gitlab.Config{Project: "g/p", ServerURL: "https://git.example.com/"}, "https://git.example.com/g/p.git", "oauth2"},
		{gitlab.Config{Project: "g/p", ServerURL: "https://example.com/gitlab"}, "https://example.com/gitlab/g/p.git", "oauth2"},
		{gitlab.Config{Project: "g/p", ServerURL: "https://git.example.com/api/v4", JobToken: true}, "https://git.example.com/g/p.git", "gitlab-ci-token"},
	} {
		cl, err := gitlab.New(c.in)
		if err != nil || cl.Remote().URL != c.url || cl.Remote().Username != c.user {
			t.Errorf("%+v: remote %+v, %v", c.in, cl.Remote(), err)
		}
	}
	for _, bad := range []gitlab.Config{{}, {Project: "alone"}, {Project: "a/b?c"}, {Project: "g/p", ServerURL: "git.example.com"}, {Project: "g/p", ServerURL: "https://u:pw@h"}} {
		if _, err := gitlab.New(bad); err == nil || strings.Contains(err.Error(), "u:pw") {
			t.Errorf("config %+v: error %v", bad, err)
		}
	}
}

// INV-21: the token reaches only the configured host.
func TestARedirectToAnotherHostNeverCarriesTheToken(t *testing.T) {
	t.Parallel()
	const token = "canary-token"
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen = append(stolen, r.Header.Get("PRIVATE-TOKEN"))
		io.WriteString(w, "{}")
	}))
	defer thief.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d := cmp.Diff([]string{token}, r.Header.Values("PRIVATE-TOKEN")); d != "" {
			t.Errorf("token at the configured host (-want +got):\n%s", d)
		}
		http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	c, err := gitlab.New(gitlab.Config{ServerURL: srv.URL, Project: "g/p", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Issue(t.Context(), 1); !errors.Is(err, forge.ErrMoved) || len(stolen) != 0 {
		t.Errorf("error = %v, the other host got %q", err, stolen)
	}
	// Control: the standard client keeps a header of its own making on a redirect.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("PRIVATE-TOKEN", token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(stolen) != 1 || stolen[0] != token {
		t.Errorf("the careless client's token was not taken (%q): this test proves nothing", stolen)
	}
}

func TestATriggerTokenStartsAPipelineWithTheInputsAsVariables(t *testing.T) {
	t.Parallel()
	w := forgesuite.GitLab(t, func(t *testing.T, g *forgetest.GitLab, _ string, clock *forgesuite.Clock) forge.Forge {
		t.Helper()
		c, err := gitlab.New(gitlab.Config{ServerURL: g.URL(), Project: g.Project(), TriggerToken: g.NewTriggerToken(), Now: clock.Now, Sleep: clock.Sleep})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
	if err := w.Forge.(forge.Dispatcher).Dispatch(t.Context(), "", "main", map[string]string{"issue": "7", "proctor_id": "p-1"}); err != nil {
		t.Fatal(err)
	}
	p := w.Site.(*forgetest.GitLab).Pipelines()
	if len(p) != 1 || p[0].Source != "trigger" {
		t.Fatalf("pipelines = %+v", p)
	}
	if d := cmp.Diff(map[string]string{"PROCTOR_ISSUE": "7", "PROCTOR_ID": "p-1"}, p[0].Variables); d != "" {
		t.Errorf("variables (-want +got):\n%s", d)
	}
	// A comment's pipeline has a resource group of its own; a review's, which starts a run, has the issue's.
	for request, group := range map[string]string{"command=stop&comment=5": "-p-2", "review=5&change=3": ""} {
		if err := w.Forge.(forge.Dispatcher).Dispatch(t.Context(), "", "main", map[string]string{"issue": "7", "proctor_id": "p-2", "request": request}); err != nil {
			t.Fatal(err)
		}
		p := w.Site.(*forgetest.GitLab).Pipelines()
		if got := p[len(p)-1].Variables["PROCTOR_GROUP"]; got != group {
			t.Errorf("%s: group %q, want %q", request, got, group)
		}
	}
}

// INV-47: a pipeline is told by its id with two calls, and found with one look at it, however many were started after it.
func TestAPipelineIsFoundThoughManyWereStartedAfterIt(t *testing.T) {
	t.Parallel()
	w := forgesuite.GitLab(t, func(t *testing.T, g *forgetest.GitLab, token string, clock *forgesuite.Clock) forge.Forge {
		t.Helper()
		c, err := gitlab.New(gitlab.Config{ServerURL: g.URL(), Project: g.Project(), Token: token, Now: clock.Now, Sleep: clock.Sleep})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
	site, c, since := w.Site.(*forgetest.GitLab), w.Forge.(*gitlab.Client), w.Clock.Now()
	start := func(branch, id string) int64 {
		t.Helper()
		if err := c.Dispatch(t.Context(), "", branch, map[string]string{"issue": "7", "proctor_id": id}); err != nil {
			t.Fatal(err)
		}
		all := site.Pipelines()
		return all[len(all)-1].ID
	}
	ours := start("main", "p-1")
	if err := site.StartDisguised("main", "p-1"); err != nil {
		t.Fatal(err)
	}
	pushed := site.Pipelines()[1].ID
	for n := range 100 {
		start("main", fmt.Sprint("q-", n))
	}
	files := forgesuite.Files()
	files[".gitlab-ci.yml"] = &fstest.MapFile{Data: []byte("proctor:\n  script: [mine]\n")}
	if _, err := site.Commit(t.Context(), "mine", files, "Mine"); err != nil {
		t.Fatal(err)
	}
	branch := start("mine", "p-1")
	calls := func() int { return len(site.Requests()) }
	for name, ask := range map[string]struct {
		look func() (forge.Run, error)
		most int
	}{
		"by its id": {func() (forge.Run, error) { return c.DispatchedRun(t.Context(), ours, "main", "p-1", since) }, 2},
		"looked up": {func() (forge.Run, error) { return c.FindRun(t.Context(), "", "main", "p-1", since) }, 2},
	} {
		before := calls()
		if r, err := ask.look(); err != nil || r.ID != ours || r.Ref != "main" || r.Status != "queued" || r.Title != "p-1" || calls()-before != ask.most {
			t.Errorf("INV-47 %s: %+v, %v, after %d calls, want %d", name, r, err, calls()-before, ask.most)
		}
	}
	for name, look := range map[string]func() (forge.Run, error){
		"another's":      func() (forge.Run, error) { return c.DispatchedRun(t.Context(), ours, "main", "p-2", since) },
		"a push":         func() (forge.Run, error) { return c.DispatchedRun(t.Context(), pushed, "main", "p-1", since) },
		"another branch": func() (forge.Run, error) { return c.DispatchedRun(t.Context(), branch, "main", "p-1", since) },
		"of before": func() (forge.Run, error) {
			return c.DispatchedRun(t.Context(), ours, "main", "p-1", w.Clock.Now().Add(time.Hour))
		},
		"none of that id":   func() (forge.Run, error) { return c.DispatchedRun(t.Context(), 9, "main", "p-1", since) },
		"none that is ours": func() (forge.Run, error) { return c.FindRun(t.Context(), "", "main", "p-2", since) },
	} {
		before := calls()
		if r, err := look(); !errors.Is(err, forge.ErrNotFound) || r != (forge.Run{}) || calls()-before > 31 {
			t.Errorf("INV-47 %s: %+v, %v, after %d calls", name, r, err, calls()-before)
		}
	}
}

func TestAConfidentialIssueSaysSo(t *testing.T) {
	t.Parallel()
	w := forgesuite.GitLab(t, func(t *testing.T, g *forgetest.GitLab, token string, clock *forgesuite.Clock) forge.Forge {
		t.Helper()
		c, err := gitlab.New(gitlab.Config{ServerURL: g.URL(), Project: g.Project(), Token: token, Now: clock.Now, Sleep: clock.Sleep})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
	n := w.Site.OpenIssue("A", "b", "alice")
	if err := w.Site.(*forgetest.GitLab).MakeConfidential(n); err != nil {
		t.Fatal(err)
	}
	if is, err := w.Forge.Issue(t.Context(), n); err != nil || !is.Confidential {
		t.Errorf("issue = %+v, %v", is, err)
	}
}
