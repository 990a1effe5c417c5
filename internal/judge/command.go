package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Runner runs a program with stdin and gives what it printed, whole, and its exit code. The error is for a
// program that could not be started or was killed.
type Runner func(ctx context.Context, argv []string, stdin []byte) (stdout []byte, exit int, err error)

// Command is review.command: a program of the maintainer that reads a request on stdin and prints a verdict.
// The request is one JSON object: the members of [Request] and the schema of the answer.
type Command struct {
	Argv []string
	Run  Runner
}

// Name is the program's.
func (c Command) Name() string {
	if len(c.Argv) == 3 && c.Argv[0] == "sh" && c.Argv[1] == "-c" {
		return "command: " + c.Argv[2]
	}
	return "command: " + strings.Join(c.Argv, " ")
}

// Complete runs the program once. Only exit code 0 with a verdict on stdout counts; a program says no by
// printing a rejection, not by failing.
func (c Command) Complete(ctx context.Context, r Request) (string, error) {
	in, err := json.Marshal(struct {
		Request
		Schema json.RawMessage `json:"schema"`
	}{r, json.RawMessage(Schema)})
	if err != nil {
		return "", fmt.Errorf("run review.command: %w", err)
	}
	out, exit, err := c.Run(ctx, c.Argv, in)
	if err != nil {
		return "", fmt.Errorf("run review.command %q: %w; check that it is installed where the harness runs", c.Argv, err)
	}
	if exit != 0 {
		return "", fmt.Errorf("review.command %q ended with exit code %d: it must print a verdict and exit 0", c.Argv, exit)
	}
	return string(out), nil
}
