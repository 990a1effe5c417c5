package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	pause   = 100 * time.Millisecond // between two tries
	oneTry  = 5 * time.Second
	maxBody = 1 << 20
	grace   = 2 * time.Second // from SIGTERM to SIGKILL
)

// program is what the check started.
type program struct {
	cmd   *exec.Cmd
	began time.Time
	ended chan struct{} // closed when it has ended
}

// start starts the command in a group of its own, with the streams of the check.
func (c *check) start() (*program, int) {
	cmd := exec.Command(c.Start[0], c.Start[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		c.say("cannot start %s: %v", shown(c.Start), err)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			return nil, noSuchFile
		}
		return nil, cannotRun
	}
	p := &program{cmd: cmd, began: time.Now(), ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		close(p.ended)
	}()
	return p, passed
}

// stop ends the command and all of its group. What left the group is the confinement's to end.
func (p *program) stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(grace):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
}

// gone says how the command ended, while somebody still counted on it.
func (c *check) gone(p *program) int {
	c.say("%s ended by itself after %s: %s", shown(c.Start), time.Since(p.began).Round(time.Millisecond), p.cmd.ProcessState)
	// A shell's word for a command that could not be started is not the candidate's fault.
	if code := p.cmd.ProcessState.ExitCode(); code == cannotRun || code == noSuchFile {
		return code
	}
	return failed
}

func (c *check) boots() int {
	if len(c.Start) == 0 {
		c.say("there is nothing to start")
		return cannotRun
	}
	p, code := c.start()
	if p == nil {
		return code
	}
	select {
	case <-p.ended:
		return c.gone(p)
	case <-time.After(c.For):
	}
	c.say("%s stayed up for %s", shown(c.Start), c.For)
	p.stop()
	return passed
}

// poll tries until the answer is as wanted, the time is over, or the command that was started has failed. A
// command that ended well may have left a server behind.
func (c *check) poll(try func(context.Context) error) int {
	var p *program
	ended := make(<-chan struct{}) // never, when nothing was started
	if len(c.Start) > 0 {
		var code int
		if p, code = c.start(); p == nil {
			return code
		}
		defer p.stop()
		ended = p.ended
	}
	ctx, done := context.WithTimeout(context.Background(), c.Within)
	defer done()
	var last error
	for {
		err := try(ctx)
		switch {
		case err == nil:
			c.say("the answer is as wanted")
			return passed
		case errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM):
			c.say("the confinement on this machine gives no loopback to check on: run as root or allow user namespaces (%v)", err)
			return cannotRun
		case ctx.Err() == nil || last == nil:
			last = err
		}
		select {
		case <-ended:
			if !p.cmd.ProcessState.Success() {
				return c.gone(p)
			}
			ended = nil
		case <-ctx.Done():
			c.say("not as wanted within %s: %v", c.Within, last)
			return failed
		case <-time.After(pause):
		}
	}
}

func (c *check) connect(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, oneTry)
	defer done()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.Address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (c *check) ask(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, oneTry)
	defer done()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return err
	}
	// No proxy, whatever the environment says, and no connection that outlives the try.
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, Proxy: nil},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	switch {
	case resp.StatusCode != c.Status:
		return fmt.Errorf("status %d, want %d", resp.StatusCode, c.Status)
	case err != nil:
		return err
	case !bytes.Contains(body, []byte(c.Body)):
		return fmt.Errorf("the body of %d bytes does not contain %q", len(body), c.Body)
	}
	return nil
}
