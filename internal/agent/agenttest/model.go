// Package agenttest is a model on loopback that plays a script: the APIs of Anthropic, OpenAI and Gemini as
// agents meet them, with their faults. Tests and the demo use it; it must never be reachable from elsewhere or
// know anything about the run it serves.
package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Model serves POST /v1/messages, /v1/responses, /v1/chat/completions, /v1beta/models/NAME:generateContent and
// :streamGenerateContent, streamed and whole, and /v1/messages/count_tokens.
type Model struct {
	script Script
	server *http.Server
	served chan struct{}
	done   chan struct{} // closed by Close: delays end
	close  sync.Once

	mu       sync.Mutex
	requests []Request
	sessions map[string]int // order of first appearance, from 1
}

// NewModel returns a model that answers by the script. It is an http.Handler; Start makes it a server.
func NewModel(script Script) *Model {
	return &Model{script: script, sessions: map[string]int{}, done: make(chan struct{})}
}

// Start listens on a free loopback port and returns the base URL.
func (m *Model) Start(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("start the model server: %w", err)
	}
	m.served = make(chan struct{})
	m.server = &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(m.served)
		_ = m.server.Serve(l) // always ErrServerClosed
	}()
	return "http://" + l.Addr().String(), nil
}

// Close stops the server and ends what still waits.
func (m *Model) Close() {
	m.close.Do(func() { close(m.done) })
	if m.server != nil {
		_ = m.server.Close()
		<-m.served
	}
}

// Requests returns what was asked so far, in order of arrival.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Request(nil), m.requests...)
}

// Calls returns the requests that were for a message.
func (m *Model) Calls() []Request {
	var calls []Request
	for _, r := range m.Requests() {
		if apiOf(r.Path) != noAPI {
			calls = append(calls, r)
		}
	}
	return calls
}

func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return
	}
	req := m.record(r, body)
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages/count_tokens":
		writeJSON(w, http.StatusOK, map[string]any{"input_tokens": len(body)/4 + 1})
	case r.Method != http.MethodPost || apiOf(r.URL.Path) == noAPI:
		writeError(w, http.StatusNotFound, "not_found_error", "Not found")
	case !json.Valid(body):
		apiOf(req.Path).fail(w, http.StatusBadRequest, "invalid_request_error", "the body is not valid JSON")
	default:
		m.answer(w, r, req)
	}
}

func (m *Model) answer(w http.ResponseWriter, r *http.Request, req Request) {
	turn := m.turn(req)
	if turn.Delay > 0 {
		select {
		case <-time.After(turn.Delay):
		case <-r.Context().Done():
			return
		case <-m.done:
			return
		}
	}
	a := apiOf(req.Path)
	if turn.Fault.write(w, a) {
		return
	}
	msg := newMessage(req, turn)
	if !req.Stream {
		writeJSON(w, http.StatusOK, a.whole(msg))
		return
	}
	msg.stream(w, a)
}

// turn asks the script. Two kinds of request are none of its business: what the script agent spends,
// and questions on the side that offer no tools.
func (m *Model) turn(req Request) Turn {
	if in, out, ok := spendOf(req); ok {
		return Turn{Text: "spent", Usage: &Usage{Input: in, Output: out}}
	}
	if m.script == nil {
		return Turn{Text: "Done."}
	}
	return m.script(req)
}

func (m *Model) record(r *http.Request, body []byte) Request {
	req := parseRequest(r, body)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, seen := m.sessions[req.Session]; !seen {
		m.sessions[req.Session] = len(m.sessions) + 1
	}
	req.Attempt = m.sessions[req.Session]
	m.requests = append(m.requests, req)
	return req
}

func spendOf(req Request) (in, out int64, ok bool) {
	n, err := fmt.Sscanf(strings.TrimSpace(req.LastText()), "proctor script: spend input=%d output=%d", &in, &out)
	return in, out, err == nil && n == 2
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

func writeError(w http.ResponseWriter, status int, kind, message string) {
	writeJSON(w, status, map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": message}})
}
