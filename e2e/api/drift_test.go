//go:build e2e

package api

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgesuite"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
)

// The behavioural suite again, with every request and every answer held against the description.
func TestOurRequestsAndTheTestForgesAnswersAreGitHubs(t *testing.T) {
	s := openSpec(t)
	v := &validator{spec: s, next: http.DefaultTransport, seen: map[string]int{}}
	t.Run("suite", func(t *testing.T) {
		forgesuite.Run(t, func(t *testing.T) forgesuite.World {
			mine := &validator{spec: s, next: v.next, seen: map[string]int{}, report: func(err error) { t.Error(err) }}
			t.Cleanup(func() {
				v.mu.Lock()
				defer v.mu.Unlock()
				for k, n := range mine.seen {
					v.seen[k] += n
				}
			})
			return forgesuite.GitHub(t, false, func(t *testing.T, g *forgetest.GitHub, token string, clock *forgesuite.Clock) forge.Forge {
				c, err := github.New(github.Config{BaseURL: g.APIURL(), ServerURL: g.URL(), Owner: g.Owner(), Repo: g.Repo(), Token: token,
					HTTP: &http.Client{Transport: mine}, Now: clock.Now, Sleep: clock.Sleep})
				if err != nil {
					t.Fatal(err)
				}
				return c
			})
		})
	})
	// Every call the client can make must have been seen, or it has not been checked.
	for _, want := range []string{
		"get /repos/{owner}/{repo}", "get /repos/{owner}/{repo}/collaborators/{username}/permission", "get /repos/{owner}/{repo}/git/ref/{ref}", "post /repos/{owner}/{repo}/git/commits",
		"get /user", "get /repos/{owner}/{repo}/issues/{issue_number}", "get /repos/{owner}/{repo}/issues/{issue_number}/events",
		"get /repos/{owner}/{repo}/issues/{issue_number}/comments", "post /repos/{owner}/{repo}/issues/{issue_number}/comments",
		"get /repos/{owner}/{repo}/issues/comments/{comment_id}", "patch /repos/{owner}/{repo}/issues/comments/{comment_id}", "post /repos/{owner}/{repo}/issues/comments/{comment_id}/reactions",
		"post /repos/{owner}/{repo}/issues/{issue_number}/reactions", "post /repos/{owner}/{repo}/issues/{issue_number}/assignees",
		"post /repos/{owner}/{repo}/issues/{issue_number}/labels", "delete /repos/{owner}/{repo}/issues/{issue_number}/labels/{name}",
		"get /repos/{owner}/{repo}/labels/{name}", "post /repos/{owner}/{repo}/labels", "get /repos/{owner}/{repo}/pulls", "post /repos/{owner}/{repo}/pulls",
		"patch /repos/{owner}/{repo}/pulls/{pull_number}", "post /repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers",
		"get /repos/{owner}/{repo}/pulls/{pull_number}", "get /repos/{owner}/{repo}/pulls/{pull_number}/reviews", "get /repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}",
		"post /repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies",
		"post /repos/{owner}/{repo}/check-runs", "get /repos/{owner}/{repo}/commits/{ref}/check-runs",
		"get /repos/{owner}/{repo}/actions/runs", "get /repos/{owner}/{repo}/actions/runs/{run_id}/jobs", "get /repos/{owner}/{repo}/actions/jobs/{job_id}/logs",
		"post /repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches", "get /repos/{owner}/{repo}/actions/workflows/{workflow_id}/runs",
	} {
		method, path, _ := strings.Cut(want, " ")
		if v.seen["/paths/"+escape(path)+"/"+method] == 0 {
			t.Errorf("%s was never called by the suite", want)
		}
	}
}

// What the client does not call but the test forge answers (the runner, an App, a person's token).
func TestTheTestForgesOtherAnswersAreGitHubs(t *testing.T) {
	s := openSpec(t)
	g, err := forgetest.NewGitHub(forgetest.Options{Dir: t.TempDir(), Files: forgesuite.Files()})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	g.AddUser("alice", "admin")
	g.OpenIssue("A", "b", "alice")
	g.OpenPull("P", "main", "main", "alice", false)
	token := g.NewToken(forgetest.Token{Login: "alice"})
	v := &validator{spec: s, next: http.DefaultTransport, seen: map[string]int{}, report: func(err error) { t.Error(err) }}
	for _, path := range []string{
		"/user", "/rate_limit", "/repos/octo/shop/issues/1/timeline", "/repos/octo/shop/issues/1/labels", "/repos/octo/shop/issues/2",
		"/repos/octo/shop/pulls/2", "/repos/octo/shop/issues/99", "/repos/octo/other", "/repos/octo/shop/actions/runs/1",
	} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, g.APIURL()+path, nil)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := v.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

// Control: what is wrong is caught, so the tests above can fail.
func TestTheDriftGuardCatchesWrongRequestsAndAnswers(t *testing.T) {
	t.Parallel()
	s := openSpec(t)
	label := `{"id":1,"node_id":"x","url":"https://api.github.com/l","name":"n","color":"fff","default":false,"description":null}`
	cases := []struct {
		name, method, path, body string
		status                   int
		answer, want             string
	}{
		{"nothing", "GET", "/repos/o/r/labels/n", "", 200, label, ""},
		{"a required member is missing", "GET", "/repos/o/r/labels/n", "", 200, strings.Replace(label, `"id":1,`, "", 1), "missing propert"},
		{"a member has another type", "GET", "/repos/o/r/labels/n", "", 200, strings.Replace(label, `"default":false`, `"default":"no"`, 1), "got string, want boolean"},
		{"null where the API has none", "GET", "/repos/o/r/labels/n", "", 200, strings.Replace(label, `"name":"n"`, `"name":null`, 1), "got null"},
		{"a member the API does not have", "GET", "/repos/o/r/labels/n", "", 200, strings.Replace(label, `{`, `{"colour":"fff",`, 1), "$.colour"},
		{"a success the operation does not have", "GET", "/repos/o/r/labels/n", "", 201, label, "no such success"},
		{"an error without a message", "GET", "/repos/o/r/labels/n", "", 404, `{"error":"no"}`, "$.error"},
		{"an undocumented error without a message", "GET", "/repos/o/r/labels/n", "", 409, `{"documentation_url":"x"}`, "without a message"},
		{"an operation the API does not have", "GET", "/repos/o/r/labelz/n", "", 200, label, "no such operation"},
		{"a method the path does not have", "PUT", "/repos/o/r/labels/n", "", 200, label, "no such operation"},
		{"a query parameter that is not one", "GET", "/repos/o/r/pulls?heads=x", "", 200, `[]`, "heads"},
		{"a query value of the wrong kind", "GET", "/repos/o/r/pulls?state=opened", "", 200, `[]`, "state=opened"},
		{"a body member the API does not take", "POST", "/repos/o/r/labels", `{"name":"n","colour":"fff"}`, 201, label, "$.colour"},
		{"a body without what is required", "POST", "/repos/o/r/labels", `{"color":"fff"}`, 201, label, "missing propert"},
		{"too many inputs", "POST", "/repos/o/r/actions/workflows/p.yml/dispatches", manyInputs(26), 204, "", "maxProperties"},
		{"a body where the API sends none", "POST", "/repos/o/r/actions/workflows/p.yml/dispatches", manyInputs(1), 204, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(c.status)
				io.WriteString(w, c.answer)
			}))
			defer srv.Close()
			var told []string
			v := &validator{spec: s, next: http.DefaultTransport, seen: map[string]int{}, report: func(err error) { told = append(told, err.Error()) }}
			req, err := http.NewRequestWithContext(t.Context(), c.method, srv.URL+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := v.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			all := strings.Join(told, "\n")
			if c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("told %q, want %q", all, c.want)
			}
		})
	}
}

func manyInputs(n int) string {
	var in []string
	for i := range n {
		in = append(in, fmt.Sprintf(`"i%d":"x"`, i))
	}
	return `{"ref":"main","inputs":{` + strings.Join(in, ",") + `}}`
}
