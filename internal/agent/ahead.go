package agent

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// Starter is an agent whose process can be started before its prompt is known: it reads the prompt on stdin and does
// nothing before. How long such a process waits does not change what it does.
type Starter interface {
	Agent
	// Start starts the process of a call that may come, confined as it will be at work, and lets it wait. Of the task
	// all but Prompt, Tick and Timeout has to be what Run is given later. ctx bounds the process, not only its start.
	// nil without an error: it could not be started, and Agent.Run tells why.
	Start(ctx context.Context, t Task) (*Waiting, error)
}

// Waiting is a process that has been told nothing and so has cost nothing. It ends by Run or by End, one of which has
// to be called.
type Waiting struct {
	agent spoken
	task  Task
	say   *io.PipeWriter
	clock chan time.Duration
	hold  *hold
	on    atomic.Pointer[func(Event)]
	end   context.CancelFunc
	over  chan struct{} // closed when the process and all its descendants are gone
	out   Outcome
	err   error
}

// startAhead is Start of a spoken agent.
func startAhead(ctx context.Context, a spoken, t Task) (*Waiting, error) {
	w := &Waiting{agent: a, task: t, clock: make(chan time.Duration, 1), over: make(chan struct{})}
	j, refused, err := a.process(ctx, t, w.tell)
	if err != nil || refused != nil {
		return nil, err
	}
	ctx, w.end = context.WithCancel(ctx)
	w.hold = &hold{end: w.end}
	in, say := io.Pipe()
	w.say = say
	j.cmd.Stdin, j.cmd.Clock, j.hold = in, w.clock, w.hold
	go func() {
		defer close(w.over)
		w.out, w.err = j.run(ctx)
		_ = in.Close() // whoever still tells it something is let go
		w.end()
	}()
	return w, nil
}

func (w *Waiting) tell(e Event) {
	if on := w.on.Load(); on != nil {
		(*on)(e)
	}
}

// Run tells the process its prompt and sees the call through, as Agent.Run does. told is false, and nothing has
// happened, where the process cannot be used: it is gone, it has said something before it was asked, or the task is not
// the one it was started for.
func (w *Waiting) Run(ctx context.Context, t Task, on func(Event)) (o Outcome, told bool, err error) {
	words, refused, err := w.agent.words(t)
	if err != nil || refused != nil || !w.fits(t) {
		return Outcome{}, false, errors.Join(err, w.End())
	}
	if on != nil {
		w.on.Store(&on)
	}
	select {
	case <-w.over:
		return Outcome{}, false, w.End()
	default:
	}
	if !w.hold.open() {
		return Outcome{}, false, w.End()
	}
	defer context.AfterFunc(ctx, w.end)()
	began := time.Now()
	w.clock <- t.Timeout
	go func() {
		_, _ = w.say.Write(words) // a process that does not read its prompt tells no result
		_ = w.say.Close()
	}()
	<-w.over
	w.out.Duration = time.Since(began)
	return w.out, true, w.err
}

// End ends a process that is not needed and waits until all of it is gone. An error means that some of it is not.
func (w *Waiting) End() error {
	_ = w.say.Close()
	w.end()
	<-w.over
	// Whatever else went wrong with it meets whoever starts the next one.
	var left *sandbox.LeftoverError
	if errors.As(w.err, &left) {
		return w.err
	}
	return nil
}

// fits says whether the process was started for a task.
func (w *Waiting) fits(t Task) bool {
	was := w.task
	return t.Run == was.Run && t.Dir == was.Dir && t.Home == was.Home && t.Tmp == was.Tmp && t.Model == was.Model &&
		slices.Equal(t.Args, was.Args) && t.Grace == was.Grace && t.Gateway == was.Gateway
}

// hold stands between a waiting process and who reads it: what it says before it was asked is no answer, and ends it.
type hold struct {
	end func()

	mu     sync.Mutex
	out    io.Writer
	opened bool
	spoke  bool
}

func (h *hold) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.opened {
		return h.out.Write(p)
	}
	h.spoke = true
	h.end()
	return len(p), nil
}

// open lets through what is said from now on; false: something was said already.
func (h *hold) open() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened = !h.spoke
	return h.opened
}
