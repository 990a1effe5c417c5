package agenttest

import (
	"encoding/json"
)

// parseChat reads a request to /v1/chat/completions.
func parseChat(body []byte, req *Request) {
	var in struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Max    int64  `json:"max_completion_tokens"`
		OldMax int64  `json:"max_tokens"`
		Tools  []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []message `json:"messages"`
	}
	_ = json.Unmarshal(body, &in) // what is no request is answered as such
	req.Model, req.Stream, req.Max, req.usage = in.Model, in.Stream, max(in.Max, in.OldMax), in.Options.Usage
	for _, t := range in.Tools {
		req.Tools = append(req.Tools, t.Function.Name)
	}
	for _, m := range in.Messages {
		switch m.Role {
		case "assistant":
			req.Turn++
			req.messages = append(req.messages, m)
		case "system", "developer":
			req.system += texts(m.Content)
		case "tool":
			raw, _ := json.Marshal([]map[string]any{{"type": "tool_result", "content": m.Content}})
			req.messages = append(req.messages, message{Role: "user", Content: raw})
		default:
			req.messages = append(req.messages, m)
		}
	}
}

func (m msg) chatUsage() any {
	u := m.counts()
	switch {
	case u == nil:
		return nil
	case u.Raw != "":
		return json.RawMessage(u.Raw)
	}
	in := u.Input + u.CacheRead + u.CacheWrite
	return map[string]any{
		"prompt_tokens": in, "prompt_tokens_details": map[string]int64{"cached_tokens": u.CacheRead}, "completion_tokens": u.Output, "total_tokens": in + u.Output,
	}
}

// chatParts are the text and the calls of the answer.
func (m msg) chatParts() (text string, calls []map[string]any) {
	for _, p := range m.parts {
		if p["type"] == "text" {
			s, _ := p["text"].(string)
			text += s
			continue
		}
		args, _ := json.Marshal(p["input"]) // it came from JSON-like values
		calls = append(calls, map[string]any{
			"index": len(calls), "id": p["id"], "type": "function", "function": map[string]any{"name": p["name"], "arguments": string(args)},
		})
	}
	return text, calls
}

func (m msg) chatStop() string {
	if len(m.turn.Tools) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// wholeChat is the answer in one piece.
func (m msg) wholeChat() map[string]any {
	text, calls := m.chatParts()
	reply := map[string]any{"role": "assistant", "content": text}
	if len(calls) > 0 {
		reply["tool_calls"] = calls
	}
	out := map[string]any{
		"id": "chatcmpl_" + m.id, "object": "chat.completion", "model": m.req.Model,
		"choices": []map[string]any{{"index": 0, "message": reply, "finish_reason": m.chatStop()}},
	}
	if u := m.chatUsage(); u != nil {
		out["usage"] = u
	}
	return out
}

// chatChunks are those of a stream. The usage comes in a last one, if it was asked for.
func (m msg) chatChunks() []map[string]any {
	text, calls := m.chatParts()
	chunk := func(delta map[string]any, finish any) map[string]any {
		return map[string]any{
			"id": "chatcmpl_" + m.id, "object": "chat.completion.chunk", "model": m.req.Model,
			"choices": []map[string]any{{"index": 0, "delta": delta, "finish_reason": finish}},
		}
	}
	out := []map[string]any{chunk(map[string]any{"role": "assistant", "content": ""}, nil)}
	for _, piece := range pieces(text) {
		out = append(out, chunk(map[string]any{"content": piece}, nil))
	}
	for _, c := range calls {
		out = append(out, chunk(map[string]any{"tool_calls": []any{c}}, nil))
	}
	out = append(out, chunk(map[string]any{}, m.chatStop()))
	if u := m.chatUsage(); u != nil && m.req.usage {
		last := chunk(nil, nil)
		last["choices"], last["usage"] = []any{}, u
		out = append(out, last)
	}
	return out
}
