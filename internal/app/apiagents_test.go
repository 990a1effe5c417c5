package app

import (
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
)

// openAIAgents lets the world's job have an OpenAI key too, and its model be the server for it.
func openAIAgents(w *world) {
	env := w.runner.Actions[0].Env
	env["OPENAI_BASE_URL"] = env["ANTHROPIC_BASE_URL"] + "/v1"
	w.runner.Secrets["OPENAI_API_KEY"] = w.key
}

func answerTurn(content string) agenttest.Turn {
	return agenttest.Turn{Text: "I see.", Tools: []agenttest.Tool{{Name: "write", Input: map[string]any{"path": "app/answer.txt", "content": content}}}}
}

// INV-1, INV-15, INV-33, INV-54: an agent over a bare API takes the same path as any other: metered, confined, recorded,
// proved. The first attempt passes the visible gate only.
func TestAnAgentOverABareAPIGetsToADraft(t *testing.T) {
	for name, line := range map[string]string{
		"anthropic":        "{name: anthropic, timeout: 1m}",
		"openai responses": "{name: openai, model: gpt-5.3-codex, timeout: 1m}",
		"openai chat":      `{name: openai, model: my-local-model, args: ["--api=chat"], timeout: 1m}`,
	} {
		t.Run(name, func(t *testing.T) {
			config := map[string]string{"agent": line}
			if strings.Contains(name, "chat") {
				config["budget"] = "{price: {my-local-model: {input: 1, output: 2, cache_read: 1, cache_write: 1}}}"
			}
			w := open(t, setting{config: config, script: agenttest.Attempts(
				agenttest.Turns(answerTurn(halfRight), agenttest.Turn{Text: "Done."}),
				agenttest.Turns(answerTurn(allRight), agenttest.Turn{Text: "Done now."}),
			)})
			openAIAgents(w)
			j := w.label()
			if j.rec.Terminal != evidence.Done || len(j.rec.Ticks) != 2 {
				t.Fatalf("%s after %d ticks: %s", j.rec.Terminal, len(j.rec.Ticks), j.rec.Reason)
			}
			if a := j.rec.Ticks[0].Agent; a.Outcome != "ok" || a.Turns != 2 {
				t.Errorf("%+v", a)
			}
			if j.rec.Totals.Calls != 4 || j.rec.Totals.CostUSD == 0 {
				t.Errorf("%d calls for %s", j.rec.Totals.Calls, j.rec.Totals.CostUSD)
			}
			for _, c := range w.model.Calls() {
				if c.Key() != w.key {
					t.Errorf("the provider was shown %q", c.Key())
				}
			}
		})
	}
}

func TestAnAPIAgentWithoutItsKeyOrModelEndsBeforeAnythingIsSpent(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"no key":             {"{name: openai, model: gpt-5.3-codex}", "openai-api-key"},
		"no model":           {"{name: openai}", "has no model of its own"},
		"no price":           {"{name: openai, model: someones-model}", "has no known price"},
		"an unknown setting": {`{name: anthropic, args: ["--verbose"]}`, "agent.args[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, setting{config: map[string]string{"agent": c.line}})
			if name != "no key" {
				openAIAgents(w)
			}
			j := w.label()
			if j.rec.Terminal == evidence.Done || !strings.Contains(j.rec.Reason+j.rec.Next, c.want) || len(w.model.Calls()) != 0 {
				t.Errorf("%s: %s %s", j.rec.Terminal, j.rec.Reason, j.rec.Next)
			}
		})
	}
}

// What package agent can start, a configuration can name.
func TestEveryAdapterCanBeConfigured(t *testing.T) {
	t.Parallel()
	for _, name := range agent.Names() {
		if _, err := config.Load("proctor.yml", []byte("version: 1\nagent: {name: "+name+"}\n")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := config.Load("proctor.yml", []byte("version: 1\nagent: {name: cluade-code}\n")); err == nil || !strings.Contains(err.Error(), `did you mean "claude-code"`) {
		t.Errorf("a misspelled agent: %v", err)
	}
}
