package agent

import "strings"

// openCodeReader reads `opencode run --format json`. The CLI tells no result: what its last step ended for, and whether it
// ended by itself, say how the call did.
type openCodeReader struct {
	r  reading
	on func(Event)
}

func newOpenCodeReader(on func(Event)) *openCodeReader { return &openCodeReader{on: on} }

func (c *openCodeReader) reading() *reading { return &c.r }

func (c *openCodeReader) event(o object) bool {
	r := &c.r
	part := o.child("part")
	if id := o.str("sessionID"); r.session == "" && id != "" {
		r.session = id
		c.tell(Event{Kind: "start"})
	}
	switch o.str("type") {
	case "step_start":
		r.usage.Turns++
		r.terminal = false
	case "text":
		if text := part.str("text"); strings.TrimSpace(text) != "" {
			r.last = text
			c.tell(Event{Kind: "message", Text: text})
		}
	case "reasoning":
	case "tool_use":
		r.terminal = false
		c.tell(Event{Kind: "tool", Tool: part.str("tool"), Text: toolText(part.child("state").child("input"))})
	case "step_finish":
		c.finish(part)
	case "error":
		c.fail(o.child("error"))
	default:
		return false
	}
	return true
}

// finish takes a step's end. Usage is that of one step.
func (c *openCodeReader) finish(part object) {
	r := &c.r
	tokens := part.child("tokens")
	for name, field := range map[string]*int64{"input": &r.usage.InputTokens, "output": &r.usage.OutputTokens} {
		n, _ := tokens.count(name)
		*field += n
	}
	for name, field := range map[string]*int64{"read": &r.usage.CacheRead, "write": &r.usage.CacheWrite} {
		n, _ := tokens.child("cache").count(name)
		*field += n
	}
	switch reason := part.str("reason"); reason {
	case "tool-calls":
	case "stop":
		r.terminal, r.failed, r.kind, r.detail, r.lasting = true, false, "", "", false
		c.tell(Event{Kind: "result"})
	default:
		r.terminal, r.failed, r.kind, r.detail = true, true, Incomplete, "its last answer ended for "+printable(reason, 40)
		c.tell(Event{Kind: "result", Text: r.detail})
	}
}

// fail takes an error. The API's status stands in it as a number.
func (c *openCodeReader) fail(e object) {
	r := &c.r
	data := e.child("data")
	text := data.str("message")
	if text == "" {
		text = e.str("name")
	}
	v := byWords(text)
	if status, ok := data.count("statusCode"); ok && !ofMeter(text) {
		if s, ok := byStatus(status, false, text+" "+data.str("responseBody")); ok {
			v = s
		}
	}
	r.terminal, r.failed, r.kind, r.lasting, r.resetAt = true, true, v.kind, v.lasting, v.resetAt
	r.result, r.detail = text, text
	c.tell(Event{Kind: "result", Text: text})
}

// openCodeOutcome holds a last step against how the process ended: a CLI that was ended or failed behind it did not
// come to its own end.
func openCodeOutcome(o Outcome, end ending) Outcome {
	if o.Kind == OK && end.ExitCode != 0 && !end.lateByUs {
		o.Kind, o.Detail = unfinished(end, false)
	}
	return o
}

func (c *openCodeReader) tell(e Event) { tell(c.on, e) }
