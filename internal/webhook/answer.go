package webhook

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/proctor-ci/proctor/internal/trigger"
)

// Status is what became of a delivery, in one word.
type Status string

// Statuses. Everything that was understood is answered with 2xx, or the forge switches the webhook off.
const (
	StatusDispatched Status = "dispatched"
	StatusQueued     Status = "queued"    // kept; a worker takes it from here
	StatusAnswered   Status = "answered"  // a command that needed no run
	StatusRecorded   Status = "recorded"  // noted: ping, installation, a run's progress
	StatusDuplicate  Status = "duplicate" // this event has its run
	StatusIgnored    Status = "ignored"   // nothing to do
	StatusRefused    Status = "refused"   // not allowed
	StatusFailed     Status = "failed"    // cannot be dispatched until somebody changes something
	StatusRetry      Status = "retry"     // not now: deliver it again
	StatusInvalid    Status = "invalid"   // not a delivery at all
)

// answer is all that a caller ever learns: words from our own lists.
type answer struct {
	Code   int    `json:"-"`
	Status Status `json:"status"`
	Reason string `json:"reason,omitempty"`
	Run    string `json:"proctor_id,omitempty"`
	// Hint is a fixed sentence for whoever set the webhook up.
	Hint       string `json:"hint,omitempty"`
	retryAfter int    // seconds
}

func invalid(code int, reason, hint string) answer {
	return answer{Code: code, Status: StatusInvalid, Reason: reason, Hint: hint}
}

func accepted(s Status, reason string) answer {
	return answer{Code: http.StatusAccepted, Status: s, Reason: reason}
}

// later asks for another delivery. GitHub does not repeat a failed one by itself, but shows it as failed
// and repeats it on request.
func later(reason string) answer {
	return answer{Code: http.StatusServiceUnavailable, Status: StatusRetry, Reason: reason, retryAfter: 60}
}

func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if a.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(a.retryAfter))
	}
	body, err := json.Marshal(a)
	if err != nil {
		a.Code, body = http.StatusInternalServerError, []byte(`{"status":"retry"}`)
	}
	w.WriteHeader(a.Code)
	// A caller that is gone needs no answer.
	_, _ = w.Write(append(body, '\n'))
}

// Keys of the one log line per delivery.
const (
	keyForge    = "forge"
	keyEvent    = "event"
	keyAction   = "action"
	keyDelivery = "delivery"
	keyRepo     = "repo"
	keyIssue    = "issue"
	keyActor    = "actor"
	keyCommand  = "command"
	keyCode     = "code"
	keyStatus   = "status"
	keyReason   = "reason"
	keyRun      = "proctor_id"
	keyBytes    = "bytes"
	keyMillis   = "ms"
	keyError    = "error"
)

// delivery is what is known about one request, for its log line.
type delivery struct {
	forge trigger.Forge
	event string
	id    string
	bytes int
	body  string // bodyKey of the body
	turn  string // Claim.Turn of what it asks for
	t     trigger.Trigger
	cause error // why it could not be handled: a forge's or store's error, never a payload
}

func (d *delivery) attrs(a answer, ms int64) []slog.Attr {
	out := make([]slog.Attr, 0, 16)
	str := func(k, v string) {
		if v != "" {
			out = append(out, slog.String(k, v))
		}
	}
	str(keyForge, string(d.forge))
	str(keyEvent, d.event)
	str(keyAction, clip(d.t.Action))
	str(keyDelivery, d.id)
	if d.t.Repo.Name != "" {
		str(keyRepo, clip(d.t.Repo.FullName()))
	}
	if d.t.Issue.Number > 0 {
		out = append(out, slog.Int(keyIssue, d.t.Issue.Number))
	}
	str(keyActor, clip(d.t.Actor.Login))
	if d.t.Command != nil {
		if _, ok := d.t.Command.Info(); ok {
			str(keyCommand, d.t.Command.Name)
		}
	}
	out = append(out, slog.Int(keyCode, a.Code), slog.String(keyStatus, string(a.Status)))
	str(keyReason, a.Reason)
	str(keyRun, a.Run)
	out = append(out, slog.Int(keyBytes, d.bytes), slog.Int64(keyMillis, ms))
	if d.cause != nil {
		str(keyError, clip(d.cause.Error()))
	}
	return out
}

// clip bounds what a log line takes from outside; slog's handlers escape it.
func clip(s string) string {
	const most = 300
	if len(s) > most {
		return s[:most]
	}
	return s
}
