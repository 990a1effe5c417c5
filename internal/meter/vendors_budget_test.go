package meter

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-ci/proctor/internal/money"
)

// vendorReports is an answer of one of six kinds of provider, with counts in the vendor's own words.
func vendorReports(v vendor, kind int, out int64) string {
	last := v.stream[len(v.stream)-1]
	names := map[string]string{"responses": "output_tokens", "chat completions": "completion_tokens", "gemini": "candidatesTokenCount"}
	count := func(value string) string {
		name := names[v.name]
		i := strings.Index(last, `"`+name+`":`) + len(name) + 3
		j := i + strings.IndexAny(last[i:], ",}")
		s := last[:i] + value + last[j:]
		// Nothing else in the report says how much it was.
		return strings.NewReplacer(`"reasoning_tokens":30`, `"reasoning_tokens":0`, `"thoughtsTokenCount":30,"totalTokenCount":1150`, `"thoughtsTokenCount":0`).Replace(s)
	}
	switch kind {
	case 0: // truthful
		return dataLines(append(v.stream[:len(v.stream)-1:len(v.stream)-1], count(fmt.Sprint(out)))...)
	case 1: // never
		return dataLines(v.stream[0])
	case 2: // negative
		return dataLines(count("-5"))
	case 3: // absurd
		return dataLines(count("9000000000000000000"))
	case 4: // absurd beyond integers
		return dataLines(count("1e300"))
	default: // torn within its last line
		s := dataLines(v.stream...)
		return s[:len(s)-20]
	}
}

// INV-35: 100 runs for each API against every kind of usage report, several clients at once. The control
// spends without the ceiling.
func TestOvershootIsAtMostOneCallWithEveryAPI(t *testing.T) {
	t.Parallel()
	for _, v := range vendors() {
		t.Run("INV-35 "+v.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			r := rand.New(rand.NewPCG(3, 4))
			const maxTokens = 2000
			up := server(t, func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				s := vendorReports(v, r.IntN(6), r.Int64N(maxTokens+1))
				mu.Unlock()
				stream(w, s)
			})
			run := func(ceiling money.USD, reserve Reserve) (m *Meter, refused int) {
				m = v.start(t, up, func(c *Config) { c.Ceiling, c.Reserve = ceiling, reserve })
				var wg sync.WaitGroup
				var count sync.Mutex
				for range 3 {
					wg.Go(func() {
						for range 24 {
							if status, _ := post(t, m, v.path, v.body(testModel, maxTokens)); status == http.StatusPaymentRequired {
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
				reserve := Reserve{}
				if i%2 == 1 {
					reserve = Reserve{BytesPerToken: 4, MaxOutput: 100} // estimates that are far too low
				}
				const ceiling = money.Dollar / 20
				m, refused := run(ceiling, reserve)
				var dearest, sum money.USD
				for _, c := range booked(t, m).Calls() {
					dearest, sum = max(dearest, c.CostUSD), sum.Add(c.CostUSD)
				}
				if over := m.Spent() - ceiling; sum != m.Spent() || over > dearest || over > money.Dollar/20 || refused != 3 || !m.Exhausted() {
					t.Fatalf("run %d: %s over the ceiling of %s, the dearest call was %s, %d clients were stopped, calls sum to %s of %s", i, over, ceiling, dearest, refused, sum, m.Spent())
				}
			}
			if control, refused := run(money.Max, Reserve{}); booked(t, control).Spent() <= money.Dollar/10 || refused != 0 {
				t.Errorf("control: without a ceiling the same load spent %s and %d were refused", control.Spent(), refused)
			}
		})
	}
}

// INV-35: a call whose client caps nothing is let through on a part of what it can cost, and a stream of it
// that tells no usage is booked at all of it. The control is the same stream of a call with a cap.
func TestACallWithoutACapIsBookedWholeWhenItsUsageIsNotTold(t *testing.T) {
	t.Parallel()
	price, _ := testPrices().Find(testModel)
	all, _ := price.Cost(Usage{Output: openOutput})
	part, _ := price.Cost(Usage{Output: openReserve})
	for _, v := range vendors() {
		up := server(t, func(w http.ResponseWriter, _ *http.Request) { stream(w, vendorReports(v, 1, 0)) })
		open := strings.NewReplacer(`"max_output_tokens":1000,`, "", `"max_completion_tokens":1000,`, "", `"maxOutputTokens":1000`, "").Replace(v.body(testModel, 1000))
		m := v.start(t, up, func(c *Config) { c.Ceiling = part + money.Dollar/100 })
		if status, got := post(t, m, v.path, open); status != 200 {
			t.Fatalf("INV-35 %s: with room for a part it is not let through: %d %s", v.name, status, got)
		}
		if c := booked(t, m).Calls()[0]; c.Priced != PricedReserved || c.CostUSD < all || c.Reserved < part || c.Reserved >= all {
			t.Errorf("INV-35 %s: %+v", v.name, c)
		}
		if status, _ := post(t, m, v.path, open); status != http.StatusPaymentRequired {
			t.Errorf("INV-35 %s: a second one is let through: %d", v.name, status)
		}
		control := v.start(t, up, nil)
		post(t, control, v.path, v.body(testModel, 1000))
		if c := booked(t, control).Calls()[0]; c.CostUSD >= part {
			t.Errorf("control %s: %+v", v.name, c)
		}
	}
}

// INV-35: a client that leaves before its usage is told is booked at a token for each byte that it sent, which its
// text may have held. The control stays and is booked by what is told.
func TestACallThatEndsBeforeItsUsageIsToldIsBookedAtAllThatItCanCost(t *testing.T) {
	t.Parallel()
	price, _ := testPrices().Find(testModel)
	const size = 900_000
	most, _ := price.Cost(Usage{Input: size, Output: 16})
	for _, v := range vendors() {
		b := strings.Replace(v.body(testModel, 16), "hello", strings.Repeat("a;", size/2), 1)
		for name, path := range map[string]string{"a stream": v.path, "one piece": v.whole} {
			up := server(t, func(w http.ResponseWriter, _ *http.Request) {
				if name == "one piece" {
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(v.plain[:len(v.plain)/4])) // the rest never comes
					return
				}
				stream(w, strings.SplitAfter(dataLines(v.stream...), `"usage`)[0]) // cut before any usage
			})
			m := v.start(t, up, nil)
			if status, got := post(t, m, path, b); status != 200 {
				t.Fatalf("INV-35 %s, %s: %d %s", v.name, name, status, got)
			}
			if c := booked(t, m).Calls()[0]; c.Priced != PricedReserved || c.CostUSD < most {
				t.Errorf("INV-35 %s, %s: %s, want %s at the least", v.name, name, c.CostUSD, most)
			}
		}
		up := server(t, func(w http.ResponseWriter, _ *http.Request) { stream(w, dataLines(v.stream...)) })
		control := v.start(t, up, nil)
		post(t, control, v.path, v.body(testModel, 1000))
		if c := booked(t, control).Calls()[0]; c.Priced != PricedUsage || c.CostUSD >= most {
			t.Errorf("control %s: %+v", v.name, c)
		}
	}
}

// A provider may answer 200 and say within the stream that it did not begin. Any other failure there costs.
func TestAFailureWithinTheStreamIsFreeOnlyWhenItToldOfNoWork(t *testing.T) {
	t.Parallel()
	v := vendors()[0]
	for code, free := range map[string]bool{"rate_limit_exceeded": true, "server_is_overloaded": true, "server_error": false, "": false} {
		up := server(t, func(w http.ResponseWriter, _ *http.Request) {
			stream(w, dataLines(v.stream[0], `{"type":"response.failed","response":{"error":{"code":"`+code+`","message":"x"},"usage":null}}`))
		})
		m := v.start(t, up, nil)
		post(t, m, v.path, v.body(testModel, 1000))
		if spent := booked(t, m).Spent(); (spent == 0) != free {
			t.Errorf("%q: spent %s", code, spent)
		}
	}
}

// INV-36: only a chunk that says in so many words that it tells no usage is passed over unread.
func TestAChunkIsPassedOverOnlyWhenItTellsNoUsage(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]bool{
		`{"object":"chat.completion.chunk","choices":[],"usage":null}`:                          true,
		`{"usage" : null, "object":"chat.completion.chunk"}`:                                    true,
		`{"object":"chat.completion.chunk"}`:                                                    true,
		`{"object":"chat.completion.chunk","usage":{"prompt_tokens":1,"completion_tokens":2}}`:  false,
		`{"object":"chat.completion.chunk","usage":null,"x":{"usage":{"completion_tokens":2}}}`: false,
		`{"object":"chat.completion.chunk","usage":7}`:                                          false,
		`{"object":"chat.completion.chunk","x":["usage"]}`:                                      false,
		`{"type":"response.failed","response":{"error":{"code":"slow_down"},"usage":null}}`:     false,
		`{"choices":[{"delta":{"content":"\"chat.completion.chunk\""}}],"usage":null}`:          false,
	} {
		if got := emptyChunk([]byte(data)); got != want {
			t.Errorf("%s: %v", data, got)
		}
	}
	// What is told behind such chunks is read all the same, wherever the blocks of the stream end.
	v := vendors()[1]
	text := []byte(dataLines(v.stream...))
	for cut := range text {
		c := openAI{}.counter(true)
		c.write(text[:cut])
		c.write(text[cut:])
		if u, complete, _ := c.usage(); u != v.want || !complete {
			t.Fatalf("cut at %d: %+v, complete %v", cut, u, complete)
		}
	}
}
