package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/publish"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// interrupted is a session that finds a round of a machine that was lost, on an open pull request, and its forge.
func interrupted(t *testing.T) (*session, *forgetest.GitHub) {
	t.Helper()
	g, client := hubFor(t, "app/answer.txt", "wrong\n")
	s, tip := sessionOn(t, client, g.GitDir(), "app/answer.txt", "right\n")
	const branch = "proctor/issue-3"
	gitAt(t, g.GitDir(), "", "fetch", "-q", s.store.Dir(), tip+":refs/heads/"+branch)
	pull := g.OpenPull("Answer", branch, base, g.Owner(), false)
	body := evidence.PRBody(evidence.Record{Head: &evidence.Commit{ID: tip}}, 0)
	if _, err := client.UpdatePullRequest(t.Context(), pull, forge.PullRequestEdit{Body: &body}); err != nil {
		t.Fatal(err)
	}
	repo, err := client.Repository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.trigger.Repo.ID = repo.ID
	s.cfg, s.req.forge, s.red = config.Default(), client, evidence.NewRedactor()
	s.status, s.env.Now = &statusKeeper{}, time.Now
	s.trigger.Issue.Number, s.trigger.Repo.DefaultBranch, s.labelEvent = 3, base, 12
	s.rec.Base, s.rec.Trigger.Snapshot = evidence.Commit{ID: tip}, "g1"
	s.saved = checkpoint{
		State: loop.State{Version: loop.StateVersion, Tick: 2, Good: loop.Commit{ID: tip}}, Base: tip, Goal: "g1", Asked: "comment 5", Runs: []string{"r1"},
		Round: &round{Pull: pull, Branch: branch, Asked: "comment 5", Tip: git.ID(tip), Start: git.ID(tip)},
	}
	return s, g
}

// INV-11: a round that is taken up looks at the world again: it works for nobody where its pull request has ended.
func TestARoundIsTakenUpOnlyWhereItIsStillWanted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ends func(*forgetest.GitHub, *session) error
		says string // "": it goes on
	}{
		"control: open": {func(*forgetest.GitHub, *session) error { return nil }, ""},
		"closed":        {func(g *forgetest.GitHub, s *session) error { return g.ClosePull(s.saved.Round.Pull) }, " was closed, so the round on it is dropped"},
		"merged": {func(g *forgetest.GitHub, s *session) error {
			gitAt(t, g.GitDir(), "", "update-ref", "refs/heads/proctor/issue-3", onTop(t, g.GitDir(), base, "more.txt", "more\n"))
			gitAt(t, g.GitDir(), "", "update-ref", "refs/heads/"+base, "refs/heads/proctor/issue-3^")
			return g.MergePull(s.saved.Round.Pull)
		}, " was merged, so the round on it is dropped"},
		"gone": {func(_ *forgetest.GitHub, s *session) error { s.saved.Round.Pull = 999; return nil }, "999 is gone, so the round on it is dropped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, g := interrupted(t)
			if err := c.ends(g, s); err != nil {
				t.Fatal(err)
			}
			err := s.takeUp(t.Context())
			if c.says == "" {
				if err != nil || s.round != s.saved.Round || !s.rec.Trigger.Revise {
					t.Errorf("%+v, %v", s.round, err)
				}
				return
			}
			var e *ended
			if !errors.As(err, &e) || e.terminal != evidence.Refused || !strings.Contains(e.reason, c.says) || !strings.Contains(e.next, "add the label") || s.round != nil {
				t.Fatalf("%v", err)
			}
			// It is saved: the next request begins anew, and the same one hears the same.
			later := &session{store: s.store, remote: s.remote, trigger: s.trigger, rec: s.rec, cfg: s.cfg, req: s.req, status: &statusKeeper{}, env: s.env, labelEvent: 13}
			if err := later.recall(t.Context()); err != nil {
				t.Fatal(err)
			}
			if ok, why := later.resumable(); ok || !strings.Contains(why, "was dropped") {
				t.Errorf("the next request goes on with it: %t, %q", ok, why)
			}
			if err := later.takeUp(t.Context()); err != nil || later.round != nil {
				t.Errorf("the next request: %+v, %v", later.round, err)
			}
			later.labelEvent = 12
			if err := later.takeUp(t.Context()); !errors.As(err, &e) || !strings.Contains(e.reason, c.says) {
				t.Errorf("the same request again: %v", err)
			}
			if err := later.keepFrom(later.saved, later.saved.State); err != nil || later.kept.Dropped != nil {
				t.Errorf("a run that has begun keeps it dropped: %v", err)
			}
		})
	}
	s, g := interrupted(t)
	if err := g.Fail("GET /repos/*/*/pulls/*", 9, forgetest.Fault{Status: 401}); err != nil {
		t.Fatal(err)
	}
	var e *ended
	if err := s.takeUp(t.Context()); err == nil || errors.As(err, &e) || s.saved.Dropped != nil {
		t.Errorf("a forge that fails ends the round: %v", err)
	}
}

// A branch that somebody deleted is made anew by whoever asks for a run; who asks to go on hears that it is gone.
func TestARoundWhoseBranchIsGoneBeginsAnew(t *testing.T) {
	t.Parallel()
	s, g := interrupted(t)
	gitAt(t, g.GitDir(), "", "update-ref", "-d", "refs/heads/proctor/issue-3")
	if err := s.takeUp(t.Context()); err != nil || s.round != nil {
		t.Fatalf("a label: %+v, %v", s.round, err)
	}
	if ok, why := s.resumable(); ok || !strings.Contains(why, "branch proctor/issue-3 of the round on pull request") {
		t.Errorf("it goes on: %t, %q", ok, why)
	}
	for name, tr := range map[string]trigger.Trigger{
		"resume": {Command: &trigger.Command{Name: "resume"}}, "the same fix": {Command: &trigger.Command{Name: "fix"}},
	} {
		s, g := interrupted(t)
		gitAt(t, g.GitDir(), "", "update-ref", "-d", "refs/heads/proctor/issue-3")
		s.saved.Round.Asked, s.trigger.Command = s.request(), tr.Command
		var e *ended
		if err := s.takeUp(t.Context()); !errors.As(err, &e) || e.terminal != evidence.Refused || !strings.Contains(e.reason, "is gone") || !strings.Contains(e.next, "add the label") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// INV-20: where people have put something on the branch meanwhile, an interrupted round is not pushed over it; its own work is kept.
func TestARoundWhoseBranchWasMovedIsRefused(t *testing.T) {
	t.Parallel()
	s, g := interrupted(t)
	if err := s.takeUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.aimRound(t.Context()); err != nil || s.target.Tip != string(s.round.Tip) {
		t.Fatalf("control: %+v, %v", s.target, err)
	}
	theirs := onTop(t, g.GitDir(), "proctor/issue-3", "by-hand.txt", "theirs\n")
	var e *ended
	if err := s.aimRound(t.Context()); !errors.As(err, &e) || e.terminal != evidence.Refused || !strings.Contains(e.reason, "has moved") || !strings.Contains(e.reason, "kept on refs/proctor/3/state") {
		t.Errorf("%v", err)
	}
	s.saved.Pushed = []string{theirs}
	if err := s.aimRound(t.Context()); err != nil || s.target.Tip != theirs {
		t.Errorf("control: what an earlier run has pushed itself: %+v, %v", s.target, err)
	}
}

// A pull request that ends while a round works on it gets no successor: the work is kept, and the ending says so.
func TestARoundIsNotPushedForAPullRequestThatHasEnded(t *testing.T) {
	t.Parallel()
	s, g := interrupted(t)
	s.round, s.proved, s.rec.Kept = s.saved.Round, s.saved.Round.Tip, s.stateRef()
	if err := s.stillWanted(t.Context()); err != nil {
		t.Fatalf("control: %v", err)
	}
	if err := g.ClosePull(s.round.Pull); err != nil {
		t.Fatal(err)
	}
	var f *publish.Failure
	if err := s.stillWanted(t.Context()); !errors.As(err, &f) || !strings.Contains(f.Error(), "was closed while the round went on") || !strings.Contains(f.Error(), "is kept on refs/proctor/3/state") || !strings.Contains(f.Next, "reopen") {
		t.Errorf("%v", err)
	}
	s.round = nil
	if err := s.stillWanted(t.Context()); err != nil {
		t.Errorf("control: a run that is no round opens its own: %v", err)
	}
}

// INV-20: a checkpoint is a file that others may push, so a round's branch and pull request are what the forge says they are.
func TestARoundOfAForgedCheckpointIsRefused(t *testing.T) {
	t.Parallel()
	for name, forged := range map[string]func(*forgetest.GitHub, *session){
		"another branch":  func(_ *forgetest.GitHub, s *session) { s.saved.Round.Branch = "release" },
		"another issue's": func(_ *forgetest.GitHub, s *session) { s.trigger.Issue.Number = 4 },
		"a person's pull request": func(g *forgetest.GitHub, s *session) {
			s.saved.Round.Pull = g.OpenPull("Mine", "proctor/issue-3", base, "maya", false)
		},
		"one from a fork": func(_ *forgetest.GitHub, s *session) { s.trigger.Repo.ID++ },
	} {
		s, g := interrupted(t)
		forged(g, s)
		var e *ended
		if err := s.takeUp(t.Context()); !errors.As(err, &e) || e.terminal != evidence.Refused || !strings.Contains(e.reason, "is not one that a run opened") || s.round != nil || s.saved.Dropped != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, _ := interrupted(t)
	if err := s.takeUp(t.Context()); err != nil || s.round == nil {
		t.Errorf("control: %v", err)
	}
}
