package toolloop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// responsesWire is OpenAI's Responses API, stateless: nothing is stored at the provider.
// https://platform.openai.com/docs/api-reference/responses
type responsesWire struct{}

func (responsesWire) path() string { return "/v1/responses" }

func (responsesWire) authorize(h http.Header, nonce string) { h.Set("Authorization", "Bearer "+nonce) }

type object = map[string]any

func (responsesWire) request(o Order, c *conversation) ([]byte, error) {
	input := []any{object{"role": "user", "content": c.Prompt}}
	if note := c.droppedNote(); note != "" {
		input = append(input, object{"role": "user", "content": note})
	}
	for _, e := range c.Exchanges {
		for _, it := range e.Items {
			input = append(input, it)
		}
		for i, r := range e.Results {
			input = append(input, object{"type": "function_call_output", "call_id": e.Calls[i].ID, "output": r.marked()})
		}
		if e.Nudge != "" {
			input = append(input, object{"role": "user", "content": e.Nudge})
		}
	}
	var tools []object
	for _, t := range toolSpecs() {
		// strict would want every member to be required; what comes is checked here.
		tools = append(tools, object{"type": "function", "name": t.Name, "description": t.Description, "parameters": t.Schema, "strict": false})
	}
	body := object{
		"model": o.Model, "instructions": c.System, "input": input, "tools": tools, "parallel_tool_calls": true,
		"max_output_tokens": o.MaxOutput, "stream": true, "store": false,
	}
	if o.Effort != "" {
		body["reasoning"] = object{"effort": o.Effort}
	}
	if o.Effort != "" || reasons(o.Model) {
		// Without it the reasoning behind a tool call is lost, as nothing is stored. Models that do not reason refuse it.
		body["include"] = []string{"reasoning.encrypted_content"}
	}
	return json.Marshal(body)
}

// reasons says whether OpenAI's model of that name reasons: the o series, and gpt from 5 on.
func reasons(model string) bool {
	if rest, ok := strings.CutPrefix(model, "gpt-"); ok {
		return rest != "" && rest[0] >= '5' && rest[0] <= '9'
	}
	return len(model) > 1 && model[0] == 'o' && model[1] >= '1' && model[1] <= '9'
}

// marked says of an error that it is one: this API has no other place for it.
func (r result) marked() string {
	if r.Error {
		return "error: " + r.Text
	}
	return r.Text
}

type responsesEvent struct {
	Type     string         `json:"type"`
	Item     responsesItem  `json:"item"`
	Response responsesWhole `json:"response"`
	Code     string         `json:"code"` // of an error event
	Message  string         `json:"message"`
}

type responsesWhole struct {
	Output     []responsesItem `json:"output"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Usage struct {
		Input   int64 `json:"input_tokens"`
		Output  int64 `json:"output_tokens"`
		Details struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"input_tokens_details"`
	} `json:"usage"`
}

type responsesItem struct {
	Type      string `json:"type"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Encrypted string `json:"encrypted_content"`
	Summary   []any  `json:"summary"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

func (responsesWire) read(r io.Reader) (reply, error) {
	a := responsesAnswer{}
	err := events(r, a.event)
	switch {
	case errors.Is(err, errFinished):
		return a.reply(), nil
	case errors.Is(err, io.EOF):
		return reply{}, errors.New("the answer ended before its last event")
	}
	return reply{}, err
}

type responsesAnswer struct {
	items []responsesItem
	end   responsesWhole
	short bool
}

func (a *responsesAnswer) event(data []byte) error {
	if string(data) == "[DONE]" {
		return errors.New("the answer ended before its last event")
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return fmt.Errorf("an event of the answer is not JSON: %w", err)
	}
	switch kind.Type {
	case "response.output_item.done", "response.completed", "response.incomplete", "response.failed", "error":
	default:
		return nil // deltas, which also come whole
	}
	var e responsesEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("the event %s of the answer cannot be read: %w", kind.Type, err)
	}
	switch e.Type {
	case "response.output_item.done":
		a.items = append(a.items, e.Item)
		return nil
	case "error":
		return openAIFailure(e.Code, e.Message)
	case "response.failed":
		return openAIFailure(e.Response.Error.Code, e.Response.Error.Message)
	case "response.incomplete":
		a.short = true
	}
	a.end = e.Response
	return errFinished
}

// openAIFailure translates an error that is told within a stream.
func openAIFailure(code, message string) *failed {
	f := &failed{status: http.StatusInternalServerError, code: code, message: message}
	switch code {
	case "rate_limit_exceeded", "insufficient_quota":
		f.status = http.StatusTooManyRequests
	case "invalid_api_key":
		f.status = http.StatusUnauthorized
	case "context_length_exceeded", "invalid_prompt", "invalid_request_error", "string_above_max_length":
		f.status = http.StatusBadRequest
	}
	if f.message == "" {
		f.message = first(code, "the model provider told a failure without a word")
	}
	return f
}

func (a *responsesAnswer) reply() reply {
	out := reply{why: a.end.Incomplete.Reason}
	u := a.end.Usage
	out.usage = usage{input: max(u.Input-u.Details.Cached, 0), output: u.Output, cacheRead: u.Details.Cached}
	items := a.items
	if len(items) == 0 {
		items = a.end.Output // some servers send them at the end only
	}
	refused := ""
	for i, it := range items {
		switch it.Type {
		case "reasoning":
			if it.Encrypted != "" { // any other cannot be read back, as nothing is stored
				summary := it.Summary
				if summary == nil {
					summary = []any{}
				}
				out.add(object{"type": "reasoning", "encrypted_content": it.Encrypted, "summary": summary})
			}
		case "message":
			text := ""
			for _, part := range it.Content {
				text += part.Text
				refused += part.Refusal
			}
			if text != "" {
				out.text += text
				out.add(object{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": text}}})
			}
		case "function_call":
			c := call{ID: it.CallID, Name: it.Name, Input: first(it.Arguments, "{}")}
			c.Cut = a.short && (it.Status == "incomplete" || i == len(items)-1) && !isObject(it.Arguments)
			out.calls = append(out.calls, c)
			out.add(object{"type": "function_call", "call_id": c.ID, "name": c.Name, "arguments": string(c.valid())})
		}
	}
	switch {
	case a.short && out.why == "content_filter", refused != "" && len(out.calls) == 0:
		out.stop, out.why = stopRefusal, first(refused, out.why)
	case a.short:
		out.stop = stopLength
	case len(out.calls) > 0:
		out.stop = stopTools
	default:
		out.stop = stopEnd
	}
	return out
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
