package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/publish"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// What bounds everything that a run still does after its end: lastWords once its job was cancelled, which a CI system
// soon follows with a kill, and calmWords where nobody hurries it.
const (
	lastWords = 6 * time.Second
	calmWords = 30 * time.Second
)

// lastly is until with calm, cut down to hurry from the moment at which ctx is cancelled.
func lastly(ctx context.Context, calm, hurry time.Duration) (context.Context, context.CancelFunc) {
	last, done := until(ctx, calm)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(hurry, done) })
	return last, func() { stop(); done() }
}

// finish tells the end everywhere it is looked for, whatever went before: record, report, status comment, labels,
// checkpoint, lease. Trouble here is noted and ends nothing.
func (s *session) finish(ctx context.Context, err error) {
	if err != nil {
		e := terminalOf(ctx, err)
		s.rec.Finish(e.terminal, s.red.String(e.reason), e.next)
	}
	if s.req.stage == stageAgent {
		s.rec.Next = splitNext(s.rec)
	}
	last, done := lastly(ctx, calmWords, lastWords)
	defer done()
	s.giveBack(last)
	s.settle()
	s.keepUnproved(last)
	s.emit(evidence.Ended, 0, slog.String(evidence.KeyTerminal, s.rec.Terminal), slog.Int(evidence.KeyExitCode, s.rec.ExitCode),
		slog.String(evidence.KeyReason, s.rec.Reason), slog.String(evidence.KeyNext, s.rec.Next))
	s.tellForge(last, err)
	s.writeReport(last)
	switch s.req.stage {
	case stageAgent:
		s.passOn(last)
	case stageVerify:
		s.vouch()
	}
	s.emit(evidence.RunEnded, 0)
	if err := s.events.Close(); err != nil {
		s.say("the event log is not whole: " + err.Error())
	}
	s.useUp(last)
	s.release(last)
	// Behind everything that others wait for: a collector that does not answer takes all the time there is.
	if err := s.trace.Close(last, s.env.Now()); err != nil {
		s.say("the trace is not whole: " + err.Error())
	}
}

// settle makes the record's totals those of its calls.
func (s *session) settle() {
	s.closeEgress()
	s.rec.Ended = s.env.Now().UTC()
	if s.req.stage.concludes() && s.handed != nil {
		// The calls were another machine's, and so may be its clock.
		if end := s.handed.rec.Ended; s.rec.Ended.Before(end) {
			s.rec.Ended = end
		}
		s.rec.Settle(s.before)
		return
	}
	s.rec.Calls = nil
	for _, c := range s.meter.Calls() {
		call := callOf(c)
		call.At = s.since(c.Started)
		s.rec.Calls = append(s.rec.Calls, call)
		s.tick(c.Tick)
	}
	s.rec.Settle(s.before)
}

func callOf(c meter.Call) evidence.Call {
	return evidence.Call{
		Tick: c.Tick, Purpose: c.Purpose, Model: c.Model, Status: c.Status, Input: c.Input, Output: c.Output,
		CacheRead: c.CacheRead, CacheWrite: c.CacheWrite, CostUSD: c.CostUSD, Priced: c.Priced, Millis: c.Millis,
	}
}

// tellForge writes the final word where the requester looks. err is what ended a run that never came to its loop.
func (s *session) tellForge(ctx context.Context, err error) {
	if !s.writes() {
		return
	}
	if s.aside(ctx) {
		s.tellProof(ctx)
		s.reply(ctx)
		return
	}
	var held *git.HeldError
	if s.status.comment == nil && (!errors.As(err, &held) || strings.HasSuffix(held.Holder, reviewHolder)) { // else the comment is the holder's
		s.introduce(ctx)
	}
	ev := outcome(s.rec)
	switch {
	case s.queued:
		ev = policy.EventQueued
	case (s.released || s.toPeople) && ev == policy.EventRefused:
		ev = policy.EventNeedsHuman // or it would stand at the queue's head for ever
	}
	s.move(ctx, ev)
	if err := s.status.finish(ctx, s.rec); err != nil {
		s.note("the status comment could not be brought up to date: " + err.Error())
	}
	s.tellCommit(ctx)
}

// aside tells whether what ended is a comment, or a command in one, that became no run: the status comment and the labels are
// those of the issue's runs then, and stay as they are.
func (s *session) aside(ctx context.Context) bool {
	if s.status.comment != nil {
		return false
	}
	if s.rec.Terminal == evidence.Answered || s.trigger.Command != nil || s.trigger.Review != nil {
		return true
	}
	if s.trigger.Check != nil {
		return !s.toPeople // nobody asked, so that nobody waits for an answer
	}
	if s.trigger.Kind != "" {
		return false
	}
	// It ended before its trigger was read: the configuration is wrong, say.
	s.cfg.Trigger.Label = first(s.cfg.Trigger.Label, trigger.DefaultLabel)
	t, err := s.req.parse(s.cfg)
	if err == nil && t.Check != nil {
		return true
	}
	if err != nil || t.Command == nil && t.Review == nil {
		return false
	}
	s.keepTrigger(t)
	if err := s.hearAsker(ctx); err == nil {
		role, err := s.req.forge.Role(ctx, s.trigger.Actor.Login)
		s.order.heard = err == nil && !s.trigger.Actor.Bot && slices.Contains(policy.DefaultRoles(), role)
	}
	return true
}

// introduce finds the issue of a request that ended before its run was announced. An event that asked for nothing
// has none, and nobody is told of it.
func (s *session) introduce(ctx context.Context) {
	if s.issue == nil {
		s.cfg.Trigger.Label = first(s.cfg.Trigger.Label, trigger.DefaultLabel)
		t, err := s.req.parse(s.cfg)
		if err != nil || t.Issue.Number == 0 {
			return
		}
		issue, err := s.req.forge.Issue(ctx, t.Issue.Number)
		if err != nil {
			s.note("the issue could not be told how this ended: " + err.Error())
			return
		}
		s.keepTrigger(t)
		s.issue = &issue
	}
	s.status.comment = publish.NewStatus(s.req.forge, s.issue.Number, s.env.Now, s.red)
	if s.rec.Terminal != evidence.Refused {
		s.move(ctx, policy.EventStarted) // takes the request's label away, so that it can be added again
	}
}

func (s *session) writeReport(ctx context.Context) {
	rec, err := evidence.Write(s.req.reports, s.rec, s.red)
	if err != nil {
		s.say("record: " + err.Error())
	}
	s.rec = rec
	if err := s.writeChange(ctx); err != nil {
		s.say("change: " + err.Error())
	}
	if err := evidence.WriteReport(s.req.reports, rec); err != nil {
		s.say("report: " + err.Error())
	}
	if _, err := evidence.WriteStatement(s.req.reports, rec); err != nil {
		s.say("statement: " + err.Error())
	}
}

// release ends the processes, and gives back with one push the lease and what the day had reserved. The run's directory goes.
func (s *session) release(ctx context.Context) {
	_ = s.meter.Close(ctx) // what was in flight is booked or the provider's; either way the run is over
	s.letLease()
	if s.lease == nil {
		s.settleDay(ctx)
	} else {
		today := s.settled()
		others, err := s.lease.ReleaseBeside(ctx, today...)
		if err != nil && !errors.Is(err, git.ErrLeaseLost) {
			s.say("the issue's lease could not be given back; it ends by itself in " + leaseTime.String() + ": " + err.Error())
		}
		if len(today) == 0 || others[0] != nil {
			s.settleDay(ctx)
		}
	}
	if s.store != nil {
		s.store.Close()
	}
	if s.dir != "" {
		if err := git.RemoveAll(s.dir); err != nil {
			s.say("the run's directory could not be removed: " + err.Error())
		}
	}
	if s.lock != nil {
		s.lock.Close()
	}
}

func (s *session) say(text string) {
	if s.req.speak != nil {
		s.req.speak(s.red.String(text))
	}
}
