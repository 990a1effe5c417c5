package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// respItem is an item of a Responses conversation, of what is read of it.
type respItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
}

// made says that the model made the item.
func (i respItem) made() bool {
	switch i.Type {
	case "function_call", "custom_tool_call", "local_shell_call", "reasoning":
		return true
	}
	return i.Role == "assistant"
}

// parseResponses reads a request to /v1/responses.
func parseResponses(body []byte, req *Request) {
	var in struct {
		Model  string          `json:"model"`
		Stream bool            `json:"stream"`
		Max    int64           `json:"max_output_tokens"`
		System string          `json:"instructions"`
		Cache  string          `json:"prompt_cache_key"`
		Input  json.RawMessage `json:"input"`
		Tools  []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	_ = json.Unmarshal(body, &in) // what is no request is answered as such
	req.Model, req.Stream, req.Max, req.system, req.Session = in.Model, in.Stream, in.Max, in.System, in.Cache
	for _, t := range in.Tools {
		req.Tools = append(req.Tools, t.Name)
	}
	var items []respItem
	var text string
	if json.Unmarshal(in.Input, &text) == nil {
		req.messages = []message{{Role: "user", Content: in.Input}}
		return
	}
	_ = json.Unmarshal(in.Input, &items)
	mine := false
	for _, i := range items {
		if i.made() && !mine {
			req.Turn++
		}
		mine = i.made()
		switch i.Type {
		case "function_call_output", "custom_tool_call_output":
			raw, _ := json.Marshal([]map[string]any{{"type": "tool_result", "content": i.Output}})
			req.messages = append(req.messages, message{Role: "user", Content: raw})
		default:
			req.messages = append(req.messages, message{Role: i.Role, Content: i.Content})
		}
	}
}

// respUsage are the counts as this API writes them: the input holds what came from the cache.
func (m msg) respUsage() any {
	u := m.counts()
	switch {
	case u == nil:
		return nil
	case u.Raw != "":
		return json.RawMessage(u.Raw)
	}
	in := u.Input + u.CacheRead + u.CacheWrite
	return map[string]any{
		"input_tokens": in, "input_tokens_details": map[string]int64{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
		"output_tokens": u.Output, "output_tokens_details": map[string]int64{"reasoning_tokens": 0}, "total_tokens": in + u.Output,
	}
}

func (m msg) respItems() []map[string]any {
	var out []map[string]any
	for i, p := range m.parts {
		id := fmt.Sprintf("%s_%d", m.id, i)
		switch {
		case p["type"] == "text":
			out = append(out, map[string]any{
				"type": "message", "id": id, "role": "assistant", "status": "completed",
				"content": []map[string]any{{"type": "output_text", "text": p["text"], "annotations": []any{}}},
			})
		case p["name"] == PatchTool:
			input, _ := p["input"].(map[string]any)
			out = append(out, map[string]any{"type": "custom_tool_call", "id": id, "call_id": p["id"], "name": p["name"], "input": input["input"], "status": "completed"})
		default:
			args, _ := json.Marshal(p["input"]) // it came from JSON-like values
			out = append(out, map[string]any{"type": "function_call", "id": id, "call_id": p["id"], "name": p["name"], "arguments": string(args), "status": "completed"})
		}
	}
	return out
}

func (m msg) response(status string) map[string]any {
	return map[string]any{
		"id": "resp_" + m.id, "object": "response", "status": status, "model": m.req.Model, "output": []any{}, "usage": nil, "error": nil,
	}
}

// wholeResponse is the answer in one piece.
func (m msg) wholeResponse() map[string]any {
	out := m.response("completed")
	out["output"], out["usage"] = m.respItems(), m.respUsage()
	return out
}

// responseEvents are those of a stream, in the API's order.
func (m msg) responseEvents() []map[string]any {
	out := []map[string]any{
		{"type": "response.created", "response": m.response("in_progress")}, {"type": "response.in_progress", "response": m.response("in_progress")},
	}
	for i, item := range m.respItems() {
		out = append(out, map[string]any{"type": "response.output_item.added", "output_index": i, "item": emptied(item)})
		if item["type"] == "message" {
			text, _ := m.parts[i]["text"].(string)
			for _, piece := range pieces(text) {
				out = append(out, map[string]any{"type": "response.output_text.delta", "item_id": item["id"], "output_index": i, "content_index": 0, "delta": piece})
			}
		}
		out = append(out, map[string]any{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	return append(out, map[string]any{"type": "response.completed", "response": m.wholeResponse()})
}

// emptied is an item as it is announced.
func emptied(item map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range item {
		out[k] = v
	}
	out["status"] = "in_progress"
	switch item["type"] {
	case "message":
		out["content"] = []any{}
	case "function_call":
		out["arguments"] = ""
	case "custom_tool_call":
		out["input"] = ""
	}
	return out
}

// openAIError writes an error as OpenAI's APIs do.
func openAIError(w http.ResponseWriter, status int, message string) {
	kind := map[int]string{400: "invalid_request_error", 401: "invalid_request_error", 402: "insufficient_quota", 404: "invalid_request_error", 429: "requests"}[status]
	if kind == "" {
		kind = "server_error"
	}
	code := map[int]any{401: "invalid_api_key", 402: "insufficient_quota", 404: "model_not_found", 429: "rate_limit_exceeded"}[status]
	writeJSON(w, status, map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": code}})
}

// cwd finds the directory that Codex tells the model.
func cwd(text string) string {
	_, rest, ok := strings.Cut(text, "<cwd>")
	if !ok {
		return ""
	}
	dir, _, _ := strings.Cut(rest, "</cwd>")
	return dir
}
