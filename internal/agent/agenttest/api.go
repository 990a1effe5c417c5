package agenttest

import (
	"net/http"
	"strings"
)

// api is one of the APIs that the model speaks.
type api int

const (
	noAPI api = iota
	messages
	responses
	chat
	generate
)

func apiOf(path string) api {
	switch {
	case path == "/v1/messages":
		return messages
	case path == "/v1/responses":
		return responses
	case path == "/v1/chat/completions":
		return chat
	case strings.HasPrefix(path, "/v1beta/models/") && strings.HasSuffix(path, "enerateContent"):
		return generate
	}
	return noAPI
}

// fail writes an error in the shape that the API's clients read.
func (a api) fail(w http.ResponseWriter, status int, kind, message string) {
	switch a {
	case responses, chat:
		openAIError(w, status, message)
	case generate:
		geminiError(w, status, message)
	default:
		writeError(w, status, kind, message)
	}
}

// whole is the answer in one piece.
func (a api) whole(m msg) map[string]any {
	switch a {
	case responses:
		return m.wholeResponse()
	case chat:
		return m.wholeChat()
	case generate:
		return m.wholeGemini()
	}
	return m.whole()
}

// events are the answer's stream, and whether each event's type stands before its data.
func (a api) events(m msg) (events []map[string]any, named bool) {
	switch a {
	case responses:
		return m.responseEvents(), true
	case chat:
		return m.chatChunks(), false
	case generate:
		return m.geminiChunks(), false
	}
	return m.events(), true
}
