package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/proctor-ci/proctor/internal/doctor"
	"github.com/proctor-ci/proctor/internal/judge"
	"github.com/proctor-ci/proctor/internal/meter"
)

// liveTimeout bounds one question of `proctor doctor --live`.
const liveTimeout = time.Minute

// question is a model and the API that it is asked over.
type question struct{ model, api string }

// live asks each model of a run for the shortest answer there is, through the meter, and says what it cost. What comes
// back is not looked at: that it came is the proof.
func (x examination) live(ctx context.Context) {
	s := x.s
	asked := s.questions()
	switch {
	case len(asked) == 0:
		x.rep.Add(doctor.Finding{Check: "model.live", Status: doctor.Unproved, Text: "neither the agent nor the reviewer asks a model that is known by name: set agent.model to have one asked"})
		return
	case s.meter.Meter == nil:
		x.rep.Add(doctor.Finding{Check: "model.live", Status: doctor.Failed, Text: "there is no key to ask a model with", Fix: "set the key that model.key names"})
		return
	}
	for _, q := range asked {
		x.rep.Add(s.askLive(ctx, q))
	}
}

// questions are the models of a run, each once. A CLI's own default is not known here.
func (s *session) questions() []question {
	var out []question
	if s.cfg.Agent.Model != "" {
		switch apiOf(s.cfg.Agent.Name) {
		case meter.Anthropic:
			out = append(out, question{s.cfg.Agent.Model, overMessages})
		case meter.OpenAI:
			api := overResponses
			for _, a := range s.cfg.Agent.Args {
				if a == "--api=chat" {
					api = overChat
				}
			}
			out = append(out, question{s.cfg.Agent.Model, api})
		case meter.Gemini:
			out = append(out, question{s.cfg.Agent.Model, overGemini})
		}
	}
	if s.judgesByModel() {
		if q := (question{s.cfg.Review.Model, s.reviewAPI()}); len(out) == 0 || out[0] != q {
			out = append(out, q)
		}
	}
	return out
}

// askLive asks for one token; OpenAI's Responses give no fewer than sixteen.
func (s *session) askLive(ctx context.Context, q question) doctor.Finding {
	at, before := s.meter.ReviewEndpoint(), len(s.meter.Calls())
	s.meter.SetTick(0, "review")
	defer s.meter.SetTick(0, meter.Nobody)
	tokens := 1
	if q.api == overResponses {
		tokens = 16
	}
	m := speaks(q.api, judge.Endpoint{Client: &http.Client{Timeout: liveTimeout}, BaseURL: at.BaseURL, Nonce: at.Nonce, Model: q.model})
	_, err := m.Complete(ctx, judge.Request{System: "You are asked whether you can be reached.", User: "Say ok.", MaxTokens: tokens})
	s.bookCalls(ctx)
	calls := s.meter.Calls()[before:]
	switch {
	case err != nil && !errors.Is(err, judge.ErrUnreadable):
		f := doctor.Finding{Check: "model.live", Status: doctor.Failed, Text: fmt.Sprintf("%s over %s: %v", q.model, q.api, err), Fix: "check the key, the base URL and the model's name with the provider"}
		for _, c := range calls {
			f.Text += fmt.Sprintf(" (cost %s)", c.CostUSD)
		}
		return f
	case len(calls) != 1:
		return doctor.Finding{Check: "model.live", Status: doctor.Failed, Text: fmt.Sprintf("%s over %s answered and %d calls were booked instead of one", q.model, q.api, len(calls)), Fix: "report this: the meter did not see the call"}
	}
	c := calls[0]
	return doctor.Finding{Check: "model.live", Status: doctor.OK, Text: fmt.Sprintf("%s answered over %s in %d ms: %d tokens in, %d out, cost %s (priced by %s)", q.model, q.api, c.Millis, c.Input+c.CacheRead+c.CacheWrite, c.Output, c.CostUSD, c.Priced)}
}
