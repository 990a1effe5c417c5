package meter

import "testing"

func FuzzUsageOfAStream(f *testing.F) {
	f.Add([]byte(sse(evStart, evText, evDelta)), 7)
	f.Add([]byte("data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":-1}}\n"), 3)
	f.Add([]byte("data:{\"type\":\"message_start\",\"message\":{\"usage\":[]}}\r\n\r\n"), 1)
	f.Add([]byte("data: {\"type\":\"message_delta\",\"usage\":{\"iterations\":[{\"output_tokens\":1e9}]}}"), 1000)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		whole, parts := newStreamCounter(usageMark, &anthropicUsage{}), newStreamCounter(usageMark, &anthropicUsage{})
		whole.write(b)
		step = max(1, step)
		for rest := b; len(rest) > 0; {
			n := min(step, len(rest))
			parts.write(rest[:n])
			rest = rest[n:]
		}
		u, complete, started := whole.usage()
		u2, complete2, started2 := parts.usage()
		if u != u2 || complete != complete2 || started != started2 {
			t.Fatalf("cut at every %d bytes it reads %+v %v, whole %+v %v", step, u2, complete2, u, complete)
		}
		if complete && (u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite5m < 0 || u.CacheWrite1h < 0) {
			t.Fatalf("negative usage is believed: %+v", u)
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(body(model, 100)))
	f.Add([]byte(`{"model":"a","tools":[{"type":"web_fetch_1"}],"messages":[{"content":[{"type":"tool_use","input":{"source":{"type":"url"}}}]}]}`))
	f.Add([]byte(`{"model":"a","speed":{"x":1},"mcp_servers":null,"cache_control":{"ttl":"1h"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := anthropic{}.ask(nil, b)
		if err != nil {
			return
		}
		p, _ := Embedded().Find("claude-opus-5")
		most, ok := p.Cost(a.limit())
		if _, ok2 := p.Cost(a.estimate(Reserve{BytesPerToken: 2})); !ok || !ok2 || most <= 0 {
			t.Fatalf("a request without a bound: %+v", a)
		}
	})
}
