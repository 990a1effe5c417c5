package agent

import "strings"

// geminiReader reads `gemini --output-format stream-json`.
type geminiReader struct {
	r     reading
	on    func(Event)
	words strings.Builder // of the message that is being told in parts
	said  bool            // something was said since the last tool
}

func newGeminiReader(on func(Event)) *geminiReader { return &geminiReader{on: on} }

func (g *geminiReader) reading() *reading { return &g.r }

func (g *geminiReader) event(o object) bool {
	kind := o.str("type")
	if kind != "message" {
		g.spoken()
	}
	switch kind {
	case "init":
		g.r.session = o.str("session_id")
		g.tell(Event{Kind: "start", Text: o.str("model")})
	case "message":
		if o.str("role") == "assistant" && g.words.Len() < finalMax {
			g.words.WriteString(o.str("content"))
		}
	case "tool_use":
		g.r.usage.Turns++
		g.said = false
		g.tell(Event{Kind: "tool", Tool: o.str("tool_name"), Text: toolText(o.child("parameters"))})
	case "tool_result":
	case "error":
		// A report on the way; only the result ends a call.
		g.tell(Event{Kind: "message", Text: o.str("message")})
	case "result":
		g.result(o)
	default:
		return false
	}
	return true
}

// spoken closes a message that came in parts.
func (g *geminiReader) spoken() {
	if text := g.words.String(); strings.TrimSpace(text) != "" {
		g.r.last, g.said = text, true
		g.tell(Event{Kind: "message", Text: text})
	}
	g.words.Reset()
}

func (g *geminiReader) result(o object) {
	r := &g.r
	stats := o.child("stats")
	for name, field := range map[string]*int64{
		"input_tokens": &r.usage.InputTokens, "output_tokens": &r.usage.OutputTokens, "cached": &r.usage.CacheRead,
	} {
		if n, ok := stats.count(name); ok {
			*field = n
		}
	}
	r.terminal, r.failed, r.kind, r.lasting, r.detail, r.result = true, false, "", false, "", ""
	switch {
	case o.str("status") == "success" && !g.said:
		// So it ends after answers that broke off twice, and where it takes itself for looping.
		r.failed, r.kind, r.detail = true, Incomplete, "it ended without a closing word: its answers broke off, or it took itself for going round in circles"
	case o.str("status") != "success":
		text := o.child("error").str("message")
		v := byWords(text)
		r.failed, r.kind, r.lasting, r.resetAt = true, v.kind, v.lasting, v.resetAt
		r.result, r.detail = text, text
	}
	g.tell(Event{Kind: "result", Text: r.detail})
}

// geminiOutcome adds what the exit code says: the low byte of the API's status, or a reason of the CLI's own. Its
// text keeps no status.
func geminiOutcome(o Outcome, end ending) Outcome {
	if o.Kind != AgentError && o.Kind != Incomplete && o.Kind != RefusedStart || end.Signal != "" || end.Exceeded != "" {
		return o
	}
	v, ok := verdict{}, true
	if end.ExitCode == 42 && strings.Contains(end.stderr, "No input provided via stdin") {
		o.Kind, o.Lasting, o.Detail = Incomplete, false, "it gave up waiting for its prompt, which it does after half a second"
		return o
	}
	switch end.ExitCode {
	case 41:
		v.kind = Auth
	case 52:
		// It parses the repository's settings even though it takes nothing from them.
		if strings.Contains(o.Detail, "/.gemini/settings.json") {
			o.Next = "make the repository's .gemini/settings.json valid JSON, or delete it: the Gemini CLI does not start beside one that it cannot parse"
		}
		v = verdict{kind: RefusedStart, lasting: true}
	case 42:
		v = verdict{kind: RefusedStart, lasting: true}
	case 53:
		v.kind = LimitTurns
	default:
		status := int64(end.ExitCode) + 256
		if end.ExitCode == 529&0xff {
			status = 529
		}
		v, ok = byStatus(status, false, o.Detail)
	}
	switch {
	case ok:
		o.Kind, o.Lasting = v.kind, v.lasting
	case o.Kind == AgentError && ofMeter(o.Detail):
		o.Lasting = true // what the meter refuses once, a model without a price, it refuses again
	}
	return o
}

func (g *geminiReader) tell(e Event) { tell(g.on, e) }
