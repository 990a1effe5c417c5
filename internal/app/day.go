package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/policy"
)

// The ledger of a day lies in the repository itself, so that it binds every door and needs no server. Only its newest day is
// kept.
const (
	dayRef    = "refs/proctor/spend"
	dayFile   = "day.json"
	dayFormat = "proctor-day"
	daySwaps  = 20 // runs that begin at the same moment
)

// day is the ledger: one entry a run, what it reserved and then what it was.
type day struct {
	Format string            `json:"format"`
	Date   string            `json:"date"` // UTC
	Runs   map[string]dayRun `json:"runs"`
}

type dayRun struct {
	Actor int64     `json:"actor"`
	USD   money.USD `json:"usd"`
	Open  bool      `json:"open,omitempty"`  // still a reservation
	Key   string    `json:"key,omitempty"`   // what the run worked on, as its refs name it
	From  money.USD `json:"from,omitempty"`  // spent on that before the run
	After string    `json:"after,omitempty"` // the first run of the checkpoint that it found; its own id where that could not be used
}

// settleLost writes down what lost runs of key spent in the place of what they had reserved. Only the holder of key's lease may
// call it: nobody else works on it, and its checkpoint, of which total is the sum and runs are the authors, counts what was held
// too. A run that this checkpoint does not follow, because its own was damaged, keeps its reservation.
func (d day) settleLost(key string, runs []string, total money.USD) {
	for id, r := range d.Runs {
		follows := slices.Contains(runs, id) || r.After == oldest(runs)
		if r.Open && r.Key == key && follows && total >= r.From {
			r.USD, r.Open = total-r.From, false
			d.Runs[id] = r
		}
	}
}

// oldest is the first run of a checkpoint, "" where there is none.
func oldest(runs []string) string {
	if len(runs) == 0 {
		return ""
	}
	return runs[0]
}

// allowance is what the day leaves this run. The zero value leaves everything.
type allowance struct {
	bounds  bool
	granted money.USD
	cut     string
	date    string
	note    git.Note
}

// distrusts says that there is a checkpoint and it cannot be used, so that what it counts is not known.
func (s *session) distrusts() bool { return s.saved.State.Version == 0 && s.kept.expect != "" }

func (s *session) today() string { return s.env.Now().UTC().Format(time.DateOnly) }

// reserve books what this run may spend at most, before it spends. A run that cannot spend is no matter of
// the ledger's.
func (s *session) reserve(ctx context.Context, st loop.State) error {
	if s.req.forge == nil || s.req.dryRun {
		return nil
	}
	limit, _ := s.ceiling(st)
	if !s.writes() {
		return s.lookAtDay(ctx, limit-st.Spent)
	}
	return s.persist(ctx, func(ctx context.Context) error {
		return s.reserveOf(ctx, limit-st.Spent, st.IssueBefore.Add(st.Spent))
	})
}

// lookAtDay bounds a run that may write nothing by what the ledger leaves. Nobody sees what it takes until another job has booked it, so that
// runs on several issues that begin at once are each left the same.
func (s *session) lookAtDay(ctx context.Context, wanted money.USD) error {
	s.day = allowance{date: s.today()}
	d, note, err := s.readDay(ctx)
	if err != nil {
		return err
	}
	s.day.date, s.day.note, s.day.bounds = d.Date, note, true
	s.day.granted, s.day.cut = policy.Grant(wanted, d.sums(s.trigger.Actor.ID), policy.Allowances{PerDay: s.cfg.Budget.PerDay, PerActorDay: s.cfg.Budget.PerActorDay})
	return nil
}

// reserveOf books as much of what is wanted as the day has, where spent went into the issue before. What it booked before,
// and never heard of, is replaced.
func (s *session) reserveOf(ctx context.Context, wanted, spent money.USD) error {
	s.day = allowance{date: s.today()}
	for range daySwaps {
		d, note, err := s.readDay(ctx)
		if err != nil {
			return err
		}
		s.day.date = d.Date
		delete(d.Runs, s.id)
		after := oldest(s.saved.Runs)
		if s.distrusts() {
			after = s.id
		} else {
			d.settleLost(s.key(), s.saved.Runs, spent)
		}
		granted, cut := policy.Grant(wanted, d.sums(s.trigger.Actor.ID), policy.Allowances{PerDay: s.cfg.Budget.PerDay, PerActorDay: s.cfg.Budget.PerActorDay})
		d.Runs[s.id] = dayRun{Actor: s.trigger.Actor.ID, USD: granted, Open: true, Key: s.key(), From: spent, After: after}
		if note, err = s.writeDay(ctx, note, d); err == nil {
			s.day.bounds, s.day.granted, s.day.cut, s.day.note = true, granted, cut, note
			return nil
		}
		if !errors.Is(err, git.ErrNoteChanged) {
			return err
		}
	}
	return fmt.Errorf("reserve this run's money: %d other runs wrote %s first", daySwaps, dayRef)
}

// settleDay writes down what the run has spent in the place of what it had reserved. A reservation that stays, because the
// machine was lost, counts as spent until midnight UTC or until the work is taken up again.
func (s *session) settleDay(ctx context.Context) {
	if !s.unsettledDay() {
		return
	}
	err := fmt.Errorf("%d other runs wrote %s first", daySwaps, dayRef)
	for range daySwaps {
		d, note, failed := s.readDay(ctx)
		if failed == nil && d.Date != s.day.date {
			return // that day is over
		}
		if failed == nil {
			_, failed = s.writeDay(ctx, note, s.settledIn(d))
		}
		if failed == nil {
			return
		}
		if !errors.Is(failed, git.ErrNoteChanged) {
			err = failed
			break
		}
	}
	s.say("what this run reserved of the day's budget counts as spent until midnight UTC: " + err.Error())
}

func (s *session) unsettledDay() bool { return s.day.bounds && s.writes() && s.today() <= s.day.date }

func (s *session) settledIn(d day) day {
	d.Runs[s.id] = dayRun{Actor: s.trigger.Actor.ID, USD: s.meter.Spent()}
	return d
}

// settled is what settleDay would write where nobody has written the ledger since this run did: nothing where there is nothing
// to write, or it cannot be read.
func (s *session) settled() []git.RefUpdate {
	if !s.unsettledDay() {
		return nil
	}
	d, note, err := decodeDay(s.day.note, s.day.date)
	if err != nil || d.Date != s.day.date {
		return nil
	}
	raw, err := s.settledIn(d).encode()
	if err != nil {
		return nil
	}
	u, err := s.store.NoteUpdate(dayRef, dayFile, note, raw)
	if err != nil {
		return nil
	}
	return []git.RefUpdate{u}
}

func (s *session) readDay(ctx context.Context) (day, git.Note, error) {
	note, err := s.store.ReadNote(ctx, s.remote, dayRef, dayFile)
	if err != nil {
		return day{}, note, fmt.Errorf("read the day's spending: %w", err)
	}
	return decodeDay(note, s.day.date)
}

func decodeDay(note git.Note, date string) (day, git.Note, error) {
	fresh := day{Format: dayFormat, Date: date, Runs: map[string]dayRun{}}
	if note.ID == "" {
		return fresh, note, nil
	}
	var d day
	dec := json.NewDecoder(bytes.NewReader(note.Content))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil || d.Format != dayFormat {
		return day{}, note, fmt.Errorf("the day's spending cannot be read: %s at %s is no ledger of ours. Next: look at who wrote it, then delete the ref", dayRef, note.ID)
	}
	if d.Date != date && !follows(d.Date, date) || d.Runs == nil {
		return fresh, note, nil
	}
	return d, note, nil
}

// follows says that a ledger's day is the one after date: it was begun by a machine whose clock is ahead of this one's at
// midnight, and holds. One from further ahead is a wrong clock's, and would hold for ever.
func follows(ledger, date string) bool {
	day, err := time.Parse(time.DateOnly, date)
	return err == nil && ledger == day.AddDate(0, 0, 1).Format(time.DateOnly)
}

func (s *session) writeDay(ctx context.Context, old git.Note, d day) (git.Note, error) {
	raw, err := d.encode()
	if err != nil {
		return old, err
	}
	return s.store.WriteNote(ctx, s.remote, dayRef, dayFile, old, raw)
}

func (d day) encode() ([]byte, error) {
	raw, err := json.Marshal(d)
	return append(raw, '\n'), err
}

func (d day) sums(actor int64) policy.Day {
	var out policy.Day
	for _, r := range d.Runs {
		out.Total = out.Total.Add(r.USD)
		if r.Actor == actor {
			out.Actor = out.Actor.Add(r.USD)
		}
	}
	return out
}
