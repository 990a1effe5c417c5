package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/proctor-ci/proctor/internal/pattern"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// cli is what the adapters of vendors' CLIs share.
type cli struct {
	o             Options
	name, program string
}

func newCLI(o Options, name, program string) cli {
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return cli{o, name, program}
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
