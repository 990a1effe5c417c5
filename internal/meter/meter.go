// Package meter owns the model key of a run and its purse: a loopback proxy that swaps a nonce for
// the key, reserves before each call and books what the provider reports. It must never log or keep
// a payload, send the key anywhere but to the configured host, or believe a count that cannot be.
package meter

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// Mark begins every error message that the meter itself writes, so that a reader of an agent's
// output can tell the run's own limits from the provider's answers.
const Mark = "proctor: "

// KeyKind says in which header a credential goes to the provider.
type KeyKind string

// Kinds of credential.
const (
	APIKey KeyKind = "api-key" // the header that the API has for a key
	Bearer KeyKind = "bearer"  // Authorization: Bearer, for subscription and gateway tokens
)

// Credential is what pays. Its value leaves the process only towards Config.Upstream.
type Credential struct {
	Kind  KeyKind
	Value string
}

// String keeps the value out of logs and error messages.
func (c Credential) String() string { return string(c.Kind) + " (hidden)" }

// Reserve says how a call is estimated before it is made. The estimate decides whether a call is
// still allowed; it is never less than zero and never replaces the usage that the provider reports.
type Reserve struct {
	// BytesPerToken turns the size of a request into tokens; 0 means 3. Prose is near 4 bytes a
	// token, code and other languages near 3. Too high a number never lets more than one call pass the
	// ceiling: that is held by what a request can cost at one token a byte.
	BytesPerToken int64
	// MaxOutput caps the part of max_tokens that is reserved; 0 means all of it. With a cap the last
	// dollars of a budget can be used by clients that always ask for the largest output, and a single
	// call may then pass the ceiling.
	MaxOutput int64
}

// Config of a meter.
type Config struct {
	// API, Upstream and Key are the provider that most calls go to; see Provider.
	API      API
	Upstream string
	Key      Credential
	// Beside are further providers on the same nonce and purse, one for each API: a reviewer's, say.
	Beside []Provider
	// Models is the allow-list; empty means any model that has a price. An entry allows the model it
	// names and its dated releases.
	Models []string
	Prices Prices // zero: the embedded table
	// AllowUnpriced names models that are let through at no cost where they have no price: only time and ticks bound
	// them. No other model that an untrusted client thinks of is.
	AllowUnpriced []string
	// Ceiling is what is left for this run. Zero allows no priced call at all; money.Max is no ceiling.
	Ceiling money.USD
	Reserve Reserve
	// Cover is asked before a call is let through that could bring what this meter has spent above what was covered
	// so far. Once it has returned nil the loss of this machine does not hide that up to upTo may be spent; on an
	// error the call is refused. It is called from a call's goroutine, never twice at a time or beside Settle, and
	// its context does not end with the call. nil: nothing is kept.
	Cover func(ctx context.Context, upTo money.USD) error
	// Transport reaches the provider; nil means one of the meter's own that uses no HTTP proxy.
	// It must not decompress.
	Transport http.RoundTripper
	Now       func() time.Time // nil: time.Now
	Rand      io.Reader        // nil: crypto/rand
	Log       *slog.Logger     // nil: silent
	OnCall    func(Call)       // called after each settled call, from the call's goroutine
}

// How a call was priced.
const (
	PricedUsage    = "usage"    // by the usage that the provider reported
	PricedReserved = "reserved" // no usable report came: the reservation is booked
	PricedFree     = "free"     // the provider answered with an error before any token
	PricedUnpriced = "unpriced" // a model without a price that the run allows
)

// Call is one model call, payload-free.
type Call struct {
	Tick                                 int
	Purpose                              string // "agent", "review" or "item_review"
	Model                                string
	Status                               int // the provider's answer; 0 when none came
	Input, Output, CacheRead, CacheWrite int64
	Reasoning                            int64 // part of Output, where the provider tells it
	CostUSD                              money.USD
	Reserved                             money.USD
	Priced                               string
	RetryAfter                           time.Duration // as the provider asked; 0 unknown
	Started                              time.Time
	Millis                               int64
}

// Endpoint is how a client reaches the meter.
type Endpoint struct {
	BaseURL string // "http://127.0.0.1:PORT"
	Nonce   string // stands where the API key would
	Port    uint16
}

// Meter is a running proxy. Its methods are safe for concurrent use.
type Meter struct {
	cfg       Config
	providers []*provider
	agents    key // what an agent shows
	reviewers key // what a reviewer shows
	purse     *ledger
	listener  net.Listener
	server    *http.Server
	stop      context.CancelFunc
	blocks    sync.Pool // of *block

	mu      sync.Mutex
	turn    turn
	calls   []Call
	closed  bool
	serving int           // requests being served
	idle    chan struct{} // closed when serving becomes 0
	served  chan struct{}
}

// Start listens on a free loopback port and serves until Close. ctx ends calls in flight too.
func Start(ctx context.Context, cfg Config) (*Meter, error) {
	providers, err := cfg.providers()
	if err != nil {
		return nil, fmt.Errorf("start meter: %w", err)
	}
	cfg = cfg.withDefaults()
	agents, err := newKey(cfg.Rand)
	if err != nil {
		return nil, err
	}
	reviewers, err := newKey(cfg.Rand)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start meter: listen on loopback: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	m := &Meter{
		cfg: cfg, providers: providers, agents: agents, reviewers: reviewers,
		purse: newLedger(cfg.Ceiling, cfg.Cover), listener: l, stop: stop, turn: turn{purpose: "agent"}, served: make(chan struct{}),
		blocks: sync.Pool{New: func() any { return new(block) }},
	}
	m.server = &http.Server{
		Handler:           http.HandlerFunc(m.serve),
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(m.served)
		_ = m.server.Serve(l) // always ErrServerClosed: the listener has no other end
	}()
	return m, nil
}

// key is a nonce, and its digest for comparisons.
type key struct {
	nonce string
	sum   [sha256.Size]byte
}

func newKey(random io.Reader) (key, error) {
	var raw [32]byte
	if _, err := io.ReadFull(random, raw[:]); err != nil {
		return key{}, fmt.Errorf("start meter: draw nonce: %w", err)
	}
	nonce := "proctor-" + hex.EncodeToString(raw[:])
	return key{nonce, sha256.Sum256([]byte(nonce))}, nil
}

func (c Config) withDefaults() Config {
	if c.Transport == nil {
		c.Transport = &http.Transport{
			ForceAttemptHTTP2: true, DisableCompression: true, MaxIdleConnsPerHost: 16, ReadBufferSize: 64 << 10,
			IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		}
	}
	if len(c.Prices.rows) == 0 {
		c.Prices = Embedded()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Reserve.BytesPerToken <= 0 {
		c.Reserve.BytesPerToken = 3
	}
	return c
}

// providers are the first and those beside it; each API has one.
func (c Config) providers() ([]*provider, error) {
	var out []*provider
	for _, p := range append([]Provider{{API: c.API, Upstream: c.Upstream, Key: c.Key}}, c.Beside...) {
		checked, err := p.check()
		if err != nil {
			return nil, err
		}
		for _, o := range out {
			if o.api == checked.api {
				return nil, fmt.Errorf("two providers of the API %s: a path could mean either", p.API)
			}
		}
		out = append(out, checked)
	}
	return out, nil
}

// Endpoint tells where an agent connects and what it shows instead of a key.
func (m *Meter) Endpoint() Endpoint { return m.endpoint(m.agents) }

// ReviewEndpoint is a reviewer's: an agent does not know what is shown there.
func (m *Meter) ReviewEndpoint() Endpoint { return m.endpoint(m.reviewers) }

func (m *Meter) endpoint(k key) Endpoint {
	port := m.listener.Addr().(*net.TCPAddr).AddrPort().Port()
	return Endpoint{BaseURL: fmt.Sprintf("http://127.0.0.1:%d", port), Nonce: k.nonce, Port: port}
}

// turn is whose calls are served.
type turn struct {
	tick    int
	purpose string
}

// Nobody is the purpose under which no call is served: an agent's process may be there already and have no task yet.
const Nobody = "nobody"

// SetTick says to which tick and purpose ("agent", "review", "item_review" or Nobody) the calls from now on belong. Only
// what shows the agent's nonce is served for an agent, and only the reviewer's for a review.
func (m *Meter) SetTick(n int, purpose string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn = turn{n, purpose}
}

// Spent is the sum of all settled calls of this meter.
func (m *Meter) Spent() money.USD { s, _, _ := m.purse.state(); return s }

// Left is what remains of the ceiling, never below zero.
func (m *Meter) Left() money.USD { _, l, _ := m.purse.state(); return l }

// Exhausted says that nothing is left, or that a call was refused because it would not have fitted.
func (m *Meter) Exhausted() bool { _, l, refused := m.purse.state(); return refused || l == 0 }

// Calls returns the settled calls in the order in which they were settled.
func (m *Meter) Calls() []Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

// Check says whether calls to a model would be let through: nil, or an error that names the model
// and what to do. It costs nothing and is meant for the time before an agent is started.
func (m *Meter) Check(model string) error {
	_, err := m.priceOf(model)
	return err
}

// Close ends calls in flight, waits until they are booked or ctx ends, and stops listening. It does not
// wait for connections that are merely open.
func (m *Meter) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.stop()
	err := m.Quiet(ctx)
	if err != nil {
		err = fmt.Errorf("close meter: %w", err)
	}
	_ = m.server.Close() // its error is the listener's, which nobody uses any more
	<-m.served
	if t, ok := m.cfg.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return err
}

// enter counts a request that is being served, unless the meter is closed.
func (m *Meter) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	if m.serving == 0 {
		m.idle = make(chan struct{})
	}
	m.serving++
	return true
}

func (m *Meter) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.serving--; m.serving == 0 {
		close(m.idle)
	}
}

// Quiet waits until every call in flight is booked. A client has its answer before its call is booked, so
// whoever reads Spent or Calls after a client has ended waits here first.
func (m *Meter) Quiet(ctx context.Context) error {
	m.mu.Lock()
	idle, busy := m.idle, m.serving > 0
	m.mu.Unlock()
	if !busy {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("calls are still in flight: %w", ctx.Err())
	}
}
