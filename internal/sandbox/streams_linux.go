package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// streams are the three pipes of a tree, as seen from here.
type streams struct {
	stdin, stdout, stderr *os.File // the tree's ends
	in                    *os.File // ours; nil when there is no input
	outs                  [2]*os.File
	limit                 int64
	over                  chan struct{} // closed by the first stream over the limit
	once                  sync.Once
	pumps                 sync.WaitGroup
}

func openStreams(cmd Command, s spec) (*streams, error) {
	st := &streams{limit: s.Limits.Output, over: make(chan struct{})}
	var err error
	if cmd.Stdin == nil {
		st.stdin, err = os.Open(os.DevNull)
	} else {
		st.stdin, st.in, err = os.Pipe()
	}
	if err == nil {
		st.outs[0], st.stdout, err = os.Pipe()
	}
	switch {
	case err != nil:
	case sameWriter(cmd.Stdout, cmd.Stderr):
		st.stderr = st.stdout
	default:
		st.outs[1], st.stderr, err = os.Pipe()
	}
	if err == nil && s.User != nil {
		// Programs open /dev/stdout and /dev/stderr by name; that asks for the owner of the pipe.
		for _, f := range []*os.File{st.stdout, st.stderr, st.stdin} {
			if f == st.stdin && st.in == nil {
				continue
			}
			err = errors.Join(err, unix.Fchown(int(f.Fd()), s.User.UID, s.User.GID))
		}
	}
	if err != nil {
		st.close()
		return nil, fmt.Errorf("sandbox: make pipes: %w", err)
	}
	return st, nil
}

// handOver closes the tree's ends here and starts to move bytes.
func (st *streams) handOver(cmd Command) {
	for _, f := range []*os.File{st.stdin, st.stdout, st.stderr} {
		_ = f.Close()
	}
	if st.in != nil {
		go func() {
			// A reader that never ends is left behind when the tree is gone; its next byte meets a closed pipe.
			_, _ = io.Copy(st.in, cmd.Stdin)
			_ = st.in.Close()
		}()
	}
	for i, w := range []io.Writer{writerOrDiscard(cmd.Stdout), writerOrDiscard(cmd.Stderr)} {
		if st.outs[i] != nil {
			st.pumps.Go(func() { st.pump(st.outs[i], w) })
		}
	}
}

// sameWriter compares as os/exec does: values that cannot be compared are different.
func sameWriter(a, b io.Writer) (same bool) {
	if a == nil || b == nil {
		return false
	}
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return a == b
}

// pump reads to the end whatever happens, so that a tree never blocks on a full pipe.
func (st *streams) pump(from *os.File, to io.Writer) {
	buf := make([]byte, 64<<10)
	left := st.limit
	for {
		n, err := from.Read(buf)
		if keep := min(int64(n), left); keep > 0 && to != nil {
			if _, werr := to.Write(buf[:keep]); werr != nil {
				to = nil
			}
		}
		if left -= int64(n); left < 0 {
			left = 0
			st.once.Do(func() { close(st.over) })
		}
		if err != nil {
			return
		}
	}
}

// drain waits for what is still in the pipes. The tree is gone, so their ends are closed; a process
// that could not be killed must not hold us up.
func (st *streams) drain() {
	for _, f := range st.outs {
		if f == nil {
			continue
		}
		_ = f.SetReadDeadline(time.Now().Add(2 * time.Second))
	}
	st.pumps.Wait()
}

func (st *streams) close() {
	for _, f := range []*os.File{st.stdin, st.stdout, st.stderr, st.in, st.outs[0], st.outs[1]} {
		if f != nil {
			_ = f.Close()
		}
	}
}
