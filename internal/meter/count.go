package meter

import (
	"bytes"
	"encoding/json"
)

// counter watches an answer go by and tells its usage at the end.
type counter interface {
	write(p []byte)
	// usage returns what was told. complete is false when the last word on it is missing, started
	// when the model had begun to work.
	usage() (u Usage, complete, started bool)
}

// usageReader reads the usage out of one API's answers: the events of a stream, or one whole answer.
type usageReader interface {
	event(data []byte) // one JSON document
	usage() (u Usage, complete, started bool)
}

// usageLine is the longest line of a stream that is read. OpenAI's last event repeats the whole answer.
const usageLine = 32 << 20

// streamCounter reads server-sent events. A block is searched for the mark of usage alone, and only a line that holds it is
// looked into; what is kept of a block is the beginning of the line that its end cuts. So text passes at the speed of
// a search for one letter.
type streamCounter struct {
	usageReader
	mark     mark
	line     []byte // the line that goes on in the next block
	skipping bool   // it is too long to be kept
}

func newStreamCounter(m mark, r usageReader) *streamCounter {
	return &streamCounter{usageReader: r, mark: m}
}

func (c *streamCounter) write(p []byte) {
	if len(c.line) > 0 || c.skipping {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			c.keep(p)
			return
		}
		if c.keep(p[:i]); !c.skipping && c.mark.in(c.line) >= 0 {
			c.read(c.line)
		}
		c.line, c.skipping = c.line[:0], false
		p = p[i+1:]
	}
	end := bytes.LastIndexByte(p, '\n') + 1
	c.whole(p[:end])
	c.keep(p[end:])
}

// whole looks for usage in lines that each have their line feed.
func (c *streamCounter) whole(p []byte) {
	for {
		i := c.mark.in(p)
		if i < 0 {
			return
		}
		end := i + bytes.IndexByte(p[i:], '\n')
		c.read(p[bytes.LastIndexByte(p[:i], '\n')+1 : end])
		p = p[end+1:]
	}
}

func (c *streamCounter) keep(p []byte) {
	if c.skipping {
		return
	}
	if len(c.line)+len(p) > usageLine {
		c.skipping, c.line = true, nil
		return
	}
	c.line = append(c.line, p...)
}

func (c *streamCounter) read(line []byte) {
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		c.event(data)
	}
}

// mark is a name or a value of JSON as a line holds it. Its rarest letter is what is searched for: quotes and vowels stand
// everywhere in a stream of JSON.
type mark struct {
	text   string
	rarest int // index in text
}

// The marks of the APIs' usage, and of a piece of Chat Completions.
var (
	usageMark    = mark{`"usage"`, 4}
	metadataMark = mark{`"usageMetadata"`, 6}
	chunkMark    = mark{`"chat.completion.chunk"`, 21}
)

// in is the index of the first mark in p; -1 when there is none.
func (m mark) in(p []byte) int {
	for at := 0; ; at++ {
		i := bytes.IndexByte(p[at:], m.text[m.rarest])
		if i < 0 {
			return -1
		}
		at += i
		if begin := at - m.rarest; begin >= 0 && len(p)-begin >= len(m.text) && string(p[begin:begin+len(m.text)]) == m.text {
			return begin
		}
	}
}

// bodyLimit is the largest answer that is kept to be read; one beyond it counts as without usage.
const bodyLimit = 32 << 20

// bodyCounter reads an answer that comes in one piece.
type bodyCounter struct {
	usageReader
	body []byte
	over bool
}

func (c *bodyCounter) write(p []byte) {
	if c.over = c.over || len(c.body)+len(p) > bodyLimit; !c.over {
		c.body = append(c.body, p...)
	}
}

func (c *bodyCounter) usage() (Usage, bool, bool) {
	if c.over {
		return Usage{}, false, true
	}
	c.event(c.body)
	u, complete, _ := c.usageReader.usage()
	return u, complete, true
}

// tally merges the usage objects of one answer. They are cumulative, so the largest value of each
// field wins. A value that is no whole number, or a negative one, spoils it: such a report is not
// believed at all.
type tally struct {
	names  []string // the counts that are read
	within []string // members whose own counts are read as if they stood beside
	fields map[string]int64
	bad    bool
}

// see takes one usage object and returns the counts in it; nil when it is none.
func (t *tally) see(raw json.RawMessage) map[string]int64 {
	fields, ok := t.read(raw)
	if !ok {
		t.bad = t.bad || len(raw) > 0 && string(raw) != "null"
		return nil
	}
	t.merge(fields)
	return fields
}

func (t *tally) merge(fields map[string]int64) {
	if t.fields == nil {
		t.fields = map[string]int64{}
	}
	for k, v := range fields {
		t.fields[k] = max(t.fields[k], v)
	}
}

// read reads the counts of one usage object; absent and null counts are left out.
func (t *tally) read(raw json.RawMessage) (map[string]int64, bool) {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return nil, false
	}
	for _, name := range t.within {
		var inner map[string]json.RawMessage
		if json.Unmarshal(object[name], &inner) != nil {
			continue
		}
		for k, v := range inner {
			if _, beside := object[k]; !beside {
				object[k] = v
			}
		}
	}
	fields := map[string]int64{}
	for _, name := range t.names {
		value, ok := object[name]
		if !ok || string(value) == "null" {
			continue
		}
		var n int64
		if json.Unmarshal(value, &n) != nil || n < 0 {
			return nil, false
		}
		fields[name] = n
	}
	return fields, true
}

func has(fields map[string]int64, name string) bool { _, ok := fields[name]; return ok }
