package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
)

// real is a labelled issue's delivery of the size and kind that GitHub sends, about 12 kB of which most
// are addresses.
func real(n int) []byte {
	edit := map[string]any{}
	for i := range 50 {
		for _, part := range []string{"issue", "repository", "sender", "label"} {
			edit[fmt.Sprintf("%s.member_%d_url", part, i)] = "https://api.example.com/repos/octo/shop{/" + part + "}"
		}
	}
	return labeled(n, edit)
}

func BenchmarkDelivery(b *testing.B) {
	for _, c := range []struct {
		name  string
		fresh bool // every delivery is the first of its event
	}{{"dispatched", true}, {"duplicate", false}} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, func(cfg *webhook.Config) { cfg.Log, cfg.Now = nil, time.Now })
			bodies := make([][]byte, 512)
			for i := range bodies {
				bodies[i] = real(i + 1)
			}
			sigs := make([]string, len(bodies))
			for i := range bodies {
				sigs[i] = sign(secret, bodies[i])
			}
			b.SetBytes(int64(len(bodies[0])))
			b.ReportAllocs()
			i := 0
			spent := cpu(b)
			for b.Loop() {
				n := i % len(bodies)
				if c.fresh && n == 0 {
					r = newRig(b, func(cfg *webhook.Config) { cfg.Log, cfg.Now = nil, time.Now })
				}
				req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://localhost/", bytes.NewReader(bodies[n]))
				if err != nil {
					b.Fatal(err)
				}
				req.Header = http.Header{"Content-Type": {"application/json"}, "X-Github-Event": {"issues"}, "X-Github-Delivery": {fmt.Sprintf("d%d", n)}, "X-Hub-Signature-256": {sigs[n]}}
				w := httptest.NewRecorder()
				r.h.ServeHTTP(w, req)
				if w.Code != http.StatusAccepted {
					b.Fatal(w.Code, w.Body)
				}
				i++
			}
			// By processor time, so that a busy machine does not change the answer: what one core can do.
			b.ReportMetric(float64(b.N)/(cpu(b)-spent).Seconds(), "deliveries/core-s")
		})
	}
}

// BenchmarkDecode compares reading one delivery here and with go-github.
func BenchmarkDecode(b *testing.B) {
	body := real(1)
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := trigger.ParseGitHub("issues", body, trigger.Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("go-github", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := github.ParseWebHook("issues", body); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// cpu is the processor time this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
