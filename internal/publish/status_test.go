package publish_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/publish"
	"github.com/proctor-ci/proctor/internal/publish/publishtest"
)

type clock struct{ t time.Time }

func (c *clock) now() time.Time          { return c.t }
func (c *clock) forward(d time.Duration) { c.t = c.t.Add(d) }
func newClock() *clock                   { return &clock{time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)} }
func at(stage string) evidence.Progress  { return evidence.Progress{Run: "run-1", Now: stage} }

func TestTheStatusCommentIsMadeOnceAndEditedInPlace(t *testing.T) {
	t.Parallel()
	f, c := publishtest.New(), newClock()
	s := publish.NewStatus(f, 42, c.now, nil)
	for _, stage := range []string{"one", "two", "three"} {
		if err := s.Show(t.Context(), at(stage)); err != nil {
			t.Fatal(err)
		}
		c.forward(publish.MinInterval)
	}
	if n := f.Notes[42]; len(n) != 1 || !strings.Contains(n[0].Body, "three") || f.Count("UpdateComment") != 2 {
		t.Errorf("%d comments, %d edits: %v", len(n), f.Count("UpdateComment"), n)
	}
	// The next run finds it again.
	if err := publish.NewStatus(f, 42, c.now, nil).Finish(t.Context(), proved(headID)); err != nil {
		t.Fatal(err)
	}
	if n := f.Notes[42]; len(n) != 1 || !strings.Contains(n[0].Body, "Proved") {
		t.Errorf("%d comments: %v", len(n), n)
	}
}

func TestTheStatusCommentIsEditedAtMostEveryFiveSeconds(t *testing.T) {
	t.Parallel()
	f, c := publishtest.New(), newClock()
	s := publish.NewStatus(f, 42, c.now, nil)
	edits := func() int { return f.Count("CreateComment") + f.Count("UpdateComment") }
	for i := range 100 { // ten seconds of events
		if err := s.Show(t.Context(), at(strings.Repeat("x", i+1))); err != nil {
			t.Fatal(err)
		}
		c.forward(100 * time.Millisecond)
	}
	if edits() != 2 {
		t.Errorf("%d edits in 10 s, want 2", edits())
	}
	c.forward(time.Minute)
	s.Show(t.Context(), at("same"))
	c.forward(time.Minute)
	s.Show(t.Context(), at("same"))
	if edits() != 3 {
		t.Errorf("%d edits after the same words twice, want 3", edits())
	}
	// The final word does not wait, nor does it need a context that lives.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := proved(headID)
	r.Finish(evidence.Cancelled, "the job was cancelled", "")
	if err := s.Finish(ctx, r); err != nil {
		t.Fatal(err)
	}
	if body := f.Notes[42][0].Body; !strings.Contains(body, "Cancelled") {
		t.Errorf("INV-49: last word: %s", body)
	}
}

func TestAForgedMarkerIsNotOurComment(t *testing.T) {
	t.Parallel()
	user := forge.User{Login: "mallory", ID: 5}
	bot := forge.User{Login: "other[bot]", ID: 6, Bot: true}
	for name, c := range map[string]struct {
		me    *forge.User
		by    forge.User
		body  string
		reuse bool
	}{
		"a person's":               {&forge.User{ID: 99, Bot: true}, user, evidence.StatusMarker + "\nall done, merge me", false},
		"another bot's":            {&forge.User{ID: 99, Bot: true}, bot, evidence.StatusMarker + "\nx", false},
		"a person's, token blind":  {nil, user, evidence.StatusMarker + "\nx", false},
		"ours, without the marker": {&forge.User{ID: 99, Bot: true}, forge.User{ID: 99, Bot: true}, "quoting " + evidence.StatusMarker, false},
		"ours (control)":           {&forge.User{ID: 99, Bot: true}, forge.User{ID: 99, Bot: true}, evidence.StatusMarker + "\nx", true},
		"ours, token blind":        {nil, forge.User{Login: "github-actions[bot]", ID: 41898282, Bot: true}, evidence.StatusMarker, true},
	} {
		t.Run("INV-52 "+name, func(t *testing.T) {
			t.Parallel()
			f := publishtest.New()
			f.Me = c.me
			f.Notes[42] = []forge.Comment{{ID: 1, Body: c.body, Author: c.by}}
			if err := publish.NewStatus(f, 42, newClock().now, nil).Show(t.Context(), at("work")); err != nil {
				t.Fatal(err)
			}
			if untouched := f.Notes[42][0].Body == c.body; untouched == c.reuse || len(f.Notes[42]) == 1 != c.reuse {
				t.Errorf("untouched %v, %d comments", untouched, len(f.Notes[42]))
			}
		})
	}
}

func TestTroubleWithTheStatusCommentIsToldAndNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	f, c := publishtest.New(), newClock()
	broken := true
	f.Before = func(op string) error {
		if op == "CreateComment" && broken {
			return publishtest.Error("create comment", forge.ErrForbidden, 403, "issue is locked; canary-secret-1", "")
		}
		return nil
	}
	s := publish.NewStatus(f, 42, c.now, evidence.NewRedactor("canary-secret-1"))
	err := s.Show(t.Context(), at("one"))
	if !errors.Is(err, forge.ErrForbidden) || strings.Contains(err.Error(), "canary-secret-1") {
		t.Errorf("INV-34: %v", err)
	}
	c.forward(publish.MinInterval)
	if err := s.Show(t.Context(), at("two")); err != nil || f.Count("CreateComment") != 1 {
		t.Errorf("tried again at once: %v", err)
	}
	broken = false
	if err := s.Finish(t.Context(), proved(headID)); err != nil || len(f.Notes[42]) != 1 {
		t.Errorf("final word: %v", err)
	}
}

func TestALostAnswerMakesNoSecondComment(t *testing.T) {
	t.Parallel()
	f, c := publishtest.New(), newClock()
	f.Lose = func(op string) bool { return op == "CreateComment" }
	s := publish.NewStatus(f, 42, c.now, nil)
	if err := s.Show(t.Context(), at("one")); !errors.Is(err, forge.ErrUnavailable) {
		t.Fatal(err)
	}
	if err := s.Finish(t.Context(), proved(headID)); err != nil || len(f.Notes[42]) != 1 {
		t.Errorf("%v, %d comments", err, len(f.Notes[42]))
	}
}

func TestADeletedCommentIsMadeAnew(t *testing.T) {
	t.Parallel()
	f, c := publishtest.New(), newClock()
	s := publish.NewStatus(f, 42, c.now, nil)
	if err := s.Show(t.Context(), at("one")); err != nil {
		t.Fatal(err)
	}
	f.Notes[42] = nil
	if err := s.Finish(t.Context(), proved(headID)); err != nil || len(f.Notes[42]) != 1 {
		t.Errorf("INV-49: %v, %d comments", err, len(f.Notes[42]))
	}
}

// An earlier run's account may have been another, as with tokens that GitLab's projects lend: its comment can be seen and not edited.
func TestACommentThatMayNotBeEditedIsFollowedByOneThatMay(t *testing.T) {
	t.Parallel()
	f, c := publishtest.New(), newClock()
	if err := publish.NewStatus(f, 42, c.now, nil).Show(t.Context(), at("one")); err != nil {
		t.Fatal(err)
	}
	f.Before = func(op string) error {
		if op == "UpdateComment" && len(f.Notes[42]) == 1 {
			return publishtest.Error("edit comment", forge.ErrForbidden, 403, "not the author", "")
		}
		return nil
	}
	s := publish.NewStatus(f, 42, c.now, nil)
	for _, stage := range []string{"two", "three"} {
		if err := s.Show(t.Context(), at(stage)); err != nil {
			t.Fatal(err)
		}
		c.forward(publish.MinInterval)
	}
	if err := publish.NewStatus(f, 42, c.now, nil).Finish(t.Context(), proved(headID)); err != nil {
		t.Fatal(err)
	}
	n := f.Notes[42]
	if len(n) != 2 || !strings.Contains(n[0].Body, "one") || !strings.Contains(n[1].Body, "Proved") {
		t.Errorf("INV-49: %d comments: %v", len(n), n)
	}
}

func TestARunWithoutAnIssueHasNoStatusAndNoLabels(t *testing.T) {
	t.Parallel()
	f := publishtest.New()
	s := publish.NewStatus(f, 0, newClock().now, nil)
	if s.Show(t.Context(), at("x")) != nil || s.Finish(t.Context(), proved(headID)) != nil ||
		publish.SetLabels(t.Context(), f, 0, []string{"a"}, nil) != nil || len(f.Calls) != 0 {
		t.Errorf("calls: %v", f.Calls)
	}
}

func TestLabelsMoveTheIssuesState(t *testing.T) {
	t.Parallel()
	f := publishtest.New()
	f.Labels[42] = []string{"bug", "proctor"}
	if err := publish.SetLabels(t.Context(), f, 42, []string{"proctor:running"}, []string{"proctor"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(f.Labels[42], " "); got != "bug proctor:running" {
		t.Errorf("labels: %s", got)
	}
}
