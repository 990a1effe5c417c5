package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/money"
)

// INV-7: how long a provider asks to wait is known from the meter, whatever a CLI makes of it. A review's answer or
// another tick's says nothing about the agent's.
func TestTheProvidersOwnWordOnWaitingIsTakenFromTheMeter(t *testing.T) {
	t.Parallel()
	after := "7"
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer up.Close()
	m, err := meter.Start(t.Context(), meter.Config{Upstream: up.URL, Key: meter.Credential{Value: "k"}, Ceiling: money.Dollar})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background())
	s := &session{meter: purse{m}}
	call := func(tick int, purpose string) {
		m.SetTick(tick, purpose)
		at := m.Endpoint()
		if purpose == "review" {
			at = m.ReviewEndpoint()
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.BaseURL+"/v1/messages", strings.NewReader(`{"model":"claude-sonnet-5","max_tokens":1}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", at.Nonce)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if err := m.Quiet(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.askedToWait(1); got != 0 {
		t.Errorf("before any call: %s", got)
	}
	call(1, "agent")
	after = "9"
	call(1, "review")
	if got := s.askedToWait(1); got != 7*time.Second {
		t.Errorf("%s, want 7s", got)
	}
	if got := s.askedToWait(2); got != 0 {
		t.Errorf("in the next tick: %s", got)
	}
}

// INV-7: a wait that the run has no time for is not begun.
func TestAWaitThatIsLongerThanTheRunEndsItAtOnce(t *testing.T) {
	w := open(t, setting{
		config: map[string]string{"agent": "{name: anthropic, timeout: 1m}", "stops": "{max_duration: 5m}"},
		script: func(agenttest.Request) agenttest.Turn {
			return agenttest.Turn{Fault: agenttest.Fault{Status: 429, RetryAfter: "7200"}}
		},
	})
	j := w.label()
	if j.rec.Terminal != evidence.AgentUnavailable || !strings.Contains(j.rec.Reason, "longer than this run has left") {
		t.Errorf("%s: %s", j.rec.Terminal, j.rec.Reason)
	}
	for _, n := range j.rec.Notes {
		if strings.Contains(n, "waiting") {
			t.Errorf("it began to wait: %s", n)
		}
	}
}
