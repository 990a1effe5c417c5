package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
)

// Bounds of one round: it is short, and the next one takes the rest. A request leaves up to four claims.
const (
	reapBatch    = 100
	reapBatches  = 10
	reapFailures = 100 // that were asked about; a forge that hangs takes its time over each
	reapTries    = 3   // failures of one repository, after which its other claims fare the same
)

// Reaped counts what a round did.
type Reaped struct {
	Freed   int // claims given back: their event can be delivered again
	Advance int // claims whose run was found and noted
	Failed  int // claims nobody could be asked about; the next round tries again
	Started int // requests that waited for room
}

// reaping is one round.
type reaping struct {
	out     Reaped
	stuck   map[string]bool // claims that failed, by id: the store gives them again, before those behind them
	asked   int             // of them
	refused map[string]refusal
}

// refusal is what a repository's claims met.
type refusal struct {
	times int
	err   error
}

// ask asks the forge about a claim, unless its repository has failed too often in this round.
func (r *reaping) ask(c Claim, look func() (forge.Run, error)) (forge.Run, error) {
	repo := fmt.Sprintf("%s:%d:%s", c.To.Forge, c.To.Install, c.To.Repo.FullName())
	past := r.refused[repo]
	if past.times == reapTries {
		return forge.Run{}, past.err
	}
	run, err := look()
	if err != nil && !errors.Is(err, errNoRun) && !errors.Is(err, ErrNoInstallation) {
		r.asked++
		r.refused[repo] = refusal{past.times + 1, err}
	}
	return run, err
}

// Reap looks at every claim whose lease is over. One that was being dispatched, or whose run never
// started, is given back, after the forge was asked for the run where it can be; a run that
// was not heard of again counts as over; one that has been over for long is forgotten. One that
// names no forge stands for no run, and is given back unasked. One whose forge refuses the answer is given back
// when no run can be left of it, and holds nobody up before. After the claims come the repositories that are
// watched for room.
func (h *Handler) Reap(ctx context.Context) (Reaped, error) {
	r := reaping{stuck: map[string]bool{}, refused: map[string]refusal{}}
	var unread error
	var due []Claim
	for range reapBatches {
		most := reapBatch + len(r.stuck)
		expired, err := h.cfg.Store.Expired(ctx, most)
		watched, claims := parted(expired)
		// Taken before the claims, which may have more to say of the same repositories, and looked at after them all.
		mine, derr := h.due(ctx, watched, maxLooks-len(due))
		due = append(due, mine...)
		for _, c := range claims {
			if !r.stuck[c.ID] && r.asked < reapFailures {
				h.reapOne(ctx, c, &r)
			}
		}
		if unread = errors.Join(err, derr); unread != nil || len(expired) < most || r.asked >= reapFailures || ctx.Err() != nil {
			break
		}
	}
	r.out.Started = h.look(ctx, due)
	return r.out, unread
}

func (h *Handler) reapOne(ctx context.Context, c Claim, r *reaping) {
	freed, err := h.reap(ctx, c, r)
	attrs := []slog.Attr{
		slog.String(keyRun, c.ID), slog.String(keyRepo, c.To.Repo.FullName()), slog.Int(keyIssue, c.Issue), slog.String(keyStatus, c.State.String()),
	}
	switch {
	case err != nil && !errors.Is(err, ErrLost):
		r.out.Failed++
		r.stuck[c.ID] = true
		h.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "claim not reaped", append(attrs, slog.String(keyError, clip(err.Error())))...)
	case freed:
		r.out.Freed++
		if c.State != Ended && c.To.Forge != "" {
			h.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "run never started; claim given back", attrs...)
		}
	default:
		r.out.Advance++
	}
}

func parted(all []Claim) (watched, claims []Claim) {
	for _, c := range all {
		if isWatch(c) {
			watched = append(watched, c)
		} else {
			claims = append(claims, c)
		}
	}
	return watched, claims
}

func (h *Handler) reap(ctx context.Context, c Claim, r *reaping) (freed bool, err error) {
	switch c.State {
	case Ended:
		return true, h.cfg.Store.Release(ctx, c.ID, c.Attempt, c.State)
	case Running:
		return false, h.ended(ctx, c)
	}
	if c.To.Forge == "" {
		// It was taken for a note to ourselves, and stands for no run that anybody could be asked about.
		return true, h.cfg.Store.Release(ctx, c.ID, c.Attempt, c.State)
	}
	run, err := r.ask(c, func() (forge.Run, error) { return h.lookUp(ctx, c) })
	switch {
	case err == nil:
		return false, h.found(ctx, c, run)
	case errors.Is(err, ErrNoInstallation):
		return true, h.cfg.Store.Release(ctx, c.ID, c.Attempt, c.State)
	case !errors.Is(err, errNoRun) && !h.hopeless(c, err):
		return false, err
	}
	if c.State == Dispatched && c.Turn != "" {
		// The end that started it has been dealt with; that of one which was never dispatched comes again by itself.
		if err := h.watch(ctx, c.To, 0); err != nil {
			return false, err
		}
	}
	return true, h.cfg.Store.Release(ctx, c.ID, c.Attempt, c.State)
}

// errNoRun: the forge has no run of the claim, or cannot say which is.
var errNoRun = errors.New("no run carries the claim's id")

func (h *Handler) lookUp(ctx context.Context, c Claim) (forge.Run, error) {
	f, err := h.cfg.Connect(ctx, c.To)
	if err != nil {
		return forge.Run{}, err
	}
	finder, ok := f.(forge.RunFinder)
	if !ok {
		return forge.Run{}, errNoRun
	}
	run, err := finder.FindRun(ctx, c.File, c.To.Repo.DefaultBranch, c.ID, c.Created.Add(-time.Minute))
	if errors.Is(err, forge.ErrNotFound) {
		return run, errNoRun
	}
	return run, err
}

// hopeless: the forge refuses to say, so that no other try will mend it, and for longer than a run may last.
func (h *Handler) hopeless(c Claim, err error) bool {
	return forgeAnswer(err).Status == StatusFailed && h.cfg.Now().Sub(c.Created) >= h.cfg.Leases.Running
}

// ended notes the end of a run that no delivery told of, and so left its room to nobody.
func (h *Handler) ended(ctx context.Context, c Claim) error {
	if !c.Roomless {
		if err := h.watch(ctx, c.To, c.Issue); err != nil {
			return err
		}
	}
	return h.cfg.Store.Mark(ctx, c.ID, c.Attempt, Ended, h.cfg.Leases.Ended)
}

// found notes a run that the claim did not know of. One that still waits for a runner is as good as
// running: it must not be asked for again.
func (h *Handler) found(ctx context.Context, c Claim, run forge.Run) error {
	if state, _ := h.stateOf(run.Status); state == Ended {
		return h.ended(ctx, c)
	}
	return h.cfg.Store.Mark(ctx, c.ID, c.Attempt, Running, h.cfg.Leases.Running)
}
