package webhook

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
)

// Bounds of one round: it is short, and the next one takes the rest. A request leaves up to four claims.
const (
	reapBatch   = 100
	reapBatches = 10
)

// Reaped counts what a round did.
type Reaped struct {
	Freed   int // claims given back: their event can be delivered again
	Advance int // claims whose run was found and noted
	Failed  int // claims nobody could be asked about; the next round tries again
	Started int // requests that waited for room
}

// Reap looks at every claim whose lease is over. One that was being dispatched, or whose run never
// started, is given back, after the forge was asked for the run where it can be; a run that
// was not heard of again counts as over; one that has been over for long is forgotten. One that
// names no forge stands for no run, and is given back unasked. After the claims come the repositories that are
// watched for room.
func (h *Handler) Reap(ctx context.Context) (Reaped, error) {
	var out Reaped
	var unread error
	var due []Claim
	for range reapBatches {
		expired, err := h.cfg.Store.Expired(ctx, reapBatch)
		watched, claims := parted(expired)
		// Taken before the claims, which may have more to say of the same repositories, and looked at after them all.
		mine, derr := h.due(ctx, watched, maxLooks-len(due))
		due = append(due, mine...)
		for _, c := range claims {
			h.reapOne(ctx, c, &out)
		}
		// What failed is among the next batch, too.
		if unread = errors.Join(err, derr); unread != nil || out.Failed > 0 || len(expired) < reapBatch || ctx.Err() != nil {
			break
		}
	}
	out.Started = h.look(ctx, due)
	return out, unread
}

func (h *Handler) reapOne(ctx context.Context, c Claim, out *Reaped) {
	freed, err := h.reap(ctx, c)
	attrs := []slog.Attr{
		slog.String(keyRun, c.ID), slog.String(keyRepo, c.To.Repo.FullName()), slog.Int(keyIssue, c.Issue), slog.String(keyStatus, c.State.String()),
	}
	switch {
	case err != nil && !errors.Is(err, ErrLost):
		out.Failed++
		h.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "claim not reaped", append(attrs, slog.String(keyError, clip(err.Error())))...)
	case freed:
		out.Freed++
		if c.State != Ended && c.To.Forge != "" {
			h.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "run never started; claim given back", attrs...)
		}
	default:
		out.Advance++
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

func (h *Handler) reap(ctx context.Context, c Claim) (freed bool, err error) {
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
	f, err := h.cfg.Connect(ctx, c.To)
	if errors.Is(err, ErrNoInstallation) {
		return true, h.cfg.Store.Release(ctx, c.ID, c.Attempt, c.State)
	}
	if err != nil {
		return false, err
	}
	if finder, ok := f.(forge.RunFinder); ok {
		run, err := finder.FindRun(ctx, c.File, c.To.Repo.DefaultBranch, c.ID, c.Created.Add(-time.Minute))
		switch {
		case err == nil:
			return false, h.found(ctx, c, run)
		case !errors.Is(err, forge.ErrNotFound):
			return false, err
		}
	}
	if c.State == Dispatched && c.Turn != "" {
		// The end that started it has been dealt with; that of one which was never dispatched comes again by itself.
		if err := h.watch(ctx, c.To, 0); err != nil {
			return false, err
		}
	}
	return true, h.cfg.Store.Release(ctx, c.ID, c.Attempt, c.State)
}

// ended notes the end of a run that no delivery told of, and so left its room to nobody.
func (h *Handler) ended(ctx context.Context, c Claim) error {
	if err := h.watch(ctx, c.To, c.Issue); err != nil {
		return err
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
