package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Anthropic asks a model over the Messages API (docs.anthropic.com, "Messages"), by way of the meter.
type Anthropic struct{ Endpoint }

// verdictTool holds the model to the schema: its input is the answer.
const verdictTool = "verdict"

type messagesRequest struct {
	Model      string         `json:"model"`
	MaxTokens  int            `json:"max_tokens"`
	System     string         `json:"system"`
	Messages   []message      `json:"messages"`
	Tools      []tool         `json:"tools"`
	ToolChoice map[string]any `json:"tool_choice"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type messagesResponse struct {
	Type       string `json:"type"`
	StopReason string `json:"stop_reason"`
	Content    []struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"content"`
}

// Complete makes one call. An answer that the model could not finish is an ErrUnreadable.
func (a Anthropic) Complete(ctx context.Context, r Request) (string, error) {
	body, err := json.Marshal(messagesRequest{
		Model: a.Model, MaxTokens: r.MaxTokens, System: r.System,
		Messages:   []message{{Role: "user", Content: r.User}},
		Tools:      []tool{{Name: verdictTool, Description: "Gives the verdict on the change. Call it once.", InputSchema: json.RawMessage(Schema)}},
		ToolChoice: map[string]any{"type": "tool", "name": verdictTool, "disable_parallel_tool_use": true},
	})
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", a.Model, err)
	}
	header := http.Header{"Anthropic-Version": {"2023-06-01"}, "X-Api-Key": {a.Nonce}}
	raw, err := a.post(ctx, "/v1/messages", header, body)
	if err != nil {
		return "", err
	}
	return answerOf(raw)
}

// answerOf takes the one verdict call of a response, or its one text where a model that knows no tools answers
// in words. Both at once, or two of either, is no answer.
func answerOf(raw []byte) (string, error) {
	var m messagesResponse
	if err := json.Unmarshal(raw, &m); err != nil || m.Type != "message" {
		return "", fmt.Errorf("%w: the response is no message", ErrUnreadable)
	}
	var calls, texts []string
	for _, c := range m.Content {
		switch {
		case c.Type == "tool_use" && c.Name == verdictTool:
			calls = append(calls, string(c.Input))
		case c.Type == "text" && strings.TrimSpace(c.Text) != "":
			texts = append(texts, c.Text)
		case c.Type == "text", c.Type == "thinking", c.Type == "redacted_thinking":
		default:
			return "", fmt.Errorf("%w: the response holds a block of type %q", ErrUnreadable, printable(c.Type))
		}
	}
	switch {
	case m.StopReason == "max_tokens":
		return "", errCut()
	case m.StopReason != "end_turn" && m.StopReason != "tool_use":
		return "", errStopped(m.StopReason)
	}
	return oneOf(calls, texts)
}
