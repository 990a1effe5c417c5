package agenttest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
)

// Request is one request as the model saw it.
type Request struct {
	Path    string
	Header  http.Header // with the key that was shown
	Body    []byte
	Model   string
	Stream  bool
	Max     int64
	Tools   []string
	Session string // what makes requests of one process belong together
	Attempt int    // which session this is, in order of first appearance, from 1
	Turn    int    // how many answers the conversation already holds
	Dir     string // the work tree that the client told, empty when it told none

	messages []message
	system   string
	usage    bool // a chat stream is asked to tell its usage
}

// Key is the credential that was shown, without its scheme.
func (r Request) Key() string {
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key"} {
		if k := r.Header.Get(name); k != "" {
			return k
		}
	}
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

// blocks reads content that is a string or a list.
func blocks(raw json.RawMessage) []block {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []block{{Type: "text", Text: s}}
	}
	var list []block
	_ = json.Unmarshal(raw, &list) // whatever is no list has no blocks
	return list
}

func texts(raw json.RawMessage) string {
	var parts []string
	for _, b := range blocks(raw) {
		if b.Type == "text" || b.Type == "input_text" || b.Type == "output_text" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// workDir finds the directory that Claude Code tells the model.
var workDir = regexp.MustCompile(`(?i)working directory: ([^\n]+)`)

func parseRequest(r *http.Request, body []byte) Request {
	req := Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	switch apiOf(r.URL.Path) {
	case responses:
		parseResponses(body, &req)
	case chat:
		parseChat(body, &req)
	case generate:
		parseGemini(r.URL.Path, body, &req)
	default:
		parseMessages(body, &req)
		req.Session = r.Header.Get("X-Claude-Code-Session-Id")
	}
	all := req.Text()
	if m := workDir.FindStringSubmatch(all); m != nil {
		req.Dir = strings.TrimSpace(m[1])
	} else {
		req.Dir = cwd(all)
	}
	if req.Session == "" && len(req.messages) > 0 {
		sum := sha256.Sum256(req.messages[0].Content)
		req.Session = hex.EncodeToString(sum[:8])
	}
	return req
}

// parseMessages reads a request to /v1/messages.
func parseMessages(body []byte, req *Request) {
	var in struct {
		Model     string          `json:"model"`
		Stream    bool            `json:"stream"`
		MaxTokens int64           `json:"max_tokens"`
		System    json.RawMessage `json:"system"`
		Messages  []message       `json:"messages"`
		Tools     []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	_ = json.Unmarshal(body, &in) // what is no request is answered as such
	req.Model, req.Stream, req.Max, req.messages, req.system = in.Model, in.Stream, in.MaxTokens, in.Messages, texts(in.System)
	for _, t := range in.Tools {
		req.Tools = append(req.Tools, t.Name)
	}
	for _, m := range in.Messages {
		if m.Role == "assistant" {
			req.Turn++
		}
	}
}

// Text is everything the conversation says in text, the system's part first.
func (r Request) Text() string {
	all := r.system
	for _, m := range r.messages {
		all += "\n" + texts(m.Content)
	}
	return all
}

// LastText is the text of the last message.
func (r Request) LastText() string {
	if len(r.messages) == 0 {
		return ""
	}
	return texts(r.messages[len(r.messages)-1].Content)
}

// Result is what a tool answered.
type Result struct {
	Text  string
	Error bool
}

// Results are the tools' answers to the last turn, in order.
func (r Request) Results() []Result {
	for i := len(r.messages) - 1; i >= 0; i-- {
		var out []Result
		for _, b := range blocks(r.messages[i].Content) {
			if b.Type == "tool_result" {
				out = append(out, Result{Text: texts(b.Content), Error: b.IsError})
			}
		}
		if len(out) > 0 || r.messages[i].Role == "assistant" {
			return out
		}
	}
	return nil
}
