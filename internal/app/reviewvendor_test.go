package app

import (
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/meter"
)

func TestTheReviewersAPIIsTheOneThatIsNamedOrThatOfItsModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model, api, want string
		provider         meter.API
	}{
		{"claude-sonnet-4-5", "auto", overMessages, meter.Anthropic},
		{"gpt-5.6", "auto", overResponses, meter.OpenAI},
		{"o3", "auto", overResponses, meter.OpenAI},
		{"o4-mini", "auto", overResponses, meter.OpenAI},
		{"openchat", "auto", overMessages, meter.Anthropic},
		{"gemini-2.5-pro", "auto", overGemini, meter.Gemini},
		{"qwen3-coder:30b", "chat", overChat, meter.OpenAI},
		{"claude-by-a-gateway", "responses", overResponses, meter.OpenAI},
	} {
		s := &session{}
		s.cfg.Review.Enabled, s.cfg.Review.Model, s.cfg.Review.API = true, c.model, c.api
		if got := s.reviewAPI(); got != c.want || s.reviewProvider() != c.provider {
			t.Errorf("%s over %s: %s of %s", c.model, c.api, got, s.reviewProvider())
		}
		if _, err := s.providers(); err == nil || !strings.Contains(err.Error(), map[meter.API]string{meter.OpenAI: "openai-api-key", meter.Gemini: "gemini-api-key", meter.Anthropic: "anthropic-api-key"}[c.provider]) {
			t.Errorf("%s over %s without a key: %v", c.model, c.api, err)
		}
		if s.cfg.Review.Enabled = false; s.reviewProvider() != "" {
			t.Error("a reviewer that is off needs a key")
		}
	}
}

// INV-28, INV-29, INV-35: a reviewer of another vendor decides as ever, on its own key, metered. The rejection is the control.
func TestAReviewerOfAnotherVendorDecides(t *testing.T) {
	for name, review := range map[string]string{
		"responses": "{model: gpt-5.6}",
		"gemini":    "{model: gemini-2.5-pro}",
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, setting{
				plan: []tick{{reply(allRight)}, {reply(allRight), write("app/more.txt", "more\n")}}, script: judges(rejects("there has to be more"), approves),
				config: map[string]string{"review": review, "stops": "{max_ticks: 4, max_cost_usd: 2, max_duration: 5m}"},
			})
			openAIAgents(w)
			w.runner.Actions[0].Env["GOOGLE_GEMINI_BASE_URL"] = w.runner.Actions[0].Env["ANTHROPIC_BASE_URL"]
			w.runner.Secrets["GEMINI_API_KEY"] = w.key
			delete(w.runner.Secrets, "ANTHROPIC_API_KEY")
			j := w.label().ended("done", 0, "proctor:review")
			if len(j.rec.Ticks) != 2 || j.rec.Ticks[0].Review == nil || j.rec.Ticks[0].Review.Approved || !j.rec.Ticks[1].Review.Approved {
				t.Fatalf("%d ticks", len(j.rec.Ticks))
			}
			if len(w.asked()) != 2 || j.rec.Totals.Calls != 2 || j.rec.Totals.CostUSD == 0 {
				t.Errorf("%d questions, %d calls for %s", len(w.asked()), j.rec.Totals.Calls, j.rec.Totals.CostUSD)
			}
			for _, r := range w.asked() {
				if r.Key() != w.key {
					t.Errorf("the provider was shown %q", r.Key())
				}
			}
		})
	}
}
