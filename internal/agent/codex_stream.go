package agent

import "strings"

// codexReader reads `codex exec --json`.
type codexReader struct {
	r      reading
	on     func(Event)
	begun  int
	shells int // commands that ran, and how many of them failed in the CLI's own sandbox
	broken int
}

func newCodexReader(on func(Event)) *codexReader { return &codexReader{on: on} }

func (c *codexReader) reading() *reading { return &c.r }

func (c *codexReader) event(o object) bool {
	r := &c.r
	switch o.str("type") {
	case "thread.started", "thread.resumed":
		r.session = o.str("thread_id")
		c.tell(Event{Kind: "start"})
	case "turn.started":
		c.begun++
		r.usage.Turns = c.begun
	case "turn.completed":
		r.terminal, r.failed, r.kind, r.detail, r.lasting = true, false, "", "", false
		c.count(o.child("usage"))
		if c.broken > 0 && c.broken == c.shells {
			r.warn("sandbox_failure")
		}
		c.tell(Event{Kind: "result"})
	case "turn.failed":
		c.fail(o.child("error").str("message"))
	case "error":
		// A report on the way, such as a reconnect; only turn.failed ends a turn.
		c.tell(Event{Kind: "message", Text: o.str("message")})
	case "item.started", "item.updated":
		return known(o.child("item"))
	case "item.completed":
		return c.item(o.child("item"))
	case "token_count":
	default:
		return false
	}
	return true
}

// count takes usage that runs over the whole thread: it is replaced, never added, and cannot fall.
func (c *codexReader) count(u object) {
	r := &c.r.usage
	for name, field := range map[string]*int64{
		"input_tokens": &r.InputTokens, "output_tokens": &r.OutputTokens, "cached_input_tokens": &r.CacheRead,
	} {
		if n, ok := u.count(name); ok {
			*field = max(*field, n)
		}
	}
}

func (c *codexReader) fail(text string) {
	r := &c.r
	v := byWords(text)
	r.terminal, r.failed, r.kind, r.lasting, r.resetAt = true, true, v.kind, v.lasting, v.resetAt
	r.result, r.detail = text, text
	if r.kind == LimitBudget && r.usage.InputTokens == 0 {
		r.warn("usage_unknown")
	}
	c.tell(Event{Kind: "result", Text: text})
}

// itemKind reads the name that older versions wrote differently.
func itemKind(o object) string {
	if s := o.str("type"); s != "" {
		return s
	}
	return o.str("item_type")
}

func known(item object) bool {
	switch itemKind(item) {
	case "reasoning", "agent_message", "assistant_message", "command_execution", "file_change", "mcp_tool_call",
		"web_search", "todo_list", "error":
		return true
	}
	return false
}

func (c *codexReader) item(item object) bool {
	r := &c.r
	switch itemKind(item) {
	case "agent_message", "assistant_message":
		if text := item.str("text"); strings.TrimSpace(text) != "" {
			r.last = text
			c.tell(Event{Kind: "message", Text: text})
		}
	case "command_execution":
		c.shells++
		switch item.str("status") {
		case "declined":
			r.denied = append(r.denied, "command_execution")
		case "failed":
			if ownSandbox(item.str("aggregated_output")) {
				c.broken++
			}
		}
		c.tell(Event{Kind: "tool", Tool: "command", Text: item.str("command")})
	case "error":
		r.warn("error_item")
	}
	return known(item)
}

// ownSandbox recognises the CLI's sandbox failing to start inside another one.
func ownSandbox(output string) bool {
	return strings.HasPrefix(output, "bwrap:") || strings.Contains(output, "LandlockRestrict") ||
		strings.Contains(output, "codex-linux-sandbox")
}

func (c *codexReader) tell(e Event) { tell(c.on, e) }
