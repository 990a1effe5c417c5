package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/money"
)

// takeOver reads what the jobs before this one left. The job that publishes wants a handover, a finding, and that both name one commit; the
// job that tells takes what there is.
func (s *session) takeOver(context.Context) error {
	h, err := s.readHandover()
	if s.req.stage == stageTell && (err == nil || errors.Is(err, errNoHandover)) {
		s.handed = h
		return nil
	}
	if errors.Is(err, errNoHandover) {
		return refused("there is no handover in "+s.req.handover+": the agent's job left none, or its artifact was not downloaded there", sameRun)
	}
	if err != nil {
		return err
	}
	if h.Snapshot != s.rec.Trigger.Snapshot || h.Issue != s.trigger.Issue.Number {
		return refused("the agent's job worked for another text of this issue than the one that is approved now", "read the issue, then add the label again")
	}
	v, err := readVerified(s.req.verified)
	if err != nil {
		return err
	}
	s.handed, s.found = h, v
	return s.vouched(v)
}

// spent is what the agent's job says it cost. A job that was lost says nothing, and what it could have spent counts.
func (s *session) spent() money.USD {
	if s.handed != nil {
		return s.handed.rec.Totals.CostUSD
	}
	if !needsModel(s.cfg.Agent.Name) && !s.judgesByModel() {
		return 0
	}
	st := s.begun0()
	limit, _ := s.ceiling(st)
	return max(limit-st.Spent, 0)
}

// bookSpent puts what the agent's job spent into the issue's checkpoint and the day's ledger: it could write neither. It comes before whatever is
// published, and counts once. Until it was booked no other run on the issue may begin, which the workflow's concurrency group sees to.
func (s *session) bookSpent(ctx context.Context) error {
	if s.booked || !s.writes() {
		return nil
	}
	cost, job := s.spent(), s.req.runURL
	if s.handed != nil {
		job = s.handed.Run
	}
	s.before = s.saved.State.IssueBefore.Add(s.saved.State.Spent)
	var err error
	if slices.Contains(s.saved.Booked, job) {
		// This job, or the one that tells, is done again.
		s.before, cost = max(s.before-cost, 0), 0
	} else if err = s.bookDay(ctx, cost); err != nil {
		return err
	} else {
		s.saved.Booked = append(s.saved.Booked, job)
		s.saved.Booked = s.saved.Booked[max(0, len(s.saved.Booked)-maxBooked):]
	}
	switch {
	case s.req.stage == stagePublish:
		err = s.keepVerified(ctx, cost)
	case cost > 0:
		err = s.bookIssue(ctx, cost)
	}
	s.booked = err == nil
	return err
}

// maxBooked is how many agents' jobs an issue's checkpoint names: those of one workflow run follow each other at once.
const maxBooked = 20

// bookIssue adds to what the issue has cost. Work that an earlier run kept stays to be gone on with.
func (s *session) bookIssue(ctx context.Context, cost money.USD) error {
	if s.saved.State.Version != 0 {
		s.saved.State.IssueBefore = s.saved.State.IssueBefore.Add(cost)
		return s.saveAsFound(ctx, "what the agent's job spent")
	}
	s.saved.State = loop.Begin(loop.Commit{ID: s.rec.Base.ID, Tree: s.rec.Base.Tree})
	s.saved.State.IssueBefore = s.before.Add(cost)
	return s.save(ctx)
}

// keepVerified leaves the commit as a run in one job does before it pushes: a push that is refused keeps it here, and the next run proves it
// again and pushes it.
func (s *session) keepVerified(ctx context.Context, cost money.USD) error {
	head, err := s.inspect(ctx)
	if err != nil {
		return err
	}
	st := loop.Begin(loop.Commit{ID: s.rec.Base.ID, Tree: s.rec.Base.Tree})
	st.IssueBefore = s.saved.State.IssueBefore.Add(s.saved.State.Spent).Add(cost)
	st.Good, st.Current, st.Tick, st.Trees = head, head, s.handed.lastTick(), append(st.Trees, head.Tree)
	st.End = &loop.Stop{Terminal: loop.Done, Reason: "proved in two jobs"}
	s.saved.forget()
	s.saved.State, s.saved.Pushed = st, append(s.saved.Pushed, head.ID)
	return s.save(ctx)
}

// inspect brings the verified commit into the store, and holds it to the patch policy once more: that runs no code, and this is the machine that
// can push.
func (s *session) inspect(ctx context.Context) (loop.Commit, error) {
	line, err := s.unpack(ctx)
	if err != nil {
		return loop.Commit{}, err
	}
	if err := s.makeGuard(ctx); err != nil {
		return loop.Commit{}, err
	}
	if err := s.patrol(ctx, line); err != nil {
		return loop.Commit{}, err
	}
	s.rec.Ticks = nil // the record's are the agent's
	s.proved = git.ID(s.handed.Head.ID)
	return loop.Commit{ID: s.handed.Head.ID, Tree: s.handed.Head.Tree}, nil
}

func (h *handed) lastTick() int { return h.rec.Ticks[len(h.rec.Ticks)-1].N }

// bookDay writes what was spent into the day's ledger, which an agent's job has read and could not write.
func (s *session) bookDay(ctx context.Context, cost money.USD) error {
	if cost == 0 {
		return nil
	}
	s.day = allowance{date: s.today()}
	return s.persist(ctx, func(ctx context.Context) error {
		for range daySwaps {
			d, note, err := s.readDay(ctx)
			if err != nil {
				return err
			}
			d.Runs[s.id] = dayRun{Actor: s.trigger.Actor.ID, USD: cost}
			if _, err := s.writeDay(ctx, note, d); !errors.Is(err, git.ErrNoteChanged) {
				return err
			}
		}
		return fmt.Errorf("book this run's money: %d other runs wrote %s first", daySwaps, dayRef)
	})
}

// bookLate books what was spent where a refusal came first: the money is gone all the same. A request that this job refuses and of which no
// handover came was refused by the agent's job as well, before it spent anything.
func (s *session) bookLate(ctx context.Context) {
	if !s.req.stage.concludes() || s.booked || !s.writes() || s.rec.Trigger.Snapshot == "" || s.remote.URL == "" {
		return
	}
	if s.handed == nil {
		h, err := s.readHandover()
		if err != nil {
			return
		}
		s.handed = h
	}
	if s.spent() == 0 {
		return
	}
	stage := s.req.stage
	s.req.stage = stageTell // the commit is not published, and not kept by this job
	defer func() { s.req.stage = stage }()
	err := error(nil)
	if s.lease == nil {
		err = s.takeLease(ctx)
	}
	if err == nil {
		err = s.bookSpent(ctx)
	}
	if err != nil {
		s.note(fmt.Sprintf("the %s that the agent's job spent could not be written down, so that they do not count: %s", s.spent(), err))
	}
}

// readopt makes the agent's record this run's, with what this job and the verify job know for themselves in the place of its word.
func (s *session) readopt(context.Context) error {
	rec := s.adoptRecord()
	rec.Head = &evidence.Commit{ID: s.found.Head.ID, Tree: s.found.Head.Tree}
	rec.Staged.Verified = true
	rec.Finish(evidence.Done, rec.Reason, "")
	last := &rec.Ticks[len(rec.Ticks)-1]
	last.Proof = nil
	for _, g := range s.found.Gates {
		last.Proof = append(last.Proof, evidence.Gate{Class: g.Class, Name: g.Name, Command: s.commandNamed(g), Where: "proof", Status: g.Status, ExitCode: g.Exit})
	}
	s.rec = rec
	return nil
}

// commandNamed is a gate's command by the base commit's configuration.
func (s *session) commandNamed(g evidence.ClaimedGate) string {
	for _, spec := range s.gateSpecs() {
		if string(spec.Class) == g.Class && spec.Name == g.Name {
			return commandOf(spec)
		}
	}
	return ""
}

// adoptRecord is the agent's record with all that this job knows itself.
func (s *session) adoptRecord() evidence.Record {
	own, rec := s.rec, s.handed.rec
	rec.Tool, rec.RunURL, rec.Trigger, rec.Config, rec.Base, rec.Branch, rec.Resumed = own.Tool, own.RunURL, own.Trigger, own.Config, own.Base, own.Branch, own.Resumed
	rec.Removed, rec.Published, rec.Signing, rec.Kept = own.Removed, nil, nil, own.Kept
	rec.Staged = &evidence.Staged{Stage: string(s.req.stage), Agent: s.handed.Run}
	for _, n := range own.Notes {
		if !slices.Contains(rec.Notes, n) {
			rec.Notes = append(rec.Notes, n)
		}
	}
	// Outputs of gates lie beside the agent job's record and are not brought along.
	drop := func(gates []evidence.Gate) {
		for i := range gates {
			gates[i].Log = ""
		}
	}
	drop(rec.Baseline)
	for i := range rec.Ticks {
		drop(rec.Ticks[i].Gates)
		if f := rec.Ticks[i].First; f != nil && f.Gate != nil {
			f.Gate.Log = ""
		}
	}
	return rec
}

// conclude says how a run ended that was not published, in the words of the job that ended it. A proof that nobody published is not done.
func (s *session) conclude(context.Context) error {
	if s.handed == nil {
		return &ended{terminal: evidence.InternalError, reason: errNoHandover.Error() + ": it was lost, cancelled early, or could not begin", next: "read the log of the agent's job, then add the label again"}
	}
	s.rec = s.adoptRecord()
	if s.handed.Head == (evidence.Commit{}) {
		if t := s.rec.Terminal; t == evidence.Done && !s.rec.DryRun {
			s.rec.Finish(evidence.InternalError, "the agent's job ended as done and handed no commit over", "read the log of the agent's job, then add the label again")
		}
		return nil
	}
	v, err := readVerified(s.req.verified)
	_, known := evidence.FindTerminal(v.Terminal)
	switch {
	case err != nil || !known:
		s.rec.Finish(evidence.InternalError, "the agent's job calls a commit proved, and the verify job left no finding: it was lost or cancelled", "read the log of the verify job, then add the label again")
	case v.Terminal != evidence.Done:
		s.rec.Finish(v.Terminal, "the verify job: "+v.Reason, v.Next)
	default:
		s.rec.Finish(evidence.PublishFailed, "the proof was repeated, and the publish job did not push the commit: it was not approved, or ended before it could", "approve the publish job the next time; the commit is in the artifact of the agent's job, and a new run begins with the label")
	}
	return nil
}
