package agent

import (
	"encoding/json"
	"strings"
	"time"
)

// claudeReader reads `claude -p --output-format stream-json`.
type claudeReader struct {
	r  reading
	on func(Event)

	synthetic string // the error code of the last message that the CLI itself wrote
	quota     bool   // an allowance was told to be used up
	resetAt   time.Time
	retryIn   time.Duration
}

func newClaudeReader(on func(Event)) *claudeReader { return &claudeReader{on: on} }

func (c *claudeReader) reading() *reading { return &c.r }

func (c *claudeReader) event(o object) bool {
	switch o.str("type") {
	case "system":
		return c.system(o)
	case "assistant":
		c.assistant(o)
	case "user":
		// A tool's result: what it holds belongs to the agent.
	case "stream_event":
		// A part of a message that also comes whole.
	case "rate_limit_event":
		info := o.child("rate_limit_info")
		c.quota = info.str("status") == "rejected"
		if at, ok := info.count("resetsAt"); ok && c.quota {
			c.resetAt = time.Unix(at, 0).UTC()
		}
	case "result":
		c.result(o)
	default:
		return false
	}
	return true
}

func (c *claudeReader) system(o object) bool {
	switch o.str("subtype") {
	case "init":
		if s := o.str("session_id"); s != "" {
			c.r.session = s
		}
		c.tell(Event{Kind: "start", Text: o.str("model")})
	case "api_retry":
		if ms, ok := o.number("retry_delay_ms"); ok && ms > 0 && ms < 1e9 {
			c.retryIn = time.Duration(ms * float64(time.Millisecond))
		}
		c.tell(Event{Kind: "message", Text: "the model API is asked again: " + o.str("error")})
	case "compact_boundary":
	default:
		return false
	}
	return true
}

func (c *claudeReader) assistant(o object) {
	m := o.child("message")
	if m.str("model") == "<synthetic>" {
		c.synthetic = o.str("error")
	}
	mine := len(o["parent_tool_use_id"]) == 0 || string(o["parent_tool_use_id"]) == "null"
	for _, raw := range m.list("content") {
		block, _ := parseObject(raw)
		switch block.str("type") {
		case "text":
			text := block.str("text")
			if mine && strings.TrimSpace(text) != "" {
				c.r.last = text
			}
			c.tell(Event{Kind: "message", Text: text})
		case "tool_use":
			c.tell(Event{Kind: "tool", Tool: block.str("name"), Text: toolText(block.child("input"))})
		}
	}
}

// toolText names what a tool call is about, never what it writes.
func toolText(input object) string {
	for _, name := range []string{"file_path", "path", "command", "pattern", "description"} {
		if s := input.str(name); s != "" {
			return s
		}
	}
	return ""
}

// result reads a terminal event. Counts are of the process so far, the cost can only have grown.
func (c *claudeReader) result(o object) {
	r := &c.r
	r.terminal = true
	r.result = o.str("result")
	if s := o.str("session_id"); s != "" {
		r.session = s
	}
	if cost, ok := o.dollars("total_cost_usd"); ok {
		r.usage.CostUSD, r.usage.CostKnown = max(r.usage.CostUSD, cost), true
	}
	if n, ok := o.count("num_turns"); ok {
		r.usage.Turns = int(n)
	}
	u := o.child("usage")
	for name, field := range map[string]*int64{
		"input_tokens": &r.usage.InputTokens, "output_tokens": &r.usage.OutputTokens,
		"cache_read_input_tokens": &r.usage.CacheRead, "cache_creation_input_tokens": &r.usage.CacheWrite,
	} {
		if n, ok := u.count(name); ok {
			*field = n
		}
	}
	r.denied = nil
	for _, raw := range o.list("permission_denials") {
		d, _ := parseObject(raw)
		r.denied = append(r.denied, printable(d.str("tool_name"), 80)) // never tool_input: it may be huge or secret
	}
	c.decide(o)
	c.tell(Event{Kind: "result", Text: r.detail})
}

func (c *claudeReader) decide(o object) {
	r := &c.r
	subtype := o.str("subtype")
	r.failed, r.kind, r.lasting, r.detail, r.resetAt, r.retryIn = false, "", false, "", time.Time{}, 0
	if !o.isTrue("is_error") && subtype == "success" {
		return
	}
	r.failed = true
	text := r.result
	if text == "" {
		text = firstString(o.list("errors"))
	}
	r.detail = text
	switch subtype {
	case "error_max_turns":
		r.kind, r.detail = LimitTurns, "it used up the turns it was given"
	case "error_max_budget_usd":
		r.kind = LimitBudget
	case "success", "":
		v := c.classify(o, text)
		r.kind, r.lasting, r.resetAt = v.kind, v.lasting, v.resetAt
	default:
		r.kind = AgentError
		if r.detail == "" {
			r.detail = subtype
		}
	}
	if r.kind == LimitUsage && r.resetAt.IsZero() && !r.lasting {
		r.resetAt = c.resetAt
	}
	if r.kind == LimitRate {
		r.retryIn = c.retryIn
	}
}

// classify looks for the reason in this order: the status, the CLI's own error code, the words.
func (c *claudeReader) classify(o object, text string) verdict {
	if status, ok := o.count("api_error_status"); ok {
		if v, ok := byStatus(status, c.quota, text); ok {
			return v
		}
	}
	switch c.synthetic {
	case "authentication_failed", "oauth_org_not_allowed":
		return verdict{kind: Auth}
	case "billing_error":
		if ofMeter(text) {
			return verdict{kind: LimitBudget}
		}
		return verdict{kind: LimitUsage, lasting: true}
	case "rate_limit":
		v, _ := byStatus(429, c.quota, text)
		return v
	case "overloaded", "server_error":
		return verdict{kind: LimitRate}
	case "invalid_request", "model_not_found":
		return verdict{kind: AgentError, lasting: true}
	}
	return byWords(text)
}

func (c *claudeReader) tell(e Event) { tell(c.on, e) }

func firstString(list []json.RawMessage) string {
	for _, raw := range list {
		var s string
		if json.Unmarshal(raw, &s) == nil && s != "" {
			return s
		}
	}
	return ""
}
