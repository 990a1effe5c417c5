package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// session is one child at work.
type session struct {
	proc    *os.Process
	control net.Conn
	mail    *mail
	orders  *json.Encoder
	reports chan report   // closed when the child has hung up
	exited  chan struct{} // closed when the child was waited for
	state   *os.ProcessState

	doors    []net.Listener // into the tree's network namespace
	lines    connections
	carriers sync.WaitGroup
	stuck    bool // its tree cannot be killed, so that it may not end either
}

func (b *Box) probe(ctx context.Context, s spec) ([]Enforced, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	child, err := b.open(s, null, null, null)
	if err != nil {
		return nil, err
	}
	defer child.close()
	select {
	case r := <-child.reports:
		if r.Failed != nil {
			return nil, errors.New("sandbox: probe: " + r.Failed.Detail)
		}
		if r.Enforced == nil {
			return nil, child.broken()
		}
		return r.Enforced, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// start starts a child in the namespaces of its spec and tells it what to do.
func (b *Box) start(s spec, stdin, stdout, stderr *os.File) (*session, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("sandbox: make the control socket: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	defer func() { _ = theirs.Close() }()
	end := os.NewFile(uintptr(pair[0]), "control")
	ours, err := net.FileConn(end)
	_ = end.Close()
	if err != nil {
		return nil, fmt.Errorf("sandbox: make the control socket: %w", err)
	}
	proc, err := os.StartProcess(b.exe, []string{shimName}, &os.ProcAttr{
		// Nothing of the harness's own environment; the runtime needs none.
		Env:   []string{"GOMAXPROCS=2"},
		Dir:   "/",
		Files: []*os.File{stdin, stdout, stderr, theirs},
		Sys:   s.Namespaces.attributes(),
	})
	if err == nil && s.Namespaces.any() && s.Namespaces.User {
		if err = mapUsers(proc.Pid); err != nil {
			_ = proc.Kill()
			_, _ = proc.Wait()
		}
	}
	if err != nil {
		_ = ours.Close()
		if s.Namespaces.any() && refusedByMachine(err) {
			return nil, &namespaceError{err}
		}
		return nil, fmt.Errorf("sandbox: start the supervisor %s: %w", b.exe, err)
	}
	c := &session{proc: proc, control: ours, mail: &mail{conn: ours.(*net.UnixConn)}, orders: json.NewEncoder(ours), reports: make(chan report), exited: make(chan struct{})}
	go c.read()
	go c.wait()
	if err := c.orders.Encode(s); err != nil {
		c.close()
		return nil, fmt.Errorf("sandbox: instruct the supervisor: %w (does the main of %s call sandbox.Child first?)", err, b.exe)
	}
	return c, nil
}

func (c *session) read() {
	defer close(c.reports)
	in := json.NewDecoder(c.mail)
	for {
		var r report
		if err := in.Decode(&r); err != nil {
			return
		}
		c.reports <- r
	}
}

func (c *session) wait() {
	c.state, _ = c.proc.Wait()
	close(c.exited)
}

// close hangs up, upon which the child kills what is left of its tree.
func (c *session) close() {
	_ = c.control.Close()
	for range c.reports {
	}
	for _, l := range c.doors {
		_ = l.Close()
	}
	c.lines.close()
	c.carriers.Wait()
	for _, f := range c.mail.files {
		_ = f.Close()
	}
	if !c.stuck {
		<-c.exited
	}
}

// below are the processes of a tree that is left, as they are called out here.
func (c *session) below(said []int) []int {
	if found := pids(descendants(c.proc.Pid)); len(found) > 0 {
		return found
	}
	return said
}

// broken is for a child that ended without saying how its tree did.
func (c *session) broken() error {
	<-c.exited
	killed, left := killOrphans()
	if len(left) > 0 {
		return fmt.Errorf("sandbox: the supervisor ended without a report (%s): %w", c.state, &LeftoverError{PIDs: left})
	}
	if killed > 0 || !c.state.Exited() {
		return fmt.Errorf("sandbox: the supervisor was ended from outside (%s); %d processes of its tree were killed: look for what kills processes on this machine (out of memory?)", c.state, killed)
	}
	return fmt.Errorf("sandbox: the supervisor ended without a report (%s): does the main of this binary call sandbox.Child first?", c.state)
}

// run starts the tree and sees it through.
func (b *Box) run(ctx context.Context, s spec, cmd Command) (Result, error) {
	streams, err := openStreams(cmd, s)
	if err != nil {
		return Result{}, err
	}
	defer streams.close()
	begin := time.Now()
	child, err := b.open(s, streams.stdin, streams.stdout, streams.stderr)
	if err != nil {
		return Result{}, err
	}
	defer child.close()
	streams.handOver(cmd)
	res, end, err := b.await(ctx, child, streams, cmd)
	if err != nil {
		return Result{}, err
	}
	if child.stuck = len(end.Left) > 0; child.stuck {
		end.Left = child.below(end.Left)
	} else {
		<-child.exited
	}
	streams.drain()
	res.Duration, res.Limits = time.Since(begin), s.Limits
	res.ExitCode, res.Signal, res.Survivors = end.ExitCode, end.Signal, end.Survivors
	if res.Exceeded == "" {
		res.Exceeded = end.Exceeded
	}
	b.log.Debug("sandboxed process ended", "exit", res.ExitCode, "signal", res.Signal, "timed_out", res.TimedOut,
		"cancelled", res.Cancelled, "exceeded", res.Exceeded, "survivors", res.Survivors, "ms", res.Duration.Milliseconds())
	if len(end.Left) > 0 {
		return res, &LeftoverError{PIDs: end.Left}
	}
	return res, nil
}

// await turns the clock, the context and the caps into orders, until the tree is gone.
func (b *Box) await(ctx context.Context, child *session, streams *streams, cmd Command) (Result, *ending, error) {
	var res Result
	var limit <-chan time.Time
	if cmd.Timeout > 0 && cmd.Clock == nil {
		t := time.NewTimer(cmd.Timeout)
		defer t.Stop()
		limit = t.C
	}
	done, over, clock := ctx.Done(), streams.over, cmd.Clock
	stop := func() {
		limit, done, clock = nil, nil, nil // the first reason is the one that is told
		_ = child.orders.Encode(order{GraceMS: cmd.Grace.Milliseconds()})
	}
	for {
		select {
		case d := <-clock:
			t := time.NewTimer(d)
			defer t.Stop()
			clock, limit = nil, t.C
		case r, open := <-child.reports:
			switch {
			case !open:
				return res, nil, child.broken()
			case r.Failed != nil:
				return res, nil, startError(r)
			case r.Ended != nil:
				return res, r.Ended, nil
			}
			res.Enforced = r.Enforced
		case <-limit:
			res.TimedOut = true
			stop()
		case <-done:
			res.Cancelled = true
			stop()
		case <-over:
			over, limit, done, clock = nil, nil, nil, nil
			res.Exceeded = "output"
			_ = child.orders.Encode(order{Kill: true})
		}
	}
}

func startError(r report) error {
	f := r.Failed
	switch f.Kind {
	case "strict":
		return &UnenforcedError{Missing: inactive(r.Enforced)}
	case "missing":
		return &StartError{Program: f.Program, Detail: f.Detail, Err: ErrProgramMissing}
	case "denied":
		return &StartError{Program: f.Program, Detail: f.Detail, Err: ErrProgramDenied}
	}
	return &StartError{Program: f.Program, Detail: f.Detail, Err: errors.New("the system refused")}
}
