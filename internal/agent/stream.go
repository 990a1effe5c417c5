package agent

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// reading is what a stream has said so far. Only structure decides: a text is looked at when the
// structure says failure and leaves open which.
type reading struct {
	terminal bool // a terminal event was read; the last one decides
	failed   bool
	kind     Kind // of the failure
	detail   string
	lasting  bool   // the same call would fail the same way again
	result   string // the terminal event's text
	last     string // the last text of the main thread
	session  string
	usage    Usage
	denied   []string
	retryIn  time.Duration
	resetAt  time.Time
	warnings []string
}

// reader turns the events of one agent's stream into a reading.
type reader interface {
	// event takes one JSON object and says whether it was an event that is known.
	event(o object) bool
	reading() *reading
}

// stream feeds a reader from what a process prints and keeps count of what is no event.
type stream struct {
	reader
	on      func(Event)
	skipped int
	events  int
	early   []byte // what came before the first event, for output that is one document
	first   bool
	lines   lines
}

// earlyMax bounds the memory for output that is one document over many lines.
const earlyMax = 1 << 20

func newStream(r reader, on func(Event)) *stream {
	s := &stream{reader: r, on: on, first: true}
	s.lines = lines{each: s.line, long: s.skip}
	return s
}

func (s *stream) Write(p []byte) (int, error) { return s.lines.Write(p) }

func (s *stream) skip() {
	s.skipped++
	if s.on != nil && s.skipped == 1 { // once: a flood of noise is no flood of events
		s.on(Event{Kind: "noise"})
	}
}

func (s *stream) line(b []byte) {
	if s.first {
		s.first = false
		b = bytes.TrimPrefix(b, []byte("\uFEFF"))
	}
	if s.events == 0 && len(s.early)+len(b) < earlyMax {
		s.early = append(append(s.early, b...), '\n')
	}
	// Only what JSON itself calls white space: any other byte makes the line something else.
	b = bytes.Trim(b, " \t\r")
	if len(b) == 0 {
		return
	}
	if !s.document(b) {
		s.skip()
	}
}

// document takes one event, or a list of them.
func (s *stream) document(b []byte) bool {
	if b[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(b, &list) != nil {
			return false
		}
		known := false
		for _, item := range list {
			known = s.one(item) || known
		}
		return known
	}
	return s.one(b)
}

func (s *stream) one(b []byte) bool {
	if b[0] != '{' {
		return false // most noise, without the cost of a parser
	}
	o, ok := parseObject(b)
	if !ok || !s.event(o) {
		return false
	}
	s.events++
	return true
}

// close reads what has no line feed behind it, and output that is one document over many lines.
func (s *stream) close() {
	s.lines.end()
	if s.events == 0 {
		if whole := bytes.TrimSpace(s.early); len(whole) > 0 && s.document(whole) {
			s.skipped = 0
		}
	}
	s.early = nil
}

// object is a JSON object whose members are read one by one, so that a member of an unexpected type
// is void and the rest still counts. Names are compared exactly.
type object map[string]json.RawMessage

func parseObject(b []byte) (object, bool) {
	var o object
	if json.Unmarshal(b, &o) != nil || o == nil {
		return nil, false
	}
	return o, true
}

func (o object) str(name string) string {
	var s string
	if json.Unmarshal(o[name], &s) != nil {
		return ""
	}
	return s
}

func (o object) isTrue(name string) bool {
	var v bool
	return json.Unmarshal(o[name], &v) == nil && v
}

// number reads a number; ok is false for anything else, null included.
func (o object) number(name string) (float64, bool) {
	raw := o[name]
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}

// count reads a number of things: whole, not negative.
func (o object) count(name string) (int64, bool) {
	f, ok := o.number(name)
	if !ok || f < 0 || f > 1e15 || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

func (o object) child(name string) object {
	c, _ := parseObject(o[name])
	return c
}

func (o object) list(name string) []json.RawMessage {
	var l []json.RawMessage
	if json.Unmarshal(o[name], &l) != nil {
		return nil
	}
	return l
}

// dollars reads an amount that an agent claims; it is not billed, so that rounding is harmless.
func (o object) dollars(name string) (money.USD, bool) {
	f, ok := o.number(name)
	if !ok || f < 0 || f > 1e9 {
		return 0, false
	}
	return money.USD(math.Round(f * float64(money.Dollar))), true
}

func (r *reading) warn(name string) {
	for _, w := range r.warnings {
		if w == name {
			return
		}
	}
	r.warnings = append(r.warnings, name)
}
