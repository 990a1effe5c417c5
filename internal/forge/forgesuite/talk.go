package forgesuite

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// places are an issue and a pull request with one comment each, and what the forge shows of them.
func places(t *testing.T, w World) map[forge.Place]func() []forgetest.Comment {
	t.Helper()
	w.branch(t, "proctor/issue-1")
	issue, pull := w.Site.OpenIssue("A", "b", "alice"), w.Site.OpenPull("P", "proctor/issue-1", "main", "alice", false)
	must(t, got2(w.Site.Comment(issue, "alice", "/proctor status")))
	must(t, got2(w.Site.CommentOnPull(pull, "alice", "/proctor fix")))
	return map[forge.Place]func() []forgetest.Comment{
		{Number: issue}:              func() []forgetest.Comment { is, _ := w.Site.Issue(issue); return is.Comments },
		{Number: pull, Change: true}: func() []forgetest.Comment { return w.Site.PullComments(pull) },
	}
}

func got2(_ int64, err error) error { return err }

func talk(t *testing.T, w World) {
	ctx, talker := t.Context(), w.Forge.(forge.Talker)
	for at, shown := range places(t, w) {
		asked := shown()[0]
		c := got(talker.CommentAt(ctx, at, asked.ID))(t)
		if c.ID != asked.ID || c.Body != asked.Body || c.Author.Login != "alice" || c.Author.ID == 0 || c.URL == "" {
			t.Errorf("%+v: read %+v", at, c)
		}
		for range 2 {
			must(t, talker.Acknowledge(ctx, at, asked.ID, forge.ReactionSeen))
		}
		a := got(talker.Answer(ctx, at, "nothing runs here"))(t)
		now := shown()
		if len(now) != 2 || now[1].ID != a.ID || now[1].Author != w.Bot || now[1].Body != "nothing runs here" {
			t.Fatalf("%+v: comments are %+v", at, now)
		}
		if d := cmp.Diff([]string{"eyes"}, now[0].Reactions); d != "" {
			t.Errorf("%+v: reactions (-want +got):\n%s", at, d)
		}
		_, err := talker.CommentAt(ctx, at, 99)
		wantKind(t, err, forge.ErrNotFound)
		// A comment vouches only for the place where it stands.
		other := w.Site.OpenIssue("B", "b", "alice")
		_, err = talker.CommentAt(ctx, forge.Place{Number: other}, asked.ID)
		wantKind(t, err, forge.ErrNotFound)
	}
}

func talkLost(t *testing.T, w World) {
	for at, shown := range places(t, w) {
		name := "create-comment"
		if at.Change {
			name = "answer-pull"
		}
		must(t, w.Site.Fail(w.Paths[name], 1, forgetest.LostAnswer()))
		got(w.Forge.(forge.Talker).Answer(t.Context(), at, "once"))(t)
		if n := len(shown()); n != 2 {
			t.Errorf("%+v: %d comments, want the asker's and one answer", at, n)
		}
	}
}
