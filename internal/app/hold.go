package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/money"
)

// kept is the checkpoint as it lies, or should lie, on the forge. It shares no memory with the session: a model call
// saves it again, with more held, while the loop works on the next one. The meter lets one save at a time happen.
type kept struct {
	checkpoint
	spent  money.USD // of this process, as State has it
	begun  bool
	expect git.ID // of the next save
	doubt  git.ID // pushed, and the answer was lost: it may be what lies there
}

// keepFrom makes c, with the loop's state st in it, what the next save writes.
func (s *session) keepFrom(c checkpoint, st loop.State) error {
	c.State = st
	c.Runs = append(append([]string{}, s.rec.Resumed...), s.id)
	c.Base, c.Goal, c.Asked = s.rec.Base.ID, s.rec.Trigger.Snapshot, s.request()
	c.Round, c.Dropped = s.round, nil
	if a := s.trigger.Actor; s.trigger.Check == nil {
		c.By = requester{Login: a.Login, ID: a.ID, Bot: a.Bot}
	}
	c.spend(s.round)
	blob, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode the checkpoint: %w", err)
	}
	var own checkpoint
	if err := json.Unmarshal(blob, &own); err != nil {
		return fmt.Errorf("read the checkpoint back: %w", err)
	}
	s.kept.checkpoint, s.kept.spent, s.kept.begun = own, st.Spent-st.Earlier, true
	return nil
}

// Three tries, so that one lost connection does not end an agent's work.
const (
	coverTries = 3
	coverWait  = 2 * time.Second // doubles
	coverTime  = 20 * time.Second
)

// cover holds what the run may spend from now on in its checkpoint, before it is spent.
func (s *session) cover(ctx context.Context, upTo money.USD) error {
	if !s.kept.begun {
		return errors.New("no model may be asked before the loop has begun")
	}
	return s.persist(ctx, func(ctx context.Context) error { return s.push(ctx, upTo) })
}

// persist tries again what a lost connection may have ended. Whoever else was faster is no such thing.
func (s *session) persist(ctx context.Context, save func(context.Context) error) error {
	for try, wait := 1, coverWait; ; try, wait = try+1, wait*2 {
		within, done := context.WithTimeout(ctx, coverTime)
		err := save(within)
		done()
		if err == nil || lostRace(err) || try == coverTries || s.env.Sleep(ctx, wait) != nil {
			return err
		}
	}
}

// push writes the checkpoint by compare-and-swap. upTo is what this process may spend before the next one: what the
// state does not count as spent is held.
func (s *session) push(ctx context.Context, upTo money.USD) error {
	k := &s.kept
	k.Held = max(upTo-k.spent, 0)
	blob, err := json.Marshal(k.checkpoint)
	if err != nil {
		return fmt.Errorf("encode the checkpoint: %w", err)
	}
	id, err := s.store.SaveState(ctx, s.remote, s.stateRef(), git.ID(k.State.Good.ID), blob, k.expect)
	if lostRace(err) && k.doubt != "" {
		// It may be our own push that got there, though we never heard so.
		id, err = s.store.SaveState(ctx, s.remote, s.stateRef(), git.ID(k.State.Good.ID), blob, k.doubt)
	}
	switch {
	case lostRace(err):
		return fmt.Errorf("save the checkpoint: another run has changed %s: %w", s.stateRef(), err)
	case err != nil:
		k.doubt = id
		return err
	}
	k.expect, k.doubt = id, ""
	return nil
}

// lostRace says that the ref is not where this run left it.
func lostRace(err error) bool {
	var remote *git.RemoteError
	return errors.As(err, &remote) && remote.Kind == git.Rejected
}

// giveBack counts no more than was spent, where a run ends without having saved its end.
func (s *session) giveBack(ctx context.Context) {
	if !s.kept.begun || s.kept.Held == 0 {
		return
	}
	err := s.meter.Settle(ctx, false, func(upTo money.USD) error { return s.push(ctx, upTo) })
	if err != nil && !lostRace(err) {
		s.note(fmt.Sprintf("the checkpoint could not be brought up to date, so %s held for model calls count as spent: %s", s.kept.Held, err))
	}
}
