package app

import (
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/meter"
)

// defaultOpenAIAt is where OpenAI's own clients go; it holds the version, as theirs does.
const defaultOpenAIAt = "https://api.openai.com/v1"

// openAI is the provider of the OpenAI APIs, OpenAI itself or a compatible server; without a key there is none.
func openAI(key, at string) meter.Provider {
	return meter.Provider{API: meter.OpenAI, Upstream: first(at, defaultOpenAIAt), Key: meter.Credential{Value: strings.TrimSpace(key)}}
}

// defaultGeminiAt is where Google's own clients go.
const defaultGeminiAt = "https://generativelanguage.googleapis.com"

// gemini is the provider of the Gemini API; without a key there is none.
func gemini(key, at string) meter.Provider {
	return meter.Provider{API: meter.Gemini, Upstream: first(at, defaultGeminiAt), Key: meter.Credential{Value: strings.TrimSpace(key)}}
}

// apiOf says which model API an agent speaks; empty: none, or whatever a program of one's own likes.
func apiOf(agentName string) meter.API {
	switch agentName {
	case "claude-code", "anthropic":
		return meter.Anthropic
	case "openai", "codex", "opencode", "copilot":
		return meter.OpenAI
	case "gemini":
		return meter.Gemini
	}
	return ""
}

// needsModel says which agents speak to a model API through the meter.
func needsModel(name string) bool { return apiOf(name) != "" }

// asks says whether this run has a use for an API. What has none is not opened to the agent, whatever keys the job
// has: a program of one's own may speak any.
func (s *session) asks(api meter.API) bool {
	agentAPI := apiOf(s.cfg.Agent.Name)
	return agentAPI == "" || api == agentAPI || api == s.reviewProvider()
}

// unpriced are the models that may be asked without a price: those that the configuration names, not what an agent thinks of.
func (s *session) unpriced() []string {
	if s.cfg.Budget.Unpriced != "allow" {
		return nil
	}
	out := []string{s.cfg.Agent.Model}
	if s.judgesByModel() {
		out = append(out, s.cfg.Review.Model)
	}
	return out
}

// keyNames are the variables that hold a provider's key; a job's inputs have the same names, in small letters.
var keyNames = map[meter.API]string{
	meter.Anthropic: "ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN", meter.OpenAI: "OPENAI_API_KEY", meter.Gemini: "GEMINI_API_KEY",
}

// keyFault is what a key holds and none can, since it travels in one line of a header: "" for nothing.
func keyFault(key string) string {
	switch {
	case strings.ContainsAny(key, "\r\n"):
		return "a line break"
	case strings.ContainsAny(key, " \t"):
		return "a blank"
	case strings.ContainsAny(key, `"'`):
		return "a quotation mark"
	case strings.ContainsFunc(key, func(r rune) bool { return r < '!' || r > '~' }):
		return "a character that no key has"
	}
	return ""
}

// providers are those that the run has a use and a key for, and an error that names the key that is missing or spoilt.
func (s *session) providers() ([]meter.Provider, error) {
	var out []meter.Provider
	have := map[meter.API]bool{}
	for _, p := range []meter.Provider{{API: meter.Anthropic, Upstream: s.req.modelAt, Key: s.req.key}, s.req.openAI, s.req.gemini} {
		if p.Key.Value != "" && s.asks(p.API) {
			if fault := keyFault(p.Key.Value); fault != "" {
				return nil, fmt.Errorf("the key for the %s API holds %s, so no server would take it. Next: store it again: the key alone, in one line, without quotes (%s)", p.API, fault, keyNames[p.API])
			}
			out, have[p.API] = append(out, p), true
		}
	}
	const anthropicKey = "set the input anthropic-api-key or claude-code-oauth-token from a secret (on your own machine: export ANTHROPIC_API_KEY)"
	agentAPI := apiOf(s.cfg.Agent.Name)
	switch {
	case s.req.dryRun:
	case agentAPI == meter.OpenAI && !have[meter.OpenAI]:
		return nil, fmt.Errorf("agent %q needs an OpenAI API or a compatible server and there is no key. Next: set the input openai-api-key from a secret (on your own machine: export OPENAI_API_KEY); for a server that wants none give any word", s.cfg.Agent.Name)
	case agentAPI == meter.Gemini && !have[meter.Gemini]:
		return nil, fmt.Errorf("agent %q needs the Gemini API and there is no key. Next: set the input gemini-api-key from a secret (on your own machine: export GEMINI_API_KEY)", s.cfg.Agent.Name)
	case agentAPI == meter.Anthropic && !have[meter.Anthropic]:
		return nil, fmt.Errorf("agent %q or the reviewer needs a model and there is no key. Next: %s, or set review.enabled to false where only the reviewer needs it", s.cfg.Agent.Name, anthropicKey)
	case s.reviewProvider() != "" && !have[s.reviewProvider()]:
		key := map[meter.API]string{
			meter.Anthropic: anthropicKey,
			meter.OpenAI:    "set the input openai-api-key from a secret (on your own machine: export OPENAI_API_KEY)",
			meter.Gemini:    "set the input gemini-api-key from a secret (on your own machine: export GEMINI_API_KEY)",
		}[s.reviewProvider()]
		return nil, fmt.Errorf("the reviewer asks the model %s over the %s API and there is no key. Next: %s, let review.model name a model that there is a key for, name a reviewer of your own with review.command, or set review.enabled to false", s.cfg.Review.Model, s.reviewAPI(), key)
	}
	return out, nil
}
