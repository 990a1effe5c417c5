package meter

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// reports is an answer of one of seven kinds of provider.
func reports(kind int, r *rand.Rand, maxTokens int64) string {
	n := r.Int64N(maxTokens + 1)
	switch kind {
	case 0: // truthful
		return sse(`{"type":"message_start","message":{"usage":{"input_tokens":40,"output_tokens":1}}}`, evText,
			fmt.Sprintf(`{"type":"message_delta","usage":{"output_tokens":%d}}`, n), evStop)
	case 1: // late: all at the end
		return sse(`{"type":"message_start","message":{}}`, evText,
			fmt.Sprintf(`{"type":"message_delta","usage":{"input_tokens":40,"output_tokens":%d}}`, n), evStop)
	case 2: // never
		return sse(`{"type":"message_start","message":{}}`, evText, `{"type":"message_delta","delta":{}}`, evStop)
	case 3: // negative
		return sse(evStart, evText, fmt.Sprintf(`{"type":"message_delta","usage":{"output_tokens":-%d}}`, n+1), evStop)
	case 4: // absurd
		return sse(evStart, evText, `{"type":"message_delta","usage":{"output_tokens":9000000000000000000,"cache_read_input_tokens":9000000000000000000}}`, evStop)
	case 5: // absurd beyond integers
		return sse(evStart, `{"type":"message_delta","usage":{"output_tokens":1e300}}`, evStop)
	default: // torn
		return sse(evStart, evText)
	}
}

// INV-35: 100 runs against every kind of usage report, several clients at once. The overshoot is
// compared with the dearest call that the provider ran. The control spends without the ceiling.
func TestOvershootIsAtMostOneCallWhateverUsageIsReported(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 2))
	const maxTokens = 2000
	up := server(t, func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		s := reports(r.IntN(7), r, maxTokens)
		mu.Unlock()
		stream(w, s)
	})
	run := func(ceiling money.USD, reserve Reserve) (m *Meter, refused int) {
		m = start(t, up, func(c *Config) { c.Ceiling, c.Reserve = ceiling, reserve })
		var wg sync.WaitGroup
		var count sync.Mutex
		for range 3 {
			wg.Go(func() {
				for range 12 {
					status, _ := post(t, m, "/v1/messages", body(model, maxTokens))
					if status == http.StatusPaymentRequired {
						count.Lock()
						refused++
						count.Unlock()
						return
					}
				}
			})
		}
		wg.Wait()
		return m, refused
	}
	for i := range 100 {
		ceiling := money.Dollar / 10
		reserve := Reserve{}
		if i%2 == 1 {
			reserve = Reserve{BytesPerToken: 4, MaxOutput: 100} // estimates that are far too low
		}
		m, refused := run(ceiling, reserve)
		var dearest, sum money.USD
		for _, c := range booked(t, m).Calls() {
			dearest, sum = max(dearest, c.CostUSD), sum.Add(c.CostUSD)
		}
		if sum != booked(t, m).Spent() {
			t.Fatalf("INV-35 run %d: calls sum to %s, spent is %s", i, sum, booked(t, m).Spent())
		}
		if over := booked(t, m).Spent() - ceiling; over > dearest || over > money.Dollar/25 {
			t.Fatalf("INV-35 run %d: %s over the ceiling of %s, the dearest call was %s", i, over, ceiling, dearest)
		}
		if refused != 3 || !m.Exhausted() {
			t.Fatalf("INV-35 run %d: %d clients were stopped, exhausted %v, spent %s in %d calls", i, refused, m.Exhausted(), booked(t, m).Spent(), len(booked(t, m).Calls()))
		}
	}
	if control, refused := run(money.Max, Reserve{}); booked(t, control).Spent() <= money.Dollar/10 || refused != 0 {
		t.Errorf("control: without a ceiling the same load spent %s and %d were refused", booked(t, control).Spent(), refused)
	}
}

func TestTheRefusalTellsTheAgentWhatToDo(t *testing.T) {
	t.Parallel()
	up := server(t, func(w http.ResponseWriter, r *http.Request) { t.Error("the provider was asked") })
	m := start(t, up, func(c *Config) { c.Ceiling = money.Dollar / 100 })
	status, got := post(t, m, "/v1/messages", body(model, 128000))
	if status != http.StatusPaymentRequired || !strings.Contains(got, "billing_error") || !strings.Contains(got, "$0.0000 of $0.0100") ||
		!strings.Contains(got, "stops.max_cost_usd") || !m.Exhausted() || booked(t, m).Spent() != 0 {
		t.Errorf("status %d, exhausted %v: %s", status, m.Exhausted(), got)
	}
}

// INV-35: cost counts on failed and timed-out calls, as the provider would count it.
func TestFailedCallsCostWhatTheProviderWouldCharge(t *testing.T) {
	t.Parallel()
	hangUp := func(w http.ResponseWriter) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = c.Close()
		}
	}
	for _, c := range []struct {
		name   string
		h      http.HandlerFunc
		status int
		priced string
		least  money.USD
		most   money.USD
	}{
		{"401", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(401) }, 401, PricedFree, 0, 0},
		{"429", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Retry-After", "7"); w.WriteHeader(429) }, 429, PricedFree, 0, 0},
		{"529", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(529) }, 529, PricedFree, 0, 0},
		{"hangs up without a word", func(w http.ResponseWriter, r *http.Request) { hangUp(w) }, 502, PricedReserved, 26_384_000, 27_000_000},
		{"hangs up in the stream", func(w http.ResponseWriter, r *http.Request) {
			stream(w, sse(evStart, evText))
			_ = http.NewResponseController(w).Flush()
			hangUp(w)
		}, 200, PricedReserved, 10_450_000, 10_450_000},
		{"an encoding nobody asked for", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			stream(w, "x")
		}, 502, PricedReserved, 26_384_000, 27_000_000},
		{"says nothing", func(w http.ResponseWriter, r *http.Request) { stream(w, "") }, 200, PricedReserved, 26_384_000, 27_000_000},
	} {
		t.Run("INV-35 "+c.name, func(t *testing.T) {
			t.Parallel()
			m := start(t, server(t, c.h), nil)
			status, got := post(t, m, "/v1/messages", body(model, 1000)) // 1000 × $10 per million = $0.01
			call := booked(t, m).Calls()[0]
			if status != c.status || call.Priced != c.priced || booked(t, m).Spent() < c.least || booked(t, m).Spent() > c.most {
				t.Errorf("status %d, priced %s, spent %s: %s", status, call.Priced, booked(t, m).Spent().Decimal(), got)
			}
			if c.status == 429 && call.RetryAfter != 7*time.Second {
				t.Errorf("retry after %s", call.RetryAfter)
			}
		})
	}
	t.Run("INV-35 nobody listens", func(t *testing.T) {
		t.Parallel()
		up := server(t, nil)
		m := start(t, up, nil)
		up.Close()
		if status, _ := post(t, m, "/v1/messages", body(model, 1000)); status != 502 || booked(t, m).Calls()[0].Priced != PricedFree {
			t.Errorf("status %d, %+v", status, booked(t, m).Calls())
		}
	})
}

func TestAReservationCannotBePushedOutOfRange(t *testing.T) {
	t.Parallel()
	up := server(t, func(w http.ResponseWriter, r *http.Request) { t.Error("the provider was asked") })
	m := start(t, up, func(c *Config) { c.Ceiling = money.Dollar })
	docs := strings.Repeat(`{"type":"document"},`, 50_000)
	for _, b := range []string{
		`{"model":"claude-sonnet-5","max_tokens":1000000000}`,
		`{"model":"claude-sonnet-5","max_tokens":9e8}`,
		`{"model":"claude-sonnet-5","max_tokens":1,"messages":[{"content":[` + docs + `{}]}]}`,
	} {
		if status, got := post(t, m, "/v1/messages", b); status != http.StatusPaymentRequired {
			t.Errorf("status %d: %.200s", status, got)
		}
	}
}
