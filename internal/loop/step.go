package loop

import "fmt"

// noVerdictNext is the next step where the reviewer gave no verdict.
const noVerdictNext = "no verdict is not a rejection: label again to resume and ask once more; where it comes back, look at review.model and its key"

// Action is what to do next; Stop is set with AtEnd.
type Action struct {
	Do     Phase
	Commit Commit // what to gate, judge, prove, or restore
	Stop   Stop
}

// First is the action that begins a run or a resumed one.
func First(s State) Action { return Action{Do: s.Phase, Commit: s.Current} }

// Step takes the answer to the last action and returns the next one. It never mutates s.
func Step(s State, l Limits, o Observation) (State, Action) {
	s = s.clone()
	s.Spent = s.Earlier.Add(o.Spent)
	if o.Cancelled {
		s.hold(Cancelled, "stopped on request; the work so far is kept", "label the issue again, or /proctor resume, to go on")
	}
	switch s.Phase {
	case AtBaseline:
		return s.afterBaseline(l, o)
	case AtAgent:
		s.noteAgent(l, o.Agent)
		return s.to(AtSnapshot, s.Good)
	case AtSnapshot:
		s.Current = o.Snapshot.Commit
		s.claim(o.Snapshot.Claims...)
		return s.to(AtGuard, s.Current)
	case AtGuard:
		return s.afterGuard(l, o)
	case AtIteration:
		return s.afterGate(l, o, "iteration")
	case AtRegression:
		return s.afterGate(l, o, "regression")
	case AtItem:
		return s.afterItem(l, o)
	case AtReview:
		return s.afterReview(l, o)
	case AtProof:
		return s.afterProof(l, o)
	case AtRestore:
		return s.endTick(l, o)
	case AtCheckpoint:
		return s.nextTick(l, o)
	}
	return s.to(AtEnd, s.Good)
}

func (s State) afterBaseline(l Limits, o Observation) (State, Action) {
	b := o.Baseline
	for _, g := range []struct {
		name string
		seen GateSeen
		used bool
	}{
		{"iteration", b.Iteration, true},
		{"regression", b.Regression, l.Regression},
		{"acceptance", b.Acceptance, b.Acceptance.Status != ""},
	} {
		switch {
		case !g.used:
		case g.seen.Status == GateWasted || g.seen.Status == "":
			s.hold(GateBroken, fmt.Sprintf("the %s gate cannot run on the base commit: %s", g.name, g.seen.Detail), "mend the gate's command or its setup, then label again; nothing was spent")
		case g.seen.Status == GateFlaked:
			s.hold(GateFlaky, fmt.Sprintf("the %s gate disagrees with itself on the unchanged base commit: %s", g.name, g.seen.Detail), "make the gate repeatable, then label again; nothing was spent")
		}
	}
	if l.Regression && b.Regression.Status == GateFailed {
		s.hold(GateBroken, "the regression gate fails on the base commit, so it can show no regression", "mend it on the default branch, or take it out of gates.regression")
	}
	if l.MustFail && b.Acceptance.Status == GatePassed {
		s.hold(AlreadySatisfied, "the acceptance gate passes on the base commit already", "close the issue, or add an acceptance test that shows what is missing")
	}
	return s.nextTick(l, o)
}

// nextTick is also where the stops that can be known before spending are looked at.
func (s State) nextTick(l Limits, o Observation) (State, Action) {
	s.holdSpent(l)
	s.holdTime(l, o)
	if used := s.Tick - s.TickFloor; used >= l.MaxTicks {
		s.hold(TickCap, fmt.Sprintf("%d of %d ticks are used", used, l.MaxTicks), "read the last feedback in the report; raise stops.max_ticks or split the issue")
	}
	if stop, ok := strongest(s.Pending); ok {
		s.End = &stop
		s.Phase = AtEnd
		return s, Action{Do: AtEnd, Commit: s.Good, Stop: stop}
	}
	s.Tick++
	s.Current, s.Healthy = Commit{}, false
	return s.to(AtAgent, s.Good)
}

func (s State) afterGuard(l Limits, o Observation) (State, Action) {
	switch o.Guard.Level {
	case GuardPass:
		s.Good = s.Current
	case GuardBlock:
		s.tell("guard", o.Guard.Feedback)
		s.progress(s.Current.Tree, "guard:"+o.Guard.Detail)
		return s.endTick(l, o)
	default:
		s.hold(SafetyHalt, "a rule was broken: "+o.Guard.Detail, "nothing of this tick was kept or pushed; read the findings, then widen policy on the default branch or reword the issue")
		return s.to(AtRestore, s.Good)
	}
	if s.ending() || s.outOfTime(l, o) {
		return s.endTick(l, o)
	}
	if s.Current.Tree == s.Base.Tree {
		// A green gate over an empty diff proves nothing, so it is not even asked.
		s.tell("agent", "Nothing differs from the base commit: no change has been made yet.")
		s.progress(s.Current.Tree, "")
		return s.endTick(l, o)
	}
	if s.Current.Tree == s.From.Tree {
		s.tell("agent", "Nothing differs from where you began: what is asked of the change has not been done yet.")
		s.progress(s.Current.Tree, "")
		return s.endTick(l, o)
	}
	return s.to(AtIteration, s.Current)
}

func (s State) afterGate(l Limits, o Observation, name string) (State, Action) {
	switch o.Gate.Status {
	case GatePassed:
	case GateFailed:
		from := name
		if o.Gate.From != "" {
			from = o.Gate.From
		}
		s.Feedback = append(s.Feedback, Feedback{From: from, Gate: o.Gate.Command, Text: o.Gate.Feedback, Exit: o.Gate.Exit, TimedOut: o.Gate.TimedOut})
		s.progress(s.Current.Tree, from+":"+o.Gate.Fingerprint)
		return s.endTick(l, o)
	case GateStopped:
		return s.endTick(l, o)
	default:
		s.hold(GateBroken, fmt.Sprintf("the %s gate could not run: %s", name, o.Gate.Detail), "this is infrastructure, not a verdict: mend it, then label again to resume")
		return s.endTick(l, o)
	}
	if s.ending() || s.outOfTime(l, o) {
		return s.endTick(l, o)
	}
	if name == "iteration" && l.Regression {
		return s.to(AtRegression, s.Current)
	}
	return s.judge(l, o)
}

// judge goes on to the item at hand, or to the whole where the plan has none left.
func (s State) judge(l Limits, o Observation) (State, Action) {
	if !s.Healthy {
		s.progress(s.Current.Tree, "unhealthy:"+s.Failure)
		return s.endTick(l, o)
	}
	if item := s.Item(); item >= 0 {
		return s.judgeItem(l, o, item)
	}
	return s.judgeWhole(l, o)
}

// judgeWhole goes on to the review of the whole change, or past it where the verdict on this very tree is known.
func (s State) judgeWhole(l Limits, o Observation) (State, Action) {
	if !l.Review {
		return s.to(AtProof, s.Current)
	}
	approved, known := s.Verdicts[s.Current.Tree]
	switch {
	case known && approved:
		return s.to(AtProof, s.Current)
	case known:
		s.Rejections++
		s.tell("review", "The reviewer has already rejected exactly this tree; change the code.")
		s.progress(s.Current.Tree, "review:again")
		return s.endTick(l, o)
	case s.Spent >= l.MaxCost:
		return s.endTick(l, o)
	}
	return s.to(AtReview, s.Current)
}

func (s State) afterReview(l Limits, o Observation) (State, Action) {
	r := o.Review
	switch {
	case r.Rejected:
		s.Verdicts[s.Current.Tree] = false
		s.Rejections++
		s.tell("review", r.Feedback)
		s.progress(s.Current.Tree, "review:"+r.Fingerprint)
		return s.endTick(l, o)
	case r.Approved:
		s.Verdicts[s.Current.Tree] = true
		s.Rejections = 0
	case r.OverBudget:
		s.holdReview(l)
		return s.endTick(l, o)
	case s.Spent >= l.MaxCost || s.outOfTime(l, o):
		return s.endTick(l, o)
	default:
		s.hold(JudgeUnavailable, "the reviewer gave no verdict: "+r.Detail, noVerdictNext)
		return s.endTick(l, o)
	}
	if s.ending() || s.outOfTime(l, o) {
		return s.endTick(l, o)
	}
	return s.to(AtProof, s.Current)
}

func (s State) afterProof(l Limits, o Observation) (State, Action) {
	p := o.Proof
	switch {
	case p.Stopped:
	case p.Passed && s.Healthy && s.Current.Tree != s.Base.Tree && s.Current.Tree != s.From.Tree && s.Item() < 0:
		s.hold(Done, "proved in a pristine checkout of "+short(s.Current.ID), "")
	case p.Broken:
		s.hold(GateBroken, fmt.Sprintf("the %s gate could not run in the proof", p.Gate), "run `proctor verify` to see it, mend it, then label again to resume")
	case p.Acceptance:
		s.RedProofs++
		s.tellProof(p, heldOut(p))
		if s.RedProofs >= l.Attempts {
			s.hold(Overfit, fmt.Sprintf("the visible gates pass and the held-out one failed %d of %d times", s.RedProofs, l.Attempts), "a human should look: `proctor verify` shows what the held-out gate says")
		}
		s.progress(s.Current.Tree, "") // a sealed gate tells no failures apart
	default:
		s.tellProof(p, fmt.Sprintf("The %s gate passes here but fails in a pristine checkout: something it needs is not committed or is ignored.", p.Gate))
		s.progress(s.Current.Tree, "proof:"+p.Gate)
	}
	return s.endTick(l, o)
}

// heldOut says no more than DESIGN §6 allows: that it failed, or a count.
func heldOut(p ProofSeen) string {
	if p.Count != "" {
		return "The held-out acceptance gate failed (" + p.Count + "). Its tests stay sealed: solve the issue in general, not the examples."
	}
	return "The held-out acceptance gate failed. Its tests stay sealed: solve the issue in general, not the examples."
}

// endTick gathers the stops that hold now and saves; nextTick decides between them.
func (s State) endTick(l Limits, o Observation) (State, Action) {
	s.holdSpent(l)
	s.holdTime(l, o)
	if s.Stale >= l.NoProgressAfter {
		s.hold(NoProgress, fmt.Sprintf("%d ticks in a row brought nothing new", s.Stale), "reword the issue, or give the agent more to go by (AGENTS.md, a failing test)")
	}
	if l.Review && s.Rejections >= l.ReviewStallAfter {
		s.hold(ReviewStall, fmt.Sprintf("the reviewer rejected %d candidates in a row", s.Rejections), "read the findings; settle them by hand or change review.criteria on the default branch")
	}
	s.notePlan(l)
	return s.to(AtCheckpoint, s.Good)
}

func short(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}
