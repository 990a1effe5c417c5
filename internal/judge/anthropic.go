package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxBody bounds what is read of a model's answer.
const maxBody = 4 << 20

// Anthropic asks a model over the Messages API (docs.anthropic.com, "Messages"), by way of the meter: BaseURL is its
// loopback address and Nonce stands where the key would. It streams nothing and retries nothing: the meter
// counts each call, and the caller decides.
type Anthropic struct {
	Client  *http.Client // required; its timeout bounds one call
	BaseURL string
	Nonce   string
	Model   string
}

// HTTPError is an answer that was no success. The meter's own refusals come as one too: 402 when the ceiling is reached.
type HTTPError struct {
	Status  int
	Message string // the server's, printable, cut
}

func (e *HTTPError) Error() string {
	return fmt.Sprintf("the model API answered HTTP %d: %s", e.Status, e.Message)
}

// Name is the model's.
func (a Anthropic) Name() string { return a.Model }

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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(a.BaseURL, "/")+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", a.Model, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Api-Key", a.Nonce)
	resp, err := a.Client.Do(req)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", a.Model, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return "", fmt.Errorf("read the answer of %s: %w", a.Model, err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", &HTTPError{Status: resp.StatusCode, Message: errorMessage(raw)}
	}
	if len(raw) > maxBody {
		return "", fmt.Errorf("%w: it is longer than %d bytes", ErrUnreadable, maxBody)
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
		return "", fmt.Errorf("%w: it was cut at the token limit", ErrUnreadable)
	case m.StopReason != "end_turn" && m.StopReason != "tool_use":
		return "", fmt.Errorf("%w: it stopped for %q", ErrUnreadable, printable(m.StopReason))
	case len(calls) == 1 && len(texts) == 0:
		return calls[0], nil
	case len(calls) == 0 && len(texts) == 1:
		return texts[0], nil
	}
	return "", fmt.Errorf("%w: it holds %d verdicts and %d texts instead of one", ErrUnreadable, len(calls), len(texts))
}

func errorMessage(raw []byte) string {
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &e) == nil && e.Error.Message != "" {
		return cut(printable(e.Error.Message))
	}
	return "no reason given"
}

func cut(s string) string {
	if r := []rune(s); len(r) > 300 {
		return string(r[:300]) + "…"
	}
	return s
}
