package meter

import (
	"bytes"
	"encoding/json"
	"maps"
)

// counter watches an answer go by and tells its usage at the end.
type counter interface {
	write(p []byte)
	// usage returns what was told. complete is false when the last word on it is missing, started
	// when the model had begun to work.
	usage() (u Usage, complete, started bool)
}

// usageLine is the longest line of a stream that can matter: usage events are a few hundred bytes.
const usageLine = 1 << 20

// sseCounter reads the usage out of server-sent events. It looks into a line only when the line may
// hold usage, so that text passes at the speed of a search for line feeds.
type sseCounter struct {
	line     []byte
	skipping bool
	tally    tally
	start    bool
	final    bool
}

func (c *sseCounter) write(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			c.keep(p)
			return
		}
		switch {
		case c.skipping:
			c.skipping = false
		case len(c.line) > 0:
			c.keep(p[:i])
			c.event(c.line)
		default:
			c.event(p[:i])
		}
		c.line = c.line[:0]
		p = p[i+1:]
	}
}

func (c *sseCounter) keep(p []byte) {
	if c.skipping {
		return
	}
	if len(c.line)+len(p) > usageLine {
		c.skipping, c.line = true, c.line[:0]
		return
	}
	c.line = append(c.line, p...)
}

func (c *sseCounter) event(line []byte) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok || !bytes.Contains(data, []byte(`"usage"`)) {
		return
	}
	var ev struct {
		Type    string          `json:"type"`
		Usage   json.RawMessage `json:"usage"`
		Message struct {
			Usage json.RawMessage `json:"usage"`
		} `json:"message"`
	}
	if json.Unmarshal(data, &ev) != nil {
		return
	}
	switch ev.Type {
	case "message_start":
		c.start = true
		c.tally.see(ev.Message.Usage)
	case "message_delta":
		c.start = true
		c.final = c.tally.see(ev.Usage) || c.final
	}
}

func (c *sseCounter) usage() (Usage, bool, bool) {
	u, ok := c.tally.usage()
	return u, ok && c.final, c.start
}

// bodyLimit is the largest answer that is kept to be read; one beyond it counts as without usage.
const bodyLimit = 32 << 20

// bodyCounter reads the usage of an answer that comes in one piece.
type bodyCounter struct {
	body []byte
	over bool
}

func (c *bodyCounter) write(p []byte) {
	if c.over = c.over || len(c.body)+len(p) > bodyLimit; !c.over {
		c.body = append(c.body, p...)
	}
}

func (c *bodyCounter) usage() (Usage, bool, bool) {
	var answer struct {
		Usage json.RawMessage `json:"usage"`
	}
	if c.over || json.Unmarshal(c.body, &answer) != nil {
		return Usage{}, false, true
	}
	var t tally
	seen := t.see(answer.Usage)
	u, ok := t.usage()
	return u, ok && seen, true
}

// tally merges the usage objects of one answer. They are cumulative, so the largest value of each
// field wins. A value that is no whole number, or a negative one, spoils it: such a report is not
// believed at all.
type tally struct {
	fields map[string]int64
	bad    bool
}

// see takes one usage object and says whether it told the output.
func (t *tally) see(raw json.RawMessage) bool {
	fields, ok := numbers(raw)
	if !ok {
		t.bad = t.bad || len(raw) > 0 && string(raw) != "null"
		return false
	}
	if sum, ok := iterations(raw); ok {
		for k, v := range sum {
			fields[k] = max(fields[k], v)
		}
	}
	if t.fields == nil {
		t.fields = map[string]int64{}
	}
	for k, v := range fields {
		t.fields[k] = max(t.fields[k], v)
	}
	_, told := fields["output_tokens"]
	return told
}

func (t *tally) usage() (Usage, bool) {
	f := t.fields
	_, in := f["input_tokens"]
	_, out := f["output_tokens"]
	long := f["ephemeral_1h_input_tokens"]
	write := max(f["cache_creation_input_tokens"], long+f["ephemeral_5m_input_tokens"])
	u := Usage{
		Input: f["input_tokens"], Output: f["output_tokens"], CacheRead: f["cache_read_input_tokens"],
		CacheWrite1h: long, CacheWrite5m: write - long,
	}
	return u, in && out && !t.bad
}

var counted = []string{
	"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
	"ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens",
}

// numbers reads the counts of one usage object; absent and null counts are left out.
func numbers(raw json.RawMessage) (map[string]int64, bool) {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return nil, false
	}
	if nested, ok := object["cache_creation"]; ok {
		var inner map[string]json.RawMessage
		if json.Unmarshal(nested, &inner) == nil {
			maps.Copy(object, inner)
		}
	}
	fields := map[string]int64{}
	for _, name := range counted {
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

// iterations sums the passes of a call that the provider ran more than once (context compaction):
// the counts beside them are of the last pass only, all are billed.
func iterations(raw json.RawMessage) (map[string]int64, bool) {
	var object struct {
		Iterations []json.RawMessage `json:"iterations"`
	}
	if json.Unmarshal(raw, &object) != nil || len(object.Iterations) == 0 {
		return nil, false
	}
	sum := map[string]int64{}
	for _, it := range object.Iterations {
		fields, ok := numbers(it)
		if !ok {
			return nil, false
		}
		for k, v := range fields {
			sum[k] += v
		}
	}
	return sum, true
}
