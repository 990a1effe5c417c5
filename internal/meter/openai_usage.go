package meter

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// openAIUsage reads both of OpenAI's APIs. A Responses stream tells its usage in its last event, a Chat
// Completions stream in a last chunk without choices, if the client asked for it. The input includes what
// came from the cache and what was written to it, the output includes reasoning.
type openAIUsage struct {
	whole bool // the answer comes in one piece
	told  tally
	start bool
	final bool
	free  bool
}

type openAIAnswer struct {
	Type     string          `json:"type"`
	Usage    json.RawMessage `json:"usage"`
	Response struct {
		Usage json.RawMessage `json:"usage"`
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	} `json:"response"`
	Choices []struct {
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
}

func (o *openAIUsage) event(data []byte) {
	if !o.whole && emptyChunk(data) {
		return
	}
	var ev openAIAnswer
	if json.Unmarshal(data, &ev) != nil {
		return
	}
	switch {
	case o.whole:
		o.final = o.see(ev.Usage)
	case ev.Type == "response.completed" || ev.Type == "response.incomplete":
		o.final = o.see(ev.Response.Usage) || o.final
	case ev.Type == "response.failed":
		seen := o.see(ev.Response.Usage)
		o.final = seen || o.final
		o.free = !seen && slices.Contains(turnedAway, ev.Response.Error.Code)
	case strings.HasPrefix(ev.Type, "response."):
	default:
		seen := o.see(ev.Usage)
		last := len(ev.Choices) == 0 || slices.ContainsFunc(ev.Choices, func(c struct {
			FinishReason *string `json:"finish_reason"`
		}) bool {
			return c.FinishReason != nil
		})
		o.final = o.final || seen && last
	}
}

// emptyChunk says that a chunk of Chat Completions tells no usage yet, which each but the last says in so many words.
func emptyChunk(data []byte) bool {
	if chunkMark.in(data) < 0 {
		return false
	}
	for rest := data; ; {
		i := usageMark.in(rest)
		if i < 0 {
			return true
		}
		rest = bytes.TrimLeft(rest[i+len(usageMark.text):], " ")
		value, ok := bytes.CutPrefix(rest, []byte(":"))
		if !ok || !bytes.HasPrefix(bytes.TrimLeft(value, " "), []byte("null")) {
			return false
		}
	}
}

// turnedAway are the codes of a failure within a stream that tells of no work: the provider answers 200 and
// then says that it did not begin.
var turnedAway = []string{"rate_limit_exceeded", "insufficient_quota", "server_is_overloaded", "slow_down", "invalid_prompt"}

func (o *openAIUsage) see(raw json.RawMessage) bool {
	if o.told.names == nil {
		o.told.within = []string{"input_tokens_details", "output_tokens_details", "prompt_tokens_details", "completion_tokens_details"}
		o.told.names = []string{
			"input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens",
		}
	}
	fields := o.told.see(raw)
	if fields == nil {
		return false
	}
	o.start = true
	return has(fields, "output_tokens") || has(fields, "completion_tokens")
}

func (o *openAIUsage) usage() (Usage, bool, bool) {
	f := o.told.fields
	in, out := max(f["input_tokens"], f["prompt_tokens"]), max(f["output_tokens"], f["completion_tokens"])
	read, write, reasoning := f["cached_tokens"], f["cache_write_tokens"], f["reasoning_tokens"]
	if o.free && !o.start && !o.told.bad {
		return Usage{}, true, false
	}
	u := Usage{Input: in - read - write, Output: out, CacheRead: read, CacheWrite5m: write, Reasoning: reasoning}
	complete := o.final && (has(f, "input_tokens") || has(f, "prompt_tokens")) && !o.told.bad && u.Input >= 0 && reasoning <= out
	return u, complete, o.start
}
