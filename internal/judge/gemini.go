package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Gemini asks a model over the Gemini API (ai.google.dev/api/generate-content), by way of the meter.
type Gemini struct{ Endpoint }

// Complete makes one call. An answer that the model could not finish is an ErrUnreadable.
func (a Gemini) Complete(ctx context.Context, r Request) (string, error) {
	type object = map[string]any
	said := func(text string) object { return object{"parts": []any{object{"text": text}}} }
	body, err := json.Marshal(object{
		"systemInstruction": said(r.System),
		"contents":          []any{object{"role": "user", "parts": []any{object{"text": r.User}}}},
		"generationConfig":  object{"maxOutputTokens": r.MaxTokens},
		"tools":             []any{object{"functionDeclarations": []any{object{"name": verdictTool, "description": verdictDoes, "parametersJsonSchema": json.RawMessage(Schema)}}}},
		"toolConfig":        object{"functionCallingConfig": object{"mode": "ANY", "allowedFunctionNames": []string{verdictTool}}},
	})
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", a.Model, err)
	}
	path := "/v1beta/models/" + url.PathEscape(a.Model) + ":generateContent"
	raw, err := a.post(ctx, path, http.Header{"X-Goog-Api-Key": {a.Nonce}}, body)
	if err != nil {
		return "", err
	}
	return geminiAnswer(raw)
}

func geminiAnswer(raw []byte) (string, error) {
	var m struct {
		Candidates []struct {
			FinishReason string
			Content      struct {
				Parts []struct {
					Text         *string
					Thought      bool
					FunctionCall *struct {
						Name string
						Args json.RawMessage
					}
				}
			}
		}
	}
	if err := json.Unmarshal(raw, &m); err != nil || len(m.Candidates) != 1 {
		return "", fmt.Errorf("%w: the response does not hold one candidate", ErrUnreadable)
	}
	c := m.Candidates[0]
	switch c.FinishReason {
	case "STOP":
	case "MAX_TOKENS":
		return "", errCut()
	default:
		return "", errStopped(c.FinishReason)
	}
	var calls, texts []string
	text := ""
	for _, p := range c.Content.Parts {
		switch {
		case p.Thought:
		case p.FunctionCall != nil && p.FunctionCall.Name == verdictTool:
			calls = append(calls, string(p.FunctionCall.Args))
		case p.FunctionCall == nil && p.Text != nil:
			text += *p.Text // one text may come in parts
		default:
			return "", fmt.Errorf("%w: the response holds a part that is neither a text nor the verdict", ErrUnreadable)
		}
	}
	if strings.TrimSpace(text) != "" {
		texts = append(texts, text)
	}
	return oneOf(calls, texts)
}
