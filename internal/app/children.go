package app

import (
	"os"

	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/internal/probe"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// children never returns in a process that the harness started from its own binary: the confinement, a
// probe, the scripted agent and the tool loop.
func children() {
	sandbox.Child()
	if code, ok := probe.Child(os.Args, os.Stdout); ok {
		os.Exit(code)
	}
	if code, ok := agent.ScriptChild(os.Args, os.Stdin, os.Stdout); ok {
		os.Exit(code)
	}
	if code, ok := agent.ToolLoopChild(os.Args, os.Stdin, os.Stdout); ok {
		os.Exit(code)
	}
}
