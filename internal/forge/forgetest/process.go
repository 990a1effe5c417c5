package forgetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// The steps of a cancelled GitHub job. Source: GitHub's "Workflow cancellation".
const (
	afterInterrupt = 7500 * time.Millisecond
	afterTerminate = 2500 * time.Millisecond
	// lateOutput is how long a dead process's children may hold its output open.
	lateOutput = 5 * time.Second
)

// signalStep sends sig and waits.
type signalStep struct {
	sig  syscall.Signal
	wait time.Duration
}

// process is one job or step: exactly env, both streams into the log, and an order of signals for a cancel.
type process struct {
	name  string
	args  []string
	dir   string
	env   map[string]string
	log   *logWriter
	after func(time.Duration) <-chan time.Time
	stop  []signalStep // a kill follows
}

// run gives the exit code; a signal counts as 128 plus its number.
func (p process) run(ctx context.Context) (int, error) {
	cmd := exec.Command(p.name, p.args...)
	cmd.Dir = p.dir
	for _, k := range slices.Sorted(maps.Keys(p.env)) {
		cmd.Env = append(cmd.Env, k+"="+p.env[k])
	}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p.log, p.log, lateOutput
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", p.name, err)
	}
	code := p.await(ctx, cmd)
	// A container dies with its first process; so do this one's children.
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	p.log.flush()
	return code, nil
}

func (p process) await(ctx context.Context, cmd *exec.Cmd) int {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = p.cancel(cmd, ended)
	}
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return 0
	case errors.As(err, &exit):
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal())
		}
		return exit.ExitCode()
	}
	return 1
}

func (p process) cancel(cmd *exec.Cmd, ended <-chan error) error {
	for _, s := range p.stop {
		cmd.Process.Signal(s.sig)
		select {
		case err := <-ended:
			return err
		case <-p.after(s.wait):
		}
	}
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return <-ended
}
