package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/meter"
)

// INV-35, INV-36, INV-37: an agent reaches the APIs that its run asks and no other that the job happens to have a key for, and no model
// without a price but those that were acknowledged by name.
func TestOnlyTheAPIsAndModelsOfTheRunAreOpened(t *testing.T) {
	t.Parallel()
	own := config.Command{Argv: []string{"true"}}
	for _, c := range []struct {
		name, agent string
		review      bool
		command     config.Command
		apis        []meter.API
		unpriced    []string
	}{
		{"claude-code and a reviewer", "claude-code", true, config.Command{}, []meter.API{meter.Anthropic}, []string{"mine", "judge"}},
		{"openai and a reviewer", "openai", true, config.Command{}, []meter.API{meter.Anthropic, meter.OpenAI}, []string{"mine", "judge"}},
		{"openai without a reviewer", "openai", false, config.Command{}, []meter.API{meter.OpenAI}, []string{"mine"}},
		{"gemini and a reviewer of one's own", "gemini", true, own, []meter.API{meter.Gemini}, []string{"mine"}},
		{"a program of one's own", "command", false, config.Command{}, []meter.API{meter.Anthropic, meter.OpenAI, meter.Gemini}, []string{"mine"}},
	} {
		s := &session{}
		s.req.modelAt, s.req.key = "https://api.anthropic.com", meter.Credential{Value: "k"}
		s.req.openAI, s.req.gemini = openAI("k", ""), gemini("k", "")
		s.cfg.Agent.Name, s.cfg.Agent.Model, s.cfg.Budget.Unpriced = c.agent, "mine", "allow"
		s.cfg.Review.Enabled, s.cfg.Review.Model, s.cfg.Review.Command = c.review, "judge", c.command
		all, err := s.providers()
		var apis []meter.API
		for _, p := range all {
			apis = append(apis, p.API)
		}
		if err != nil || !slices.Equal(apis, c.apis) {
			t.Errorf("%s: opens %q (%v), want %q", c.name, apis, err, c.apis)
		}
		if got := s.unpriced(); !slices.Equal(got, c.unpriced) {
			t.Errorf("%s: without a price %q, want %q", c.name, got, c.unpriced)
		}
		s.cfg.Budget.Unpriced = "refuse"
		if got := s.unpriced(); got != nil {
			t.Errorf("%s: without a price %q, want none", c.name, got)
		}
	}
}

// A key travels in one line of a header: what was pasted along is taken off, what is inside it is named before anything is started.
func TestASpoiltKeyIsNamedBeforeAnythingIsStarted(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"sk-ant-1": "", " sk-ant-1\r\n": "", "any-word": "",
		"sk-ant\n1": "a line break", "sk ant": "a blank", `"sk-ant-1"`: "a quotation mark", "sk-ant-\u00e9": "a character that no key has",
	} {
		for _, agentName := range []string{"claude-code", "openai", "gemini"} {
			s := &session{}
			s.req.dryRun = true
			s.req.modelAt, s.req.key = defaultModelAt, modelKey(key, "")
			s.req.openAI, s.req.gemini = openAI(key, ""), gemini(key, "")
			s.cfg.Agent.Name = agentName
			_, err := s.providers()
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Next: ")) {
				t.Errorf("%s with the key %q: %v, want %q", agentName, key, err, want)
			}
			if err != nil && strings.Contains(err.Error(), "sk") {
				t.Errorf("%s: the message shows the key: %v", agentName, err)
			}
		}
	}
	if got := modelKey(" \n", " token\n"); got != (meter.Credential{Kind: meter.Bearer, Value: "token"}) {
		t.Errorf("a blank key hides the token: %v", got)
	}
}
