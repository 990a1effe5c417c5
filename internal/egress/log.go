package egress

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Verdict of one request.
type Verdict string

// Verdicts. Failed was allowed and could not be reached.
const (
	Allowed Verdict = "allowed"
	Refused Verdict = "refused"
	Failed  Verdict = "failed"
)

// Request is one request as it is told: where to, what became of it, and how much went through. There is no path,
// query, header or body in it, and Host holds nothing but letters of a host name.
type Request struct {
	Tick     int
	By       string // who asked: "agent", or a gate's name
	Host     string // NoHost when what was asked for is not one
	Port     uint16
	Verdict  Verdict
	Why      string // of a refusal or failure, words of ours
	Sent     int64  // bytes to the host
	Received int64  // bytes from the host
	Millis   int64
}

// NoHost stands in the log for what is not the name of a host.
const NoHost = "(no host name)"

// Seen sums the requests that are alike.
type Seen struct {
	Host     string
	Port     uint16
	Verdict  Verdict
	Why      string
	By       []string // in the order in which they first asked
	Requests int
	Sent     int64
	Received int64
}

// maxSeen bounds what a client that asks for host after host makes us keep.
const maxSeen = 200

type book struct {
	mu   sync.Mutex
	by   string
	tick int
	seen []Seen
	left int // requests to hosts beyond maxSeen
}

func (b *book) source() (by string, tick int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by, b.tick
}

func (b *book) add(r Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.seen, func(s Seen) bool {
		return s.Host == r.Host && s.Port == r.Port && s.Verdict == r.Verdict && s.Why == r.Why
	})
	if i < 0 {
		if len(b.seen) == maxSeen {
			b.left++
			return
		}
		b.seen = append(b.seen, Seen{Host: r.Host, Port: r.Port, Verdict: r.Verdict, Why: r.Why})
		i = len(b.seen) - 1
	}
	s := &b.seen[i]
	s.Requests++
	s.Sent += r.Sent
	s.Received += r.Received
	if !slices.Contains(s.By, r.By) {
		s.By = append(s.By, r.By)
	}
}

// For says on whose behalf the requests from now on are: everything that asks runs one after the other.
func (p *Proxy) For(by string, tick int) {
	if p == nil {
		return
	}
	p.book.mu.Lock()
	defer p.book.mu.Unlock()
	p.book.by, p.book.tick = by, tick
}

// Seen lists what was asked for so far, allowed first, each kind in the order in which it was first asked for, and
// how many requests are not in the list because it is full. A nil Proxy has seen nothing.
func (p *Proxy) Seen() (list []Seen, left int) {
	if p == nil {
		return nil, 0
	}
	p.book.mu.Lock()
	defer p.book.mu.Unlock()
	for _, s := range p.book.seen {
		s.By = slices.Clone(s.By)
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b Seen) int { return strings.Compare(string(a.Verdict), string(b.Verdict)) })
	return list, p.book.left
}

// Env is what a process needs to know of the proxy, in both spellings. Programs that do not look there have no
// egress.
func (p *Proxy) Env() []string {
	if p == nil {
		return nil
	}
	const direct = "localhost,127.0.0.1,::1"
	at := "http://" + p.listener.Addr().String()
	return []string{
		"HTTP_PROXY=" + at, "HTTPS_PROXY=" + at, "NO_PROXY=" + direct,
		"http_proxy=" + at, "https_proxy=" + at, "no_proxy=" + direct,
	}
}

// Ports is what confinement must let through: the proxy's, or none.
func (p *Proxy) Ports() []uint16 {
	if p == nil {
		return nil
	}
	return []uint16{p.port}
}

func (p *Proxy) tell(r Request, begin time.Time) {
	r.Millis = time.Since(begin).Milliseconds()
	p.book.add(r)
	p.on(r)
}
