package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/proctor-ci/proctor/internal/pattern"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// cli is what the adapters of vendors' CLIs share.
type cli struct {
	o             Options
	name, program string
	install       string // what brings the program
}

func newCLI(o Options, name, program, install string) cli {
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return cli{o, name, program, install}
}

// Check looks for the executable.
func (c cli) Check(context.Context) error {
	_, err := c.o.find(c.program)
	return c.lacking(err)
}

func (c cli) lacking(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("agent %s: %w; install %s", c.name, err, c.install)
}

// Name is the agent's in the configuration.
func (c cli) Name() string { return c.name }

// stateDir names a directory in HOME that nothing could know before, so that what an earlier tick left there configures
// nothing. Nobody makes it here.
func (c cli) stateDir(t Task) (string, error) {
	var id [8]byte
	if _, err := io.ReadFull(c.o.Rand, id[:]); err != nil {
		return "", fmt.Errorf("run agent %s: draw a directory name: %w", c.name, err)
	}
	return filepath.Join(t.Home, "."+c.program+"-"+hex.EncodeToString(id[:])), nil
}

// Versioner is an agent that can tell which version of it is installed, without spending. Of the task
// only the directories are used.
type Versioner interface {
	Version(ctx context.Context, t Task) (string, error)
}

// onlyDirs is the task of a call that asks no model.
func onlyDirs(t Task) Task { return Task{Dir: t.Dir, Home: t.Home, Tmp: t.Tmp} }

// versionWith asks the program, with a state directory of its own, for its version. argv and env are made for what was found.
func (c cli) versionWith(ctx context.Context, t Task, argv func(program string) (argv, dirs []string), env func(program, state string) []string) (string, error) {
	program, err := c.o.find(c.program)
	if err != nil {
		return "", c.lacking(err)
	}
	state, err := c.stateDir(t)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(state)
	line, dirs := argv(program)
	return c.askVersion(ctx, t, line, env(program, state), dirs)
}

// askVersion runs argv, which prints a version, with the directories that the program reads.
func (c cli) askVersion(ctx context.Context, t Task, argv, env, dirs []string) (string, error) {
	out := &tail{max: 200}
	res, err := c.o.Runner.Run(ctx, sandbox.Command{
		Argv: argv, Env: env, Dir: t.Dir, Stdout: out, Timeout: time.Minute, Policy: c.o.policy(onlyDirs(t), dirs...),
	})
	if err != nil {
		return "", fmt.Errorf("agent %s: ask for its version: %w", c.name, err)
	}
	v := versionNumber.FindString(out.text(""))
	if res.ExitCode != 0 || v == "" {
		return "", fmt.Errorf("agent %s: `%s --version` told no version: reinstall it", c.name, c.program)
	}
	return v, nil
}

var versionNumber = pattern.Of(`\d+\.\d+\.\d+`)
