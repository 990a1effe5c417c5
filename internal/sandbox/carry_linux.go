package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A tree in a network namespace of its own reaches the harness through doors: listeners on its loopback
// that its supervisor made and sent us. Each connection through one is carried to the same port of our
// own loopback, and nowhere else. They go when the tree goes.

// mail reads the control socket and keeps the files that come with it.
type mail struct {
	conn  *net.UnixConn
	files []*os.File
}

func (m *mail) Read(p []byte) (int, error) {
	const most = 64 // files in one message; the kernel allows 253
	oob := make([]byte, unix.CmsgSpace(4*most))
	n, used, _, _, err := m.conn.ReadMsgUnix(p, oob)
	if used > 0 {
		m.files = append(m.files, filesOf(oob[:used])...)
	}
	if err == nil && n == 0 {
		err = io.EOF
	}
	return n, err
}

func filesOf(oob []byte) []*os.File {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var out []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			out = append(out, os.NewFile(uintptr(fd), "door"))
		}
	}
	return out
}

// carry serves the doors that came with the report that was read last.
func (c *session) carry(ports []uint16) error {
	files := c.mail.files
	c.mail.files = nil
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	if len(files) != len(ports) {
		return fmt.Errorf("sandbox: the supervisor made %d doors for %d ports", len(files), len(ports))
	}
	for i, f := range files {
		l, err := net.FileListener(f)
		if err != nil {
			return fmt.Errorf("sandbox: serve port %d inside: %w", ports[i], err)
		}
		c.doors = append(c.doors, l)
		c.carriers.Go(func() { c.serve(l, ports[i]) })
	}
	return nil
}

// atOnce is how many connections a door lets through at a time: the harness has files to lose. More
// wait in line.
const atOnce = 256

func (c *session) serve(l net.Listener, port uint16) {
	places := make(chan struct{}, atOnce)
	for {
		places <- struct{}{}
		inner, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			<-places
			time.Sleep(time.Millisecond) // out of files, most likely: the connection waits in line
			continue
		}
		c.carriers.Go(func() {
			defer func() { <-places }()
			c.join(inner.(*net.TCPConn), port)
		})
	}
}

// join carries one connection until both directions have ended.
func (c *session) join(inner *net.TCPConn, port uint16) {
	defer c.lines.drop(inner)
	if !c.lines.add(inner) {
		return
	}
	to, err := net.DialTimeout("tcp4", "127.0.0.1:"+strconv.Itoa(int(port)), 10*time.Second)
	if err != nil {
		_ = inner.SetLinger(0) // what a refused connection looks like from here
		return
	}
	outer := to.(*net.TCPConn)
	defer c.lines.drop(outer)
	if !c.lines.add(outer) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { oneWay(outer, inner) })
	both.Go(func() { oneWay(inner, outer) })
	both.Wait()
}

// oneWay hands on the end of the stream; a fault ends both directions, so that neither side waits for
// what cannot come.
func oneWay(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		_, _ = to.Close(), from.Close()
		return
	}
	_ = to.CloseWrite()
}

// connections are the open ends, so that they can be closed together.
type connections struct {
	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

// add says whether the connection may live; if not it has been closed.
func (l *connections) add(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = conn.Close()
		return false
	}
	if l.open == nil {
		l.open = map[net.Conn]bool{}
	}
	l.open[conn] = true
	return true
}

func (l *connections) drop(conn net.Conn) {
	_ = conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, conn)
}

func (l *connections) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for conn := range l.open {
		_ = conn.Close()
	}
}
