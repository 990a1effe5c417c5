package agenttest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// parseGemini reads a request to /v1beta/models/MODEL:generateContent or :streamGenerateContent.
func parseGemini(path string, body []byte, req *Request) {
	name, method, _ := strings.Cut(strings.TrimPrefix(path, "/v1beta/models/"), ":")
	type part struct {
		Text         string `json:"text"`
		FunctionCall struct {
			Name string `json:"name"`
		} `json:"functionCall"`
		FunctionResponse struct {
			Name     string          `json:"name"`
			Response json.RawMessage `json:"response"`
		} `json:"functionResponse"`
	}
	type content struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	var in struct {
		Contents []content `json:"contents"`
		System   content   `json:"systemInstruction"`
		Config   struct {
			Max int64 `json:"maxOutputTokens"`
		} `json:"generationConfig"`
		Tools []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	}
	_ = json.Unmarshal(body, &in) // what is no request is answered as such
	req.Model, req.Stream, req.Max = name, method == "streamGenerateContent", in.Config.Max
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			req.Tools = append(req.Tools, f.Name)
		}
	}
	for _, p := range in.System.Parts {
		req.system += p.Text
	}
	for _, c := range in.Contents {
		var list []map[string]any
		for _, p := range c.Parts {
			switch {
			case p.FunctionResponse.Name != "":
				list = append(list, map[string]any{"type": "tool_result", "content": string(p.FunctionResponse.Response)})
			case p.FunctionCall.Name == "":
				list = append(list, map[string]any{"type": "text", "text": p.Text})
			}
		}
		raw, _ := json.Marshal(list) // maps of strings
		role := c.Role
		if role == "model" {
			role = "assistant"
			req.Turn++
		}
		req.messages = append(req.messages, message{Role: role, Content: raw})
	}
}

func (m msg) geminiUsage() any {
	u := m.counts()
	switch {
	case u == nil:
		return nil
	case u.Raw != "":
		return json.RawMessage(u.Raw)
	}
	in := u.Input + u.CacheRead + u.CacheWrite
	return map[string]int64{"promptTokenCount": in, "cachedContentTokenCount": u.CacheRead, "candidatesTokenCount": u.Output, "totalTokenCount": in + u.Output}
}

// geminiChunks are those of a stream; the last one has the reason for the end and the whole usage.
func (m msg) geminiChunks() []map[string]any {
	var parts []map[string]any
	for _, p := range m.parts {
		if p["type"] == "text" {
			s, _ := p["text"].(string)
			for _, piece := range pieces(s) {
				parts = append(parts, map[string]any{"text": piece})
			}
			continue
		}
		parts = append(parts, map[string]any{"functionCall": map[string]any{"id": p["id"], "name": p["name"], "args": p["input"]}})
	}
	var out []map[string]any
	for i, p := range parts {
		candidate := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": []any{p}}}
		chunk := map[string]any{"candidates": []any{candidate}, "modelVersion": m.req.Model}
		if i == len(parts)-1 {
			candidate["finishReason"] = "STOP"
			if u := m.geminiUsage(); u != nil {
				chunk["usageMetadata"] = u
			}
		}
		out = append(out, chunk)
	}
	return out
}

// wholeGemini is the answer in one piece.
func (m msg) wholeGemini() map[string]any {
	chunks := m.geminiChunks()
	var parts []any
	for _, c := range chunks {
		parts = append(parts, c["candidates"].([]any)[0].(map[string]any)["content"].(map[string]any)["parts"].([]any)...)
	}
	last := chunks[len(chunks)-1]
	last["candidates"].([]any)[0].(map[string]any)["content"] = map[string]any{"role": "model", "parts": parts}
	return last
}

func geminiError(w http.ResponseWriter, status int, message string) {
	name := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}[status]
	if name == "" {
		name = "INTERNAL"
	}
	writeJSON(w, status, map[string]any{"error": map[string]any{"code": status, "message": message, "status": name}})
}
