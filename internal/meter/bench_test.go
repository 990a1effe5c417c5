package meter

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/money"
)

// Run with: go test -run '^$' -bench . -cpu 1 ./internal/meter
// The direct variants are the same exchange without the meter: the difference is what it adds.

func benchServer(b *testing.B, text string) (direct, metered string, nonce string) {
	b.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	}))
	b.Cleanup(up.Close)
	m, err := Start(b.Context(), Config{Upstream: up.URL, Key: Credential{APIKey, "k"}, Ceiling: money.Max})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close(b.Context()) })
	return up.URL, m.Endpoint().BaseURL, m.Endpoint().Nonce
}

func exchange(b *testing.B, base, nonce, body string) int64 {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, base+"/v1/messages", strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("X-Api-Key", nonce)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != 200 {
		b.Fatalf("status %d after %d bytes: %v", resp.StatusCode, n, err)
	}
	return n
}

func BenchmarkWholeExchange(b *testing.B) {
	text := sse(evStart, evText, evDelta, evStop)
	direct, metered, nonce := benchServer(b, text)
	for _, kib := range []int{20, 200, 1000} {
		prompt := fmt.Sprintf(`{"model":%q,"max_tokens":1000,"messages":[%s{"role":"user","content":"x"}]}`, model,
			strings.Repeat(`{"role":"assistant","content":[{"type":"text","text":"`+strings.Repeat("prose with a \\n in it ", 40)+`"}]},`, kib))
		for _, v := range []struct{ name, base string }{{"direct", direct}, {"metered", metered}} {
			b.Run(fmt.Sprintf("%dKiB/%s", kib, v.name), func(b *testing.B) {
				for b.Loop() {
					exchange(b, v.base, nonce, prompt)
				}
			})
		}
	}
}

func BenchmarkStream(b *testing.B) {
	text := sse(evStart) + strings.Repeat(sse(evText), 200_000) + sse(evDelta, evStop)
	direct, metered, nonce := benchServer(b, text)
	for _, v := range []struct{ name, base string }{{"direct", direct}, {"metered", metered}} {
		b.Run(v.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				exchange(b, v.base, nonce, body(model, 100))
			}
		})
	}
}

func BenchmarkCounterAlone(b *testing.B) {
	text := []byte(sse(evStart) + strings.Repeat(sse(evText), 200_000) + sse(evDelta, evStop))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c := newStreamCounter(`"usage"`, &anthropicUsage{})
		for rest := text; len(rest) > 0; {
			n := min(32<<10, len(rest))
			c.write(rest[:n])
			rest = rest[n:]
		}
		if _, complete, _ := c.usage(); !complete {
			b.Fatal("no usage")
		}
	}
}
