package meter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// anthropic is the Messages API of Anthropic.
// https://docs.anthropic.com/en/api/messages
type anthropic struct{}

// route tells what a request is: only these two are served. Counting tokens costs nothing.
func (anthropic) route(r *http.Request) (op, bool) {
	if r.Method != http.MethodPost {
		return 0, false
	}
	switch r.URL.Path {
	case "/v1/messages":
		return opCall, true
	case "/v1/messages/count_tokens":
		return opFree, true
	}
	return 0, false
}

// query keeps the one parameter that clients send.
func (anthropic) query(r *http.Request) string {
	if r.URL.Query().Get("beta") == "true" {
		return "beta=true"
	}
	return ""
}

func (anthropic) nonce(h http.Header) string {
	if v := h.Get("X-Api-Key"); v != "" {
		return v
	}
	scheme, v, _ := strings.Cut(h.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return v
	}
	return ""
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

// ask reads a Messages request in one pass. It is strict where a second reading of the same bytes
// could differ from the provider's: a repeated name is an error, and names are compared exactly.
func (anthropic) ask(body []byte) (ask, error) {
	a := ask{bytes: int64(len(body))}
	s := scan{dec: jsontext.NewDecoder(bytes.NewBuffer(body)), ask: &a}
	if s.dec.PeekKind() != '{' {
		return a, errors.New("the request body is not a JSON object")
	}
	if err := s.object("", 0); err != nil {
		return a, fmt.Errorf("the request body cannot be read: %w", err)
	}
	switch {
	case s.refuse != "":
		return a, errors.New(s.refuse)
	case a.model == "":
		return a, errors.New("the request names no model")
	}
	return a, nil
}

// scan walks a request and notes what decides about money and about reach: a request may ask the
// provider to fetch pages, run code or call further servers, which would lead out of the sandbox
// and is billed beside the tokens.
type scan struct {
	dec    *jsontext.Decoder
	ask    *ask
	refuse string
}

func (s *scan) value(name string, depth int) error {
	switch s.dec.PeekKind() {
	case '{':
		return s.object(name, depth)
	case '[':
		if _, err := s.dec.ReadToken(); err != nil {
			return err
		}
		for s.dec.PeekKind() != ']' {
			if err := s.value(name, depth); err != nil {
				return err
			}
		}
		_, err := s.dec.ReadToken()
		return err
	default:
		return s.dec.SkipValue()
	}
}

func (s *scan) object(parent string, depth int) error {
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	var kind string
	for s.dec.PeekKind() != '}' {
		tok, err := s.dec.ReadToken()
		if err != nil {
			return err
		}
		name := tok.String()
		switch {
		case name == "input" || name == "input_schema":
			err = s.dec.SkipValue() // a tool's own data: whatever it holds asks for nothing
		case name == "type" && s.dec.PeekKind() == '"':
			tok, err = s.dec.ReadToken()
			kind = tok.String()
		case name == "ttl" && parent == "cache_control" && s.dec.PeekKind() == '"':
			tok, err = s.dec.ReadToken()
			s.ask.longCache = s.ask.longCache || tok.String() != "5m"
		case depth == 0:
			err = s.top(name)
		default:
			err = s.value(name, depth+1)
		}
		if err != nil {
			return err
		}
		s.ask.cache = s.ask.cache || name == "cache_control"
	}
	s.see(parent, kind)
	_, err := s.dec.ReadToken()
	return err
}

// top reads a member of the request itself.
func (s *scan) top(name string) error {
	kind := s.dec.PeekKind()
	switch name {
	case "model":
		if kind != '"' {
			return errors.New("model is not a string")
		}
		tok, err := s.dec.ReadToken()
		s.ask.model = tok.String()
		return err
	case "max_tokens":
		if kind != '0' {
			return errors.New("max_tokens is not a number")
		}
		tok, err := s.dec.ReadToken()
		if err != nil {
			return err
		}
		f, err := tok.Float()
		if err != nil || f < 0 || f > 1e9 {
			return errors.New("max_tokens is out of range")
		}
		s.ask.maxOutput = int64(f)
		return nil
	case "speed", "inference_geo":
		raw, err := s.dec.ReadValue()
		if v := string(raw); err == nil && v != "null" && v != `"standard"` && v != `"global"` {
			s.refuse = name + " has a price of its own, which the meter does not know: leave it out"
		}
		return err
	case "mcp_servers", "container":
		if kind != 'n' {
			s.refuse = name + " lets the provider act outside the sandbox and is not allowed here"
		}
	}
	return s.value(name, 1)
}

// see judges an object by its name and type.
func (s *scan) see(parent, kind string) {
	switch {
	case parent == "source" && (kind == "url" || kind == "file"):
		s.refuse = "a source of type " + kind + " makes the provider fetch it and is not allowed here: send the bytes"
	case parent == "tools" && !localTool(kind):
		s.refuse = "the tool type " + printable(kind) + " runs at the provider and is not allowed here"
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
		return &sseCounter{}
	}
	return &bodyCounter{}
}
