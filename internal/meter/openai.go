package meter

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// openAI is the Responses API and Chat Completions of OpenAI, and of the many servers that speak them.
// https://platform.openai.com/docs/api-reference/responses and …/chat
type openAI struct{}

func (openAI) owns(path string) bool {
	return strings.HasPrefix(path, "/v1/responses") || strings.HasPrefix(path, "/v1/chat/")
}

// route serves two requests only. Clients take the "/v1" as part of the base URL, and so does Provider.
func (openAI) route(r *http.Request) (kind op, path, query string, ok bool) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/responses" && r.URL.Path != "/v1/chat/completions" {
		return 0, "", "", false
	}
	return opCall, strings.TrimPrefix(r.URL.Path, "/v1"), "", true
}

func (openAI) authorize(h http.Header, cred Credential) { h.Set("Authorization", "Bearer "+cred.Value) }

// requestHeader leaves out what names an organization or project: those are the key's.
func (openAI) requestHeader(name string) bool {
	return name == "Openai-Beta" || strings.HasPrefix(name, "X-Stainless-") || name == "Idempotency-Key"
}

// responseHeader leaves out what names the account (openai-organization, openai-project).
func (openAI) responseHeader(name string) bool {
	return strings.HasPrefix(name, "X-Ratelimit-") || name == "X-Request-Id" || name == "X-Should-Retry" || name == "Openai-Model"
}

func (openAI) fail(w http.ResponseWriter, f failure) {
	kind, code := "invalid_request_error", "refused_by_proctor"
	switch f.status {
	case http.StatusUnauthorized:
		code = "invalid_api_key"
	case http.StatusPaymentRequired:
		kind, code = "insufficient_quota", "run_budget_reached"
	case http.StatusNotFound:
		code = "model_not_found"
	case http.StatusBadGateway:
		kind, code = "server_error", "bad_gateway"
	case http.StatusServiceUnavailable:
		kind, code = "server_error", "not_on_record"
	}
	body, err := json.Marshal(map[string]any{
		"error": map[string]any{"message": Mark + f.message, "type": kind, "param": nil, "code": code},
	})
	if err != nil {
		body = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", "false")
	w.WriteHeader(f.status)
	_, _ = w.Write(body)
}

func (openAI) ask(r *http.Request, body []byte) (ask, error) {
	// Writes to the cache, where a model bills them, happen without being asked for.
	a := ask{bytes: int64(len(body)), cache: true}
	t := openAITop{chat: r.URL.Path == "/v1/chat/completions"}
	err := readRequest(body, &a, rules{
		opaque: func(name string) bool { return slices.Contains(openAIOpaque, name) },
		keep:   func(name string) bool { return slices.Contains(openAIKept, name) },
		known:  openAIKnown,
		top:    t.read, see: openAISees,
	})
	switch {
	case err != nil:
	case a.model == "":
		err = errors.New("the request names no model")
	case t.chat && t.stream && !t.usage:
		err = errors.New(`a streamed chat completion tells its usage only where the request asks for it: set "stream_options": {"include_usage": true}`)
	}
	a.capOutput(t.cap)
	return a, err
}

// openAITop collects members of the request itself.
type openAITop struct {
	chat          bool
	cap           int64
	stream, usage bool // the answer is to come in events; its usage in the last one
}

func (t *openAITop) read(s *scan, name string) (bool, error) {
	switch name {
	case "model":
		return true, s.modelName()
	case "max_output_tokens", "max_completion_tokens", "max_tokens":
		if t.chat == (name == "max_output_tokens") {
			return false, nil // of the other API: without effect
		}
		n, err := s.count(name)
		t.cap = max(t.cap, n)
		return true, err
	case "n":
		n, err := s.count(name)
		s.oneAnswer(name, n)
		return true, err
	case "service_tier":
		tier, err := s.word()
		if tier != "" && tier != "auto" && tier != "default" && tier != "flex" {
			s.deny("service_tier " + printable(tier) + " " + ownPrice)
		}
		return true, err
	case "previous_response_id", "conversation", "prompt":
		s.forbid(name, unseen)
	case "web_search_options":
		s.forbid(name, outside)
	case "audio":
		s.forbid(name, ownPrice)
	case "stream":
		t.stream = s.dec.PeekKind() == 't'
	case "stream_options":
		raw, err := s.dec.ReadValue()
		t.usage = err == nil && includesUsage(raw)
		return true, err
	case "background":
		if s.dec.PeekKind() == 't' {
			s.deny("background lets a call go on beyond its answer and is not allowed here")
		}
	}
	return false, nil
}

// includesUsage reads a member that the walk has seen to repeat no name; the map compares names exactly.
func includesUsage(raw []byte) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(raw, &members) == nil && string(members["include_usage"]) == "true"
}

var openAIKnown = []string{
	"model", "max_output_tokens", "max_completion_tokens", "max_tokens", "n", "service_tier", "previous_response_id", "conversation",
	"prompt", "web_search_options", "audio", "stream", "stream_options", "background", "tools",
}

// openAIOpaque hold a tool's own data.
var openAIOpaque = []string{"parameters", "schema", "metadata", "logit_bias"}

var openAIKept = []string{"type", "url", "image_url", "file_url", "file_id", "file_data"}

// openAISees judges an object by its place and type.
func openAISees(s *scan, o node) {
	kind := o.text("type")
	const fetch = " makes the provider fetch it and is not allowed here: send the bytes"
	switch {
	case o.name == "tools" && !slices.Contains(openAITools, kind):
		s.deny("the tool type " + printable(kind) + " runs at the provider and is not allowed here")
	case o.has("file_url"), o.has("file_id"), kind == "item_reference":
		s.deny("a file or an item that the provider keeps" + fetch)
	case o.name == "image_url", o.has("image_url") && o.text("image_url") != "":
		s.ask.images++
		if url := o.text("image_url") + o.text("url"); !strings.HasPrefix(url, "data:") {
			s.deny("an image URL" + fetch)
		}
	case kind == "input_audio":
		s.deny("audio " + ownPrice)
	case o.has("file_data"):
		s.ask.documents++
	}
}

// openAITools are the tools whose calls come back to the client, inside the sandbox.
var openAITools = []string{"function", "custom", "local_shell", "apply_patch", "namespace", "computer_use_preview"}

func (openAI) counter(stream bool) counter {
	if stream {
		return newStreamCounter(usageMark, &openAIUsage{})
	}
	return &bodyCounter{usageReader: &openAIUsage{whole: true}}
}
