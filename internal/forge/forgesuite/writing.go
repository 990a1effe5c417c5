package forgesuite

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

func request(head string) forge.NewPullRequest {
	return forge.NewPullRequest{Head: head, Base: "main", Title: "Fix totals", Body: "Closes #1\n\nevidence"}
}

func openDraft(t *testing.T, w World) {
	ctx := t.Context()
	_, err := w.Forge.FindPullRequest(ctx, "proctor/issue-1")
	wantKind(t, err, forge.ErrNotFound)
	id := w.branch(t, "proctor/issue-1")
	p := got(w.Forge.CreatePullRequest(ctx, request("proctor/issue-1")))(t)
	repo := got(w.Forge.Repository(ctx))(t)
	want := forge.PullRequest{Number: p.Number, URL: p.URL, State: "open", Draft: true, Head: "proctor/issue-1", Base: "main", HeadSHA: id,
		HeadRepoID: repo.ID, Title: "Fix totals", Body: "Closes #1\n\nevidence", Author: p.Author}
	if d := cmp.Diff(want, p); d != "" || p.Author.Login != w.Bot || !strings.HasPrefix(p.URL, "http") {
		t.Errorf("pull request by %s at %s (-want +got):\n%s", p.Author.Login, p.URL, d)
	}
	if d := cmp.Diff(p, got(w.Forge.FindPullRequest(ctx, "proctor/issue-1"))(t)); d != "" {
		t.Errorf("found (-created +found):\n%s", d)
	}
	must(t, w.Forge.AddLabelsToPullRequest(ctx, p.Number, []string{"proctor"}))
	site := w.Site.Pulls()
	if len(site) != 1 || !site[0].Draft || len(site[0].Labels) != 1 {
		t.Errorf("the forge has %+v", site)
	}
}

func openTwice(t *testing.T, w World) {
	ctx := t.Context()
	w.branch(t, "proctor/issue-1")
	first := got(w.Forge.CreatePullRequest(ctx, request("proctor/issue-1")))(t)
	again := request("proctor/issue-1")
	again.Title = "Another title"
	second := got(w.Forge.CreatePullRequest(ctx, again))(t)
	if second.Number != first.Number || second.Title != first.Title || len(w.Site.Pulls()) != 1 {
		t.Errorf("second = %+v, first = %+v", second, first)
	}
	// Control: another head does open another.
	w.branch(t, "proctor/issue-2")
	got(w.Forge.CreatePullRequest(ctx, request("proctor/issue-2")))(t)
	if n := len(w.Site.Pulls()); n != 2 {
		t.Errorf("%d pull requests, want 2", n)
	}
}

func editKeepsDraft(t *testing.T, w World) {
	ctx := t.Context()
	w.branch(t, "proctor/issue-1")
	p := got(w.Forge.CreatePullRequest(ctx, request("proctor/issue-1")))(t)
	title, body := "Fix totals and taxes", "more evidence"
	for _, edit := range []forge.PullRequestEdit{{Title: &title}, {Body: &body}, {Title: &title, Body: &body}} {
		p = got(w.Forge.UpdatePullRequest(ctx, p.Number, edit))(t)
	}
	if !p.Draft || p.Title != title || p.Body != body {
		t.Errorf("pull request = %+v", p)
	}
	_, err := w.Forge.UpdatePullRequest(ctx, 404, forge.PullRequestEdit{Title: &title})
	wantKind(t, err, forge.ErrNotFound)
}

func notTheOne(t *testing.T, w World) {
	ctx := t.Context()
	w.branch(t, "proctor/issue-1")
	w.Site.OpenPull("From a fork", "proctor/issue-1", "main", "forker", true)
	_, err := w.Forge.FindPullRequest(ctx, "proctor/issue-1")
	wantKind(t, err, forge.ErrNotFound)
	first := got(w.Forge.CreatePullRequest(ctx, request("proctor/issue-1")))(t)
	must(t, w.Site.MergePull(first.Number))
	_, err = w.Forge.FindPullRequest(ctx, "proctor/issue-1")
	wantKind(t, err, forge.ErrNotFound)
	second := got(w.Forge.CreatePullRequest(ctx, request("proctor/issue-1")))(t)
	if second.Number == first.Number {
		t.Errorf("the merged pull request was given back: %+v", second)
	}
}

func people(t *testing.T, w World) {
	ctx := t.Context()
	w.Site.AddUser("rita", w.Roles[forge.RoleWrite])
	w.Site.AddUser("sam", w.Roles[forge.RoleWrite])
	w.branch(t, "proctor/issue-1")
	p := got(w.Forge.CreatePullRequest(ctx, request("proctor/issue-1")))(t)
	ask := w.Forge.(forge.Requester)
	must(t, ask.RequestReviewers(ctx, p.Number, []string{"rita"}))
	must(t, ask.RequestReviewers(ctx, p.Number, []string{"sam"}))
	must(t, ask.Assign(ctx, p.Number, []string{"rita"}))
	site := w.Site.Pulls()[0]
	if len(site.Reviewers) != 2 || len(site.Assignees) != 1 {
		t.Errorf("reviewers %v, assignees %v", site.Reviewers, site.Assignees)
	}
	wantKind(t, ask.RequestReviewers(ctx, p.Number, []string{"stranger"}), forge.ErrInvalid)
	wantKind(t, ask.Assign(ctx, p.Number, []string{"stranger"}), forge.ErrInvalid)
}

func limits(t *testing.T, w World) {
	ctx := t.Context()
	n := w.Site.OpenIssue("A", "b", "alice")
	w.branch(t, "proctor/issue-1")
	l := w.Forge.Limits()
	got(w.Forge.CreateComment(ctx, n, strings.Repeat("é", l.CommentBody)))(t) // characters, not bytes
	before := w.Site.Count("**")
	_, err := w.Forge.CreateComment(ctx, n, strings.Repeat("x", l.CommentBody+1))
	wantKind(t, err, forge.ErrTooLarge)
	big := request("proctor/issue-1")
	big.Body = strings.Repeat("x", l.PullRequestBody+1)
	_, err = w.Forge.CreatePullRequest(ctx, big)
	wantKind(t, err, forge.ErrTooLarge)
	if after := w.Site.Count("**"); after != before {
		t.Errorf("%d requests were sent for bodies that are too long", after-before)
	}
}

func commentLost(t *testing.T, w World) {
	ctx := t.Context()
	n := w.Site.OpenIssue("A", "b", "alice")
	for _, f := range []forgetest.Fault{forgetest.LostAnswer(), forgetest.DoneBut502(), forgetest.LostCall(), forgetest.BadGateway()} {
		must(t, w.Site.Fail(w.Paths["create-comment"], 1, f))
		is, _ := w.Site.Issue(n)
		before := len(is.Comments)
		got(w.Forge.CreateComment(ctx, n, "said once, fault "+f.Body+yes(f.Drop)+yes(f.After)))(t)
		if is, _ := w.Site.Issue(n); len(is.Comments) != before+1 {
			t.Errorf("fault %+v: %d new comments, want 1", f, len(is.Comments)-before)
		}
	}
	// Control: the forge itself does not mind the same words twice.
	before, _ := w.Site.Issue(n)
	got(w.Forge.CreateComment(ctx, n, "same"))(t)
	got(w.Forge.CreateComment(ctx, n, "same"))(t)
	if after, _ := w.Site.Issue(n); len(after.Comments) != len(before.Comments)+2 {
		t.Errorf("the forge dropped a repeated comment: this test proves nothing")
	}
}

func yes(b bool) string {
	if b {
		return "+"
	}
	return "-"
}

func pullLost(t *testing.T, w World) {
	ctx := t.Context()
	for i, f := range []forgetest.Fault{forgetest.LostAnswer(), forgetest.DoneBut502(), forgetest.LostCall(), forgetest.BadGateway()} {
		head := "proctor/issue-" + string(rune('1'+i))
		w.branch(t, head)
		must(t, w.Site.Fail(w.Paths["create-pull"], 1, f))
		sent := w.Site.Count(w.Paths["create-pull"])
		p := got(w.Forge.CreatePullRequest(ctx, request(head)))(t)
		if p.Head != head || !p.Draft || len(w.Site.Pulls()) != i+1 {
			t.Errorf("fault %+v: got %+v of %d pull requests", f, p, len(w.Site.Pulls()))
		}
		// Control: where the first call had its effect, no second one was sent; where it had none, one was.
		want := 2
		if f.After {
			want = 1
		}
		if n := w.Site.Count(w.Paths["create-pull"]) - sent; n != want {
			t.Errorf("fault %+v: %d creation calls, want %d", f, n, want)
		}
	}
}

func badGateway(t *testing.T, w World) {
	n := w.Site.OpenIssue("A", "b", "alice")
	must(t, w.Site.Fail(w.Paths["issue"], 5, forgetest.BadGateway()))
	_, err := w.Forge.Issue(t.Context(), n)
	wantKind(t, err, forge.ErrUnavailable)
	if d := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, w.Clock.Slept()); d != "" {
		t.Errorf("waits (-want +got):\n%s", d)
	}
	got(w.Forge.Issue(t.Context(), n))(t) // control: without the fault it works
}

func secondaryLimit(t *testing.T, w World) {
	n := w.Site.OpenIssue("A", "b", "alice")
	must(t, w.Site.Fail(w.Paths["create-comment"], 1, forgetest.SecondaryLimit("7")))
	got(w.Forge.CreateComment(t.Context(), n, "x"))(t)
	if d := cmp.Diff([]time.Duration{7 * time.Second}, w.Clock.Slept()); d != "" {
		t.Errorf("waits (-want +got):\n%s", d)
	}
}

func secondaryNoHint(t *testing.T, w World) {
	n := w.Site.OpenIssue("A", "b", "alice")
	must(t, w.Site.Fail(w.Paths["issue"], 2, forgetest.SecondaryLimit("")))
	got(w.Forge.Issue(t.Context(), n))(t)
	if d := cmp.Diff([]time.Duration{time.Minute, 2 * time.Minute}, w.Clock.Slept()); d != "" {
		t.Errorf("waits (-want +got):\n%s", d)
	}
}

func longLimit(t *testing.T, w World) {
	n := w.Site.OpenIssue("A", "b", "alice")
	soon, reset := w.Clock.Now().Add(90*time.Second), w.Clock.Now().Add(40*time.Minute)
	must(t, w.Site.Fail(w.Paths["issue"], 1, forgetest.PrimaryLimit(soon)))
	got(w.Forge.Issue(t.Context(), n))(t)
	if d := cmp.Diff([]time.Duration{91 * time.Second}, w.Clock.Slept()); d != "" {
		t.Errorf("waits (-want +got):\n%s", d)
	}
	must(t, w.Site.Fail(w.Paths["issue"], 1, forgetest.PrimaryLimit(reset)))
	_, err := w.Forge.Issue(t.Context(), n)
	wantKind(t, err, forge.ErrRateLimited)
	var fe *forge.Error
	if errors.As(err, &fe); fe.RetryAt.Before(reset) || !strings.Contains(fe.Next, "05:4") {
		t.Errorf("retry at %v, next %q", fe.RetryAt, fe.Next)
	}
	// The client must not go on refusing by itself once the limit is over: the wall clock never moved.
	got(w.Forge.Issue(t.Context(), n))(t)
}

func dispatchRun(t *testing.T, w World) {
	ctx := t.Context()
	d, find, since := w.Forge.(forge.Dispatcher), w.Forge.(forge.RunFinder), w.Clock.Now()
	for _, id := range []string{"p-1", "p-12"} {
		must(t, d.Dispatch(ctx, w.Workflow, "main", map[string]string{"issue": "7", "proctor_id": id}))
	}
	for _, id := range []string{"p-1", "p-12"} {
		r := got(find.FindRun(ctx, w.Workflow, "main", id, since))(t)
		if !strings.Contains(r.Title, id) || r.Status != "queued" || r.SHA == "" {
			t.Errorf("run %s = %+v", id, r)
		}
	}
	_, err := find.FindRun(ctx, w.Workflow, "main", "p-2", since)
	wantKind(t, err, forge.ErrNotFound)
	wantKind(t, d.Dispatch(ctx, w.Workflow, "no-such-branch", map[string]string{"issue": "7"}), forge.ErrNotFound)
	wantKind(t, d.Dispatch(ctx, w.Workflow, "main", map[string]string{"issue": strings.Repeat("x", 70000)}), forge.ErrTooLarge)
}

// INV-46, INV-47: what carries the id is a run of ours only where it was dispatched, and on that branch.
func dispatchDisguised(t *testing.T, w World) {
	ctx, since := t.Context(), w.Clock.Now()
	d, find := w.Forge.(forge.Dispatcher), w.Forge.(forge.RunFinder)
	files := Files()
	files[".gitlab-ci.yml"] = &fstest.MapFile{Data: []byte("proctor:\n  script: [mine]\n")}
	got(w.Site.Commit(ctx, "mine", files, "Mine"))(t)
	in := map[string]string{"issue": "7", "proctor_id": "p-1"}
	must(t, w.Site.StartDisguised("main", "p-1"))
	must(t, d.Dispatch(ctx, w.Workflow, "mine", in))
	if n := w.Started(); n != 2 {
		t.Fatalf("%d runs, want two that carry the id", n)
	}
	_, err := find.FindRun(ctx, w.Workflow, "main", "p-1", since)
	wantKind(t, err, forge.ErrNotFound)
	// Control: the one on the other branch is found there, and ours is found among them all.
	if r := got(find.FindRun(ctx, w.Workflow, "mine", "p-1", since))(t); r.Ref != "mine" {
		t.Errorf("control: found %+v", r)
	}
	must(t, d.Dispatch(ctx, w.Workflow, "main", in))
	must(t, d.Dispatch(ctx, w.Workflow, "mine", in))
	must(t, w.Site.StartDisguised("main", "p-1"))
	if r := got(find.FindRun(ctx, w.Workflow, "main", "p-1", since))(t); r.Ref != "main" || strings.Contains(r.Title, "typo") {
		t.Errorf("found %+v, want ours", r)
	}
}

func dispatchLost(t *testing.T, w World) {
	ctx := t.Context()
	d, find, since := w.Forge.(forge.Dispatcher), w.Forge.(forge.RunFinder), w.Clock.Now()
	must(t, w.Site.Fail(w.Paths["dispatch"], 1, forgetest.LostAnswer()))
	wantKind(t, d.Dispatch(ctx, w.Workflow, "main", map[string]string{"issue": "7", "proctor_id": "p-1"}), forge.ErrUnavailable)
	if n := w.Started(); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
	got(find.FindRun(ctx, w.Workflow, "main", "p-1", since))(t)
	// Control: sending again does start a second run.
	must(t, d.Dispatch(ctx, w.Workflow, "main", map[string]string{"issue": "7", "proctor_id": "p-1"}))
	if n := w.Started(); n != 2 {
		t.Errorf("%d runs after sending twice: the forge de-duplicates, and this test proves nothing", n)
	}
}

func dispatchLimited(t *testing.T, w World) {
	must(t, w.Site.Fail(w.Paths["dispatch"], 1, forgetest.SecondaryLimit("3")))
	must(t, w.Forge.(forge.Dispatcher).Dispatch(t.Context(), w.Workflow, "main", map[string]string{"issue": "7"}))
	if n := w.Started(); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}
