package app

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/internal/probe"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// Variables by which a test tells a process of this binary which part it plays.
const (
	partVariable = "PROCTOR_TEST_PART"
	partAction   = "the-action-itself"
	partCLI      = "the-command-line"

	// dieVariable makes the process kill itself, as kill -9 does, after that many milliseconds.
	dieVariable = "PROCTOR_TEST_DIE_MS"
	// pidVariable names a file for the process's id.
	pidVariable = "PROCTOR_TEST_PID"
	// environVariable names a file for the environment that the process was started with.
	environVariable = "PROCTOR_TEST_ENVIRON"
	// hurryVariable bounds the process's waits, so that a lease is renewed, and a request to stop read, at once.
	hurryVariable = "PROCTOR_TEST_HURRY"
	// laterVariable sets the process's clock ahead by a duration, so that a lost run's lease is over without a wait.
	laterVariable = "PROCTOR_TEST_LATER"
	// sleepsVariable names a file to which the process adds a line for each wait.
	sleepsVariable = "PROCTOR_TEST_SLEEPS"
	// reachVariable names the server on loopback that is the egress proxy's internet: see reachTo.
	reachVariable = "PROCTOR_TEST_REACH"
)

// part is the environment of a process that plays one of the programs. The race detector would wait a second at its exit.
func part(name string) map[string]string {
	return map[string]string{partVariable: name, "GORACE": "atexit_sleep_ms=0"}
}

// The test binary plays many parts: the tests, cmd/action, cmd/proctor, and the kinds of child that the harness starts from
// its own binary. So the real programs run as processes of their own, under the race detector too.
func TestMain(m *testing.M) {
	sandbox.Child()
	if code, ok := agent.ToolLoopChild(os.Args, os.Stdin, os.Stdout); ok {
		syscall.Exit(code)
	}
	if code, ok := agent.ScriptChild(os.Args, os.Stdin, os.Stdout); ok {
		syscall.Exit(code) // os.Exit waits a second under the race detector
	}
	if code, ok := probe.Child(os.Args, os.Stdout); ok {
		syscall.Exit(code)
	}
	switch os.Getenv(partVariable) {
	case partCLI:
		Main(CLI)
	case partAction:
		prepareAction()
		Main(func(ctx context.Context, env Env) int {
			if d, err := time.ParseDuration(env.Getenv(laterVariable)); err == nil {
				env.Now = func() time.Time { return time.Now().Add(d) }
			}
			if file := env.Getenv(sleepsVariable); file != "" {
				env.Sleep = noting(file, env.Sleep)
			}
			if at := env.Getenv(reachVariable); at != "" {
				env.Reach = reachTo(at)
			}
			if d, err := time.ParseDuration(env.Getenv(hurryVariable)); err == nil {
				sleep := env.Sleep
				env.Sleep = func(ctx context.Context, full time.Duration) error { return sleep(ctx, min(d, full)) }
			}
			return Action(ctx, env)
		})
	}
	os.Exit(m.Run())
}

func prepareAction() {
	for name, text := range map[string]string{environVariable: strings.Join(os.Environ(), "\n"), pidVariable: strconv.Itoa(os.Getpid())} {
		if path := os.Getenv(name); path != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				panic(err)
			}
		}
	}
	if ms, err := strconv.Atoi(os.Getenv(dieVariable)); err == nil {
		time.AfterFunc(time.Duration(ms)*time.Millisecond, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	}
}

// noting is sleep that leaves a line in a file.
func noting(file string, sleep func(context.Context, time.Duration) error) func(context.Context, time.Duration) error {
	return func(ctx context.Context, d time.Duration) error {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(f, d)
		if err := f.Close(); err != nil {
			panic(err)
		}
		return sleep(ctx, d)
	}
}
