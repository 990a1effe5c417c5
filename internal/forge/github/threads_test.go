package github_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgesuite"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
)

// What outsiders write in many threads costs a bounded number of calls. The newest threads come first, and of the others it is told that they are cut.
func TestReadingLongThreadsEnds(t *testing.T) {
	t.Parallel()
	const long, pages, perThread = 12, 200, 19
	w := world(t, false, nil)
	if _, err := w.Site.Commit(t.Context(), "proctor/issue-1", forgesuite.Files(), "Fix"); err != nil {
		t.Fatal(err)
	}
	number := w.Site.OpenPull("P", "proctor/issue-1", "main", "alice", false)
	lines := slices.Repeat([]forgetest.ReviewLine{{Path: "README.md", Line: 1, Body: "Use y."}}, long)
	if _, err := w.Site.ReviewPull(number, "alice", forge.ChangesRequested, "", lines...); err != nil {
		t.Fatal(err)
	}
	for n := range long {
		for i := range forge.MaxThreadComments - 1 {
			if err := w.Site.ReplyInThread(number, n, "mallory", fmt.Sprint("reply ", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := w.Forge.(forge.ThreadTalker).Threads(t.Context(), number, func(forge.Comment) bool { return false })
	if err != nil || all.Cut || len(all.All) != long {
		t.Fatalf("%d threads, cut %t, %v", len(all.All), all.Cut, err)
	}
	if calls := w.Site.Count("POST /graphql"); calls != 1+pages {
		t.Errorf("%d calls, want %d", calls, 1+pages)
	}
	for n, th := range all.All {
		read := min(max(pages-(long-1-n)*perThread, 0), perThread)
		want := forge.MaxThreadComments
		if read < perThread {
			want = 1 + 50*(1+read)
		}
		if len(th.Comments) != want || th.Cut != (read < perThread) || th.Comments[0].Body != "Use y." {
			t.Errorf("thread %d: %d comments, want %d; cut %t, begins with %q", n, len(th.Comments), want, th.Cut, th.Comments[0].Body)
		}
	}
}

// GraphQL says 200 to whatever it refuses; what it means is told, with a step that helps.
func TestARefusedQuestionIsToldForWhatItIs(t *testing.T) {
	t.Parallel()
	for answer, c := range map[string]struct {
		kind error
		next string
	}{
		`{"data":null,"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}`:                       {forge.ErrRateLimited, "in an hour"},
		`{"data":{"repository":null},"errors":[{"type":"FORBIDDEN","message":"Resource not accessible"}]}`:           {forge.ErrForbidden, "permission `pull-requests: read`"},
		`{"data":{"repository":{"pullRequest":null}},"errors":[{"type":"NOT_FOUND","message":"Could not resolve"}]}`: {forge.ErrNotFound, "check the pull request number"},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) }))
		defer srv.Close()
		client, err := github.New(github.Config{BaseURL: srv.URL, Owner: "octo", Repo: "shop", Token: "t"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Threads(t.Context(), 7, func(forge.Comment) bool { return false })
		var told *forge.Error
		if !errors.Is(err, c.kind) || !errors.As(err, &told) || !strings.Contains(told.Next, c.next) {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
