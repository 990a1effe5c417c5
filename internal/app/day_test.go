package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/money"
)

// daySession is a session with a store and a remote of its own, both empty but for one commit.
func daySession(t *testing.T) *session {
	t.Helper()
	dir := t.TempDir()
	remote, checkout := filepath.Join(dir, "remote.git"), filepath.Join(dir, "checkout")
	for _, args := range [][]string{
		{"init", "-q", "--bare", remote}, {"init", "-q", "-b", "main", checkout},
		{"-C", checkout, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "base"},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	base, err := exec.Command("git", "-C", checkout, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	s := &session{id: "this-run", remote: git.Remote{URL: "file://" + remote}}
	s.env.Now = func() time.Time { return time.Date(2026, 3, 4, 23, 59, 0, 0, time.UTC) }
	s.env.Sleep = func(context.Context, time.Duration) error { return nil }
	s.cfg.Stops.MaxCost, s.cfg.Budget.PerIssue, s.cfg.Budget.PerDay, s.cfg.Budget.PerActorDay = money.Dollar, money.Max, 3*money.Dollar/2, money.Max
	s.trigger.Actor.ID, s.trigger.Issue.Number = 7, 1
	s.req.forge = struct{ forge.Forge }{}
	g, err := git.New(git.Options{Now: s.env.Now, Path: os.Getenv("PATH")})
	if err == nil {
		s.store, err = g.OpenStore(t.Context(), git.StoreOptions{Checkout: checkout, Dir: filepath.Join(dir, "store"), Base: strings.TrimSpace(string(base))})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.store.Close)
	return s
}

func (s *session) ledger(t *testing.T) day {
	t.Helper()
	note, err := s.store.ReadNote(t.Context(), s.remote, dayRef, dayFile)
	if err != nil {
		t.Fatal(err)
	}
	var d day
	if err := json.Unmarshal(note.Content, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// A reservation that was booked though nobody heard so is this run's own at the next try, not somebody else's.
func TestAReservationOutlastsALostConnection(t *testing.T) {
	t.Parallel()
	s := daySession(t)
	if err := s.reserve(t.Context(), loop.State{}); err != nil || s.day.granted != money.Dollar {
		t.Fatalf("granted %s: %v", s.day.granted, err)
	}
	there := s.remote.URL
	s.remote.URL, s.day = there+"-is-away", allowance{}
	slept := 0
	s.env.Sleep = func(context.Context, time.Duration) error { slept++; s.remote.URL = there; return nil }
	if err := s.reserve(t.Context(), loop.State{}); err != nil || slept != 1 {
		t.Fatalf("after %d waits: %v", slept, err)
	}
	if d := s.ledger(t); !s.day.bounds || s.day.granted != money.Dollar || len(d.Runs) != 1 || d.Runs[s.id].USD != money.Dollar {
		t.Errorf("granted %s in %+v", s.day.granted, d)
	}
	// Control: another run is left what this one did not take.
	s.id, s.trigger.Issue.Number = "another-run", 2
	if err := s.reserve(t.Context(), loop.State{}); err != nil || s.day.granted != money.Dollar/2 {
		t.Errorf("control: granted %s: %v", s.day.granted, err)
	}
	s.remote.URL = there + "-is-away"
	s.env.Sleep = func(context.Context, time.Duration) error { return errors.New("no time is left") }
	if err := s.reserve(t.Context(), loop.State{}); err == nil {
		t.Error("control: a remote that stays away grants money")
	}
}

// A machine that is lost keeps no money: the run that takes its work up again knows what it spent.
func TestALostRunsReservationIsSettledByTheNextOfItsIssue(t *testing.T) {
	t.Parallel()
	s := daySession(t)
	// Each of these machines is lost: the first after it had spent, the second before its first checkpoint.
	for i, c := range []struct {
		before, spent money.USD // of the issue, as the checkpoint has it
		granted       money.USD
	}{{0, 0, money.Dollar}, {money.Dollar / 4, money.Dollar / 4, money.Dollar}, {money.Dollar / 4, money.Dollar / 4, money.Dollar}} {
		s.id, s.day = fmt.Sprint("attempt ", i), allowance{}
		if err := s.reserve(t.Context(), loop.State{IssueBefore: c.before, Spent: c.spent}); err != nil {
			t.Fatal(err)
		}
		if want := money.Dollar - c.spent; s.day.granted != want {
			t.Errorf("attempt %d is granted %s, want %s: %+v", i, s.day.granted, want, s.ledger(t))
		}
	}
	if got, want := s.ledger(t).Runs["attempt 0"], (dayRun{Actor: 7, USD: money.Dollar / 2, Key: "1"}); got != want {
		t.Errorf("the lost run is settled as %+v, want %+v", got, want)
	}
	// Control: another issue's run may be alive.
	s.id, s.trigger.Issue.Number, s.day, s.saved = "another-run", 2, allowance{}, checkpoint{}
	if err := s.reserve(t.Context(), loop.State{}); err != nil || s.day.granted != money.Dollar/4 {
		t.Errorf("control: granted %s beside %+v: %v", s.day.granted, s.ledger(t), err)
	}
}

// What a checkpoint does not count, it does not settle.
func TestOnlyTheCheckpointThatFollowsALostRunSettlesIt(t *testing.T) {
	t.Parallel()
	lost := dayRun{USD: 9 * money.Dollar, Open: true, Key: "1", From: 2 * money.Dollar, After: "first"}
	for _, c := range []struct {
		name  string
		key   string
		runs  []string
		total money.USD
		want  money.USD // 9 dollars: still reserved
	}{
		{"it saved its work", "1", []string{"first", "lost"}, 5 * money.Dollar, 3 * money.Dollar},
		{"it saved nothing", "1", []string{"first"}, 2 * money.Dollar, 0},
		{"it went over by a call", "1", []string{"first", "lost"}, 12 * money.Dollar, 10 * money.Dollar},
		{"of another issue", "2", []string{"first", "lost"}, 5 * money.Dollar, 9 * money.Dollar},
		{"the checkpoint began anew", "1", []string{"later"}, 3 * money.Dollar, 9 * money.Dollar},
		{"there is none", "1", nil, 3 * money.Dollar, 9 * money.Dollar},
		{"the checkpoint counts less", "1", []string{"first"}, money.Dollar, 9 * money.Dollar},
	} {
		d := day{Runs: map[string]dayRun{"lost": lost}}
		d.settleLost(c.key, c.runs, c.total)
		if got := d.Runs["lost"]; got.USD != c.want || got.Open != (c.want == lost.USD) {
			t.Errorf("%s: %+v, want %s", c.name, got, c.want)
		}
	}
	// A checkpoint that is there and cannot be used settles nothing, and whoever finds it follows nobody.
	s := daySession(t)
	if err := s.reserve(t.Context(), loop.State{}); err != nil {
		t.Fatal(err)
	}
	s.id, s.day, s.kept.expect = "after-the-damage", allowance{}, "0123"
	if err := s.reserve(t.Context(), loop.State{}); err != nil {
		t.Fatal(err)
	}
	if d := s.ledger(t); !d.Runs["this-run"].Open || d.Runs[s.id].After != s.id || s.day.granted != money.Dollar/2 {
		t.Errorf("granted %s in %+v", s.day.granted, d)
	}
}

// A machine whose clock is behind at midnight finds the next day's ledger, and adds to it.
func TestTheDaysLedgerNeverGoesBack(t *testing.T) {
	t.Parallel()
	s := daySession(t)
	behind := s.env.Now()
	s.env.Now = func() time.Time { return behind.Add(2 * time.Minute) }
	if err := s.reserve(t.Context(), loop.State{}); err != nil {
		t.Fatal(err)
	}
	s.env.Now = func() time.Time { return behind }
	s.id, s.trigger.Issue.Number = "a-run-behind", 2
	if err := s.reserve(t.Context(), loop.State{}); err != nil {
		t.Fatal(err)
	}
	if d := s.ledger(t); s.day.granted != money.Dollar/2 || d.Date != "2026-03-05" || len(d.Runs) != 2 {
		t.Errorf("granted %s in %+v", s.day.granted, d)
	}
	s.settleDay(t.Context())
	if d := s.ledger(t); d.Date != "2026-03-05" || len(d.Runs) != 2 || d.Runs[s.id].Open {
		t.Errorf("settled as %+v", d)
	}
	// Control: a clock that is days ahead holds nobody's ledger for ever.
	raw, err := json.Marshal(day{Format: dayFormat, Date: "2026-03-06", Runs: map[string]dayRun{"x": {USD: money.Dollar}}})
	if err != nil {
		t.Fatal(err)
	}
	if d, _, err := decodeDay(git.Note{ID: "x", Content: raw}, s.today()); err != nil || d.Date != "2026-03-04" || len(d.Runs) != 0 {
		t.Errorf("control: %+v %v", d, err)
	}
}
