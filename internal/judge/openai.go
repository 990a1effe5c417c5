package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

const verdictDoes = "Gives the verdict on the change. Call it once."

// Responses asks a model over OpenAI's Responses API (platform.openai.com/docs/api-reference/responses), by way of the
// meter. The provider is asked to keep nothing.
type Responses struct{ Endpoint }

// Complete makes one call. An answer that the model could not finish is an ErrUnreadable.
func (a Responses) Complete(ctx context.Context, r Request) (string, error) {
	body, err := json.Marshal(map[string]any{
		"model": a.Model, "max_output_tokens": r.MaxTokens, "instructions": r.System, "store": false, "parallel_tool_calls": false,
		"input":       []message{{Role: "user", Content: r.User}},
		"tools":       []any{map[string]any{"type": "function", "name": verdictTool, "description": verdictDoes, "parameters": json.RawMessage(Schema), "strict": true}},
		"tool_choice": map[string]any{"type": "function", "name": verdictTool},
	})
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", a.Model, err)
	}
	raw, err := a.post(ctx, "/v1/responses", http.Header{"Authorization": {"Bearer " + a.Nonce}}, body)
	if err != nil {
		return "", err
	}
	return responsesAnswer(raw)
}

func responsesAnswer(raw []byte) (string, error) {
	var m struct {
		Object, Status    string
		IncompleteDetails struct{ Reason string } `json:"incomplete_details"`
		Output            []struct {
			Type, Name, Arguments string
			Content               []struct{ Type, Text string }
		}
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.Object != "response" {
		return "", fmt.Errorf("%w: the response is none", ErrUnreadable)
	}
	if m.Status == "incomplete" && m.IncompleteDetails.Reason == "max_output_tokens" {
		return "", errCut()
	}
	if m.Status != "completed" {
		return "", errStopped(m.Status + " " + m.IncompleteDetails.Reason)
	}
	var calls, texts []string
	for _, o := range m.Output {
		switch {
		case o.Type == "function_call" && o.Name == verdictTool:
			calls = append(calls, o.Arguments)
		case o.Type == "message":
			for _, c := range o.Content {
				if c.Type != "output_text" {
					return "", fmt.Errorf("%w: the response holds a part of type %q", ErrUnreadable, printable(c.Type))
				}
				if strings.TrimSpace(c.Text) != "" {
					texts = append(texts, c.Text)
				}
			}
		case o.Type == "reasoning":
		default:
			return "", fmt.Errorf("%w: the response holds an item of type %q", ErrUnreadable, printable(o.Type))
		}
	}
	return oneOf(calls, texts)
}

// Chat asks a model over the Chat Completions API, OpenAI's or that of any compatible server, by way of the meter.
type Chat struct{ Endpoint }

// Complete makes one call. An answer that the model could not finish is an ErrUnreadable.
func (a Chat) Complete(ctx context.Context, r Request) (string, error) {
	body, err := json.Marshal(map[string]any{
		// The older name of the cap, which every compatible server knows.
		"model": a.Model, "max_tokens": r.MaxTokens,
		"messages":    []message{{Role: "system", Content: r.System}, {Role: "user", Content: r.User}},
		"tools":       []any{map[string]any{"type": "function", "function": map[string]any{"name": verdictTool, "description": verdictDoes, "parameters": json.RawMessage(Schema)}}},
		"tool_choice": map[string]any{"type": "function", "function": map[string]any{"name": verdictTool}},
	})
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", a.Model, err)
	}
	raw, err := a.post(ctx, "/v1/chat/completions", http.Header{"Authorization": {"Bearer " + a.Nonce}}, body)
	if err != nil {
		return "", err
	}
	return chatAnswer(raw)
}

func chatAnswer(raw []byte) (string, error) {
	var m struct {
		Choices []struct {
			FinishReason string `json:"finish_reason"`
			Message      struct {
				Content, Refusal *string
				ToolCalls        []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal(raw, &m); err != nil || len(m.Choices) != 1 {
		return "", fmt.Errorf("%w: the completion does not hold one choice", ErrUnreadable)
	}
	c := m.Choices[0]
	switch {
	case c.FinishReason == "length":
		return "", errCut()
	case c.FinishReason != "stop" && c.FinishReason != "tool_calls":
		return "", errStopped(c.FinishReason)
	case c.Message.Refusal != nil && *c.Message.Refusal != "":
		return "", errStopped("a refusal")
	}
	var calls, texts []string
	for _, call := range c.Message.ToolCalls {
		if call.Function.Name != verdictTool {
			return "", fmt.Errorf("%w: it calls the tool %q", ErrUnreadable, printable(call.Function.Name))
		}
		calls = append(calls, call.Function.Arguments)
	}
	if text := c.Message.Content; text != nil && strings.TrimSpace(*text) != "" {
		texts = append(texts, *text)
	}
	return oneOf(calls, texts)
}
