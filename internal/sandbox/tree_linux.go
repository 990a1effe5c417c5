package sandbox

import (
	"encoding/json"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tree is the child's state: one program, everything it starts, and how it ends. One goroutine owns it.
type tree struct {
	spec spec
	out  *json.Encoder

	pid       int
	ended     bool            // the program itself
	status    unix.WaitStatus // of the program
	killing   bool
	leftover  bool // the program ended by itself: who is alive now has outlived it
	exceeded  string
	survivors map[int]bool
	deadline  time.Time // after which what cannot be killed is given up
}

// unkillable is how long the child tries before it reports what is left.
const unkillable = 20 * time.Second

func (t *tree) mind(in *json.Decoder) int {
	l := launch(t.spec)
	if err := t.out.Encode(report{Enforced: l.enforced, Failed: l.failed, Started: l.pid}); err != nil && l.pid == 0 {
		return childBroken
	}
	if l.pid == 0 {
		return childDone
	}
	if err := dropStdio(); err != nil {
		_, _ = killBelow(os.Getpid()), err
		return childBroken
	}
	t.pid, t.survivors = l.pid, map[int]bool{}
	orders := make(chan order)
	go readOrders(in, orders)
	exits, gone := make(chan unix.WaitStatus, 1), make(chan struct{})
	go reap(l.pid, exits, gone)
	left := t.loop(orders, exits, gone)
	if t.out.Encode(report{Ended: t.ending(left)}) != nil {
		return childBroken
	}
	return childDone
}

// loop ends when no process of the tree is left, or when what is left cannot be killed.
func (t *tree) loop(orders <-chan order, exits <-chan unix.WaitStatus, gone <-chan struct{}) (left []int) {
	watch := newWatcher(t.spec)
	look := time.NewTimer(watch.interval())
	defer look.Stop()
	var grace, again <-chan time.Time
	kill := func() {
		if !t.killing {
			t.killing, t.deadline = true, time.Now().Add(unkillable)
		}
		t.sweep()
		again = time.After(10 * time.Millisecond)
	}
	for {
		select {
		case o, open := <-orders:
			switch {
			case !open: // the harness is gone: so is its tree
				orders = nil
				kill()
			case o.Kill:
				kill()
			case grace == nil:
				_ = unix.Kill(-t.pid, unix.SIGTERM)
				grace = time.After(time.Duration(o.GraceMS) * time.Millisecond)
			}
		case <-grace:
			kill()
		case t.status = <-exits:
			t.ended, t.leftover = true, !t.killing
			select {
			case <-gone: // the usual case: it left nothing behind
				return nil
			case <-time.After(parting(grace != nil)):
				kill()
			}
		case <-look.C:
			if !t.killing {
				if t.exceeded = watch.look(); t.exceeded != "" {
					kill()
				}
			}
			look.Reset(watch.interval())
		case <-again:
			if time.Now().After(t.deadline) {
				return pids(descendants(os.Getpid()))
			}
			kill()
		case <-gone:
			t.settle(exits)
			return nil
		}
	}
}

// parting is how long others may take to end after the program. Where the whole group was asked to end
// they are about to, on a busy machine a little later, and have not outlived anything.
func parting(asked bool) time.Duration {
	if asked {
		return 50 * time.Millisecond
	}
	return time.Millisecond
}

// settle takes the program's status when the tree's end was seen first.
func (t *tree) settle(exits <-chan unix.WaitStatus) {
	if t.ended {
		return
	}
	select {
	case t.status = <-exits:
		t.ended = true
	default:
	}
}

// sweep kills what lives now, and counts who was alive after the program had ended by itself.
func (t *tree) sweep() {
	for _, p := range killBelow(os.Getpid()) {
		if t.leftover {
			t.survivors[p.pid] = true
		}
	}
}

func (t *tree) ending(left []int) *ending {
	e := &ending{Exceeded: t.exceeded, Survivors: len(t.survivors), Left: left, ExitCode: -1}
	switch {
	case !t.ended:
		e.Signal = "unknown"
	case t.status.Signaled():
		e.Signal = syscall.Signal(t.status.Signal()).String()
	default:
		e.ExitCode = t.status.ExitStatus()
	}
	return e
}

// readOrders hands on what the harness wants, and closes when the harness is gone, however it ended.
func readOrders(in *json.Decoder, orders chan<- order) {
	defer close(orders)
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			return
		}
		orders <- o
	}
}

// reap waits for every child, adopted ones too. As the reaper of the whole tree we have no child left
// exactly when the tree is gone.
func reap(program int, exits chan<- unix.WaitStatus, gone chan<- struct{}) {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD
			close(gone)
			return
		case pid == program:
			exits <- ws
		}
	}
}

func pids(ps []proc) []int {
	out := make([]int, len(ps))
	for i, p := range ps {
		out[i] = p.pid
	}
	return out
}
