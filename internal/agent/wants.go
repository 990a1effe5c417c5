package agent

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// wants are what agent.args say to a CLI that takes any model of an OpenAI API.
type wants struct {
	chat            bool // the Chat Completions API, not Responses
	context, output int64
}

// wantsOf reads agent.args, and refuses a task that has no model to work with.
func wantsOf(agent string, t Task) (wants, error) {
	w := wants{context: 200_000, output: 32_000}
	switch {
	case t.Model == "":
		return w, fmt.Errorf("agent %s has no model of its own: set agent.model", agent)
	case t.Gateway.BaseURL == "":
		return w, errors.New("this run has no model gateway: give the job a model key")
	}
	for i, arg := range t.Args {
		name, value, _ := strings.Cut(arg, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case arg == "--api=responses", arg == "--api=chat":
			w.chat = arg == "--api=chat"
		case name == "--context" && err == nil && n >= 4_000 && n <= 10_000_000:
			w.context = n
		case name == "--max-output" && err == nil && n >= 256 && n <= 1_000_000:
			w.output = n
		default:
			return w, fmt.Errorf("agent.args[%d]: %s is not known: want --api=responses or --api=chat, --context=TOKENS from 4000, --max-output=TOKENS from 256", i, printable(arg, 80))
		}
	}
	return w, nil
}
