package toolloop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// anthropicWire is the Messages API.
// https://docs.anthropic.com/en/api/messages and /en/api/messages-streaming
type anthropicWire struct{}

func (anthropicWire) path() string { return "/v1/messages" }

func (anthropicWire) authorize(h http.Header, nonce string) {
	h.Set("X-Api-Key", nonce)
	h.Set("Anthropic-Version", "2023-06-01")
}

type anthropicMessage struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

type anthropicText struct {
	Type  string     `json:"type"`
	Text  string     `json:"text"`
	Cache *ephemeral `json:"cache_control,omitempty"`
}

type anthropicResult struct {
	Type    string     `json:"type"`
	ID      string     `json:"tool_use_id"`
	Content string     `json:"content"`
	Error   bool       `json:"is_error,omitempty"`
	Cache   *ephemeral `json:"cache_control,omitempty"`
}

type ephemeral struct {
	Type string `json:"type"`
}

var cached = &ephemeral{Type: "ephemeral"}

// request puts the cache's marks behind what stays the same: tools and system text, the task, and all that was said
// so far.
func (anthropicWire) request(o Order, c *conversation) ([]byte, error) {
	first := []any{&anthropicText{Type: "text", Text: c.Prompt, Cache: cached}}
	if note := c.droppedNote(); note != "" {
		first = append(first, &anthropicText{Type: "text", Text: note})
	}
	messages := []anthropicMessage{{Role: "user", Content: first}}
	for _, e := range c.Exchanges {
		answer := anthropicMessage{Role: "assistant"}
		for _, it := range e.Items {
			answer.Content = append(answer.Content, it)
		}
		next := anthropicMessage{Role: "user"}
		for i, r := range e.Results {
			next.Content = append(next.Content, &anthropicResult{Type: "tool_result", ID: e.Calls[i].ID, Content: r.Text, Error: r.Error})
		}
		if e.Nudge != "" {
			next.Content = append(next.Content, &anthropicText{Type: "text", Text: e.Nudge})
		}
		messages = append(messages, answer)
		if len(next.Content) > 0 {
			messages = append(messages, next)
		}
	}
	markLast(messages)
	var specs []map[string]any
	for _, t := range toolSpecs() {
		specs = append(specs, map[string]any{"name": t.Name, "description": t.Description, "input_schema": t.Schema})
	}
	return json.Marshal(map[string]any{
		"model": o.Model, "max_tokens": o.MaxOutput, "stream": true, "tools": specs, "messages": messages,
		"system": []anthropicText{{Type: "text", Text: c.System, Cache: cached}},
	})
}

func markLast(messages []anthropicMessage) {
	content := messages[len(messages)-1].Content
	switch last := content[len(content)-1].(type) {
	case *anthropicText:
		last.Cache = cached
	case *anthropicResult:
		last.Cache = cached
	}
}

type anthropicEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Usage anthropicUsage `json:"usage"`
	} `json:"message"`
	Block struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Name      string `json:"name"`
		Text      string `json:"text"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		Data      string `json:"data"`
	} `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Partial    string `json:"partial_json"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage anthropicUsage `json:"usage"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

type anthropicUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// see merges: the counts are cumulative, and a later event may leave some out.
func (u *usage) see(a anthropicUsage) {
	u.input, u.output = max(u.input, a.Input), max(u.output, a.Output)
	u.cacheRead, u.cacheWrite = max(u.cacheRead, a.CacheRead), max(u.cacheWrite, a.CacheWrite)
}

type anthropicBlock struct {
	kind, id, name  string
	text, signature strings.Builder
	done            bool
}

func (anthropicWire) read(r io.Reader) (reply, error) {
	a := anthropicAnswer{}
	err := events(r, a.event)
	switch {
	case errors.Is(err, errFinished):
		return a.reply()
	case errors.Is(err, io.EOF):
		return reply{}, errors.New("the answer ended before its last event")
	}
	return reply{}, err
}

// errFinished ends the reading of a stream at its last event.
var errFinished = errors.New("the stream is finished")

type anthropicAnswer struct {
	blocks []*anthropicBlock
	usage  usage
	reason string
}

func (a *anthropicAnswer) event(data []byte) error {
	var e anthropicEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("an event of the answer is not JSON: %w", err)
	}
	switch e.Type {
	case "message_start":
		a.usage.see(e.Message.Usage)
	case "content_block_start":
		if e.Index != len(a.blocks) {
			return fmt.Errorf("block %d of the answer starts where %d would", e.Index, len(a.blocks))
		}
		b := &anthropicBlock{kind: e.Block.Type, id: e.Block.ID, name: e.Block.Name}
		b.text.WriteString(e.Block.Text + e.Block.Thinking + e.Block.Data)
		b.signature.WriteString(e.Block.Signature)
		a.blocks = append(a.blocks, b)
	case "content_block_delta", "content_block_stop":
		if e.Index < 0 || e.Index >= len(a.blocks) {
			return fmt.Errorf("block %d of the answer never started", e.Index)
		}
		b := a.blocks[e.Index]
		b.done = b.done || e.Type == "content_block_stop"
		b.text.WriteString(e.Delta.Text + e.Delta.Partial + e.Delta.Thinking)
		b.signature.WriteString(e.Delta.Signature)
	case "message_delta":
		a.usage.see(e.Usage)
		if e.Delta.StopReason != "" {
			a.reason = e.Delta.StopReason
		}
	case "message_stop":
		return errFinished
	case "error":
		return &failed{status: anthropicStatus[e.Error.Type], code: e.Error.Type, message: e.Error.Message}
	}
	return nil // further kinds of event may come at any time
}

// anthropicStatus translates an error that is told within a stream.
// https://docs.anthropic.com/en/api/errors
var anthropicStatus = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403, "not_found_error": 404,
	"request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504, "overloaded_error": 529,
}

var anthropicStops = map[string]stop{
	"end_turn": stopEnd, "stop_sequence": stopEnd, "tool_use": stopTools, "max_tokens": stopLength,
	"refusal": stopRefusal, "pause_turn": stopPause, "model_context_window_exceeded": stopContext,
}

func (a *anthropicAnswer) reply() (reply, error) {
	out := reply{usage: a.usage, why: a.reason, stop: anthropicStops[a.reason]}
	if out.stop == 0 {
		return out, fmt.Errorf("the answer ended for a reason that is not known: %q", a.reason)
	}
	for i, b := range a.blocks {
		text := b.text.String()
		switch b.kind {
		case "text":
			if strings.TrimSpace(text) == "" {
				continue // it may be sent, and is refused when it is read back
			}
			out.text += text
			out.add(map[string]any{"type": "text", "text": text})
		case "thinking":
			out.add(map[string]any{"type": "thinking", "thinking": text, "signature": b.signature.String()})
		case "redacted_thinking":
			out.add(map[string]any{"type": "redacted_thinking", "data": text})
		case "tool_use":
			c := call{ID: b.id, Name: b.name, Input: text}
			c.Cut = !b.done || out.short() && i == len(a.blocks)-1 && !isObject(text)
			if text == "" {
				c.Input = "{}"
			}
			out.calls = append(out.calls, c)
			out.add(map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.valid()})
		}
	}
	if len(out.items) == 0 {
		out.add(map[string]any{"type": "text", "text": "(nothing was said)"})
	}
	return out, nil
}
