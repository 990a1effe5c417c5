package toolloop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// chatWire is Chat Completions, as OpenAI has it and as Ollama, vLLM and others serve it.
// https://platform.openai.com/docs/api-reference/chat
type chatWire struct{}

func (chatWire) path() string { return "/v1/chat/completions" }

func (chatWire) authorize(h http.Header, nonce string) { h.Set("Authorization", "Bearer "+nonce) }

func (chatWire) request(o Order, c *conversation) ([]byte, error) {
	messages := []any{object{"role": "system", "content": c.System}, object{"role": "user", "content": c.Prompt}}
	if note := c.droppedNote(); note != "" {
		messages = append(messages, object{"role": "user", "content": note})
	}
	for _, e := range c.Exchanges {
		for _, it := range e.Items {
			messages = append(messages, it)
		}
		for i, r := range e.Results {
			messages = append(messages, object{"role": "tool", "tool_call_id": e.Calls[i].ID, "content": r.marked()})
		}
		if e.Nudge != "" {
			messages = append(messages, object{"role": "user", "content": e.Nudge})
		}
	}
	var tools []object
	for _, t := range toolSpecs() {
		tools = append(tools, object{"type": "function", "function": object{"name": t.Name, "description": t.Description, "parameters": t.Schema}})
	}
	body := object{
		"model": o.Model, "messages": messages, "tools": tools, "stream": true, "stream_options": object{"include_usage": true},
	}
	// OpenAI's reasoning models refuse the old name, and other servers ignore the new one.
	if reasons(o.Model) {
		body["max_completion_tokens"] = o.MaxOutput
	} else {
		body["max_tokens"] = o.MaxOutput
	}
	if o.Effort != "" {
		body["reasoning_effort"] = o.Effort
	}
	return json.Marshal(body)
}

type chatChunk struct {
	Choices []struct {
		Delta struct {
			Content string     `json:"content"`
			Refusal string     `json:"refusal"`
			Calls   []chatCall `json:"tool_calls"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Details    struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type chatCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (chatWire) read(r io.Reader) (reply, error) {
	a := chatAnswer{}
	err := events(r, a.event)
	switch {
	case errors.Is(err, errFinished), errors.Is(err, io.EOF) && a.finish != "":
		return a.reply()
	case errors.Is(err, io.EOF):
		return reply{}, errors.New("the answer ended before its last event")
	}
	return reply{}, err
}

type chatAnswer struct {
	text, refusal strings.Builder
	calls         []*call
	finish        string
	usage         usage
}

func (a *chatAnswer) event(data []byte) error {
	if string(data) == "[DONE]" {
		if a.finish == "" {
			return errors.New("the answer ended without saying why")
		}
		return errFinished
	}
	var e chatChunk
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("an event of the answer is not JSON: %w", err)
	}
	if len(e.Error) > 0 && string(e.Error) != "null" {
		code, message := errorOf(data)
		return openAIFailure(code, message)
	}
	if u := e.Usage; u != nil {
		a.usage = usage{input: max(u.Prompt-u.Details.Cached, 0), output: u.Completion, cacheRead: u.Details.Cached}
	}
	if len(e.Choices) == 0 {
		return nil
	}
	c := e.Choices[0]
	a.text.WriteString(c.Delta.Content)
	a.refusal.WriteString(c.Delta.Refusal)
	for _, piece := range c.Delta.Calls {
		a.piece(piece)
	}
	if c.Finish != "" {
		a.finish = c.Finish
	}
	return nil
}

// piece adds a part of a call. Some servers send no index and each call whole.
func (a *chatAnswer) piece(p chatCall) {
	at := len(a.calls) - 1
	switch {
	case p.Index != nil:
		at = *p.Index
	case p.ID != "" && (at < 0 || a.calls[at].ID != p.ID), p.ID == "" && p.Function.Name != "":
		at++
	}
	if at < 0 || at > len(a.calls) {
		at = len(a.calls) // an index that jumps
	}
	if at == len(a.calls) {
		a.calls = append(a.calls, &call{})
	}
	c := a.calls[at]
	c.ID = first(c.ID, p.ID)
	c.Name = first(c.Name, p.Function.Name)
	c.Input += p.Function.Arguments
}

func (a *chatAnswer) reply() (reply, error) {
	out := reply{text: a.text.String(), usage: a.usage, why: a.finish}
	switch a.finish {
	case "stop", "tool_calls", "function_call":
		out.stop = stopEnd // some servers say stop with calls, too
		if len(a.calls) > 0 {
			out.stop = stopTools
		}
	case "length":
		out.stop = stopLength
	case "content_filter":
		out.stop = stopRefusal
	default:
		return out, fmt.Errorf("the answer ended for a reason that is not known: %q", a.finish)
	}
	if a.refusal.Len() > 0 && len(a.calls) == 0 {
		out.stop, out.why = stopRefusal, a.refusal.String()
	}
	message := object{"role": "assistant", "content": out.text}
	var told []object
	for i, c := range a.calls {
		c.ID = first(c.ID, "call_"+strconv.Itoa(i))
		c.Cut = out.short() && i == len(a.calls)-1 && !isObject(c.Input)
		c.Input = first(c.Input, "{}")
		out.calls = append(out.calls, *c)
		told = append(told, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": string(c.valid())}})
	}
	if len(told) > 0 {
		message["tool_calls"] = told
	}
	out.add(message)
	return out, nil
}
