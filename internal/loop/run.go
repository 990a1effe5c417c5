package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// Turn is what an agent's call may know and use.
type Turn struct {
	Tick     int // from 1
	Used     int // ticks used since a person asked, this one included
	MaxTicks int
	Left     money.USD
	TimeLeft time.Duration
	Feedback []Feedback
	Plan     []Item
	Item     int // index of the item to work on; -1: none
}

// Coder is the side that writes. Errors of all three are faults of the harness: what the agent does
// wrong is in AgentSeen. Snapshot reads the agent's directory as it is, whoever wrote there.
type Coder interface {
	Code(ctx context.Context, t Turn) (AgentSeen, error)
	Snapshot(ctx context.Context, tick int, parent Commit) (SnapshotSeen, error)
	Restore(ctx context.Context, to Commit) error
}

// Examiner is the side that decides. A gate, reviewer or proof that could not run says so in what it
// returns; an error is a fault of the harness.
type Examiner interface {
	Baseline(ctx context.Context) (Baseline, error)
	Guard(ctx context.Context, tick int, parent, candidate Commit) (GuardSeen, error)
	Gate(ctx context.Context, phase Phase, candidate Commit) (GateSeen, error)
	Review(ctx context.Context, candidate Commit) (ReviewSeen, error)
	// ReviewItem judges one item of the plan by its share of the change: what came since from.
	ReviewItem(ctx context.Context, item Item, from, candidate Commit) (ReviewSeen, error)
	Prove(ctx context.Context, candidate Commit) (ProofSeen, error)
}

// Keeper saves. Keep is called at the end of each tick and at the end of all, and must make the state survive the loss of this machine
// where it can; a failure to reach the forge is its own business to tell, not an error. Where something is pending at a tick's end, the
// end of all follows with nothing in between.
type Keeper interface {
	Keep(ctx context.Context, s State) error
	Spent() money.USD
}

// Run carries the actions out until an end. It returns an error only for a fault of the harness; the
// state is then the last consistent one. A cancelled ctx still saves: that part has wrapUp of its own.
func Run(ctx context.Context, s State, l Limits, c Coder, e Examiner, k Keeper, now func() time.Time) (State, error) {
	r := runner{limits: l, coder: c, examiner: e, keeper: k, now: now, began: now()}
	work, stop := context.WithDeadline(ctx, r.began.Add(l.MaxDuration-l.Reserve))
	defer stop()
	act := First(s)
	for act.Do != AtEnd {
		o, err := r.carryOut(ctx, work, s, act)
		if err != nil {
			return s, fmt.Errorf("tick %d, %s: %w", s.Tick, act.Do, err)
		}
		o.Spent, o.Elapsed, o.Cancelled = k.Spent(), now().Sub(r.began), ctx.Err() != nil
		s, act = Step(s, l, o)
	}
	// The terminal itself is saved too, so that a resume knows how this ended.
	saving, done := context.WithTimeout(context.WithoutCancel(ctx), wrapUp)
	defer done()
	return s, k.Keep(saving, s)
}

// wrapUp bounds what is still done after a cancel: a runner that cancels kills after ten seconds, and
// five of them are needed for reporting.
const wrapUp = 4 * time.Second

type runner struct {
	limits   Limits
	coder    Coder
	examiner Examiner
	keeper   Keeper
	now      func() time.Time
	began    time.Time
}

func (r *runner) carryOut(ctx, work context.Context, s State, act Action) (o Observation, err error) {
	// Saving must not die of the cancel that made it necessary.
	saving := context.WithoutCancel(ctx)
	if ctx.Err() != nil {
		var done context.CancelFunc
		saving, done = context.WithTimeout(saving, wrapUp)
		defer done()
	}
	switch act.Do {
	case AtBaseline:
		o.Baseline, err = r.examiner.Baseline(work)
	case AtAgent:
		o.Agent, err = r.coder.Code(work, r.turn(s))
	case AtSnapshot:
		o.Snapshot, err = r.coder.Snapshot(saving, s.Tick, s.Good)
	case AtGuard:
		o.Guard, err = r.examiner.Guard(saving, s.Tick, s.Good, act.Commit)
	case AtIteration, AtRegression:
		o.Gate, err = r.examiner.Gate(work, act.Do, act.Commit)
	case AtItem:
		o.Review, err = r.examiner.ReviewItem(work, s.Plan[s.Item()], s.PlanFrom, act.Commit)
	case AtReview:
		o.Review, err = r.examiner.Review(work, act.Commit)
	case AtProof:
		o.Proof, err = r.examiner.Prove(work, act.Commit)
	case AtRestore:
		err = r.coder.Restore(saving, act.Commit)
	case AtCheckpoint:
		err = r.keeper.Keep(saving, s)
	}
	return o, err
}

func (r *runner) turn(s State) Turn {
	return Turn{
		Tick: s.Tick, Used: s.Tick - s.TickFloor, MaxTicks: r.limits.MaxTicks,
		Left:     max(r.limits.MaxCost-s.Spent, 0),
		TimeLeft: r.limits.MaxDuration - r.limits.Reserve - r.now().Sub(r.began),
		Feedback: s.Feedback, Plan: s.Plan, Item: s.Item(),
	}
}
