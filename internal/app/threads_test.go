package app

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/prompt"
	"github.com/proctor-ci/proctor/internal/publish/publishtest"
)

// threadKeeper keeps what is said in threads, and can fail at it.
type threadKeeper struct {
	*reviewed
	asked []string
	fails error
}

func (f *threadKeeper) AnswerThread(_ context.Context, _ int, t forge.Thread, body string) error {
	f.asked = append(f.asked, t.ID)
	if f.fails != nil {
		return f.fails
	}
	i := slices.IndexFunc(f.threads, func(o forge.Thread) bool { return o.ID == t.ID })
	f.threads[i].Comments = append(f.threads[i].Comments, forge.Comment{Author: *f.Me, Body: body})
	return nil
}

// settledRound is a session behind the proof of a round that has settled a conflict in path and done nothing else, with two threads.
func settledRound(t *testing.T, path string) (*session, *threadKeeper) {
	t.Helper()
	s := staleAt(t, path)
	base := s.store.Base()
	r := &round{Pull: 7, Branch: "proctor/issue-3", Tip: s.left(t, map[string]git.Entry{path: s.blob(t, "one\nours\nthree\n"), "brought.txt": s.blob(t, "before\n")})}
	r.Start = r.Tip
	if err := s.joinBase(t.Context(), r); err != nil || r.marked == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	// The base brings a file of its own too.
	marked := s.varied(t, r.marked, map[string]git.Entry{"brought.txt": s.blob(t, "the base's\n")})
	tree, err := s.store.Tree(t.Context(), marked)
	if err != nil {
		t.Fatal(err)
	}
	if r.marked, err = s.store.Join(tree, r.Tip, base, git.Meta{Run: "r1"}); err != nil {
		t.Fatal(err)
	}
	if tree, err = s.store.Tree(t.Context(), s.varied(t, r.marked, map[string]git.Entry{path: s.blob(t, "one\nboth\nthree\n")})); err != nil {
		t.Fatal(err)
	}
	if s.proved, err = s.store.Join(tree, r.Tip, base, git.Meta{Run: "r1"}); err != nil {
		t.Fatal(err)
	}
	f := &threadKeeper{reviewed: &reviewed{Forge: publishtest.New()}}
	for id, path := range map[string]string{"a": path, "b": "brought.txt"} {
		f.threads = append(f.threads, forge.Thread{ID: id, Path: path, Comments: []forge.Comment{said(maya, "Do this.")}})
		r.Wishes = append(r.Wishes, wish{Wish: prompt.Wish{From: "thread " + id, Path: path, Text: "Do this."}, Thread: id, Comment: maya.ID})
	}
	s.round, s.req.forge = r, f
	return s, f
}

// A machine that is lost among the answers leaves a successor that says each thing once, and claims no work that was the base's.
func TestEachThreadIsAnsweredOnceWithWhatTheRoundDid(t *testing.T) {
	t.Parallel()
	s, f := settledRound(t, "app/answer.txt")
	lost := &threadKeeper{reviewed: f.reviewed}
	whole := s.round.Wishes
	s.round.Wishes, s.req.forge = whole[:1], lost
	s.answerThreads(t.Context())
	s.round.Wishes, s.req.forge = whole, f
	s.answerThreads(t.Context())
	if len(lost.asked) != 1 || !slices.Equal(f.asked, []string{whole[1].Thread}) {
		t.Errorf("first %q was answered, then %q", lost.asked, f.asked)
	}
	for _, th := range f.threads {
		want := map[string]string{"a": "Worked on in " + string(s.proved), "b": "leaves this file as it was"}[th.ID]
		if len(th.Comments) != 2 || !strings.Contains(th.Comments[1].Body, want) {
			t.Errorf("thread %s holds %+v, want %q", th.ID, th.Comments[1:], want)
		}
	}
	// The control: another commit is another answer.
	id, err := s.store.Join(s.store.BaseTree(), s.round.Tip, s.store.Base(), git.Meta{Run: "r2"})
	if err != nil {
		t.Fatal(err)
	}
	s.proved, f.asked = id, nil
	if s.answerThreads(t.Context()); len(f.asked) != 2 || len(s.rec.Notes) != 1 { // the conflict's own
		t.Errorf("another commit: %q was answered, notes %q", f.asked, s.rec.Notes)
	}
}

// What is published stays published where the forge takes no answers, and it is not asked for each thread anew.
func TestAForgeThatTakesNoAnswersIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind error
		want int
	}{"unavailable": {forge.ErrUnavailable, 1}, "control: this one is gone": {forge.ErrNotFound, 2}} {
		s, f := settledRound(t, "app/answer.txt")
		f.fails = publishtest.Error("answer a thread", c.kind, 502, "", "")
		s.answerThreads(t.Context())
		if notes := strings.Join(s.rec.Notes, "\n"); len(f.asked) != c.want || !strings.Contains(notes, "could not be answered") || strings.Contains(notes, "behind it") != (c.want == 1) {
			t.Errorf("%s: %q was asked, notes %s", name, f.asked, notes)
		}
	}
}
