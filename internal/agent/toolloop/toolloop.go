// Package toolloop owns the tool loop that works over a bare model API: conversation, tools, retries, trimming. It
// runs as the confined child of an agent, with the run's nonce as its only credential. It must never hold a
// key, reach outside its work tree by a file tool, or say that the work is right.
package toolloop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Arg is the argument by which a process knows that it is a tool loop.
const Arg = "proctor-tool-loop"

// API is the protocol that is spoken.
type API string

// The protocols.
const (
	Anthropic API = "anthropic" // Messages: POST /v1/messages
	Responses API = "responses" // OpenAI Responses: POST /v1/responses
	Chat      API = "chat"      // Chat Completions: POST /v1/chat/completions; Ollama, vLLM and others
)

// Order is what the child reads on stdin: everything it knows. Counts of zero mean the defaults.
type Order struct {
	API       API    `json:"api"`
	BaseURL   string `json:"base_url"` // the meter's address on loopback
	Nonce     string `json:"nonce"`
	Model     string `json:"model"`
	Prompt    string `json:"prompt"`
	MaxTurns  int    `json:"max_turns"`  // model calls; 0: 150
	MaxOutput int64  `json:"max_output"` // tokens of one answer; 0: 32000
	Context   int64  `json:"context"`    // tokens that a request may hold; 0: 160000
	Effort    string `json:"effort"`     // reasoning effort, where the API knows one
}

func (o Order) withDefaults() Order {
	if o.MaxTurns <= 0 {
		o.MaxTurns = 150
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = 32_000
	}
	if o.Context <= 0 {
		o.Context = 160_000
	}
	return o
}

// How a loop ended, in Line.Outcome.
const (
	EndedOK      = "ok"
	EndedTurns   = "turns"   // MaxTurns calls were made
	EndedRefusal = "refusal" // the model, or a filter before it, refused to go on
	EndedLength  = "length"  // answers were cut off by MaxOutput again and again
	EndedContext = "context" // the request does not fit, whatever is left out of it
	EndedCall    = "call"    // a model call failed for good; Status says how
	EndedTorn    = "torn"    // answers broke off again and again, or were no answers
	EndedFault   = "fault"   // the loop itself could not work
)

// Line is one line of what the child prints.
type Line struct {
	Type string `json:"type"` // "start", "message", "tool", "result"
	Tool string `json:"tool,omitempty"`
	Text string `json:"text,omitempty"`

	// Of a result.
	Outcome     string `json:"outcome,omitempty"`
	Final       string `json:"final,omitempty"`  // the model's last words
	Status      int    `json:"status,omitempty"` // HTTP status of the call that failed; 0: no answer
	Quota       bool   `json:"quota,omitempty"`  // the provider told that an allowance is used up
	RetryMillis int64  `json:"retry_ms,omitempty"`
	Turns       int    `json:"turns,omitempty"`
	Input       int64  `json:"input_tokens,omitempty"`
	Output      int64  `json:"output_tokens,omitempty"`
	CacheRead   int64  `json:"cache_read,omitempty"`
	CacheWrite  int64  `json:"cache_write,omitempty"`
}

// Main plays the child: it reads an Order, works in the current directory and prints Lines. It returns the exit
// code; the last line says how it ended.
func Main(stdin io.Reader, stdout io.Writer) int {
	out := json.NewEncoder(stdout)
	out.SetEscapeHTML(false)
	tell := func(l Line) { _ = out.Encode(l) } // nobody to tell when stdout is gone
	var order Order
	if err := json.NewDecoder(stdin).Decode(&order); err != nil {
		tell(Line{Type: "result", Outcome: EndedFault, Text: "the order did not arrive: " + err.Error()})
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	end := run(ctx, order, tell)
	if ctx.Err() != nil {
		return 1 // ended from outside: the harness knows why, and no result stands
	}
	tell(end)
	if end.Outcome != EndedOK {
		return 1
	}
	return 0
}

func run(ctx context.Context, order Order, tell func(Line)) Line {
	dir, err := os.Getwd()
	if err == nil {
		var l *loop
		if l, err = newLoop(order, dir, tell); err == nil {
			defer l.close()
			return l.run(ctx)
		}
	}
	return Line{Type: "result", Outcome: EndedFault, Text: fmt.Sprintf("the tool loop cannot start: %v", err)}
}
