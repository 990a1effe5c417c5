package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// records is what SQS hands to a function.
// https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
type records struct {
	Records []json.RawMessage
}

// record is one of them.
type record struct {
	ID     string `json:"messageId"`
	Body   string `json:"body"`
	Source string `json:"eventSource"`
}

// ErrBatch fails an invocation: SQS then gives the whole batch again, which costs claims a look each and loses nothing.
var ErrBatch = errors.New("the batch has a record without an id, or could not be worked on")

// BatchResponse names the messages that have to come again; the others are done (ReportBatchItemFailures).
type BatchResponse struct {
	BatchItemFailures []BatchItemFailure `json:"batchItemFailures"`
}

// BatchItemFailure is one of them.
type BatchItemFailure struct {
	ItemIdentifier string `json:"itemIdentifier"`
}

// Invoke handles one invocation, whatever sent it: HTTP requests and schedules go to Lambda, a batch of SQS messages to Work. It
// fails none for what a message or a request says: a batch would come again whole, and a front door would answer 502. Only a batch
// whose messages cannot be told apart fails, since any other answer would delete them.
func (h *Handler) Invoke(ctx context.Context, event json.RawMessage) (out any, err error) {
	var r records
	isBatch := json.Unmarshal(event, &r) == nil && len(r.Records) > 0
	defer func() {
		if p := recover(); p != nil {
			h.cfg.Log.LogAttrs(ctx, slog.LevelError, "panic in an invocation")
			if out, err = h.plain(ctx, later("internal")), nil; isBatch {
				out, err = nil, ErrBatch
			}
		}
	}()
	if isBatch {
		return h.batch(ctx, r)
	}
	return h.Lambda(ctx, event)
}

// batch works on all messages at once: there are ten at most, and each waits for a forge.
func (h *Handler) batch(ctx context.Context, r records) (any, error) {
	recs, again := make([]record, len(r.Records)), make([]bool, len(r.Records))
	var wg sync.WaitGroup
	for i, raw := range r.Records {
		if err := json.Unmarshal(raw, &recs[i]); err != nil {
			recs[i].Source = "" // whatever could be read of it is not worked on
		}
		if recs[i].ID == "" {
			wg.Wait()
			h.cfg.Log.LogAttrs(ctx, slog.LevelError, "batch not understood: a record has no messageId")
			return nil, ErrBatch
		}
		wg.Go(func() { again[i] = h.workOn(ctx, recs[i]) })
	}
	wg.Wait()
	out := BatchResponse{BatchItemFailures: []BatchItemFailure{}}
	for i, rec := range recs {
		if again[i] {
			out.BatchItemFailures = append(out.BatchItemFailures, BatchItemFailure{rec.ID})
		}
	}
	return out, nil
}

// workOn tells whether the record has to come again: one that nobody understands does too, and lies in the dead-letter queue after a few times.
func (h *Handler) workOn(ctx context.Context, rec record) bool {
	var m Message
	var again bool
	err := ErrMessage
	if rec.Source == "aws:sqs" && json.Unmarshal([]byte(rec.Body), &m) == nil {
		again, err = h.Work(ctx, m)
	}
	if err != nil {
		h.cfg.Log.LogAttrs(ctx, slog.LevelError, "message not understood", slog.String(keyDelivery, clip(rec.ID)))
	}
	return again || err != nil
}

// Lazy makes the handler when the first event comes, since what it needs lies behind the network, which the init phase does
// not have. A delivery that is signed with none of the secrets makes it look once more, at most once a minute: the secret may
// have been rotated. It is safe for concurrent use.
type Lazy struct {
	// Load gives the handler with the secrets as they are now; the same one where nothing changed.
	Load func(ctx context.Context) (*Handler, error)
	Now  func() time.Time
	Log  *slog.Logger

	mu     sync.Mutex
	h      *Handler
	loaded time.Time
}

// refreshEvery bounds what strangers with bad signatures can make us ask for.
const refreshEvery = time.Minute

// Invoke is Handler.Invoke. Without a handler an invocation fails: nobody can say whether the event was good, and both
// queues and schedules try again.
func (l *Lazy) Invoke(ctx context.Context, event json.RawMessage) (any, error) {
	h, err := l.handler(ctx, nil)
	if err != nil {
		l.Log.LogAttrs(ctx, slog.LevelError, "not configured", slog.String(keyError, clip(err.Error())))
		return nil, errors.New("the webhook is not configured: its log says what is missing")
	}
	out, err := h.Invoke(ctx, event)
	if r, ok := out.(LambdaResponse); !ok || r.StatusCode != http.StatusUnauthorized {
		return out, err
	}
	fresh, ferr := l.handler(ctx, h)
	if ferr != nil || fresh == h {
		return out, err
	}
	return fresh.Invoke(ctx, event)
}

// handler gives the current one, or a newer one than stale where there may be one.
func (l *Lazy) handler(ctx context.Context, stale *Handler) (*Handler, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.h != nil && (l.h != stale || l.Now().Sub(l.loaded) < refreshEvery) {
		return l.h, nil
	}
	h, err := l.Load(ctx)
	if err != nil {
		if l.h != nil {
			l.loaded = l.Now() // the old one goes on; ask again in a minute
		}
		return l.h, err
	}
	l.h, l.loaded = h, l.Now()
	return h, nil
}
