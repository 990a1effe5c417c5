package loop

import "fmt"

// Item is one line of a run's plan. An item is done when the harness ticked it off: the gates were green in a tick
// that worked on it and, with the reviewer on, its share of the change was approved. What only the agent calls done
// is claimed, and stays open.
type Item struct {
	Text    string `json:"text"`              // visible text, one line
	Before  bool   `json:"before,omitempty"`  // ticked off on the base commit; never worked on
	Done    int    `json:"done,omitempty"`    // the tick that ticked it off; 0: open
	Claimed int    `json:"claimed,omitempty"` // the first tick that left it called done; 0: none
}

// Open says whether the item still has to be done.
func (i Item) Open() bool { return !i.Before && i.Done == 0 }

// WithPlan gives a run that has not begun its plan. Items stand in the order in which they are worked on.
func (s State) WithPlan(items []Item) State {
	s = s.clone()
	s.Plan, s.PlanFrom = append([]Item(nil), items...), s.Base
	return s
}

// Item is the index of the item to work on, -1 when none is open.
func (s State) Item() int {
	for i, it := range s.Plan {
		if it.Open() {
			return i
		}
	}
	return -1
}

// claim notes what only the agent calls done.
func (s *State) claim(items ...int) {
	for _, i := range items {
		if i >= 0 && i < len(s.Plan) && s.Plan[i].Open() && s.Plan[i].Claimed == 0 {
			s.Plan[i].Claimed = s.Tick
		}
	}
}

// share names the delta that an item is judged by: from the tree that the last item was ticked off on to this one.
func (s State) share(item int) string {
	return fmt.Sprintf("%d %s %s", item, s.PlanFrom.Tree, s.Current.Tree)
}

// judgeItem stands between green gates and the verdict on the whole while an item is open.
func (s State) judgeItem(l Limits, o Observation, item int) (State, Action) {
	s.claim(item)
	if !l.Review {
		if s.Current.Tree == s.PlanFrom.Tree {
			// Gates that were green before say nothing about an item that nothing was changed for.
			s.tell("plan", "Nothing was changed for the current item, and no reviewer is there to say that it was done before. Change what the item asks for; do one item in a turn.")
			s.progress(s.Current.Tree, "")
			return s.endTick(l, o)
		}
		return s.passItem(l, o, item)
	}
	approved, known := s.Shares[s.share(item)]
	switch {
	case known && approved:
		return s.passItem(l, o, item)
	case known:
		s.Rejections++
		s.tell("review", "The reviewer has already rejected exactly this state for the current item; change the code.")
		s.progress(s.Current.Tree, "item:again")
		return s.endTick(l, o)
	case s.Spent >= l.MaxCost:
		return s.endTick(l, o)
	}
	return s.to(AtItem, s.Current)
}

func (s State) afterItem(l Limits, o Observation) (State, Action) {
	item, r := s.Item(), o.Review
	switch {
	case r.Rejected:
		s.Shares[s.share(item)] = false
		s.Rejections++
		s.tell("review", r.Feedback)
		s.progress(s.Current.Tree, fmt.Sprintf("item %d:%s", item, r.Fingerprint))
		return s.endTick(l, o)
	case r.Approved:
		s.Shares[s.share(item)] = true
		s.Rejections = 0
		return s.passItem(l, o, item)
	case r.OverBudget:
		s.holdReview(l)
		return s.endTick(l, o)
	case s.Spent >= l.MaxCost || s.outOfTime(l, o):
		return s.endTick(l, o)
	}
	s.hold(JudgeUnavailable, "the reviewer gave no verdict on the current item of the plan: "+r.Detail, noVerdictNext)
	return s.endTick(l, o)
}

// passItem ticks an item off. Behind the last one the same tick goes on to the verdict on the whole.
func (s State) passItem(l Limits, o Observation, item int) (State, Action) {
	s.Plan[item].Done = s.Tick
	s.PlanFrom, s.PlanStale = s.Current, 0
	if s.Item() < 0 && !s.ending() && !s.outOfTime(l, o) {
		return s.judgeWhole(l, o)
	}
	s.progress(s.Current.Tree, "")
	s.Stale = 0 // an item that gets done is progress, on an old tree too
	return s.endTick(l, o)
}

// notePlan counts a tick that ended without an item getting done.
func (s *State) notePlan(l Limits) {
	next := s.Item()
	if next < 0 {
		return
	}
	for _, it := range s.Plan {
		if it.Done == s.Tick {
			return
		}
	}
	s.PlanStale++
	if s.PlanStale >= l.PlanStallAfter {
		done := 0
		for _, it := range s.Plan {
			if !it.Open() {
				done++
			}
		}
		s.hold(PlanStall, fmt.Sprintf("%d ticks in a row without an item of the plan getting done; %d of %d are, and item %d is not", s.PlanStale, done, len(s.Plan), next+1),
			"read what came of the item in the report; split it, say it more plainly, or do it by hand and tick it off")
	}
}
