package telemetry

import (
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

// Kinds of span and the code of an error, as OTLP numbers them.
const (
	kindInternal = 1
	kindClient   = 3
	codeError    = 2
)

// span is one span. Its attributes hold string, int64, float64 or bool.
type span struct {
	id, parent string
	name       string
	kind       int
	start, end time.Time
	attributes []attribute
	failed     string // in a word; empty: no error
}

type attribute struct {
	key   string
	value any
}

// set adds an attribute, unless it says nothing.
func (s *span) set(key string, value any) {
	if value != "" && value != nil {
		s.attributes = append(s.attributes, attribute{key, value})
	}
}

// ids draws ids for one trace.
type ids struct {
	random io.Reader
	trace  string
}

func newIDs(random io.Reader) (ids, error) {
	d := ids{random: random}
	id, err := d.draw(16)
	d.trace = id
	return d, err
}

func (d ids) draw(bytes int) (string, error) {
	b := make([]byte, bytes)
	for tries := 0; tries < 3; tries++ {
		if _, err := io.ReadFull(d.random, b); err != nil {
			return "", fmt.Errorf("draw an id: %w", err)
		}
		for _, c := range b {
			if c != 0 { // all zeros mean that there is no id
				return hex.EncodeToString(b), nil
			}
		}
	}
	return "", fmt.Errorf("draw an id: only zeros came")
}
