package app

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Variables by which a test tells a process of this binary which part it plays.
const (
	partVariable = "PROCTOR_TEST_PART"
	partAction   = "the-action-itself"
	partCLI      = "the-command-line"

	// dieVariable makes the process kill itself, as kill -9 does, after that many milliseconds.
	dieVariable = "PROCTOR_TEST_DIE_MS"
	// environVariable names a file for the environment that the process was started with.
	environVariable = "PROCTOR_TEST_ENVIRON"
	// laterVariable sets the process's clock ahead by a duration, so that a lost run's lease is over without a wait.
	laterVariable = "PROCTOR_TEST_LATER"
)

// The test binary plays five parts: the tests, cmd/action, cmd/proctor, and the two kinds of child that the harness starts from
// its own binary. So the real programs run as processes of their own, under the race detector too.
func TestMain(m *testing.M) {
	exitAtOnce()
	children()
	switch os.Getenv(partVariable) {
	case partCLI:
		Main(CLI)
	case partAction:
		prepareAction()
		Main(func(ctx context.Context, env Env) int {
			if d, err := time.ParseDuration(env.Getenv(laterVariable)); err == nil {
				env.Now = func() time.Time { return time.Now().Add(d) }
			}
			return Action(ctx, env)
		})
	}
	os.Exit(m.Run())
}

func prepareAction() {
	if path := os.Getenv(environVariable); path != "" {
		if err := os.WriteFile(path, []byte(strings.Join(os.Environ(), "\n")), 0o600); err != nil {
			panic(err)
		}
	}
	if ms, err := strconv.Atoi(os.Getenv(dieVariable)); err == nil {
		time.AfterFunc(time.Duration(ms)*time.Millisecond, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	}
}

// exitAtOnce starts the process again without the second that the race detector waits at every exit: a run starts a
// dozen processes of this binary.
func exitAtOnce() {
	const variable = "GORACE"
	if !raceDetector || os.Getenv(variable) != "" {
		return
	}
	if err := syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), variable+"=atexit_sleep_ms=0")); err != nil {
		panic(err)
	}
}
