package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// An end that nobody heard of starts nobody who waits for its room. So the store keeps one claim for each repository where somebody may
// wait: when its lease is over, whoever takes it anew looks whether there is room. Nothing is asked about other repositories.
const (
	watchPrefix = "watch:"
	lookEvery   = 5 * time.Minute
	lookPause   = time.Hour // the longest between two looks at one repository
	maxLooks    = 20        // in one round
	putOff      = time.Minute
	lookTime    = 30 * time.Second
	oneLook     = 10 * time.Second // at one repository: one whose forge is slow leaves time for others
	unstarted   = 20               // waiting requests in a row
	eventLook   = "look"           // in the log
)

func isWatch(c Claim) bool { return strings.HasPrefix(c.ID, watchPrefix) }

func watchOf(to Target) Claim {
	return Claim{ID: fmt.Sprintf("%s%s:%d:%s", watchPrefix, to.Forge, to.Repo.ID, to.Repo.FullName()), To: to}
}

// looksIn doubles with each look that found nothing to do.
func looksIn(attempt int) time.Duration { return min(lookEvery<<min(attempt-1, 16), lookPause) }

// watch has a repository looked at, where it is not already, after a run of issue ended unheard; issue is 0 for a waiting one whose run never began.
func (h *Handler) watch(ctx context.Context, to Target, issue int) error {
	if h.cfg.Pulls == nil {
		return nil
	}
	c := watchOf(to)
	c.Issue = issue
	if _, err := h.cfg.Store.Claim(ctx, c, lookEvery); err != nil && !errors.Is(err, ErrTaken) {
		return err
	}
	return nil
}

// full notes that a run has just found no room: there is some again when fewer pull requests are open than now.
func (h *Handler) full(ctx context.Context, to Target) error {
	if h.cfg.Pulls == nil {
		return nil
	}
	open, err := h.openPulls(ctx, to)
	if err != nil {
		return err
	}
	return h.fullAt(ctx, to, open)
}

// fullAt notes how many pull requests leave no room, whatever was noted before.
func (h *Handler) fullAt(ctx context.Context, to Target, open int) error {
	c := watchOf(to)
	c.Full = max(open, 1)
	return h.persist(ctx, func(ctx context.Context) error {
		old, err := h.cfg.Store.Claim(ctx, c, lookEvery)
		if !errors.Is(err, ErrTaken) {
			return err
		}
		if err := h.unwatch(ctx, old); err != nil {
			return err
		}
		_, err = h.cfg.Store.Claim(ctx, c, lookEvery)
		return err
	})
}

func (h *Handler) unwatch(ctx context.Context, c Claim) error {
	if err := h.cfg.Store.Release(ctx, c.ID, c.Attempt, c.State); err != nil && !errors.Is(err, ErrLost) {
		return err
	}
	return nil
}

func (h *Handler) openPulls(ctx context.Context, to Target) (int, error) {
	counter, err := h.cfg.Pulls(ctx, to)
	if err != nil {
		return 0, err
	}
	heads, err := counter.OpenPulls(ctx, h.cfg.Branches)
	return len(heads), err
}

// due takes at most that many of the repositories whose look is due, each for one round alone. Those that are too many are put off, so that they keep no claim
// from the reaper, and come before the others then.
func (h *Handler) due(ctx context.Context, all []Claim, most int) (mine []Claim, err error) {
	for _, c := range all {
		lease := looksIn(c.Attempt + 1)
		if len(mine) == most {
			lease = putOff
		}
		taken, cerr := h.cfg.Store.Claim(ctx, Claim{ID: c.ID, To: c.To, Issue: c.Issue, Full: c.Full}, lease)
		switch {
		case errors.Is(cerr, ErrTaken):
		case cerr != nil:
			err = cerr
		case len(mine) < most:
			mine = append(mine, taken)
		}
	}
	return mine, err
}

// look looks at those that are due. What there is no time for has its next look later, and so has a repository that takes too long.
func (h *Handler) look(ctx context.Context, due []Claim) (started int) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	for _, c := range due {
		if ctx.Err() != nil {
			return started
		}
		a, err := h.lookSoon(ctx, c)
		if err != nil && a.Status == "" {
			a = later("store")
		}
		if a.Status == StatusDispatched {
			started++
		}
		if a.Status != "" {
			d := delivery{forge: c.To.Forge, event: eventLook, t: trigger.Trigger{Repo: c.To.Repo}, cause: err}
			h.cfg.Log.LogAttrs(ctx, level(a), "looked", d.attrs(a, 0)...)
		}
	}
	return started
}

func (h *Handler) lookSoon(ctx context.Context, c Claim) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, oneLook)
	defer cancel()
	return h.lookAt(ctx, c)
}

// lookAt starts the oldest waiting request of a repository that has room again, one at a look. The zero answer is for nothing to do.
func (h *Handler) lookAt(ctx context.Context, c Claim) (answer, error) {
	f, err := h.cfg.Connect(ctx, c.To)
	lister, lists := f.(forge.LabelLister)
	switch {
	case errors.Is(err, ErrNoInstallation), err == nil && !lists:
		return answer{}, h.unwatch(ctx, c)
	case err != nil:
		return forgeAnswer(err), err
	}
	queue, err := lister.Labelled(ctx, h.labels().Queued())
	if err != nil {
		return forgeAnswer(err), err
	}
	if len(queue) == 0 {
		return answer{}, h.unwatch(ctx, c)
	}
	if c.Full == 0 && c.Issue != 0 {
		issue, err := f.Issue(ctx, c.Issue)
		switch {
		case errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrMoved):
		case err != nil:
			return forgeAnswer(err), err
		case h.holdsRoom(issue):
			return answer{}, h.full(ctx, c.To)
		}
	}
	d := &delivery{forge: c.To.Forge, event: eventLook, t: trigger.Trigger{Forge: c.To.Forge, Repo: c.To.Repo, Install: c.To.Install}}
	used, err := h.usedRoom(ctx, f, lister, d, queue, c.Full)
	switch {
	case err != nil:
		return forgeAnswer(err), err
	case c.Full > 0 && used >= c.Full:
		return answer{}, nil
	case c.Full == 0:
		// Nobody has said how many are too many: one more than now, until a run finds out.
		if err := h.fullAt(ctx, c.To, used+1); err != nil {
			return later("store"), err
		}
	}
	a := h.first(ctx, f, d, queue, fmt.Sprintf("%s:%d:%d", c.ID, c.Created.UnixNano(), c.Attempt))
	if a.Reason == reasonTurn || a.Status == StatusRecorded {
		a = answer{} // those that are left have been started
	}
	return a, d.cause
}

// usedRoom counts the open pull requests of ours and the runs under way, each of which may become one, up to most, which is 0 for no bound. A label of a
// run that has not been heard of for longer than a job may last is what a lost machine left behind.
func (h *Handler) usedRoom(ctx context.Context, f Forge, lister forge.LabelLister, d *delivery, queue []forge.Issue, most int) (int, error) {
	used, err := h.openPulls(ctx, Target{Forge: d.t.Forge, Repo: d.t.Repo, Install: d.t.Install})
	enough := func() bool { return most > 0 && used >= most }
	if err != nil || enough() {
		return used, err
	}
	running, err := lister.Labelled(ctx, h.labels().Running())
	if err != nil {
		return 0, err
	}
	for _, issue := range running {
		if h.cfg.Now().Sub(issue.UpdatedAt) < h.cfg.Leases.Running {
			used++
		}
	}
	// Each costs a call. The oldest are started first: behind many in a row that nobody has started there are none.
	for i, idle := 0, 0; i < len(queue) && idle < unstarted && !enough(); i++ {
		started, err := h.started(ctx, f, d, queue[i])
		switch {
		case err != nil:
			return 0, err
		case started:
			used, idle = used+1, 0
		default:
			idle++
		}
	}
	return used, nil
}

// started: an end has started this waiting request, and its run has not ended.
func (h *Handler) started(ctx context.Context, f Forge, d *delivery, issue forge.Issue) (bool, error) {
	next, err := h.waiting(ctx, f, d, issue, "")
	if errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrMoved) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c, err := h.cfg.Store.Find(ctx, []string{next.turn})
	if errors.Is(err, ErrNoClaim) {
		return false, nil
	}
	return err == nil && c.State != Ended, err
}

// holdsRoom: an issue whose run has ended and that waits itself, or goes on, or has a draft, leaves no room.
func (h *Handler) holdsRoom(issue forge.Issue) bool {
	return h.labelled(issue, h.labels().Queued(), h.labels().Running(), h.labels().Review())
}

func (h *Handler) labels() policy.Labels { return policy.Labels{Trigger: h.cfg.Rules.Label} }

func (h *Handler) labelled(issue forge.Issue, names ...string) bool {
	return slices.ContainsFunc(issue.Labels, func(label string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(label, name) })
	})
}
