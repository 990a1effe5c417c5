package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-ci/proctor/internal/evidence"
)

// collected are the spans that a collector on loopback got, each named by the path to it.
type collected struct {
	mu      sync.Mutex
	spans   []collectedSpan
	headers []string
	bodies  []byte
}

type collectedSpan struct{ SpanID, ParentSpanID, Name string }

func (c *collected) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var in struct {
		ResourceSpans []struct {
			ScopeSpans []struct{ Spans []collectedSpan }
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var raw json.RawMessage
	_ = json.NewDecoder(r.Body).Decode(&raw)
	_ = json.Unmarshal(raw, &in) // what is no trace has no spans
	c.bodies = append(c.bodies, raw...)
	c.headers = append(c.headers, r.Header.Get("Authorization"))
	for _, rs := range in.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
}

func (c *collected) paths() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	byID := map[string]collectedSpan{}
	for _, s := range c.spans {
		byID[s.SpanID] = s
	}
	var out []string
	for _, s := range c.spans {
		path := s.Name
		for p := s; p.ParentSpanID != ""; path = p.Name + " > " + path {
			p = byID[p.ParentSpanID]
		}
		out = append(out, path)
	}
	slices.Sort(out)
	return out
}

// INV-34: a run tells its collector run, ticks, agent, model calls and gates, with the header that the job gives; neither
// that header nor a payload is seen anywhere else. Without an endpoint nothing is sent, which is the control.
func TestARunIsTracedWhereTheJobNamesACollector(t *testing.T) {
	c := &collected{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	const secret = "c0llect0r-s3cret-value"
	look := sh("env > app/env.txt; cat app/env.txt")
	s := setting{plan: []tick{{spend(1000, 100), look, remove("app/env.txt"), reply(allRight)}}}
	traced := s
	traced.env = map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20" + secret}
	w := open(t, traced)
	j := w.label()
	if j.rec.Terminal != evidence.Done {
		t.Fatalf("%s: %s", j.rec.Terminal, j.rec.Reason)
	}
	got := c.paths()
	for _, want := range []string{
		"proctor run", "proctor run > gate iteration", "proctor run > tick 1", "proctor run > tick 1 > invoke_agent script",
		"proctor run > tick 1 > invoke_agent script > chat claude-haiku-4-5", "proctor run > tick 1 > gate iteration",
		"proctor run > tick 1 > proof", "proctor run > tick 1 > proof > gate iteration", "proctor run > tick 1 > proof > gate acceptance",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no span %q in %q", want, got)
		}
	}
	if len(c.headers) == 0 || slices.ContainsFunc(c.headers, func(h string) bool { return h != "Bearer "+secret }) {
		t.Errorf("headers %q", c.headers)
	}
	if log := string(j.run.Log); strings.Contains(log, secret) {
		t.Error("the header's value is in the job's log")
	}
	for _, word := range []string{secret, allRight[:len(allRight)-1], sealedMark, "grep -q"} {
		if strings.Contains(string(c.bodies), word) {
			t.Errorf("a span carries %q", word)
		}
	}
	sent := len(c.headers)
	if j := again(t, s).label(); j.rec.Terminal != evidence.Done || len(c.headers) != sent {
		t.Errorf("%s, and %d requests without an endpoint", j.rec.Terminal, len(c.headers)-sent)
	}
}

// A collector that is not there is said and changes nothing.
func TestACollectorThatIsGoneIsNoReasonToFail(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply(allRight)}}, env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}})
	j := w.label()
	if j.rec.Terminal != evidence.Done || j.ExitCode != 0 || !strings.Contains(string(j.run.Log), "the trace is not whole: send the trace to 127.0.0.1:1") {
		t.Errorf("%s %s", j.rec.Terminal, j.run.Log)
	}
}
