package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/egress"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// Env is what a command gets from the process around it.
type Env struct {
	Args           []string // without the program's name
	Getenv         func(string) string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Now            func() time.Time
	Random         io.Reader
	Sleep          func(context.Context, time.Duration) error
	Exe            string       // this program's file
	Dir            string       // working directory
	Terminal       bool         // Stdout is a terminal
	Reach          egress.Reach // how the egress proxy gets to the network; zero: the real one
}

// Main runs one command of one program: it must be the whole body of main. Untrusted children start
// from the same binary, so the first thing is to find out whether this is one of them; the second is to take
// secrets out of the environment, where /proc would show them.
func Main(run func(context.Context, Env) int) {
	children()
	secrets, err := sandbox.Scrub(secretNames(os.Environ())...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "proctor: the environment still shows secrets to processes of this user:", err)
		os.Exit(exitInfrastructure)
	}
	if err := sandbox.HardenSelf(); err != nil {
		fmt.Fprintln(os.Stderr, "proctor: this process could not be shielded from others of its user:", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, "proctor: the working directory is gone. Next: cd to a directory that exists")
		os.Exit(exitUsage)
	}
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "proctor: cannot find its own file:", err)
		os.Exit(exitInfrastructure)
	}
	code := run(ctx, Env{
		Args: os.Args[1:], Getenv: scrubbed(secrets), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Now: time.Now, Random: rand.Reader, Sleep: clock.Sleep, Exe: exe, Dir: dir,
		Terminal: term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	})
	os.Exit(code)
}

// secretNames are the variables that look like they hold one. A name too many costs nothing: values stay
// readable through Env.Getenv.
func secretNames(environ []string) []string {
	var names []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		upper := strings.ToUpper(name)
		for _, word := range []string{"TOKEN", "KEY", "SECRET", "PASSW", "CREDENTIAL", "AUTH", "COOKIE", "PRIVATE", "_URL", "HEADERS"} {
			if strings.Contains(upper, word) {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

func scrubbed(secrets map[string]string) func(string) string {
	return func(name string) string {
		if v, ok := secrets[name]; ok {
			return v
		}
		return os.Getenv(name)
	}
}

// random fills b; a machine without randomness is beyond help.
func (e Env) random(b []byte) {
	if _, err := io.ReadFull(e.Random, b); err != nil {
		panic("no randomness: " + err.Error())
	}
}
