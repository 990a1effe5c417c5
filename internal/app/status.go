package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/publish"
)

// statusKeeper keeps the status comment in step with the events, apart from the run: a slow forge must not
// slow the loop.
type statusKeeper struct {
	mu       sync.Mutex
	progress evidence.Progress
	comment  *publish.Status
	stop     context.CancelFunc
	done     chan struct{}
}

func (k *statusKeeper) hear(e evidence.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.progress.Apply(e)
}

// seen is the progress so far, in memory of its own: it is rendered while events go on coming in.
func (k *statusKeeper) seen() evidence.Progress {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.progress
	p.Baseline, p.Notes, p.Ticks = slices.Clone(p.Baseline), slices.Clone(p.Notes), slices.Clone(p.Ticks)
	for i := range p.Ticks {
		p.Ticks[i].Steps = slices.Clone(p.Ticks[i].Steps)
	}
	return p
}

// start begins to show the progress, now and every second; the comment itself limits how often it is edited.
func (k *statusKeeper) start(c *publish.Status) {
	ctx, stop := context.WithCancel(context.Background())
	k.comment, k.stop, k.done = c, stop, make(chan struct{})
	go func() {
		defer close(k.done)
		for {
			p := k.seen()
			// What cannot be shown now is shown at the next turn; the final word tells a lasting failure.
			_ = c.Show(ctx, p)
			if clock.Sleep(ctx, time.Second) != nil {
				return
			}
		}
	}()
}

// finish writes the final word.
func (k *statusKeeper) finish(ctx context.Context, r evidence.Record) error {
	if k.comment == nil {
		return nil
	}
	if k.stop != nil {
		k.stop()
		<-k.done
	}
	return k.comment.Finish(ctx, r)
}
