package app

import (
	"context"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/doctor"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// INV-35: each model of a run is asked once, for the least there is, through the meter, and what it cost is told.
func TestDoctorAsksEachModelLiveAndSaysWhatItCost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, agent, model, review string
		args                       []string
		fault                      agenttest.Fault
		paths                      string
		status                     doctor.Status
		words                      string
	}{
		{"one of Anthropic's for both", "anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5", nil, agenttest.Fault{}, "/v1/messages", doctor.OK, "cost $0."},
		{"two vendors", "codex", "gpt-5.6", "claude-sonnet-4-5", nil, agenttest.Fault{}, "/v1/responses /v1/messages", doctor.OK, "gpt-5.6 answered over responses"},
		{"a compatible server", "openai", "gpt-5.6", "", []string{"--api=chat"}, agenttest.Fault{}, "/v1/chat/completions", doctor.OK, "answered over chat"},
		{"Google's", "gemini", "gemini-2.5-pro", "", nil, agenttest.Fault{}, "/v1beta/models/gemini-2.5-pro:generateContent", doctor.OK, "answered over gemini"},
		{"a wrong key", "anthropic", "claude-sonnet-4-5", "", nil, agenttest.Fault{Status: 401}, "/v1/messages", doctor.Failed, "HTTP 401"},
		{"no price", "anthropic", "claude-of-tomorrow", "", nil, agenttest.Fault{}, "", doctor.Failed, "no known price"},
		{"no model by name", "claude-code", "", "", nil, agenttest.Fault{}, "", doctor.Unproved, "set agent.model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := agenttest.NewModel(func(agenttest.Request) agenttest.Turn {
				return agenttest.Turn{Text: "ok", Usage: &agenttest.Usage{Input: 20, Output: 1}, Fault: c.fault}
			})
			at, err := model.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer model.Close()
			key := meter.Credential{Value: "the-real-key"}
			m, err := meter.Start(t.Context(), meter.Config{Upstream: at, Key: key, Ceiling: money.Dollar,
				Beside: []meter.Provider{{API: meter.OpenAI, Upstream: at + "/v1", Key: key}, {API: meter.Gemini, Upstream: at, Key: key}}})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close(context.Background())
			s := &session{meter: purse{m}}
			s.cfg.Agent.Name, s.cfg.Agent.Model, s.cfg.Agent.Args = c.agent, c.model, c.args
			s.cfg.Review.Enabled, s.cfg.Review.Model, s.cfg.Review.API = c.review != "", c.review, "auto"
			var rep doctor.Report
			examination{s: s, rep: &rep}.live(t.Context())
			var paths []string
			for _, r := range model.Calls() {
				paths = append(paths, r.Path)
				if limit := string(r.Body); !strings.Contains(limit, `:1,`) && !strings.Contains(limit, `:16,`) && !strings.Contains(limit, `:1}`) {
					t.Errorf("more than the least is asked for: %s", limit)
				}
			}
			if got := strings.Join(paths, " "); got != c.paths {
				t.Errorf("asked %q, want %q", got, c.paths)
			}
			for _, f := range rep.Findings {
				if f.Check != "model.live" || f.Status != c.status {
					t.Errorf("%+v", f)
				}
			}
			if text := rep.Text(); !strings.Contains(text, c.words) {
				t.Errorf("%q is not told:\n%s", c.words, text)
			}
			if spent := m.Spent() > 0; spent != (c.status == doctor.OK) {
				t.Errorf("spent %s", m.Spent())
			}
		})
	}
}

// What doctor says of an agent that is not here names the agent and the command that brings it.
func TestEveryAgentThatIsMissingNamesTheCommandThatBringsIt(t *testing.T) {
	t.Parallel()
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	brings := map[string]string{
		"claude-code": "npm install --ignore-scripts --prefix DIR @anthropic-ai/claude-code-linux-x64@" + agent.ClaudeCodeVersion,
		"codex":       "@openai/codex@" + agent.CodexVersion,
		"gemini":      "@google/gemini-cli@" + agent.GeminiVersion,
		"opencode":    "opencode-linux-x64@" + agent.OpenCodeVersion,
		"copilot":     "@github/copilot-linux-x64@" + agent.CopilotVersion,
		"command":     "install it in the job before this step",
		"anthropic":   "", "openai": "", "script": "", // they are this program
	}
	for _, name := range agent.Names() {
		want, known := brings[name]
		if !known {
			t.Errorf("%s: say here what brings it", name)
		}
		a, err := agent.New(name, agent.Options{Runner: box, Command: []string{"no-such-program-anywhere"}, Plan: []byte("ticks: [[]]")})
		if err != nil {
			t.Fatal(err)
		}
		missing := a.Check(t.Context())
		if (missing == nil) != (want == "") || missing != nil && (!strings.Contains(missing.Error(), want) || !strings.Contains(missing.Error(), "agent "+name)) {
			t.Errorf("%s: %v, want %q", name, missing, want)
		}
	}
}
