package forgesuite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

func cases() []testCase {
	return []testCase{
		{"the repository tells its names, branch and addresses", repository},
		{"an issue reads as it is now", issueNow},
		{"an issue that does not exist is not found, with a next step", issueMissing},
		{"a transferred issue is moved, not silently another repository's", issueMoved},
		{"roles come from the permission API, and no answer means no", rolesTable},
		{"the newest addition of a label is found in a long history", labelEvent},
		{"labels are created, added and removed, and repeating it is no error", setLabels},
		{"comments come whole, oldest first, over several pages", manyComments},
		{"a comment is created, edited in place and acknowledged", commentRound},
		{"a command's comment is read, acknowledged and answered where it stands", talk},
		{"a lost answer to an answer does not say it twice", talkLost},
		{"review threads come whole and are answered where they stand", threads},
		{"INV-40 outsiders push no review thread out of sight", crowdedThreads},
		{"INV-40 outsiders hide nothing within a review thread", crowdedThread},
		{"a lost answer to a thread does not say it twice", threadLost},
		{"reviews are read with their state and author", reviews},
		{"failed jobs of a commit are told with the end of their logs", failedJobs},
		{"jobs of forks and other branches are not ours", foreignJobs},
		{"a check says of a commit how its run ended", checks},
		{"a lost answer to a check does not make two", checkLost},
		{"INV-15 a commit is made of what was asked for, and signed where the forge signs", makeCommit},
		{"a branch is its commit, however its name is spelled", branches},
		{"the token's own account is told", self},
		{"a pull request opens as a draft and is found by its head", openDraft},
		{"a pull request is read by its number, merged or not", readPull},
		{"what was opened for a look is taken back, and nothing of anybody's", withdraw},
		{"a branch is deleted once, whatever becomes of the answer", withdrawLost},
		{"whether CI can be started is told without starting any", startable},
		{"settings that a token may not see are unseen", settings},
		{"INV-50 a second pull request from the same head is the first one", openTwice},
		{"INV-50 editing a pull request keeps it a draft", editKeepsDraft},
		{"a closed, merged or forked pull request is not the one", notTheOne},
		{"people are asked and assigned, and strangers are named", people},
		{"bodies over the forge's limit are refused before they are sent", limits},
		{"a lost answer to a comment does not say it twice", commentLost},
		{"a 502 after the pull request exists does not open a second", pullLost},
		{"a lost answer to a read is read again", readLost},
		{"5xx is tried a bounded number of times and then told", badGateway},
		{"a secondary limit is waited out as the server says", secondaryLimit},
		{"a secondary limit without a hint doubles from a minute", secondaryNoHint},
		{"a limit longer than our patience is told with its time", longLimit},
		{"a cancelled call ends without another request", cancelled},
		{"a run is dispatched once and found by its id", dispatchRun},
		{"a run that only carries the id is not ours", dispatchDisguised},
		{"a dispatch whose answer was lost is not sent again", dispatchLost},
		{"a dispatch that was rate limited is sent again", dispatchLimited},
	}
}

func repository(t *testing.T, w World) {
	r := got(w.Forge.Repository(t.Context()))(t)
	if r.DefaultBranch != "main" || r.ID == 0 || r.Owner == "" || r.Name != "shop" || r.Archived {
		t.Errorf("repository = %+v", r)
	}
	remote := w.Forge.Remote()
	if !strings.HasSuffix(remote.URL, "/"+r.Owner+"/"+r.Name+".git") || strings.Contains(remote.URL, "@") || remote.Token == "" {
		t.Errorf("remote = %q by %q: want the repository's address without credentials, and a token", remote.URL, remote.Username)
	}
	if r.CloneURL != remote.URL {
		t.Errorf("clone URL %q, remote %q: want the same", r.CloneURL, remote.URL)
	}
}

func issueNow(t *testing.T, w World) {
	n := w.Site.OpenIssue("Totals are wrong", "Line 1\r\nLine 2 🙂\n", "alice")
	must(t, w.Site.LockIssue(n))
	must(t, w.Site.CloseIssue(n))
	is := got(w.Forge.Issue(t.Context(), n))(t)
	want := forge.Issue{Number: n, Title: "Totals are wrong", Body: "Line 1\r\nLine 2 🙂\n", State: "closed", Locked: true}
	if is.Author.Login != "alice" || is.ID == int64(n) || is.URL == "" || is.UpdatedAt.IsZero() {
		t.Errorf("issue = %+v", is)
	}
	is.ID, is.Author, is.URL, is.UpdatedAt, is.Labels = 0, forge.User{}, "", time.Time{}, nil
	if d := cmp.Diff(want, is); d != "" {
		t.Errorf("issue (-want +got):\n%s", d)
	}
}

func issueMissing(t *testing.T, w World) {
	_, err := w.Forge.Issue(t.Context(), 404)
	wantKind(t, err, forge.ErrNotFound)
}

// wantKind also asks that every refusal names an operation and a next step (INV-51).
func wantKind(t *testing.T, err, kind error) {
	t.Helper()
	var fe *forge.Error
	if !errors.Is(err, kind) || !errors.As(err, &fe) {
		t.Fatalf("error = %v, want a *forge.Error of kind %v", err, kind)
	}
	if fe.Op == "" || fe.Next == "" && fe.Said == "" {
		t.Errorf("error %+v has no operation, or nothing a person can use", fe)
	}
}

func issueMoved(t *testing.T, w World) {
	n := w.Site.OpenIssue("A", "b", "alice")
	got(w.Forge.Issue(t.Context(), n))(t)
	must(t, w.Site.TransferIssue(n, "elsewhere/other"))
	_, err := w.Forge.Issue(t.Context(), n)
	wantKind(t, err, forge.ErrMoved)
}

func rolesTable(t *testing.T, w World) {
	for want, word := range w.Roles {
		login := "user-" + string(want)
		w.Site.AddUser(login, word)
		if r := got(w.Forge.Role(t.Context(), login))(t); r != want {
			t.Errorf("role of %s (%s) = %q, want %q", login, word, r, want)
		}
	}
	for _, login := range []string{"nobody-of-that-name", "..", "a/b"} {
		if r := got(w.Forge.Role(t.Context(), login))(t); r != forge.RoleNone {
			t.Errorf("role of %q = %q, want none", login, r)
		}
	}
}

func labelEvent(t *testing.T, w World) {
	n := w.Site.OpenIssue("A", "b", "alice")
	got(w.Site.LabelIssue(n, "proctor", "alice"))(t)
	must(t, w.Site.UnlabelIssue(n, "proctor", "bob"))
	got(w.Site.LabelIssue(n, "proctor", "carol"))(t)
	for i := range 230 { // three pages of history after it
		label := fmt.Sprintf("noise-%d", i%5)
		if i%10 < 5 {
			got(w.Site.LabelIssue(n, label, "dave"))(t)
		} else {
			must(t, w.Site.UnlabelIssue(n, label, "dave"))
		}
	}
	e := got(w.Forge.LabelEvent(t.Context(), n, "proctor"))(t)
	if e.Actor.Login != "carol" || e.Actor.ID == 0 || e.ID == 0 || e.At.IsZero() {
		t.Errorf("label event = %+v, want carol's", e)
	}
	_, err := w.Forge.LabelEvent(t.Context(), n, "never-added")
	wantKind(t, err, forge.ErrNotFound)
}

func setLabels(t *testing.T, w World) {
	ctx := t.Context()
	n := w.Site.OpenIssue("A", "b", "alice")
	got(w.Site.LabelIssue(n, "proctor", "alice"))(t)
	for range 2 {
		must(t, w.Forge.SetLabels(ctx, n, []string{"proctor:running", "needs a / slash?"}, []string{"proctor", "never-there"}))
	}
	is := got(w.Forge.Issue(ctx, n))(t)
	if d := cmp.Diff([]string{"proctor:running", "needs a / slash?"}, is.Labels); d != "" {
		t.Errorf("labels (-want +got):\n%s", d)
	}
	must(t, w.Forge.SetLabels(ctx, n, nil, []string{"needs a / slash?"}))
	wantKind(t, w.Forge.SetLabels(ctx, 404, []string{"x"}, nil), forge.ErrNotFound)
}

func manyComments(t *testing.T, w World) {
	n := w.Site.OpenIssue("A", "b", "alice")
	got(w.Site.LabelIssue(n, "proctor", "alice"))(t) // GitLab writes a system note of it
	const many = 215
	for i := range many {
		got(w.Site.Comment(n, "alice", fmt.Sprint("comment ", i)))(t)
	}
	all := got(w.Forge.Comments(t.Context(), n))(t)
	if len(all) != many {
		t.Fatalf("%d comments, want %d", len(all), many)
	}
	for i, m := range all {
		if m.Body != fmt.Sprint("comment ", i) || m.Author.Login != "alice" || m.ID == 0 {
			t.Fatalf("comment %d = %+v", i, m)
		}
	}
}

func commentRound(t *testing.T, w World) {
	ctx := t.Context()
	n := w.Site.OpenIssue("A", "b", "alice")
	m := got(w.Forge.CreateComment(ctx, n, "running…"))(t)
	must(t, w.Forge.UpdateComment(ctx, n, m.ID, "done"))
	react := w.Forge.(forge.Reactor)
	for range 2 {
		must(t, react.React(ctx, n, m.ID, forge.ReactionSeen))
		must(t, react.React(ctx, n, 0, forge.ReactionAccepted))
	}
	is, _ := w.Site.Issue(n)
	if len(is.Comments) != 1 || is.Comments[0].Body != "done" || is.Comments[0].Author != w.Bot || m.Author.Login != w.Bot {
		t.Errorf("comments = %+v, created %+v", is.Comments, m)
	}
	if d := cmp.Diff([]string{"eyes"}, is.Comments[0].Reactions); d != "" {
		t.Errorf("reactions of the comment (-want +got):\n%s", d)
	}
	wantKind(t, w.Forge.UpdateComment(ctx, n, 99, "x"), forge.ErrNotFound)
}

func branches(t *testing.T, w World) {
	for _, name := range []string{"plain", "proctor/issue-1", "#8982-bugfix", "feat(x)-y", "a,b", "a+b", "späße"} { // E58
		id := w.branch(t, name)
		if b := got(w.Forge.Branch(t.Context(), name))(t); b != id {
			t.Errorf("branch %q = %s, want %s", name, b, id)
		}
	}
	_, err := w.Forge.Branch(t.Context(), "proctor/none")
	wantKind(t, err, forge.ErrNotFound)
}

func self(t *testing.T, w World) {
	u := got(w.Forge.Self(t.Context()))(t)
	if u.Login != w.Bot || u.ID == 0 {
		t.Errorf("self = %+v, want %s", u, w.Bot)
	}
}

func cancelled(t *testing.T, w World) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.Forge.Repository(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
	if n := w.Site.Count("**"); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func readLost(t *testing.T, w World) {
	n := w.Site.OpenIssue("A", "b", "alice")
	must(t, w.Site.Fail(w.Paths["issue"], 2, forgetest.LostAnswer()))
	if is := got(w.Forge.Issue(t.Context(), n))(t); is.Title != "A" {
		t.Errorf("issue = %+v", is)
	}
}
