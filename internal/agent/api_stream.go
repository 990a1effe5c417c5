package agent

import (
	"time"

	"github.com/proctor-ci/proctor/internal/agent/toolloop"
)

// loopReader reads what the tool loop's child prints. What the model's commands print is never in it, but the child
// is confined, not trusted: every member is read as of any other agent.
type loopReader struct {
	r  reading
	on func(Event)
}

func newLoopReader(on func(Event)) *loopReader { return &loopReader{on: on} }

func (l *loopReader) reading() *reading { return &l.r }

func (l *loopReader) event(o object) bool {
	e := Event{Kind: o.str("type"), Tool: printable(o.str("tool"), 80), Text: printable(o.str("text"), eventMax)}
	switch e.Kind {
	case "start", "tool":
	case "message":
		l.r.last = o.str("text")
	case "result":
		l.result(o)
	default:
		return false
	}
	if l.on != nil {
		l.on(e)
	}
	return true
}

func (l *loopReader) result(o object) {
	r := &l.r
	r.terminal, r.failed, r.kind, r.lasting = true, true, AgentError, false
	r.detail, r.result = o.str("text"), o.str("final")
	turns, _ := o.count("turns")
	r.usage.Turns = int(turns)
	r.usage.InputTokens, _ = o.count("input_tokens")
	r.usage.OutputTokens, _ = o.count("output_tokens")
	r.usage.CacheRead, _ = o.count("cache_read")
	r.usage.CacheWrite, _ = o.count("cache_write")
	switch o.str("outcome") {
	case toolloop.EndedOK:
		r.failed, r.kind = false, OK
	case toolloop.EndedTurns:
		r.kind = LimitTurns
	case toolloop.EndedContext:
		r.lasting = true
	case toolloop.EndedCall:
		l.failedCall(o)
	}
}

func (l *loopReader) failedCall(o object) {
	r := &l.r
	status, _ := o.count("status")
	v, ok := byStatus(status, o.isTrue("quota"), r.detail)
	if !ok {
		v = verdict{kind: AgentError}
	}
	r.kind, r.lasting, r.resetAt = v.kind, v.lasting, v.resetAt
	if ms, ok := o.count("retry_ms"); ok && r.kind == LimitRate && ms < 1e9 {
		r.retryIn = time.Duration(ms) * time.Millisecond
	}
}
