package meter

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// anthropic is the Messages API of Anthropic.
// https://docs.anthropic.com/en/api/messages
type anthropic struct{}

func (anthropic) owns(path string) bool { return strings.HasPrefix(path, "/v1/messages") }

// route serves two requests only. Counting tokens costs nothing.
func (anthropic) route(r *http.Request) (kind op, path, query string, ok bool) {
	if r.Method != http.MethodPost {
		return 0, "", "", false
	}
	// The one parameter that clients send.
	if r.URL.Query().Get("beta") == "true" {
		query = "beta=true"
	}
	switch path = r.URL.Path; path {
	case "/v1/messages":
		return opCall, path, query, true
	case "/v1/messages/count_tokens":
		return opFree, path, query, true
	}
	return 0, "", "", false
}

// oauthBeta must be named when a subscription's token stands in for a key.
const oauthBeta = "oauth-2025-04-20"

func (anthropic) authorize(h http.Header, cred Credential) {
	if cred.Kind == Bearer {
		h.Set("Authorization", "Bearer "+cred.Value)
		if beta := strings.Join(h.Values("Anthropic-Beta"), ","); !strings.Contains(beta, oauthBeta) {
			h.Set("Anthropic-Beta", strings.Trim(beta+","+oauthBeta, ","))
		}
		return
	}
	h.Set("X-Api-Key", cred.Value)
}

func (anthropic) requestHeader(name string) bool {
	return strings.HasPrefix(name, "Anthropic-") || strings.HasPrefix(name, "X-Stainless-") ||
		name == "X-App" || name == "X-Claude-Code-Session-Id"
}

// responseHeader leaves out what names the account (anthropic-organization-id).
func (anthropic) responseHeader(name string) bool {
	return strings.HasPrefix(name, "Anthropic-Ratelimit-") || name == "Request-Id" || name == "X-Should-Retry"
}

func (anthropic) fail(w http.ResponseWriter, f failure) {
	kind := map[int]string{
		http.StatusUnauthorized: "authentication_error", http.StatusPaymentRequired: "billing_error",
		http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error",
		http.StatusRequestEntityTooLarge: "request_too_large", http.StatusBadGateway: "api_error",
		http.StatusServiceUnavailable: "api_error",
	}[f.status]
	if kind == "" {
		kind = "invalid_request_error"
	}
	body, err := json.Marshal(map[string]any{
		"type": "error", "error": map[string]string{"type": kind, "message": Mark + f.message},
	})
	if err != nil {
		body = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", "false")
	w.WriteHeader(f.status)
	_, _ = w.Write(body)
}

func (anthropic) ask(_ *http.Request, body []byte) (ask, error) {
	a := ask{bytes: int64(len(body))}
	err := readRequest(body, &a, rules{
		opaque: func(name string) bool { return name == "input" || name == "input_schema" },
		keep:   func(name string) bool { return name == "type" || name == "ttl" },
		known:  anthropicKnown,
		top:    anthropicTop,
		see:    anthropicSees,
	})
	if err == nil && a.model == "" {
		err = errors.New("the request names no model")
	}
	a.capOutput(a.maxOutput)
	return a, err
}

var anthropicKnown = []string{"model", "max_tokens", "speed", "inference_geo", "mcp_servers", "container", "tools", "cache_control"}

// anthropicTop reads a member of the request itself.
func anthropicTop(s *scan, name string) (bool, error) {
	switch name {
	case "model":
		return true, s.modelName()
	case "max_tokens":
		n, err := s.count(name)
		s.ask.maxOutput = n
		return true, err
	case "speed", "inference_geo":
		raw, err := s.dec.ReadValue()
		if v := string(raw); err == nil && v != "null" && v != `"standard"` && v != `"global"` {
			s.deny(name + " " + ownPrice)
		}
		return true, err
	case "mcp_servers", "container":
		s.forbid(name, outside)
	}
	return false, nil
}

// anthropicSees judges an object by its place and type.
func anthropicSees(s *scan, o node) {
	kind := o.text("type")
	switch {
	case o.name == "cache_control":
		s.ask.cache = true
		s.ask.longCache = s.ask.longCache || o.has("ttl") && o.text("ttl") != "5m"
	case o.name == "source" && (kind == "url" || kind == "file"):
		s.deny("a source of type " + kind + " makes the provider fetch it and is not allowed here: send the bytes")
	case o.name == "tools" && !localTool(kind):
		s.deny("the tool type " + printable(kind) + " runs at the provider and is not allowed here")
	case kind == "image":
		s.ask.images++
	case kind == "document":
		s.ask.documents++
	}
}

// localTool says that a tool's calls come back to the client, inside the sandbox.
func localTool(kind string) bool {
	if kind == "" || kind == "custom" {
		return true
	}
	for _, p := range []string{"bash_", "text_editor_", "memory_", "computer_", "tool_search_tool_"} {
		if strings.HasPrefix(kind, p) {
			return true
		}
	}
	return false
}

func (anthropic) counter(stream bool) counter {
	if stream {
		return newStreamCounter(usageMark, &anthropicUsage{})
	}
	return &bodyCounter{usageReader: &anthropicUsage{whole: true}}
}
