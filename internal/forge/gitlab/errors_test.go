package gitlab_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/gitlab"
)

var update = flag.Bool("update", false, "rewrite testdata/refusals.golden")

var unfilled = regexp.MustCompile(`\{[a-z-]+\}`)

type refusal struct {
	name, op string
	status   int
	body     string
	header   map[string]string
	job      bool
	kind     error
	click    string
}

func refusals() []refusal {
	const settings = "/group/sub/shop/-/settings/access_tokens"
	return []refusal{
		{"wrong token", "issue", 401, `{"message":"401 Unauthorized"}`, nil, false, forge.ErrUnauthorized, settings},
		{"expired token", "issue", 401, `{"error":"invalid_token","error_description":"Token is expired. You can either do re-authorization or token refresh."}`, nil, false, forge.ErrUnauthorized, "has expired"},
		{"revoked token", "issue", 401, `{"error":"invalid_token","error_description":"Token was revoked. You have to re-authorize from the user."}`, nil, false, forge.ErrUnauthorized, "was revoked"},
		{"token without api scope", "comment", 403, `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"api"}`, nil, false, forge.ErrForbidden, "lacks the api scope"},
		{"role too low", "merge", 403, `{"message":"403 Forbidden"}`, nil, false, forge.ErrForbidden, "role Developer or more"},
		{"project gone", "issue", 404, `{"message":"404 Project Not Found"}`, nil, false, forge.ErrNotFound, "/group/sub/shop exists"},
		{"issue gone", "issue", 404, `{"message":"404 Not found"}`, nil, false, forge.ErrNotFound, "iid"},
		{"job token reads an issue", "issue", 401, `{"message":"401 Unauthorized"}`, nil, true, forge.ErrForbidden, "CI_JOB_TOKEN cannot do this"},
		{"job token opens a merge request (E60, INV-51)", "merge", 0, "", nil, true, forge.ErrPullRequestsForbidden, settings},
		{"merge requests turned off", "merge", 403, `{"message":"403 Forbidden - Merge requests are disabled"}`, nil, false, forge.ErrPullRequestsForbidden, "turn merge requests on"},
		{"source branch gone", "merge", 400, `{"message":["Source branch \"proctor/issue-1\" does not exist"]}`, nil, false, forge.ErrInvalid, "the push arrived"},
		{"target branch gone", "merge", 400, `{"message":{"target_branch":["does not exist"]}}`, nil, false, forge.ErrInvalid, "publish.base"},
		{"note too long", "comment", 400, `{"message":{"note":["is too long (maximum is 1000000 characters)"]}}`, nil, false, forge.ErrTooLarge, "shorten"},
		{"no such ref", "pipeline", 400, `{"message":{"base":["Reference not found"]}}`, nil, false, forge.ErrNotFound, "default branch"},
		{"no CI file", "pipeline", 400, `{"message":{"base":["Missing CI config file"]}}`, nil, false, forge.ErrNotFound, "commit .gitlab-ci.yml"},
		{"rules leave no job", "pipeline", 400, `{"message":{"base":["No stages / jobs for this pipeline."]}}`, nil, false, forge.ErrInvalid, "run for triggers"},
		{"variables not allowed", "pipeline", 403, `{"message":"403 Forbidden - Insufficient permissions to set pipeline variables"}`, nil, false, forge.ErrForbidden, "Minimum role"},
		{"unverified account", "pipeline", 403, `{"message":"403 Forbidden - Identity verification is required in order to run CI jobs"}`, nil, false, forge.ErrForbidden, "verify"},
		{"rate limit", "issue", 429, "Retry later\n", map[string]string{"Retry-After": "3600"}, false, forge.ErrRateLimited, "run again after"},
		{"server error", "issue", 500, `{"message":"500 Internal Server Error"}`, nil, false, forge.ErrUnavailable, "status page"},
		{"a proxy's page", "issue", 403, "<html>\n<b>Blocked</b>\x1b[0m", nil, false, forge.ErrForbidden, "role"},
	}
}

// INV-51: for every refusal, what happened and what to click; the text is in testdata/refusals.golden.
func TestEveryRefusalSaysWhatToClick(t *testing.T) {
	t.Parallel()
	var golden strings.Builder
	for _, r := range refusals() {
		host, err := provoke(t, r)
		var fe *forge.Error
		if !errors.Is(err, r.kind) || !errors.As(err, &fe) {
			t.Errorf("%s: %v, want kind %v", r.name, err, r.kind)
			continue
		}
		if fe.Status != r.status || !strings.Contains(fe.Next, r.click) || unfilled.MatchString(fe.Next) {
			t.Errorf("%s: status %d, next step %q does not name %q", r.name, fe.Status, fe.Next, r.click)
		}
		if strings.ContainsAny(fe.Error(), "\n\r\x1b") {
			t.Errorf("%s: the text is not safe to print: %q", r.name, fe.Error())
		}
		fmt.Fprintf(&golden, "%s\n  %s\n\n", r.name, strings.ReplaceAll(err.Error(), host, "https://gitlab.test"))
	}
	path := filepath.Join("testdata", "refusals.golden")
	if *update {
		if err := os.WriteFile(path, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run go test -run %s -update", err, t.Name())
	}
	if d := cmp.Diff(string(want), golden.String()); d != "" {
		t.Errorf("testdata/refusals.golden (-want +got), rewrite it with -update:\n%s", d)
	}
}

func provoke(t *testing.T, r refusal) (host string, err error) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.op == "merge" && req.Method == http.MethodGet {
			io.WriteString(w, "[]")
			return
		}
		for k, v := range r.header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(r.status)
		io.WriteString(w, r.body)
	}))
	defer srv.Close()
	now := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := gitlab.New(gitlab.Config{ServerURL: srv.URL, Project: "group/sub/shop", Token: "t", JobToken: r.job,
		Now: func() time.Time { return now }, Sleep: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	switch r.op {
	case "issue":
		_, err = c.Issue(ctx, 1)
	case "comment":
		_, err = c.CreateComment(ctx, 1, "x")
	case "merge":
		_, err = c.CreatePullRequest(ctx, forge.NewPullRequest{Head: "proctor/issue-1", Base: "main", Title: "t", Body: "b"})
	case "pipeline":
		err = c.Dispatch(ctx, "", "main", map[string]string{"issue": "1"})
	default:
		t.Fatalf("no operation %q", r.op)
	}
	return srv.URL, err
}

func TestARefusedPushSaysWhatToClick(t *testing.T) {
	t.Parallel()
	c, err := gitlab.New(gitlab.Config{Project: "group/shop", Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]struct {
		output, click string
		kind          error
	}{
		"protected branch": {"remote: GitLab: You are not allowed to push code to protected branches on this project.\n ! [remote rejected] HEAD -> main (pre-receive hook declined)", "settings/repository", forge.ErrForbidden},
		"job token":        {"remote: You are not allowed to upload code.\nfatal: unable to access: The requested URL returned error: 403", "settings/access_tokens", forge.ErrForbidden},
		"wrong token":      {"remote: HTTP Basic: Access denied.\nfatal: Authentication failed", "not accepted", forge.ErrUnauthorized},
		"gone":             {"remote: The project you were looking for could not be found or you don't have permission to view it.", "https://gitlab.com/group/shop still exists", forge.ErrNotFound},
		"moved":            {" ! [rejected] HEAD -> x (fetch first)", "their commits were kept", forge.ErrConflict},
		"unknown":          {"fatal: something new", "what git said", forge.ErrInvalid},
	} {
		err := c.ExplainPush("proctor/x", r.output)
		var fe *forge.Error
		if !errors.Is(err, r.kind) || !errors.As(err, &fe) || !strings.Contains(fe.Next, r.click) {
			t.Errorf("%s: %v, want %v and %q", name, err, r.kind, r.click)
		}
	}
}
