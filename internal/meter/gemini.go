package meter

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// gemini is the Gemini API of Google AI Studio.
// https://ai.google.dev/api/generate-content
type gemini struct{}

func (gemini) owns(path string) bool { return strings.HasPrefix(path, "/v1beta/") }

// geminiCall is a call of a model. A name is one path segment.
var geminiCall = regexp.MustCompile(`^/v1beta/models/([A-Za-z0-9][A-Za-z0-9._-]*):(generateContent|streamGenerateContent|countTokens)$`)

// route serves three requests. A stream comes as server-sent events only: its other form, one long list,
// ends without a last word on the usage.
func (gemini) route(r *http.Request) (kind op, path, query string, ok bool) {
	m := geminiCall.FindStringSubmatch(r.URL.Path)
	if m == nil || r.Method != http.MethodPost {
		return 0, "", "", false
	}
	switch m[2] {
	case "countTokens":
		kind = opFree
	case "streamGenerateContent":
		if r.URL.Query().Get("alt") != "sse" {
			return 0, "", "", false
		}
		kind, query = opCall, "alt=sse"
	default:
		kind = opCall
	}
	return kind, r.URL.Path, query, true
}

func (gemini) authorize(h http.Header, cred Credential) {
	if cred.Kind == Bearer {
		h.Set("Authorization", "Bearer "+cred.Value)
		return
	}
	h.Set("X-Goog-Api-Key", cred.Value)
}

// requestHeader leaves out x-goog-user-project, which names who pays.
func (gemini) requestHeader(name string) bool { return name == "X-Goog-Api-Client" }

func (gemini) responseHeader(string) bool { return false }

func (gemini) fail(w http.ResponseWriter, f failure) {
	status := map[int]string{
		http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED", http.StatusNotFound: "NOT_FOUND",
		http.StatusPaymentRequired: "FAILED_PRECONDITION", http.StatusBadGateway: "UNAVAILABLE", http.StatusServiceUnavailable: "UNAVAILABLE",
	}[f.status]
	if status == "" {
		status = "INVALID_ARGUMENT"
	}
	body, err := json.Marshal(map[string]any{"error": map[string]any{"code": f.status, "message": Mark + f.message, "status": status}})
	if err != nil {
		body = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	_, _ = w.Write(body)
}

func (gemini) ask(r *http.Request, body []byte) (ask, error) {
	a := ask{bytes: int64(len(body))}
	m := geminiCall.FindStringSubmatch(r.URL.Path)
	if m == nil {
		return a, errors.New("the request names no model")
	}
	if a.model = m[1]; len(a.model) > modelNameLimit {
		return a, fmt.Errorf("the path names a model by %d bytes: %d are the most", len(a.model), modelNameLimit)
	}
	g := &geminiRequest{}
	err := readRequest(body, &a, rules{
		opaque: func(name string) bool { return slices.Contains(geminiOpaque, camel(name)) },
		keep:   func(name string) bool { return slices.Contains(geminiKept, camel(name)) },
		known:  geminiKnown,
		top:    g.top, see: g.see,
	})
	if g.err != nil {
		err = g.err
	}
	a.capOutput(g.cap)
	return a, err
}

// camel is a member's name as the API writes it; both spellings are read there, "max_output_tokens" too.
func camel(name string) string {
	if !strings.Contains(name, "_") {
		return name
	}
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

var geminiKnown = []string{
	"cachedContent", "cached_content", "serviceTier", "service_tier", "generationConfig", "generation_config", "tools",
}

// geminiOpaque hold a tool's own data.
var geminiOpaque = []string{"parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema", "args", "response", "labels"}

var geminiKept = []string{"fileUri", "mimeType"}

// geminiRequest collects what the configuration of a request says.
type geminiRequest struct {
	cap int64
	err error
}

func (g *geminiRequest) top(s *scan, name string) (bool, error) {
	switch camel(name) {
	case "cachedContent":
		s.forbid(name, unseen)
	case "serviceTier":
		tier, err := s.word()
		if t := strings.ToLower(tier); t != "" && !strings.HasSuffix(t, "standard") && !strings.HasSuffix(t, "flex") {
			s.deny(name + " " + ownPrice)
		}
		return true, err
	case "generationConfig":
		raw, err := s.dec.ReadValue()
		if err == nil {
			g.config(s, raw)
		}
		return true, err
	case "tools":
		raw, err := s.dec.ReadValue()
		if err == nil {
			g.tools(s, raw)
		}
		return true, err
	}
	return false, nil
}

// config reads the generation's configuration. The walk has seen that no name is repeated in it.
func (g *geminiRequest) config(s *scan, raw []byte) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		g.err = errors.New("generationConfig is not an object")
		return
	}
	for name, value := range members {
		switch camel(name) {
		case "maxOutputTokens":
			g.number(value, &g.cap)
		case "candidateCount":
			var n int64
			g.number(value, &n)
			s.oneAnswer(name, n)
		case "responseModalities":
			var kinds []string
			if json.Unmarshal(value, &kinds) != nil || slices.ContainsFunc(kinds, func(k string) bool { return !strings.EqualFold(k, "TEXT") }) {
				s.deny("output other than text " + ownPrice)
			}
		}
	}
}

func (g *geminiRequest) number(raw json.RawMessage, into *int64) {
	var n *int64
	if json.Unmarshal(raw, &n) != nil || n != nil && (*n < 0 || *n > 1e9) {
		g.err = errors.New("maxOutputTokens or candidateCount is out of range")
		return
	}
	if n != nil {
		*into = max(*into, *n)
	}
}

// tools lets functions through, whose calls come back to the client, inside the sandbox.
func (g *geminiRequest) tools(s *scan, raw []byte) {
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		g.err = errors.New("tools is not a list of objects")
		return
	}
	for _, tool := range list {
		for name, value := range tool {
			if c := camel(name); c != "functionDeclarations" && string(value) != "null" {
				s.deny("the tool " + printable(name) + " runs at the provider and is not allowed here")
			}
		}
	}
}

func (g *geminiRequest) see(s *scan, o node) {
	kind := strings.ToLower(o.text("mimeType") + o.text("mime_type"))
	switch {
	case o.has("fileUri"), o.has("file_uri"):
		s.deny("a file URI makes the provider fetch it and is not allowed here: send the bytes")
	case kind == "" || camel(o.name) != "inlineData":
	case strings.Contains(kind, "audio/"), strings.Contains(kind, "video/"):
		s.deny("audio and video " + ownPrice)
	case strings.HasPrefix(kind, "image/"):
		s.ask.images++
	default:
		s.ask.documents++
	}
}

func (gemini) counter(stream bool) counter {
	if stream {
		return newStreamCounter(metadataMark, &geminiUsage{})
	}
	return &bodyCounter{usageReader: &geminiUsage{whole: true}}
}
