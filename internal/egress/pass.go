package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// forward sends a plain request on over a connection that was made for it, and the answer back. Redirects are
// the client's to follow: it asks us for the next address as for the first.
func (p *Proxy) forward(client, host net.Conn, req *request) error {
	there := make(chan net.Conn, 1)
	there <- &patient{host, p.times.Idle}
	via := &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: p.times.Answer, MaxResponseHeaderBytes: 256 << 10,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case c := <-there:
				return c, nil
			default:
				return nil, errors.New("one connection, one request")
			}
		},
	}
	old := !req.http.ProtoAtLeast(1, 1)
	resp, err := via.RoundTrip(req.outgoing().WithContext(p.ctx))
	if err != nil {
		return errors.New("it gave no answer in HTTP")
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return errors.New("it changed the protocol without being asked")
	}
	dropHopHeaders(resp.Header)
	resp.Close = true
	if old {
		resp.TransferEncoding = nil
	}
	req.answered = true
	if err := resp.Write(client); err != nil {
		return errors.New("the answer was cut off")
	}
	return nil
}

// tunnel carries bytes both ways, once it is seen that what begins is TLS with the host that was asked for: a
// front-end that serves many names would else take the client to any of them.
func (p *Proxy) tunnel(client, host net.Conn, req *request) error {
	req.answered = true
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return errors.New("the client hung up")
	}
	_ = client.SetReadDeadline(time.Now().Add(p.times.Head))
	name, sealed, raw, ok := greeting(p.ctx, req.rest)
	switch named, addr, isHost := hostOf(name); {
	case sealed:
		return &refusal{403, "its TLS hides the host that it is for (ECH): switch that off in the client"}
	case !ok:
		return &refusal{403, "what went through CONNECT is not TLS"}
	case name == "" && req.to.addr.IsValid():
	case name == "":
		return &refusal{403, "its TLS names no host (SNI)"}
	case !isHost || named != req.to.host || addr != req.to.addr:
		return &refusal{403, "its TLS names another host (SNI) than CONNECT"}
	}
	if _, err := host.Write(raw); err != nil {
		return errors.New("the host hung up")
	}
	p.splice(client, host, req.rest)
	return nil
}

// greetingMax is more than any ClientHello.
const greetingMax = 64 << 10

// encryptedHello is the extension that holds a second ClientHello, with a name of its own, for the front-end alone to
// read (RFC 9849).
const encryptedHello = 0xfe0d

// greeting reads a TLS ClientHello and gives the name in it, whether another is sealed in it, and all that was read.
func greeting(ctx context.Context, from io.Reader) (name string, sealed bool, raw []byte, ok bool) {
	var kept bytes.Buffer
	deaf := readOnly{io.TeeReader(io.LimitReader(from, greetingMax), &kept)}
	enough := errors.New("the greeting is all that is wanted")
	_ = tls.Server(deaf, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name, sealed, ok = h.ServerName, slices.Contains(h.Extensions, encryptedHello), true
		return nil, enough
	}}).HandshakeContext(ctx) // it always fails
	return name, sealed, kept.Bytes(), ok
}

// readOnly is a connection on which nothing is ever said.
type readOnly struct{ r io.Reader }

func (c readOnly) Read(b []byte) (int, error)     { return c.r.Read(b) }
func (readOnly) Write(b []byte) (int, error)      { return len(b), nil }
func (readOnly) Close() error                     { return nil }
func (readOnly) LocalAddr() net.Addr              { return nil }
func (readOnly) RemoteAddr() net.Addr             { return nil }
func (readOnly) SetDeadline(time.Time) error      { return nil }
func (readOnly) SetReadDeadline(time.Time) error  { return nil }
func (readOnly) SetWriteDeadline(time.Time) error { return nil }

// splice moves bytes until both directions have ended, or neither had one for the idle time.
func (p *Proxy) splice(client, host net.Conn, fromClient io.Reader) {
	alive := func() {
		until := time.Now().Add(p.times.Idle)
		_, _ = client.SetDeadline(until), host.SetDeadline(until)
	}
	alive()
	var both sync.WaitGroup
	both.Go(func() { oneWay(host, fromClient, alive, client) })
	both.Go(func() { oneWay(client, host, alive, host) })
	both.Wait()
}

// oneWay hands on the end of the stream; a fault ends both directions.
func oneWay(to net.Conn, from io.Reader, alive func(), source net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			alive()
			if _, werr := to.Write(buf[:n]); werr != nil {
				_, _ = to.Close(), source.Close()
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			} else {
				_ = to.Close()
			}
			return
		case err != nil:
			_, _ = to.Close(), source.Close()
			return
		}
	}
}

// patient gives up on a connection on which nothing moves.
type patient struct {
	net.Conn
	idle time.Duration // 0: deadlines are somebody else's
}

func (c *patient) Read(b []byte) (int, error) {
	if c.idle > 0 {
		_ = c.SetReadDeadline(time.Now().Add(c.idle))
	}
	return c.Conn.Read(b)
}

func (c *patient) Write(b []byte) (int, error) {
	if c.idle > 0 {
		_ = c.SetWriteDeadline(time.Now().Add(c.idle))
	}
	return c.Conn.Write(b)
}

// answer is the proxy's own word to a client that is not let through.
func answer(client net.Conn, status int, why string) {
	body := "proctor egress: " + why + "\n"
	head := "HTTP/1.1 " + strconv.Itoa(status) + " " + http.StatusText(status) +
		"\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	_ = client.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(client, head+body); err != nil {
		return
	}
	// To close over what is still coming would take the answer away again.
	if half, ok := client.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, client, 256<<10)
	}
}
