package meter

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// Run with: taskset -c 0 go test -run '^$' -bench . -cpu 1 ./internal/meter
// The direct variants are the same exchange without the meter: the difference is what it adds. Where provider, meter and
// client share one core, as they do there, the meter's way carries each byte over loopback twice, so that half of the direct
// figure is the most that any proxy can show. What the meter takes of its core is BenchmarkStreamOwnCPU's.

// serveText is a provider that answers with a stream, in pieces of the size that a TLS record or an HTTP/2 frame has.
func serveText(text []byte) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for rest := text; len(rest) > 0; {
			n := min(16<<10, len(rest))
			if _, err := w.Write(rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
	}))
}

func benchMeter(b *testing.B, upstream string) Endpoint {
	b.Helper()
	m, err := Start(b.Context(), Config{Upstream: upstream, Key: Credential{APIKey, "k"}, Ceiling: money.Max})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close(b.Context()) })
	return m.Endpoint()
}

// exchange asks once and reads the answer; first is the time until its first byte was there.
func exchange(ctx context.Context, base, nonce, body string, buf []byte) (first time.Duration, err error) {
	begin := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Api-Key", nonce)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for n := 0; ; {
		k, err := resp.Body.Read(buf)
		if n == 0 && k > 0 {
			first = time.Since(begin)
		}
		n += k
		if err == io.EOF && resp.StatusCode == http.StatusOK && n > 0 {
			return first, nil
		}
		if err != nil {
			return 0, fmt.Errorf("status %d after %d bytes: %w", resp.StatusCode, n, err)
		}
	}
}

func BenchmarkWholeExchange(b *testing.B) {
	up := serveText([]byte(sse(evStart, evText, evDelta, evStop)))
	b.Cleanup(up.Close)
	metered, buf := benchMeter(b, up.URL), make([]byte, 256<<10)
	for _, kib := range []int{20, 200, 1000} {
		prompt := fmt.Sprintf(`{"model":%q,"max_tokens":1000,"messages":[%s{"role":"user","content":"x"}]}`, model,
			strings.Repeat(`{"role":"assistant","content":[{"type":"text","text":"`+strings.Repeat("prose with a \\n in it ", 40)+`"}]},`, kib))
		for _, v := range []struct{ name, base string }{{"direct", up.URL}, {"metered", metered.BaseURL}} {
			b.Run(fmt.Sprintf("%dKiB/%s", kib, v.name), func(b *testing.B) {
				var sum time.Duration
				for b.Loop() {
					first, err := exchange(b.Context(), v.base, metered.Nonce, prompt, buf)
					if err != nil {
						b.Fatal(err)
					}
					sum += first
				}
				b.ReportMetric(float64(sum.Microseconds())/1000/float64(b.N), "ms/first-byte")
			})
		}
	}
}

// longStream is an answer of 200,000 pieces of text.
func longStream() []byte {
	return []byte(sse(evStart) + strings.Repeat(sse(evText), 200_000) + sse(evDelta, evStop))
}

func BenchmarkStream(b *testing.B) {
	text := longStream()
	up := serveText(text)
	b.Cleanup(up.Close)
	metered, buf := benchMeter(b, up.URL), make([]byte, 256<<10)
	for _, v := range []struct{ name, base string }{{"direct", up.URL}, {"metered", metered.BaseURL}} {
		b.Run(v.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := exchange(b.Context(), v.base, metered.Nonce, body(model, 100), buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// peerVariable makes the test binary the other side of BenchmarkStreamOwnCPU.
const peerVariable = "PROCTOR_METER_BENCH_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(peerVariable) != "" {
		if err := peer(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// peer is provider and client in one process: it tells the provider's address, then takes the address and the nonce of a
// meter, and asks once for each further line.
func peer(in io.Reader, out io.Writer) error {
	up := serveText(longStream())
	defer up.Close()
	fmt.Fprintln(out, up.URL)
	lines, buf := bufio.NewScanner(in), make([]byte, 256<<10)
	if !lines.Scan() {
		return lines.Err()
	}
	base, nonce, _ := strings.Cut(lines.Text(), " ")
	for lines.Scan() {
		if _, err := exchange(context.Background(), base, nonce, body(model, 100), buf); err != nil {
			return err
		}
		fmt.Fprintln(out, "ok")
	}
	return lines.Err()
}

// What the meter's process alone takes for a stream, its system calls included: provider and client are another process.
// MB/own-cpu-s is what it could carry with a core of its own, however slow the other side is.
func BenchmarkStreamOwnCPU(b *testing.B) {
	other := exec.CommandContext(b.Context(), os.Args[0])
	other.Env, other.Stderr = append(os.Environ(), peerVariable+"=1"), os.Stderr
	in, err := other.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := other.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close() // tells the peer to end
		_ = other.Wait()
	})
	lines := bufio.NewScanner(out)
	lines.Scan()
	metered := benchMeter(b, lines.Text())
	fmt.Fprintln(in, metered.BaseURL, metered.Nonce)
	size := len(longStream())
	b.SetBytes(int64(size))
	begin := ownCPU(b)
	for b.Loop() {
		fmt.Fprintln(in)
		if !lines.Scan() || lines.Text() != "ok" {
			b.Fatalf("the other side has failed: %q, %v", lines.Text(), lines.Err())
		}
	}
	mb := float64(size) * float64(b.N) / 1e6
	took := ownCPU(b) - begin
	b.ReportMetric(float64(took.Microseconds())/1000/mb, "own-cpu-ms/MB")
	b.ReportMetric(mb/took.Seconds(), "MB/own-cpu-s")
}

// ownCPU is the time that this process has spent on a core, in its own code and in the kernel.
func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The meter's own code without sockets: the count of a stream's usage, by API, and the copy from one side to the other.
func BenchmarkOwnCode(b *testing.B) {
	streams := map[string][]byte{"anthropic": longStream()}
	counters := map[string]dialect{"anthropic": anthropic{}, "responses": openAI{}, "chat completions": openAI{}, "gemini": gemini{}}
	for _, v := range vendors() {
		piece := dataLines(v.stream[len(v.stream)-2])
		streams[v.name] = []byte(strings.Repeat(piece, (32<<20)/len(piece)) + dataLines(v.stream...))
	}
	for name, text := range streams {
		b.Run("count/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				c := counters[name].counter(true)
				for rest := text; len(rest) > 0; {
					n := min(len(block{}), len(rest))
					c.write(rest[:n])
					rest = rest[n:]
				}
				if _, complete, _ := c.usage(); !complete {
					b.Fatal("no usage")
				}
			}
		})
	}
	m := Meter{}
	m.blocks.New = func() any { return new(block) }
	text := streams["anthropic"]
	b.Run("pump", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if !m.pump(nowhere{}, bytes.NewReader(text), anthropic{}.counter(true)) {
				b.Fatal("not whole")
			}
		}
	})
}

// nowhere is a client that takes everything at once.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}
func (nowhere) Flush()                      {}
