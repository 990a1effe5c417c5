// Package wire owns how both forge clients speak HTTP: which host may see the token, which failures
// are tried again, and how long to wait. It must never know what a request means.
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Limits on one attempt.
const (
	attemptTimeout = 30 * time.Second
	maxErrorBody   = 1 << 20
	maxErrorText   = 4 << 10
	maxRedirects   = 5
)

// ErrForeignHost is a request or redirect that would leave the configured host.
var ErrForeignHost = errors.New("the answer points at another host")

// Client is a copy of base (nil means a plain client) that sends only to api's scheme and host, lets
// authorise set the credentials of each request, follows redirects on that host only, and moves the
// server's rate-limit headers out of the client libraries' sight (see hints).
//
// A library's own token helper sets the header on every request, the redirected one included, so a
// redirect to a foreign host would carry the token there; here the host is checked first.
func Client(base *http.Client, api *url.URL, authorise func(http.Header)) *http.Client {
	var c http.Client
	if base != nil {
		c = *base
	}
	if c.Timeout == 0 {
		c.Timeout = attemptTimeout
	}
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	c.Transport = &transport{next: next, api: api, authorise: authorise}
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return fmt.Errorf("stopped after %d redirects", maxRedirects)
		}
		return sameHost(api, req.URL)
	}
	return &c
}

type transport struct {
	next      http.RoundTripper
	api       *url.URL
	authorise func(http.Header)
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := sameHost(t.api, req.URL); err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	if t.authorise != nil {
		t.authorise(req.Header)
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		if err := holdBody(resp); err != nil {
			return nil, err
		}
	}
	hideHints(resp)
	return resp, nil
}

func sameHost(api, to *url.URL) error {
	if to.Scheme == api.Scheme && strings.EqualFold(to.Host, api.Host) {
		return nil
	}
	return fmt.Errorf("%w: %s://%s instead of %s://%s", ErrForeignHost, to.Scheme, to.Host, api.Scheme, api.Host)
}

// holdBody reads an error answer whole, so that it can be looked at twice: once for the words of a
// secondary limit, once by the client library.
func holdBody(resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if cerr := resp.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("read error answer: %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	// go-gitlab throws a 404's body away, and http.Client wraps bodies: a header survives both.
	resp.Header.Set(headerBody, string(data[:min(len(data), maxErrorText)]))
	if limited(resp, data) {
		resp.Header.Set(headerLimited, "true")
	}
	return nil
}

// limited tells a rate limit from a refusal: both may be a 403.
func limited(resp *http.Response, body []byte) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		h := resp.Header
		if h.Get("X-Ratelimit-Remaining") == "0" || h.Get("Retry-After") != "" {
			return true
		}
		text := bytes.ToLower(body)
		return bytes.Contains(text, []byte("secondary rate limit")) || bytes.Contains(text, []byte("abuse detection"))
	}
	return false
}
