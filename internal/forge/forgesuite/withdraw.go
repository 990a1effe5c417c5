package forgesuite

import (
	"slices"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

const looked = "proctor-doctor/live-0123456789abcdef"

func withdraw(t *testing.T, w World) {
	ctx := t.Context()
	back, ok := w.Forge.(forge.Withdrawer)
	if !ok {
		t.Fatal("the client takes nothing back")
	}
	commit := w.branch(t, looked)
	people := w.branch(t, "people/own")
	made := got(w.Forge.CreatePullRequest(ctx, request(looked)))(t)
	for range 2 { // a second time is no error
		must(t, back.ClosePullRequest(ctx, made.Number))
	}
	if p := w.Site.Pulls(); len(p) != 1 || p[0].State != "closed" {
		t.Errorf("after it was closed: %+v", p)
	}
	// Somebody pushed meanwhile: the branch stays.
	wantKind(t, back.DeleteBranch(ctx, looked, people), forge.ErrConflict)
	if at := got(w.Forge.Branch(ctx, looked))(t); at != commit {
		t.Errorf("the branch that moved is at %s", at)
	}
	for range 2 {
		must(t, back.DeleteBranch(ctx, looked, commit))
	}
	_, err := w.Forge.Branch(ctx, looked)
	wantKind(t, err, forge.ErrNotFound)
	if at := got(w.Forge.Branch(ctx, "people/own"))(t); at != people {
		t.Errorf("the people's branch is at %s", at)
	}
	wantKind(t, back.ClosePullRequest(ctx, made.Number+40), forge.ErrNotFound)
}

func withdrawLost(t *testing.T, w World) {
	back := w.Forge.(forge.Withdrawer)
	for _, f := range []forgetest.Fault{forgetest.LostAnswer(), forgetest.DoneBut502(), forgetest.LostCall()} {
		commit := w.branch(t, looked)
		must(t, w.Site.Fail(w.Paths["delete-branch"], 1, f))
		must(t, back.DeleteBranch(t.Context(), looked, commit))
		_, err := w.Forge.Branch(t.Context(), looked)
		wantKind(t, err, forge.ErrNotFound)
	}
}

// Nothing is started by asking whether it may be.
func startable(t *testing.T, w World) {
	starter, ok := w.Forge.(forge.Starter)
	if !ok {
		t.Fatal("the client cannot tell")
	}
	must(t, starter.Startable(t.Context(), w.Workflow, looked))
	if n := w.Started(); n != 0 {
		t.Errorf("%d runs were started", n)
	}
}

func settings(t *testing.T, w World) {
	reader, ok := w.Forge.(forge.SettingsReader)
	if !ok {
		t.Fatal("the client reads no settings")
	}
	found := got(reader.Settings(t.Context(), forge.Needs{Branch: "proctor/issue-1", Workflow: w.Workflow, JobToken: true, Secrets: []string{"A_KEY"}, Variables: []string{"A_KEY"}}))(t)
	var unseen []string
	for _, s := range found {
		if s.Sight == forge.Wrong || s.Said == "" || s.Next == "" && s.Sight != forge.Right {
			t.Errorf("with nothing wrong: %+v", s)
		}
		if s.Sight == forge.Unseen {
			unseen = append(unseen, s.Name)
		}
	}
	// What only an administrator sees is never called right.
	for _, name := range map[string][]string{"github": {"actions", "actions-pull-requests", "secret"}, "gitlab": {"protected-branches", "push-rules", "variables", "pipeline-variables"}}[w.Forge.Name()] {
		if !slices.Contains(unseen, name) {
			t.Errorf("%s is told to a token that may not look", name)
		}
	}
}
