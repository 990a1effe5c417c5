// Package telemetry owns how a run is told to an OpenTelemetry collector: spans made of the run's own events, sent as
// OTLP over HTTP. It must never carry a payload, hold a run up, or be a reason for a run to fail.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
)

// sendTime bounds one request to the collector.
const sendTime = 5 * time.Second

// Tracer sends a run's spans: what has ended, after each tick, and the rest at Close. A nil *Tracer does nothing.
type Tracer struct {
	spans *spans
	to    *exporter

	sending sync.WaitGroup
	mu      sync.Mutex
	err     error
}

// New returns a tracer for one run, or nil where the configuration names no collector. random draws the ids.
func New(c Config, random io.Reader) (*Tracer, error) {
	if c.Endpoint == "" {
		return nil, nil
	}
	to, err := newExporter(c)
	if err != nil {
		return nil, err
	}
	s, err := newSpans(random)
	if err != nil {
		return nil, fmt.Errorf("begin a trace: %w", err)
	}
	return &Tracer{spans: s, to: to}, nil
}

// Apply takes the next event of the run. It does not wait for the collector. It is called by one goroutine at a time.
func (t *Tracer) Apply(e evidence.Event) {
	if t == nil {
		return
	}
	t.spans.apply(e)
	if e.Kind == evidence.TickEnded {
		t.send(context.Background())
	}
}

// send hands over what has ended so far.
func (t *Tracer) send(ctx context.Context) {
	batch := t.spans.ended()
	if len(batch) == 0 {
		return
	}
	t.sending.Go(func() {
		ctx, done := context.WithTimeout(ctx, sendTime)
		defer done()
		if err := t.to.export(ctx, batch, t.spans.ids.trace); err != nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.err = errors.Join(t.err, err)
		}
	})
}

// Close ends what is open, sends the rest and waits for the collector until ctx ends. Its error says what could not be
// delivered; it names no header.
func (t *Tracer) Close(ctx context.Context, now time.Time) error {
	if t == nil {
		return nil
	}
	t.spans.close(now)
	t.send(ctx)
	all := make(chan struct{})
	go func() { t.sending.Wait(); close(all) }()
	select {
	case <-all:
	case <-ctx.Done():
		return fmt.Errorf("send the trace to %s: %w", t.to.host(), ctx.Err())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}
