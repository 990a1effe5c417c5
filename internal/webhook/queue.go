package webhook

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/proctor-ci/proctor/internal/trigger"
)

// Message is a verified delivery on its way to a worker: names, ids and hashes, never a person's text. Encoded it
// stays below 8 kB.
type Message struct {
	Version  int // messageVersion; another one is left to whoever wrote it
	Delivery string
	Event    string
	Body     string // key of the body
	Trigger  trigger.Trigger
}

const messageVersion = 1

// Queue keeps messages until a worker is done with them. It may hand one out twice: claims see to the rest.
type Queue interface {
	// Send has kept m when it returns nil.
	Send(ctx context.Context, m Message) error
}

// ErrMessage is a message that no attempt will ever make sense of.
var ErrMessage = errors.New("not a message of this version")

// message leaves out what a worker reads again, or must not have.
func (d *delivery) message() Message {
	t := d.t
	t.Snapshot = t.Approved()
	t.Issue.Title, t.Issue.Body, t.Issue.Labels, t.Issue.URL = "", "", nil, ""
	if t.Run != nil {
		run := *t.Run
		run.Title = ""
		t.Run = &run
	}
	if t.Command != nil {
		c := *t.Command
		c.Args = nil
		if usd, err := t.Command.Amount(); err == nil {
			c.Args = []string{"+" + usd}
		}
		t.Command = &c
	}
	return Message{Version: messageVersion, Delivery: d.id, Event: d.event, Body: d.body, Trigger: t}
}

// Work does what a message asks for. retry says that the message has to come again later; an error that it never
// need: it goes to where somebody looks.
func (h *Handler) Work(ctx context.Context, m Message) (retry bool, err error) {
	if m.Version != messageVersion || m.Body == "" || m.Trigger.Kind == "" || m.Trigger.Kind == trigger.KindComment && m.Trigger.Command == nil ||
		m.Trigger.Kind == trigger.KindRun && m.Trigger.Run == nil || m.Trigger.Kind == trigger.KindCheck && (m.Trigger.Check == nil || m.Trigger.Change == nil) {
		return false, ErrMessage
	}
	start := h.cfg.Now()
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	d := delivery{forge: m.Trigger.Forge, event: m.Event, id: m.Delivery, body: m.Body, t: m.Trigger}
	a := guarded(&d, func() answer { return h.act(ctx, &d) })
	h.cfg.Log.LogAttrs(ctx, level(a), "worked", d.attrs(a, h.cfg.Now().Sub(start).Milliseconds())...)
	return a.Status == StatusRetry, nil
}

// Taken is a message that is ours for as long as its lease runs.
type Taken struct {
	Message  Message
	Receipt  []byte
	Attempts int // this one included
	Since    time.Time
}

// Source is the worker's side of a queue in the same process.
type Source interface {
	// Take gives the oldest message that is due, ErrEmpty when none is. ErrMessage names one that cannot be read: it has been set aside, and
	// the next call gives the next one.
	Take(ctx context.Context, lease time.Duration) (Taken, error)
	Done(ctx context.Context, t Taken) error
	// Aside keeps a message that nobody will work on by itself again, and why, for a person to look at.
	Aside(ctx context.Context, t Taken, why string) error
	// Later gives a message back, to be taken after d at the earliest.
	Later(ctx context.Context, t Taken, d time.Duration) error
	// Wake gives a value when a message may have come in.
	Wake() <-chan struct{}
}

// ErrEmpty is a queue without a message that is due.
var ErrEmpty = errors.New("no message is due")

// Bounds of the work on a queue.
const (
	workers      = 8
	pollEvery    = time.Second
	firstRetry   = 15 * time.Second
	longestRetry = 15 * time.Minute
	// giveUpAfter is as long as GitHub would deliver the event again.
	giveUpAfter = 72 * time.Hour
)

// Drain works on a queue until ctx ends, and returns when the last message in hand is dealt with.
func (h *Handler) Drain(ctx context.Context, src Source) {
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if !h.drainOne(ctx, src) {
					pause(ctx, src)
				}
			}
		})
	}
	wg.Wait()
}

func pause(ctx context.Context, src Source) {
	t := time.NewTimer(pollEvery)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-src.Wake():
	case <-t.C:
	}
}

// drainOne deals with one message; false when there is none, or none can be had.
func (h *Handler) drainOne(ctx context.Context, src Source) bool {
	// What was begun is finished: the signal that ends the process comes between two messages.
	ctx = context.WithoutCancel(ctx)
	m, err := src.Take(ctx, 2*(h.cfg.Timeout+settle))
	if errors.Is(err, ErrMessage) {
		h.cfg.Log.LogAttrs(ctx, slog.LevelError, "message set aside, it cannot be read: see webhook -set-aside list", slog.String(keyError, clip(err.Error())))
		return true
	}
	if err != nil {
		if !errors.Is(err, ErrEmpty) {
			h.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "no message can be taken", slog.String(keyError, clip(err.Error())))
		}
		return false
	}
	retry, err := h.Work(ctx, m.Message)
	attrs := []slog.Attr{slog.String(keyDelivery, m.Message.Delivery), slog.String(keyRepo, clip(m.Message.Trigger.Repo.FullName())), slog.Int(keyIssue, m.Message.Trigger.Issue.Number)}
	switch {
	case err != nil:
		h.cfg.Log.LogAttrs(ctx, slog.LevelError, "message set aside, another version wrote it: see webhook -set-aside list", attrs...)
		err = src.Aside(ctx, m, "another version wrote it")
	case retry && h.cfg.Now().Sub(m.Since) < giveUpAfter:
		err = src.Later(ctx, m, backoff(m.Attempts))
	case retry:
		h.cfg.Log.LogAttrs(ctx, slog.LevelError, "message set aside after three days of failures: ask again on the issue, or see webhook -set-aside list", attrs...)
		err = src.Aside(ctx, m, "it failed for three days")
	default:
		err = src.Done(ctx, m)
	}
	if err != nil {
		// Its lease ends by itself, and the claim keeps it from being done twice.
		h.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "message not settled", append(attrs, slog.String(keyError, clip(err.Error())))...)
	}
	return true
}

func backoff(attempts int) time.Duration {
	d := firstRetry
	for range attempts - 1 {
		if d *= 2; d >= longestRetry {
			return longestRetry
		}
	}
	return d
}
