package github_test

import (
	"context"
	"encoding/json"
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
	"github.com/proctor-ci/proctor/internal/forge/github"
)

var update = flag.Bool("update", false, "rewrite testdata/refusals.golden")

var unfilled = regexp.MustCompile(`\{[a-z-]+\}`)

// refusal is one recorded answer of GitHub's.
type refusal struct {
	name, op string
	status   int
	body     string
	header   map[string]string
	kind     error
	click    string // what the next step must name
}

func message(s string) string {
	b, _ := json.Marshal(map[string]string{"message": s, "documentation_url": "https://docs.github.com/rest"})
	return string(b)
}

func validation(field, code, text string) string {
	return fmt.Sprintf(`{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":%q,"code":%q,"message":%q}],"documentation_url":"https://docs.github.com/rest"}`, field, code, text)
}

func refusals() []refusal {
	const integration = "Resource not accessible by integration"
	return []refusal{
		{"wrong token", "repository", 401, message("Bad credentials"), nil, forge.ErrUnauthorized, "make a new token"},
		{"no token", "repository", 401, message("Requires authentication"), nil, forge.ErrUnauthorized, "github-token"},
		{"deleted repository", "repository", 404, message("Not Found"), nil, forge.ErrNotFound, "https://github.test/octo/shop"},
		{"blocked repository", "repository", 451, message("Repository access blocked"), nil, forge.ErrForbidden, "https://github.test/octo/shop"},
		{"suspended installation (E28)", "issue", 403, message("This installation has been suspended"), nil, forge.ErrForbidden, "settings/installations"},
		{"SAML", "issue", 403, message("Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this organization."), nil, forge.ErrForbidden, "Configure SSO"},
		{"IP allow list", "issue", 403, message("Although you appear to have the correct authorization credentials, the `octo` organization has an IP allow list enabled, and 1.2.3.4 is not permitted to access this resource."), nil, forge.ErrForbidden, "IP allow list"},
		{"suspended account", "issue", 403, message("Sorry. Your account was suspended"), nil, forge.ErrForbidden, "another account"},
		{"deleted issue", "issue", 410, message("This issue was deleted"), nil, forge.ErrNotFound, "open a new one"},
		{"issues turned off", "issue", 410, message("Issues are disabled for this repo"), nil, forge.ErrNotFound, "settings → Features"},
		{"locked conversation", "comment", 403, message("Unable to create comment because issue is locked."), nil, forge.ErrForbidden, "unlock"},
		{"comment without issues: write (E35)", "comment", 403, message(integration), nil, forge.ErrForbidden, "`issues: write` under `permissions:`"},
		{"comment by a fine-grained token", "comment", 403, message("Resource not accessible by personal access token"), nil, forge.ErrForbidden, `"Issues: Read and write"`},
		{"comment in an archived repository", "comment", 403, message("Repository was archived so is read-only."), nil, forge.ErrArchived, "unarchive"},
		{"role without push access", "role", 403, message("Must have push access to view collaborator permission."), nil, forge.ErrForbidden, "settings/access"},
		{"label without permission", "labels", 403, message(integration), nil, forge.ErrForbidden, "issues: write"},
		{"Actions may not open pull requests (E50, INV-51)", "pull", 403, message("GitHub Actions is not permitted to create or approve pull requests."), nil, forge.ErrPullRequestsForbidden, `tick "Allow GitHub Actions to create and approve pull requests" at https://github.test/octo/shop/settings/actions`},
		{"pull request without permission (E35)", "pull", 403, message(integration), nil, forge.ErrForbidden, "`pull-requests: write` under `permissions:`"},
		{"drafts unsupported (E54)", "pull", 422, message("Draft pull requests are not supported in this repository."), nil, forge.ErrDraftUnsupported, "compare/main...proctor/issue-1"},
		{"nothing to merge (E57)", "pull", 422, validation("", "custom", "No commits between main and proctor/issue-1"), nil, forge.ErrInvalid, "the push arrived"},
		{"base is gone (E57)", "pull", 422, validation("base", "invalid", ""), nil, forge.ErrInvalid, "publish.base"},
		{"head is gone (E57)", "pull", 422, validation("head", "invalid", ""), nil, forge.ErrInvalid, "the push arrived"},
		{"body too long", "pull", 422, validation("body", "custom", "body is too long (maximum is 65536 characters)"), nil, forge.ErrTooLarge, "shorten"},
		{"free plan", "pull", 403, message("Upgrade to GitHub Pro or make this repository public to enable this feature."), nil, forge.ErrForbidden, "settings/billing"},
		{"reviewer without access (E57)", "reviewers", 422, message("Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the octo/shop repository."), nil, forge.ErrInvalid, "publish.reviewers"},
		{"reviewer is the author", "reviewers", 422, message("Review cannot be requested from pull request author."), nil, forge.ErrInvalid, "publish.reviewers"},
		{"workflow missing (E33)", "dispatch", 404, message("Not Found"), nil, forge.ErrNotFound, ".github/workflows/proctor.yml to the default branch"},
		{"no workflow_dispatch trigger (E33)", "dispatch", 422, message("Workflow does not have 'workflow_dispatch' trigger"), nil, forge.ErrInvalid, "add `workflow_dispatch:`"},
		{"no such ref", "dispatch", 422, message("No ref found for: main"), nil, forge.ErrNotFound, "default branch"},
		{"undeclared input (E31)", "dispatch", 422, message(`Unexpected inputs provided: ["issue"]`), nil, forge.ErrInvalid, "proctor init"},
		{"missing input (E31)", "dispatch", 422, message("Required input 'issue' not provided"), nil, forge.ErrInvalid, "proctor init"},
		{"disabled workflow", "dispatch", 422, message("Cannot trigger a 'workflow_dispatch' on a disabled workflow"), nil, forge.ErrForbidden, "actions/workflows/proctor.yml"},
		{"Actions turned off", "dispatch", 422, message("Actions has been disabled for this user."), nil, forge.ErrForbidden, "settings/actions"},
		{"dispatch without permission", "dispatch", 403, message(integration), nil, forge.ErrForbidden, "actions: write"},
		{"primary limit", "issue", 403, message("API rate limit exceeded for installation ID 7."), map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4102444800"}, forge.ErrRateLimited, "2100-01-01T00:00:01Z"},
		{"secondary limit", "issue", 429, message("You have exceeded a secondary rate limit."), map[string]string{"Retry-After": "3600"}, forge.ErrRateLimited, "run again after"},
		{"server error", "issue", 500, "<html>Unicorn!</html>", nil, forge.ErrUnavailable, "status page"},
		{"unknown refusal", "issue", 418, message("teapot"), nil, forge.ErrInvalid, "what the forge said"},
		{"unknown prohibition", "issue", 403, message("No."), nil, forge.ErrForbidden, "issues: read"},
		{"a message meant for a terminal", "issue", 403, message("No.\n::error::\x1b[31mred\u202e" + strings.Repeat("x", 500)), nil, forge.ErrForbidden, "issues: read"},
	}
}

// INV-51: for every refusal, what happened and what to click; the text is in testdata/refusals.golden.
func TestEveryRefusalSaysWhatToClick(t *testing.T) {
	t.Parallel()
	var golden strings.Builder
	for _, r := range refusals() {
		err := provoke(t, r)
		var fe *forge.Error
		if !errors.Is(err, r.kind) || !errors.As(err, &fe) {
			t.Errorf("%s: %v, want kind %v", r.name, err, r.kind)
			continue
		}
		if fe.Status != r.status || !strings.Contains(fe.Next, r.click) || unfilled.MatchString(fe.Next) {
			t.Errorf("%s: status %d, next step %q does not name %q", r.name, fe.Status, fe.Next, r.click)
		}
		if strings.ContainsAny(fe.Error(), "\n\r\x1b\u202e") || len([]rune(fe.Said)) > 301 {
			t.Errorf("%s: the text is not safe to print: %q", r.name, fe.Error())
		}
		fmt.Fprintf(&golden, "%s\n  %v\n\n", r.name, err)
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

// provoke makes the call with the recorded answer to its last request.
func provoke(t *testing.T, r refusal) error {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.op == "pull" && req.Method == http.MethodGet { // the look before the creation
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
	c, err := github.New(github.Config{BaseURL: srv.URL, ServerURL: "https://github.test", Owner: "octo", Repo: "shop", Token: "t",
		Now: func() time.Time { return now }, Sleep: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	switch r.op {
	case "repository":
		_, err = c.Repository(ctx)
	case "issue":
		_, err = c.Issue(ctx, 1)
	case "comment":
		_, err = c.CreateComment(ctx, 1, "x")
	case "role":
		_, err = c.Role(ctx, "alice")
	case "labels":
		err = c.SetLabels(ctx, 1, []string{"x"}, nil)
	case "pull":
		_, err = c.CreatePullRequest(ctx, forge.NewPullRequest{Head: "proctor/issue-1", Base: "main", Title: "t", Body: "b"})
	case "reviewers":
		err = c.RequestReviewers(ctx, 1, []string{"x"})
	case "dispatch":
		err = c.Dispatch(ctx, ".github/workflows/proctor.yml", "main", map[string]string{"issue": "1"})
	default:
		t.Fatalf("no operation %q", r.op)
	}
	return err
}

// INV-51: what git prints when the forge refuses a push.
func TestARefusedPushSaysWhatToClick(t *testing.T) {
	t.Parallel()
	c, err := github.New(github.Config{Owner: "octo", Repo: "shop", Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]struct {
		output, click string
		kind          error
	}{
		"protected branch": {"remote: error: GH006: Protected branch update failed for refs/heads/proctor/x.\nremote: error: Changes must be made through a pull request.\n ! [remote rejected] HEAD -> proctor/x (protected branch hook declined)\nerror: failed to push some refs", "https://github.com/octo/shop/settings/branches", forge.ErrForbidden},
		"ruleset":          {"remote: error: GH013: Repository rule violations found for refs/heads/x.", "/rules", forge.ErrForbidden},
		"workflows (E51)":  {" ! [remote rejected] HEAD -> x (refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission)", "Workflows: Read and write", forge.ErrForbidden},
		"large file":       {"remote: error: GH001: Large files detected. You may want to try Git Large File Storage", "Git LFS", forge.ErrTooLarge},
		"archived":         {"remote: This repository was archived so it is read-only.\nfatal: unable to access: The requested URL returned error: 403", "unarchive", forge.ErrArchived},
		"no permission":    {"remote: Permission to octo/shop.git denied to github-actions[bot].\nfatal: unable to access: The requested URL returned error: 403", "contents: write", forge.ErrForbidden},
		"expired token":    {"remote: Invalid username or token.\nfatal: Authentication failed for 'https://github.com/octo/shop.git/'", "make a new token", forge.ErrUnauthorized},
		"deleted":          {"remote: Repository not found.\nfatal: repository not found", "https://github.com/octo/shop still exists", forge.ErrNotFound},
		"moved (E53)":      {" ! [rejected] HEAD -> x (fetch first)", "their commits were kept", forge.ErrConflict},
		"lease":            {" ! [rejected] HEAD -> x (stale info)", "their commits were kept", forge.ErrConflict},
		"no network":       {"fatal: unable to access 'https://github.com/octo/shop.git/': Could not resolve host: github.com", "network", forge.ErrUnavailable},
		"unknown":          {"fatal: something new", "what git said", forge.ErrInvalid},
		"nothing":          {"", "what git said", forge.ErrInvalid},
	} {
		err := c.ExplainPush("proctor/x", r.output)
		var fe *forge.Error
		if !errors.Is(err, r.kind) || !errors.As(err, &fe) || !strings.Contains(fe.Next, r.click) {
			t.Errorf("%s: %v, want %v and %q", name, err, r.kind, r.click)
		}
	}
}
