package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Reach is how the proxy gets to the network; the zero value is the real one.
type Reach struct {
	// Resolve gives the addresses of a name; nil: the system's resolver, without its search list.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to one address, which was checked; nil: TCP.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

func (r Reach) withDefaults() Reach {
	if r.Resolve == nil {
		r.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
		}
	}
	if r.Dial == nil {
		r.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
		}
	}
	return r
}

// refusal is a request that is not let through, with the reason for the log and the answer.
type refusal struct {
	status int
	why    string
}

func (r *refusal) Error() string { return r.why }

const (
	lookUpTime  = 10 * time.Second
	connectTime = 15 * time.Second
	maxTries    = 4 // addresses of one host
)

// connect resolves a host once, checks every address, and dials those that were checked, so that an answer
// that changes between two questions changes nothing. One inner address among the answers refuses the host:
// it is a name that somebody points at us.
func (r Reach) connect(ctx context.Context, t target) (net.Conn, error) {
	addrs := []netip.Addr{t.addr}
	if !t.addr.IsValid() {
		var err error
		look, done := context.WithTimeout(ctx, lookUpTime)
		addrs, err = r.Resolve(look, t.host)
		done()
		if err != nil || len(addrs) == 0 {
			return nil, errors.New("its name does not resolve")
		}
	}
	for i, a := range addrs {
		addrs[i] = a.Unmap()
		if why := Inside(a); why != "" {
			return nil, &refusal{403, "its address is " + why}
		}
		if own(a) {
			return nil, &refusal{403, "its address is this machine's own"}
		}
	}
	dial, done := context.WithTimeout(ctx, connectTime)
	defer done()
	var last error
	for _, a := range addrs[:min(len(addrs), maxTries)] {
		conn, err := r.Dial(dial, netip.AddrPortFrom(a, t.port))
		if err == nil {
			return conn, nil
		}
		last = err
	}
	return nil, fmt.Errorf("no connection: %s", plain(last))
}

// plain leaves out the addresses that a network error names.
func plain(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "it did not answer in time"
	}
	s := err.Error()
	return s[strings.LastIndex(s, ": ")+1:]
}
