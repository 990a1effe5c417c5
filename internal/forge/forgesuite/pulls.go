package forgesuite

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/forge"
)

func readPull(t *testing.T, w World) {
	ctx := t.Context()
	reader, ok := w.Forge.(forge.PullReader)
	if !ok {
		t.Fatal("the client reads no pull request by its number")
	}
	w.branch(t, "proctor/issue-1")
	made := got(w.Forge.CreatePullRequest(ctx, request("proctor/issue-1")))(t)
	if d := cmp.Diff(made, got(reader.PullRequest(ctx, made.Number))(t)); d != "" {
		t.Errorf("read (-created +read):\n%s", d)
	}
	must(t, w.Site.MergePull(made.Number))
	if p := got(reader.PullRequest(ctx, made.Number))(t); p.State != "merged" || p.Body != made.Body {
		t.Errorf("after the merge: %+v", p)
	}
	_, err := reader.PullRequest(ctx, made.Number+40)
	wantKind(t, err, forge.ErrNotFound)
}
