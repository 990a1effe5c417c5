package meter

import "encoding/json"

// anthropicUsage reads the Messages API: a stream's message_start tells the input, its message_delta the
// output; counts exclude the cache.
type anthropicUsage struct {
	whole bool // the answer comes in one piece
	told  tally
	start bool
	final bool
}

func (a *anthropicUsage) event(data []byte) {
	var ev struct {
		Type    string          `json:"type"`
		Usage   json.RawMessage `json:"usage"`
		Message struct {
			Usage json.RawMessage `json:"usage"`
		} `json:"message"`
	}
	if json.Unmarshal(data, &ev) != nil {
		return
	}
	switch {
	case a.whole || ev.Type == "message_delta":
		a.start = true
		a.final = a.see(ev.Usage) || a.final
	case ev.Type == "message_start":
		a.start = true
		a.see(ev.Message.Usage)
	}
}

// see takes one usage object and says whether it told the output.
func (a *anthropicUsage) see(raw json.RawMessage) bool {
	if a.told.names == nil {
		a.told.within = []string{"cache_creation"}
		a.told.names = []string{
			"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
			"ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens",
		}
	}
	fields := a.told.see(raw)
	if fields == nil {
		return false
	}
	sum, ok := a.iterations(raw)
	a.told.merge(sum)
	return has(fields, "output_tokens") || ok && has(sum, "output_tokens")
}

// iterations sums the passes of a call that the provider ran more than once (context compaction):
// the counts beside them are of the last pass only, all are billed.
func (a *anthropicUsage) iterations(raw json.RawMessage) (map[string]int64, bool) {
	var object struct {
		Iterations []json.RawMessage `json:"iterations"`
	}
	if json.Unmarshal(raw, &object) != nil || len(object.Iterations) == 0 {
		return nil, false
	}
	sum := map[string]int64{}
	for _, it := range object.Iterations {
		fields, ok := a.told.read(it)
		if !ok {
			return nil, false
		}
		for k, v := range fields {
			sum[k] += v
		}
	}
	return sum, true
}

func (a *anthropicUsage) usage() (Usage, bool, bool) {
	f := a.told.fields
	long := f["ephemeral_1h_input_tokens"]
	write := max(f["cache_creation_input_tokens"], long+f["ephemeral_5m_input_tokens"])
	u := Usage{
		Input: f["input_tokens"], Output: f["output_tokens"], CacheRead: f["cache_read_input_tokens"],
		CacheWrite1h: long, CacheWrite5m: write - long,
	}
	complete := a.final && has(f, "input_tokens") && has(f, "output_tokens") && !a.told.bad
	return u, complete, a.start
}
