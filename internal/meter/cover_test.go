package meter

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-ci/proctor/internal/money"
)

// covers is a place that survives: it remembers what it was told, and can refuse.
type covers struct {
	mu    sync.Mutex
	upTo  money.USD
	asked int
	err   error
}

func (c *covers) cover(_ context.Context, upTo money.USD) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.err != nil {
		return c.err
	}
	c.upTo = upTo
	return nil
}

func (c *covers) known() money.USD {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.upTo
}

// most is what the calls of these tests cannot exceed.
func mostOf(t *testing.T, m *Meter, request string) money.USD {
	t.Helper()
	a, err := anthropic{}.ask(nil, []byte(request))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := m.cfg.Prices.Find(a.model)
	cost, _ := p.Cost(a.limit())
	return cost
}

// INV-9, INV-35: whatever moment this machine is lost at, what the provider was asked for so far is known. The control is a
// meter that covers nothing.
func TestMoneyIsOnRecordBeforeTheProviderIsAsked(t *testing.T) {
	t.Parallel()
	var place covers
	var mu sync.Mutex
	var asked, charged money.USD // at most, and so far
	var short int
	request := body(model, 2000)
	var most money.USD
	up := server(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = asked.Add(most)
		if place.known() < charged.Add(asked) {
			short++
		}
		mu.Unlock()
		stream(w, sse(evStart, evText, `{"type":"message_delta","usage":{"output_tokens":1500}}`, evStop))
		mu.Lock()
		defer mu.Unlock()
		asked -= most
		charged = charged.Add(money.Dollar * 15 / 1000) // the output alone
	})
	load := func(cover coverFunc) *Meter {
		asked, charged, short, place.upTo, place.asked = 0, 0, 0, 0, 0
		m := start(t, up, func(c *Config) { c.Cover = cover; c.Ceiling = 2 * money.Dollar })
		most = mostOf(t, m, request)
		var clients sync.WaitGroup
		for range 3 {
			clients.Go(func() {
				for range 10 {
					if status, said := post(t, m, "/v1/messages", request); status != http.StatusOK {
						t.Errorf("a call was answered %d: %s", status, said)
					}
				}
			})
		}
		clients.Wait()
		return booked(t, m)
	}
	m := load(place.cover)
	if short != 0 {
		t.Errorf("INV-35 at %d calls the provider was asked for more than was on record", short)
	}
	if spent := m.Spent(); spent > place.known() || spent < 30*money.Dollar*15/1000 {
		t.Errorf("%s are spent, %s are on record", spent, place.known())
	}
	if place.asked > 20 {
		t.Errorf("30 calls were put on record in %d saves: a save for each call is too slow", place.asked)
	}
	load(nil)
	if short != 30 {
		t.Errorf("control: without a cover %d of 30 calls were made beyond what is on record", short)
	}
}

func TestACallThatCannotBePutOnRecordIsNotMade(t *testing.T) {
	t.Parallel()
	var calls int
	up := server(t, func(w http.ResponseWriter, r *http.Request) { calls++; stream(w, sse(evStart, evDelta, evStop)) })
	place := covers{err: errors.New("the forge is away")}
	m := start(t, up, func(c *Config) { c.Cover = place.cover })
	status, said := post(t, m, "/v1/messages", body(model, 100))
	if status != http.StatusServiceUnavailable || !strings.Contains(said, "the forge is away") || calls != 0 || booked(t, m).Spent() != 0 {
		t.Fatalf("answered %d after %d calls: %s", status, calls, said)
	}
	// The control: the same call once the forge is back.
	place.err = nil
	if status, said := post(t, m, "/v1/messages", body(model, 100)); status != http.StatusOK || calls != 1 {
		t.Fatalf("control: answered %d after %d calls: %s", status, calls, said)
	}
}

// A client that is told that its request was wrong does not come again; that the service was not there, it may.
func TestEveryAPITellsThatACallCouldNotBePutOnRecord(t *testing.T) {
	t.Parallel()
	want := map[API]string{OpenAI: `"type":"server_error"`, Gemini: `"status":"UNAVAILABLE"`}
	for _, v := range vendors() {
		up := server(t, func(w http.ResponseWriter, r *http.Request) { t.Error("the provider was asked") })
		place := covers{err: errors.New("the forge is away")}
		m := v.start(t, up, func(c *Config) { c.Cover = place.cover })
		status, said := post(t, m, v.path, v.body(testModel, 100))
		if status != http.StatusServiceUnavailable || !strings.Contains(said, want[v.api]) || !strings.Contains(said, "the forge is away") {
			t.Errorf("%s: %d %s, want %s", v.name, status, said, want[v.api])
		}
	}
}

func TestSettlingGivesBackWhatIsNotNeeded(t *testing.T) {
	t.Parallel()
	up := server(t, func(w http.ResponseWriter, r *http.Request) { stream(w, sse(evStart, evDelta, evStop)) })
	var place covers
	m := start(t, up, func(c *Config) { c.Cover = place.cover })
	call := func() {
		t.Helper()
		if status, said := post(t, m, "/v1/messages", body(model, 100)); status != http.StatusOK {
			t.Fatalf("answered %d: %s", status, said)
		}
		booked(t, m)
	}
	settle := func(goOn bool) (kept money.USD) {
		t.Helper()
		if err := m.Settle(t.Context(), goOn, func(upTo money.USD) error { kept = upTo; return nil }); err != nil {
			t.Fatal(err)
		}
		return kept
	}
	call()
	if kept := settle(false); kept != m.Spent() || kept == 0 {
		t.Errorf("%s are spent and %s stay covered", m.Spent(), kept)
	}
	call()
	if place.asked != 2 {
		t.Errorf("after all was given back the next call was covered by %d saves, want one of its own", place.asked)
	}
	if kept := settle(true); kept < m.Spent().Add(mostOf(t, m, body(model, 100))) {
		t.Errorf("%s does not cover another call behind %s", kept, m.Spent())
	}
	call()
	if place.asked != 2 {
		t.Error("the save at the end of a tick did not cover the next one's first call")
	}
	lost := errors.New("lost the race")
	if err := m.Settle(t.Context(), true, func(money.USD) error { return lost }); !errors.Is(err, lost) {
		t.Errorf("a save that failed was told as %v", err)
	}
	call()
	if place.asked != 3 {
		t.Error("a save that failed covers the next call all the same")
	}
}
