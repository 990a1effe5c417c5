package webhook_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
)

func reviewed(t *testing.T, head string, fork bool, state string) []byte {
	t.Helper()
	from := 5
	if fork {
		from = 6
	}
	b, err := json.Marshal(map[string]any{
		"action": "submitted", "installation": map[string]any{"id": 6},
		"review":       map[string]any{"id": 77, "state": state, "body": "/proctor run", "user": map[string]any{"login": "ann", "id": 7, "type": "User"}},
		"pull_request": map[string]any{"number": 23, "head": map[string]any{"ref": head, "sha": "abc", "repo": map[string]any{"id": from}}, "base": map[string]any{"ref": "trunk"}},
		"repository":   map[string]any{"id": 5, "name": "shop", "default_branch": "trunk", "owner": map[string]any{"login": "octo"}},
		"sender":       map[string]any{"login": "ann", "id": 7, "type": "User"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// INV-9: one review, one run, which is told the review's id and nothing that it says.
func TestAReviewOfABranchOfOursIsDispatchedByItsID(t *testing.T) {
	t.Parallel()
	r, _ := boarded(t)
	r.w.issue = func(n int) forge.Issue { return forge.Issue{Number: n, Title: "A draft", State: "open", IsPull: true} }
	for name, body := range map[string][]byte{
		"other_branch": reviewed(t, "feature/x", false, "changes_requested"),
		"no_request":   reviewed(t, "proctor/issue-3", false, "approved"),
	} {
		if g := r.deliver("pull_request_review", "d"+name, body); g.Status != "ignored" || g.Reason != name {
			t.Errorf("%s: %v", name, g)
		}
	}
	if g := r.deliver("pull_request_review", "fork", reviewed(t, "proctor/issue-3", true, "changes_requested")); g.Reason != "other_branch" {
		t.Errorf("a fork: %v", g)
	}
	if r.w.dispatched() != 0 {
		t.Fatalf("runs %v", r.w.runs)
	}
	if g := r.deliver("pull_request_review", "d1", reviewed(t, "proctor/issue-3", false, "changes_requested")); g.Status != "dispatched" {
		t.Fatal(g)
	}
	if g := r.deliver("pull_request_review", "d2", reviewed(t, "proctor/issue-3", false, "changes_requested")); g.Status != "duplicate" {
		t.Errorf("the same review again: %v", g)
	}
	if len(r.w.runs) != 1 {
		t.Fatalf("runs %v", r.w.runs)
	}
	got, err := trigger.ParseDispatch(r.w.runs[0])
	if err != nil || got.Review == nil || got.Review.ID != 77 || got.Change.Number != 23 || got.Actor.ID != 7 || got.Command != nil || got.Snapshot != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if in, err := url.ParseQuery(r.w.runs[0][trigger.InputRequest]); err != nil || in.Get("review") != "77" {
		t.Errorf("request %v, %v", in, err)
	}
}
