package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// msg is one answer in the making.
type msg struct {
	id    string
	req   Request
	turn  Turn
	parts []map[string]any
	usage any
	early any // what message_start reports
}

// LongText is so many bytes in which nothing comes again: a CLI that sees a text repeat itself stops reading.
func LongText(bytes int) string {
	var b strings.Builder
	for n := 0; b.Len() < bytes; n++ {
		fmt.Fprintf(&b, "%d ", n)
	}
	return b.String()[:bytes]
}

func newMessage(req Request, t Turn) msg {
	m := msg{id: fmt.Sprintf("msg_%02d_%03d", req.Attempt, req.Turn+1), req: req, turn: t}
	if t.Text != "" || len(t.Tools) == 0 {
		m.parts = append(m.parts, map[string]any{"type": "text", "text": t.Text})
	}
	if t.Big > 0 {
		m.parts = append(m.parts, map[string]any{"type": "text", "text": LongText(t.Big)})
	}
	for i, tool := range t.Tools {
		m.parts = append(m.parts, map[string]any{
			"type": "tool_use", "id": fmt.Sprintf("toolu_%02d_%03d_%d", req.Attempt, req.Turn+1, i), "name": tool.Name, "input": fill(tool.Input, req.Dir),
		})
	}
	m.early, m.usage = m.usages()
	return m
}

func fill(input map[string]any, dir string) map[string]any {
	out := map[string]any{}
	for k, v := range input {
		if s, ok := v.(string); ok {
			v = strings.ReplaceAll(s, "{{dir}}", dir)
		}
		out[k] = v
	}
	return out
}

// counts are what the answer is to report; nil: nothing.
func (m msg) counts() *Usage {
	u := m.turn.Usage
	switch {
	case u == nil:
		text, _ := json.Marshal(m.parts) // maps of strings
		return &Usage{Input: int64(len(m.req.Body)/4 + 1), Output: int64(len(text)/4 + 1)}
	case u.None:
		return nil
	}
	return u
}

// usages are the numbers of message_start and of the end.
func (m msg) usages() (early, final any) {
	u := m.counts()
	switch {
	case u == nil:
		return nil, nil
	case u.Raw != "":
		return json.RawMessage(u.Raw), json.RawMessage(u.Raw)
	}
	all := func(out int64) map[string]int64 {
		return map[string]int64{"input_tokens": u.Input, "output_tokens": out,
			"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite}
	}
	return all(1), all(u.Output)
}

func (m msg) stop() string {
	switch {
	case m.turn.Stop != "":
		return m.turn.Stop
	case len(m.turn.Tools) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// whole is the answer in one piece.
func (m msg) whole() map[string]any {
	out := map[string]any{
		"id": m.id, "type": "message", "role": "assistant", "model": m.req.Model, "content": m.parts,
		"stop_reason": m.stop(), "stop_sequence": nil,
	}
	if m.usage != nil {
		out["usage"] = m.usage
	}
	return out
}

// stream writes the answer as the API does, event by event, each flushed.
func (m msg) stream(w http.ResponseWriter, a api) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Request-Id", "req_"+m.id)
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	events, named := a.events(m)
	if n := m.turn.Fault.CutAfter; n > 0 && n < len(events) {
		events = events[:n]
	}
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			return
		}
		if named {
			data = fmt.Appendf(nil, "event: %s\ndata: %s\n\n", e["type"], data)
		} else {
			data = fmt.Appendf(nil, "data: %s\n\n", data)
		}
		if _, err := w.Write(data); err != nil {
			return
		}
		_ = rc.Flush() // a client that has gone shows at the next write
	}
	if m.turn.Fault.CutAfter > 0 {
		panic(http.ErrAbortHandler) // the connection ends without the end of the body
	}
	if a == chat {
		_, _ = w.Write([]byte("data: [DONE]\n\n"))
	}
}

func (m msg) events() []map[string]any {
	start := map[string]any{
		"id": m.id, "type": "message", "role": "assistant", "model": m.req.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
	}
	if m.early != nil {
		start["usage"] = m.early
	}
	out := []map[string]any{{"type": "message_start", "message": start}, {"type": "ping"}}
	for i, part := range m.parts {
		out = append(out, partEvents(i, part)...)
	}
	end := map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": m.stop(), "stop_sequence": nil}}
	if m.usage != nil {
		end["usage"] = m.usage
	}
	return append(out, end, map[string]any{"type": "message_stop"})
}

// partEvents stream one content block: text in pieces, a tool's input as JSON in pieces.
func partEvents(i int, part map[string]any) []map[string]any {
	empty := map[string]any{"type": "text", "text": ""}
	var deltas []map[string]any
	if part["type"] == "tool_use" {
		empty = map[string]any{"type": "tool_use", "id": part["id"], "name": part["name"], "input": map[string]any{}}
		input, _ := json.Marshal(part["input"]) // it came from JSON-like values
		for _, piece := range pieces(string(input)) {
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": piece})
		}
	} else {
		text, _ := part["text"].(string)
		for _, piece := range pieces(text) {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": piece})
		}
	}
	out := []map[string]any{{"type": "content_block_start", "index": i, "content_block": empty}}
	for _, d := range deltas {
		out = append(out, map[string]any{"type": "content_block_delta", "index": i, "delta": d})
	}
	return append(out, map[string]any{"type": "content_block_stop", "index": i})
}

// pieces cuts at characters into a few parts; a text that is meant to be one long line stays whole.
func pieces(s string) []string {
	const size = 40
	if len(s) > 1<<16 {
		return []string{s}
	}
	var out []string
	runes := []rune(s)
	for len(runes) > size {
		out = append(out, string(runes[:size]))
		runes = runes[size:]
	}
	return append(out, string(runes))
}
