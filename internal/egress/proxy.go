// Package egress owns the one door by which agents and gates reach hosts of the internet: an HTTP proxy on
// loopback with a list of host:port. It must never connect to an address that it did not check itself, follow a
// redirect, or log a path, a header or a byte of a body.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config of a Proxy.
type Config struct {
	Allow []string      // host:port entries; "*." in front of a host stands for its subdomains
	Reach Reach         // zero: the network
	On    func(Request) // told every request when it has ended, by several goroutines; nil: nobody
	Times Times
}

// Times bound how long a connection may do nothing; zero means the default in brackets.
type Times struct {
	Head   time.Duration // [10 s] from the connection to the end of a request's head, and of a TLS greeting
	Idle   time.Duration // [5 min] without a byte either way
	Answer time.Duration // [2 min] until a plain request's answer begins
}

// maxConns is how many connections are served at a time; more wait in line.
const maxConns = 256

// Proxy is a running proxy. A nil Proxy lets nothing through and has no port.
type Proxy struct {
	rules    []rule
	reach    Reach
	on       func(Request)
	times    Times
	listener net.Listener
	port     uint16
	ctx      context.Context // ends connections in flight
	stop     context.CancelFunc
	served   sync.WaitGroup
	book     book

	mu   sync.Mutex
	open map[net.Conn]bool
}

// Start listens on a free loopback port and serves until Close.
func Start(ctx context.Context, c Config) (*Proxy, error) {
	rules, err := parseRules(c.Allow)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the egress proxy: listen on loopback: %w", err)
	}
	p := &Proxy{rules: rules, reach: c.Reach.withDefaults(), on: c.On, times: c.Times, listener: l, port: l.Addr().(*net.TCPAddr).AddrPort().Port(), open: map[net.Conn]bool{}}
	if p.on == nil {
		p.on = func(Request) {}
	}
	for _, t := range []struct {
		at        *time.Duration
		byDefault time.Duration
	}{{&p.times.Head, 10 * time.Second}, {&p.times.Idle, 5 * time.Minute}, {&p.times.Answer, 2 * time.Minute}} {
		if *t.at <= 0 {
			*t.at = t.byDefault
		}
	}
	p.ctx, p.stop = context.WithCancel(ctx)
	p.served.Go(p.serve)
	return p, nil
}

// Close ends everything in flight and waits until it was told. A nil Proxy is closed.
func (p *Proxy) Close() {
	if p == nil {
		return
	}
	p.stop()
	_ = p.listener.Close()
	p.mu.Lock()
	for c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.served.Wait()
}

func (p *Proxy) serve() {
	places := make(chan struct{}, maxConns)
	for {
		places <- struct{}{}
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) || p.ctx.Err() != nil {
			if conn != nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil {
			<-places
			time.Sleep(time.Millisecond) // out of files, most likely
			continue
		}
		p.served.Go(func() {
			defer func() { <-places }()
			if p.keep(conn) {
				p.handle(conn)
			}
			p.drop(conn)
		})
	}
}

// keep remembers a connection to be closed with the proxy, and says whether it may live.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
	return p.ctx.Err() == nil
}

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// handle serves one request. A connection carries no second one: where the first ends is nothing to argue about.
func (p *Proxy) handle(conn net.Conn) {
	begin := time.Now()
	told := Request{Host: NoHost}
	told.By, told.Tick = p.book.source()
	_ = conn.SetDeadline(begin.Add(p.times.Head))
	client := &patient{Conn: conn}
	req, err := readRequest(client)
	if errors.Is(err, errHangup) {
		return // it asked for nothing
	}
	if req != nil && req.to.host != "" {
		told.Host, told.Port = req.to.host, req.to.port
	}
	_ = conn.SetDeadline(time.Time{})
	if err == nil {
		err = p.allowed(req.to)
	}
	if err == nil {
		err = p.pass(client, req, &told)
	}
	var no *refusal
	switch {
	case err == nil:
		told.Verdict = Allowed
	case errors.As(err, &no):
		told.Verdict, told.Why = Refused, no.why
	default:
		told.Verdict, told.Why = Failed, err.Error()
	}
	p.tell(told, begin)
	if err != nil && (req == nil || !req.answered) {
		status := http.StatusBadGateway
		if no != nil {
			status = no.status
		}
		answer(conn, status, told.Why)
	}
}

// allowed asks the list.
func (p *Proxy) allowed(t target) error {
	if slices.ContainsFunc(p.rules, func(r rule) bool { return r.match(t.host, t.addr, t.port) }) {
		return nil
	}
	return &refusal{403, "it is not in sandbox.egress"}
}

// pass connects and lets the request through.
func (p *Proxy) pass(client *patient, req *request, told *Request) error {
	conn, err := p.reach.connect(p.ctx, req.to)
	if err != nil {
		return err
	}
	host := &counted{Conn: conn}
	defer func() { told.Sent, told.Received = host.sent.Load(), host.received.Load() }()
	defer p.drop(host)
	if !p.keep(host) {
		return errors.New("the run is over")
	}
	if req.tunnel {
		return p.tunnel(client.Conn, host, req)
	}
	client.idle = p.times.Idle
	return p.forward(client, host, req)
}

// counted counts what a connection carries.
type counted struct {
	net.Conn
	sent, received atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received.Add(int64(n))
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// CloseWrite hands on the end of a stream.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
