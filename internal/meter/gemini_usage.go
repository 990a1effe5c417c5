package meter

import "encoding/json"

// geminiUsage reads the Gemini API: each chunk tells the usage so far, the last one has a reason for the
// end. The prompt includes what came from the cache; thoughts are output that stands beside the answer's.
type geminiUsage struct {
	whole bool // the answer comes in one piece
	told  tally
	final bool
}

func (g *geminiUsage) event(data []byte) {
	var ev struct {
		Candidates []struct {
			FinishReason string `json:"finishReason"`
		} `json:"candidates"`
		PromptFeedback struct {
			BlockReason string `json:"blockReason"`
		} `json:"promptFeedback"`
		UsageMetadata json.RawMessage `json:"usageMetadata"`
	}
	if json.Unmarshal(data, &ev) != nil {
		return
	}
	if g.told.names == nil {
		g.told.names = []string{
			"promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount", "totalTokenCount",
		}
	}
	seen := g.told.see(ev.UsageMetadata) != nil
	last := g.whole || ev.PromptFeedback.BlockReason != ""
	for _, c := range ev.Candidates {
		last = last || c.FinishReason != ""
	}
	g.final = g.final || seen && last
}

func (g *geminiUsage) usage() (Usage, bool, bool) {
	f := g.told.fields
	prompt, read := f["promptTokenCount"]+f["toolUsePromptTokenCount"], f["cachedContentTokenCount"]
	// A count of zero is left out, and so the total has a say too.
	out := max(f["candidatesTokenCount"]+f["thoughtsTokenCount"], f["totalTokenCount"]-prompt)
	u := Usage{Input: prompt - read, Output: out, CacheRead: read, Reasoning: f["thoughtsTokenCount"]}
	complete := g.final && has(f, "promptTokenCount") && !g.told.bad && u.Input >= 0
	return u, complete, has(f, "promptTokenCount")
}
