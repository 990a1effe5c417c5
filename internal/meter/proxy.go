package meter

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/secureurl"
)

// requestLimit is the largest request body: the provider's own limit for a Messages request.
const requestLimit = 32 << 20

// grown is how much room is made for a request before it has come: what a client says of its length is a claim.
const grown = 4 << 20

// bodyTime bounds how long a client may take to send its request.
const bodyTime = 30 * time.Second

// serve checks in the order of what a stranger on the machine may learn: nothing before the nonce.
func (m *Meter) serve(w http.ResponseWriter, r *http.Request) {
	if !m.enter() {
		panic(http.ErrAbortHandler) // closed: no answer, least of all an empty good one
	}
	defer m.leave()
	p := m.speaking(r)
	to, fail := m.accept(p, r)
	if fail != nil {
		p.api.fail(w, *fail)
		return
	}
	body, fail := readBody(w, r)
	if fail != nil {
		p.api.fail(w, *fail)
		return
	}
	a, err := p.api.ask(r, body)
	if err != nil {
		p.api.fail(w, failure{http.StatusBadRequest, err.Error()})
		return
	}
	if to.kind == opFree {
		m.forwardFree(w, r, to, body)
		return
	}
	c, fail := m.prepare(r.Context(), to.turn, a)
	if fail != nil {
		p.api.fail(w, *fail)
		return
	}
	m.forward(w, r, to, body, c)
}

// speaking is the provider whose API a request is written in; the first, where that cannot be told.
func (m *Meter) speaking(r *http.Request) *provider {
	for _, p := range m.providers {
		if p.api.owns(r.URL.Path) {
			return p
		}
	}
	return m.providers[0]
}

// target is where a request that was let through goes.
type target struct {
	*provider
	turn
	kind        op
	path, query string
}

func (m *Meter) accept(p *provider, r *http.Request) (target, *failure) {
	host, _, err := net.SplitHostPort(r.Host)
	// A name other than loopback in Host is a page in a browser that was rebound to this port; an
	// absolute URL is a client that takes this for a forward proxy.
	if err != nil || !secureurl.Local(host) || r.URL.Host != "" {
		return target{}, &failure{http.StatusForbidden, "this address serves the model API on loopback only"}
	}
	at, fail := m.admits(shownKey(r.Header))
	if fail != nil {
		return target{}, fail
	}
	kind, path, query, ok := p.api.route(r)
	if !ok {
		return target{}, &failure{http.StatusNotFound, "only model calls are served here, not " + printable(r.Method+" "+r.URL.Path)}
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return target{}, &failure{http.StatusUnsupportedMediaType, "send the request without content-encoding"}
	}
	return target{p, at, kind, path, query}, nil
}

// admits compares what a client shows with the nonces, and with whose turn it is.
func (m *Meter) admits(nonce string) (turn, *failure) {
	shown := sha256.Sum256([]byte(nonce))
	agent := subtle.ConstantTimeCompare(shown[:], m.agents.sum[:]) == 1
	reviewer := subtle.ConstantTimeCompare(shown[:], m.reviewers.sum[:]) == 1
	m.mu.Lock()
	now := m.turn
	m.mu.Unlock()
	switch {
	case !agent && !reviewer:
		return now, &failure{http.StatusUnauthorized, "the key shown is not the nonce of this run"}
	case now.purpose == Nobody, agent != (now.purpose == "agent"):
		return now, &failure{http.StatusForbidden, "no call is due: whoever shows this nonce has no task now"}
	}
	return now, nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *failure) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTime)) // always supported by net/http's own server
	var body bytes.Buffer
	body.Grow(int(max(0, min(r.ContentLength, grown))) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, requestLimit))
	_ = rc.SetReadDeadline(time.Time{})
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &failure{http.StatusRequestEntityTooLarge, fmt.Sprintf("the request is larger than %d bytes", requestLimit)}
	case err != nil:
		return nil, &failure{http.StatusBadRequest, "the request body did not arrive whole"}
	}
	return body.Bytes(), nil
}

// priceOf says what a model costs; nil without an error is an unpriced one that the run allows.
func (m *Meter) priceOf(model string) (*Price, error) {
	p, priced := m.cfg.Prices.Find(model)
	if len(m.cfg.Models) > 0 && !m.listed(model, p.Model) {
		return nil, fmt.Errorf("model %s is not allowed in this run: allowed are %s",
			printable(model), strings.Join(m.cfg.Models, ", "))
	}
	switch {
	case priced:
		return &p, nil
	case slices.Contains(m.cfg.AllowUnpriced, model):
		return nil, nil
	}
	return nil, fmt.Errorf("model %s has no known price, so no budget could hold: name another model, give budget.price in the configuration, or set budget.unpriced: allow, which is for agent.model and review.model",
		printable(model))
}

func (m *Meter) listed(model, row string) bool {
	for _, allowed := range m.cfg.Models {
		// A dated entry allows that release only; an undated one all of them.
		p, priced := m.cfg.Prices.Find(allowed)
		if allowed == model || priced && p.Model == row && undated(allowed) == allowed {
			return true
		}
	}
	return false
}

// call is one paid call on its way.
type call struct {
	Call
	price *Price
	bound Usage
}

func (m *Meter) prepare(ctx context.Context, at turn, a ask) (*call, *failure) {
	price, err := m.priceOf(a.model)
	if err != nil {
		return nil, &failure{http.StatusNotFound, err.Error()}
	}
	c := &call{price: price, bound: a.limit()}
	c.Tick, c.Purpose = at.tick, at.purpose
	c.Model, c.Started = a.model, m.cfg.Now()
	if price == nil {
		return c, nil
	}
	c.Reserved, _ = price.Cost(a.estimate(m.cfg.Reserve)) // an estimate is always within reach
	if err := m.purse.admit(ctx, c.Reserved, c.most()); err != nil {
		return nil, refused(err)
	}
	return c, nil
}

// refused tells the agent in words that it can act upon: that it should stop, and who can help.
func refused(err error) *failure {
	var full *refusedError
	if errors.As(err, &full) {
		return &failure{http.StatusPaymentRequired, full.Error() +
			". Stop here; the work so far is kept. A person can raise stops.max_cost_usd and resume."}
	}
	var bare *uncoveredError
	if errors.As(err, &bare) {
		return &failure{http.StatusServiceUnavailable, bare.Error()}
	}
	return &failure{http.StatusBadGateway, "the call was given up while it waited for calls in flight"}
}

// most is what the call cannot exceed.
func (c *call) most() money.USD {
	cost, _ := c.price.Cost(c.bound) // a bound is always within reach
	return cost
}

// forward makes the call and books it, whatever happens on the way.
func (m *Meter) forward(w http.ResponseWriter, r *http.Request, to target, body []byte, c *call) {
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	req := to.outgoing(httptrace.WithClientTrace(r.Context(), trace), r, body)
	resp, err := m.cfg.Transport.RoundTrip(req)
	if err != nil {
		// What was never sent cannot have been run.
		m.book(c, nil, sent.Load())
		to.api.fail(w, failure{http.StatusBadGateway, "the model provider " + to.upstream.Host + " did not answer: " + reason(err)})
		return
	}
	defer resp.Body.Close()
	c.Status = resp.StatusCode
	c.RetryAfter = retryAfter(resp.Header, m.cfg.Now())
	if resp.StatusCode != http.StatusOK {
		m.book(c, nil, false)
		to.relayError(w, resp)
		return
	}
	plain, err := decoded(resp)
	if err != nil {
		m.book(c, nil, true)
		to.api.fail(w, failure{http.StatusBadGateway, "the model provider's answer cannot be read: " + err.Error()})
		return
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	count := to.api.counter(kind == "text/event-stream")
	to.copyHeader(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	whole := m.pump(w, plain, count)
	m.book(c, count, true)
	if !whole {
		// Cut the client's stream too: a torn answer must not look like a finished one.
		panic(http.ErrAbortHandler)
	}
}

func (m *Meter) forwardFree(w http.ResponseWriter, r *http.Request, to target, body []byte) {
	resp, err := m.cfg.Transport.RoundTrip(to.outgoing(r.Context(), r, body))
	if err != nil {
		to.api.fail(w, failure{http.StatusBadGateway, "the model provider did not answer: " + reason(err)})
		return
	}
	defer resp.Body.Close()
	to.relayError(w, resp)
}
