package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/proctor-ci/proctor/internal/inert"
	"github.com/proctor-ci/proctor/internal/money"
)

// Event is one line of events.jsonl. Fields hold string, bool or json.Number, by the keys of keys.go.
type Event struct {
	Time   time.Time
	Seq    int64 // from 1, without holes
	Kind   Kind
	Tick   int // 0 outside a tick
	Fields map[string]any
}

// Text is the field as text, "" when it is missing or something else.
func (e Event) Text(key string) string {
	s, _ := e.Fields[key].(string)
	return s
}

// Int is the field as a whole number, 0 when it is missing or something else.
func (e Event) Int(key string) int64 {
	n, _ := e.Fields[key].(json.Number)
	v, _ := n.Int64()
	return v
}

// Bool is the field as a truth value.
func (e Event) Bool(key string) bool {
	b, _ := e.Fields[key].(bool)
	return b
}

// USD is the field as an amount of dollars, 0 when it is missing or something else.
func (e Event) USD(key string) money.USD {
	n, _ := e.Fields[key].(json.Number)
	var v money.USD
	if v.UnmarshalJSON([]byte(n.String())) != nil {
		return 0
	}
	return v
}

// Cost makes an attribute of an amount of money.
func Cost(key string, v money.USD) slog.Attr { return slog.Any(key, v) }

// Events writes events as they happen, one JSON object a line, each handed to the operating system
// before Emit returns. It is safe for concurrent use. A nil *Events drops everything.
type Events struct {
	now func() time.Time
	red *Redactor
	on  func(Event)

	mu     sync.Mutex
	w      io.Writer
	closer io.Closer
	seq    int64
	err    error
}

// NewEvents writes to w with times from now. Text passes through red, which may be nil. on, when
// not nil, is told every event after it was written, in order; it must not call Emit.
func NewEvents(w io.Writer, now func() time.Time, red *Redactor, on func(Event)) *Events {
	return &Events{w: w, now: now, red: red, on: on}
}

// CreateEvents is NewEvents for a new EventsFile in dir, which is made when it is missing.
func CreateEvents(dir string, now func() time.Time, red *Redactor, on func(Event)) (*Events, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create event log: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, EventsFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create event log: %w", err)
	}
	e := NewEvents(f, now, red, on)
	e.closer = f
	return e, nil
}

// Emit writes one event. Attributes take the keys of keys.go and values that are text, numbers,
// truth values, durations (in milliseconds) or money; anything else is left out and shows in Err.
// A full disk never stops a run: the first failure is kept for Err, and watchers are still told.
func (e *Events) Emit(kind Kind, tick int, attrs ...slog.Attr) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seq++
	ev := Event{Time: e.now().UTC(), Seq: e.seq, Kind: kind, Tick: tick, Fields: make(map[string]any, len(attrs))}
	for _, a := range attrs {
		v, err := e.value(a)
		if err != nil {
			e.fail(err)
			continue
		}
		ev.Fields[a.Key] = v
	}
	if _, err := e.w.Write(append(encode(ev, attrs), '\n')); err != nil {
		e.fail(fmt.Errorf("write event log: %w", err))
	}
	if e.on != nil {
		e.on(ev)
	}
}

func (e *Events) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

func (e *Events) value(a slog.Attr) (any, error) {
	if !knownKey(a.Key) {
		return nil, fmt.Errorf("event key %q is not one of keys.go", a.Key)
	}
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return inert.Cut(e.red.String(strings.ToValidUTF8(v.String(), "\uFFFD")), maxEventText), nil
	case slog.KindBool:
		return v.Bool(), nil
	case slog.KindInt64:
		return json.Number(strconv.FormatInt(v.Int64(), 10)), nil
	case slog.KindUint64:
		return json.Number(strconv.FormatUint(v.Uint64(), 10)), nil
	case slog.KindDuration:
		return json.Number(strconv.FormatInt(v.Duration().Milliseconds(), 10)), nil
	}
	if usd, ok := v.Any().(money.USD); ok {
		return json.Number(usd.Decimal()), nil
	}
	return nil, fmt.Errorf("event key %q has a value of kind %s, which events do not hold", a.Key, v.Kind())
}

// encode writes the fixed keys first and the rest in the order of attrs.
func encode(ev Event, attrs []slog.Attr) []byte {
	var b bytes.Buffer
	put := func(key string, v any) {
		j, err := json.Marshal(v)
		if err != nil {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(key))
		b.WriteByte(':')
		b.Write(j)
	}
	put(keyTime, ev.Time)
	put(keySeq, ev.Seq)
	put(keyKind, ev.Kind)
	if ev.Tick != 0 {
		put(keyTick, ev.Tick)
	}
	seen := map[string]bool{}
	for _, a := range attrs {
		if v, ok := ev.Fields[a.Key]; ok && !seen[a.Key] {
			seen[a.Key] = true
			put(a.Key, v)
		}
	}
	return append(append([]byte{'{'}, b.Bytes()...), '}')
}

// Err is the first thing that could not be written.
func (e *Events) Err() error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// Close closes the file that CreateEvents opened and returns Err.
func (e *Events) Close() error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closer != nil {
		if err := e.closer.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			e.fail(fmt.Errorf("close event log: %w", err))
		}
	}
	return e.err
}

// DecodeEvent reads one line. Keys that this program does not know are left out, kinds are kept.
func DecodeEvent(line []byte) (Event, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return Event{}, fmt.Errorf("not an event: %w", err)
	}
	ev := Event{Fields: map[string]any{}}
	for k, v := range m {
		switch v := v.(type) {
		case string, bool, json.Number:
			if knownKey(k) {
				ev.Fields[k] = v
			}
		}
	}
	text, _ := m[keyTime].(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return Event{}, fmt.Errorf("not an event: %w", err)
	}
	seq, _ := m[keySeq].(json.Number)
	tick, _ := m[keyTick].(json.Number)
	kind, _ := m[keyKind].(string)
	if kind == "" {
		return Event{}, errors.New("not an event: it has no kind")
	}
	n, _ := tick.Int64()
	ev.Time, ev.Kind, ev.Tick = at, Kind(kind), int(n)
	ev.Seq, _ = seq.Int64()
	return ev, nil
}
