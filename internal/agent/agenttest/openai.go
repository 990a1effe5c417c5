package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// OpenAI's paths.
const (
	responsesPath = "/v1/responses"
	chatPath      = "/v1/chat/completions"
)

type object = map[string]any

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string always marshals
	return b
}

// toolResult is a tool's answer in the shape of the Messages API.
func toolResult(text string) json.RawMessage {
	b, _ := json.Marshal([]object{{"type": "tool_result", "content": text}})
	return b
}

// askedOfResponses turns the items of a Responses request into messages. The items of one answer are one message.
func askedOfResponses(body []byte) asked {
	var in struct {
		asked
		Max          int64  `json:"max_output_tokens"`
		Instructions string `json:"instructions"`
		Input        []struct {
			Type    string          `json:"type"`
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Output  string          `json:"output"`
		} `json:"input"`
	}
	_ = json.Unmarshal(body, &in)
	out := in.asked
	out.MaxTokens, out.System, out.Messages = in.Max, quoted(in.Instructions), nil
	answering := false
	for _, it := range in.Input {
		switch {
		case it.Type == "function_call_output":
			out.Messages = append(out.Messages, message{"user", toolResult(it.Output)})
		case it.Role != "" && it.Role != "assistant":
			out.Messages = append(out.Messages, message{"user", it.Content})
		case !answering:
			out.Messages = append(out.Messages, message{"assistant", quoted("")})
			answering = true
			continue
		default:
			continue
		}
		answering = false
	}
	return out
}

// askedOfChat does the same for Chat Completions.
func askedOfChat(body []byte) asked {
	var in struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Max      int64  `json:"max_tokens"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	_ = json.Unmarshal(body, &in)
	out := asked{Model: in.Model, Stream: in.Stream, MaxTokens: in.Max}
	for _, t := range in.Tools {
		out.Tools = append(out.Tools, struct {
			Name string `json:"name"`
		}{t.Function.Name})
	}
	for _, m := range in.Messages {
		switch m.Role {
		case "system":
			out.System = m.Content
		case "tool":
			out.Messages = append(out.Messages, message{"user", toolResult(texts(m.Content))})
		default:
			out.Messages = append(out.Messages, message{m.Role, m.Content})
		}
	}
	return out
}

// tokens are the usage of an answer; false where none is reported.
func (m msg) tokens() (Usage, bool) {
	u := m.turn.Usage
	switch {
	case u == nil:
		text, _ := json.Marshal(m.parts)
		return Usage{Input: int64(len(m.req.Body)/4 + 1), Output: int64(len(text)/4 + 1)}, true
	case u.None, u.Raw != "":
		return Usage{}, false
	}
	return *u, true
}

func (m msg) responsesEvents() []any {
	out := []any{object{"type": "response.created", "response": object{"id": m.id, "status": "in_progress"}}}
	for i, part := range m.parts {
		item := object{"type": "message", "id": fmt.Sprintf("%s_%d", m.id, i), "role": "assistant", "status": "completed", "content": []object{{"type": "output_text", "text": part["text"]}}}
		if part["type"] == "tool_use" {
			input, _ := json.Marshal(part["input"])
			item = object{"type": "function_call", "id": fmt.Sprintf("%s_%d", m.id, i), "call_id": part["id"], "name": part["name"], "arguments": string(input), "status": "completed"}
		}
		out = append(out, object{"type": "response.output_item.added", "output_index": i, "item": object{"type": item["type"], "id": item["id"]}},
			object{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	end := object{"id": m.id, "status": "completed", "model": m.req.Model}
	if u, ok := m.tokens(); ok {
		end["usage"] = object{"input_tokens": u.Input + u.CacheRead, "output_tokens": u.Output, "total_tokens": u.Input + u.CacheRead + u.Output,
			"input_tokens_details": object{"cached_tokens": u.CacheRead}, "output_tokens_details": object{"reasoning_tokens": 0}}
	}
	return append(out, object{"type": "response.completed", "response": end})
}

func (m msg) chatEvents() []any {
	chunk := func(delta object, finish any) object {
		return object{"id": m.id, "object": "chat.completion.chunk", "model": m.req.Model, "choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}}
	}
	out := []any{chunk(object{"role": "assistant", "content": ""}, nil)}
	finish, calls := "stop", 0
	for _, part := range m.parts {
		if part["type"] != "tool_use" {
			out = append(out, chunk(object{"content": part["text"]}, nil))
			continue
		}
		input, _ := json.Marshal(part["input"])
		out = append(out, chunk(object{"tool_calls": []object{{"index": calls, "id": part["id"], "type": "function", "function": object{"name": part["name"], "arguments": string(input)}}}}, nil))
		finish, calls = "tool_calls", calls+1
	}
	out = append(out, chunk(object{}, finish))
	if u, ok := m.tokens(); ok {
		out = append(out, object{"id": m.id, "choices": []object{}, "usage": object{"prompt_tokens": u.Input + u.CacheRead, "completion_tokens": u.Output,
			"total_tokens": u.Input + u.CacheRead + u.Output, "prompt_tokens_details": object{"cached_tokens": u.CacheRead}}})
	}
	return append(out, json.RawMessage("[DONE]"))
}

// streamData writes events, each flushed, and ends the connection where the script wants that.
func (m msg) streamData(w http.ResponseWriter, events []any) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	for i, e := range events {
		if n := m.turn.Fault.CutAfter; n > 0 && i == n {
			panic(http.ErrAbortHandler)
		}
		data, ok := e.(json.RawMessage)
		if !ok {
			data, _ = json.Marshal(e) // strings, numbers and maps of them
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
			return
		}
		_ = rc.Flush() // a client that has gone shows at the next write
	}
}
