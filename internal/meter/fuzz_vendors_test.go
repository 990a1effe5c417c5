package meter

import (
	"bytes"
	"net/http"
	"net/url"
	"testing"
)

func readers() map[string]func() counter {
	return map[string]func() counter{
		"openai":        func() counter { return openAI{}.counter(true) },
		"gemini":        func() counter { return gemini{}.counter(true) },
		"openai whole":  func() counter { return openAI{}.counter(false) },
		"gemini whole":  func() counter { return gemini{}.counter(false) },
		"anthropic":     func() counter { return anthropic{}.counter(true) },
		"anthropic one": func() counter { return anthropic{}.counter(false) },
	}
}

func FuzzUsageOfEveryAPI(f *testing.F) {
	for _, v := range vendors() {
		f.Add([]byte(dataLines(v.stream...)), 7)
		f.Add([]byte(v.plain), 3)
	}
	f.Add([]byte("data: {\"usage\":{\"input_tokens\":1,\"output_tokens\":2,\"input_tokens_details\":{\"cached_tokens\":9}}}\n"), 1)
	f.Add([]byte("data: {\"usageMetadata\":{\"promptTokenCount\":1,\"totalTokenCount\":-2},\"candidates\":[{\"finishReason\":\"STOP\"}]}\n"), 1)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		for name, make := range readers() {
			whole, parts := make(), make()
			whole.write(b)
			step = max(1, step)
			for rest := b; len(rest) > 0; {
				n := min(step, len(rest))
				parts.write(rest[:n])
				rest = rest[n:]
			}
			if stream, ok := whole.(*streamCounter); ok {
				plain := make().(*streamCounter)
				byLine(b, stream.mark.text, plain.usageReader)
				u, complete, started := whole.usage()
				u2, complete2, started2 := plain.usage()
				if u != u2 || complete != complete2 || started != started2 {
					t.Fatalf("%s: it reads %+v %v, line by line %+v %v", name, u, complete, u2, complete2)
				}
			}
			u, complete, started := whole.usage()
			u2, complete2, started2 := parts.usage()
			if u != u2 || complete != complete2 || started != started2 {
				t.Fatalf("%s: cut at every %d bytes it reads %+v %v, whole %+v %v", name, step, u2, complete2, u, complete)
			}
			if complete && (u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite5m < 0 || u.CacheWrite1h < 0) {
				t.Fatalf("%s: negative usage is believed: %+v", name, u)
			}
		}
	})
}

// byLine reads a stream in the plainest way, as what the fast one has to equal.
func byLine(b []byte, mark string, r usageReader) {
	lines := bytes.Split(b, []byte("\n"))
	for _, line := range lines[:len(lines)-1] { // what has no line feed is a line that was cut off
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && bytes.Contains(data, []byte(mark)) {
			r.event(data)
		}
	}
}

func FuzzRequestOfEveryAPI(f *testing.F) {
	for _, v := range vendors() {
		f.Add([]byte(v.body(testModel, 100)))
	}
	f.Add([]byte(`{"model":"a","n":1e9,"max_completion_tokens":1e9}`))
	f.Add([]byte(`{"generation_config":{"candidateCount":1000000000,"max_output_tokens":1000000000}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for path, api := range map[string]dialect{
			"/v1/responses": openAI{}, "/v1/chat/completions": openAI{}, "/v1beta/models/m:generateContent": gemini{}, "/v1/messages": anthropic{},
		} {
			a, err := api.ask(&http.Request{URL: &url.URL{Path: path}}, b)
			if err != nil {
				continue
			}
			p, _ := testPrices().Find(testModel)
			most, ok := p.Cost(a.limit())
			expected, ok2 := p.Cost(a.estimate(Reserve{BytesPerToken: 2}))
			if !ok || !ok2 || most <= 0 || expected < 0 {
				t.Fatalf("%s: a request without a bound: %+v", path, a)
			}
		}
	})
}
