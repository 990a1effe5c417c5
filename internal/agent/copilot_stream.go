package agent

import "strings"

// copilotReader reads `copilot --output-format json`. Of the kinds of event it knows those that say what was done; the CLI
// has many more, which all have a type, an id and a time.
type copilotReader struct {
	r       reading
	on      func(Event)
	aborted bool // it was told to stop, behind which it tells a result of success
}

func newCopilotReader(on func(Event)) *copilotReader { return &copilotReader{on: on} }

func (c *copilotReader) reading() *reading { return &c.r }

func (c *copilotReader) event(o object) bool {
	r, data := &c.r, o.child("data")
	if data.str("agentId") != "" || o.str("agentId") != "" {
		return true // a sub-agent's
	}
	switch kind := o.str("type"); kind {
	case "assistant.turn_start":
		r.usage.Turns++
		if r.usage.Turns == 1 {
			c.tell(Event{Kind: "start"})
		}
	case "assistant.message":
		if text := data.str("content"); strings.TrimSpace(text) != "" {
			r.last = text
			c.tell(Event{Kind: "message", Text: text})
		}
	case "tool.execution_start":
		c.tell(Event{Kind: "tool", Tool: data.str("toolName"), Text: toolText(data.child("arguments"))})
	case "session.error":
		c.fail(data)
	case "abort", "agent.interrupted":
		c.aborted = true
	case "result":
		c.result(o)
	default:
		head, _, dotted := strings.Cut(kind, ".")
		return dotted && (head == "assistant" || head == "session" || head == "tool" || head == "model" || head == "user" || head == "permission")
	}
	return true
}

// fail takes a failure. What it was stands in it as a number where the API told one.
func (c *copilotReader) fail(data object) {
	r, text := &c.r, data.str("message")
	v := byWords(text)
	if status, ok := data.count("statusCode"); ok && (status == 402 || !ofMeter(text)) {
		if s, ok := byStatus(status, false, text); ok {
			v = s
		}
	}
	r.failed, r.kind, r.lasting, r.resetAt = true, v.kind, v.lasting, v.resetAt
	r.detail = text
}

// result is the last line. A failure before it stands, whatever the exit code says.
func (c *copilotReader) result(o object) {
	r := &c.r
	r.terminal, r.session = true, o.str("sessionId")
	if code, ok := o.count("exitCode"); !r.failed && (!ok || code != 0) {
		r.failed, r.kind, r.detail = true, AgentError, "it told a result that is no success and no reason"
	}
	c.tell(Event{Kind: "result", Text: r.detail})
}

// copilotOutcome holds a result against how the call ended: what was interrupted is not done.
func copilotOutcome(o Outcome, c *copilotReader, end ending) Outcome {
	if c.aborted && o.Kind == OK {
		o.Kind, o.Detail = unfinished(end, false)
	}
	return o
}

func (c *copilotReader) tell(e Event) { tell(c.on, e) }
