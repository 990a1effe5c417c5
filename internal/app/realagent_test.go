package app

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
)

// realAgent names the agent whose real CLI, which is in PATH, plays the plans of tests in the script's place: claude-code. make rounds sets it.
const realAgent = "PROCTOR_TEST_AGENT"

// played has a plan played by the real agent, where one is asked for: what a step writes, the model has it write by a tool call.
func (s setting) played() setting {
	name := os.Getenv(realAgent)
	if name == "" || len(s.plan) == 0 || s.script != nil {
		return s
	}
	s.config = maps.Clone(s.config)
	if s.config == nil {
		s.config = map[string]string{}
	}
	s.config["agent"] = "{name: " + name + ", model: claude-haiku-4-5, timeout: 2m}"
	s.script = byConversation(s.plan)
	return s
}

// byConversation plays the plan anew in each work tree, so in each run: one tick for each conversation there, the last one again for those behind.
func byConversation(plan []tick) agenttest.Script {
	same := &agenttest.Usage{Input: 1000, Output: 100} // else it goes by the length of a prompt, and that by paths
	var mu sync.Mutex
	met := map[string][]string{} // the conversations of a work tree, in order
	return func(r agenttest.Request) agenttest.Turn {
		if len(r.Tools) == 0 {
			return agenttest.Turn{Text: "ok", Usage: same} // a question on the side
		}
		mu.Lock()
		if !slices.Contains(met[r.Dir], r.Session) {
			met[r.Dir] = append(met[r.Dir], r.Session)
		}
		n := slices.Index(met[r.Dir], r.Session)
		mu.Unlock()
		var turns []agenttest.Turn
		for _, step := range plan[min(n, len(plan)-1)] {
			if w := step.Write; w != nil {
				line := fmt.Sprintf("mkdir -p \"$(dirname '%[1]s')\" && printf %%s '%[2]s' > '%[1]s'", w.Path, strings.ReplaceAll(w.Content, "'", `'\''`))
				turns = append(turns, agenttest.Turn{Text: "I write it.", Usage: same, Tools: []agenttest.Tool{agenttest.Bash(line)}})
			}
		}
		return agenttest.Turns(append(turns, agenttest.Turn{Text: "Done.", Usage: same})...)(r)
	}
}
