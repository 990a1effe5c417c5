package agent

import (
	"bytes"
	"context"
	"strings"
)

// spoken is an adapter that tells its process all there is to do on stdin, so that the process can be there before
// the prompt is.
type spoken interface {
	Agent
	// words are what the process reads. An outcome says why this task cannot be told.
	words(t Task) ([]byte, *Outcome, error)
	// process is the process of a call, but for its stdin. An outcome says why there is none.
	process(ctx context.Context, t Task, on func(Event)) (job, *Outcome, error)
}

// speak is Run of a spoken agent.
func speak(ctx context.Context, a spoken, t Task, on func(Event)) (Outcome, error) {
	words, refused, err := a.words(t)
	if err != nil || refused != nil {
		return outcomeOr(refused), err
	}
	j, refused, err := a.process(ctx, t, on)
	if err != nil || refused != nil {
		return outcomeOr(refused), err
	}
	j.cmd.Stdin = bytes.NewReader(words)
	return j.run(ctx)
}

func outcomeOr(refused *Outcome) Outcome {
	if refused == nil {
		return Outcome{}
	}
	return *refused
}

// refuse is the outcome of a call that cannot be made, and could not be made again.
func refuse(err error, next string) *Outcome {
	return &Outcome{Kind: RefusedStart, Detail: printable(err.Error(), detailMax), Next: next, Lasting: true}
}

// emptyPrompt refuses a prompt that says nothing.
func emptyPrompt(t Task) *Outcome {
	if strings.TrimSpace(t.Prompt) == "" {
		return &Outcome{Kind: RefusedStart, Detail: "the prompt is empty", Lasting: true}
	}
	return nil
}
