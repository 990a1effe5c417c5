package meter

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// outgoing builds the request from an allow-list of headers; the key is added to it alone.
func (to target) outgoing(ctx context.Context, r *http.Request, body []byte) *http.Request {
	u := *to.upstream
	u.Path += to.path
	u.RawQuery = to.query
	h := http.Header{"Accept-Encoding": {"identity"}}
	for name, values := range r.Header {
		switch name {
		case "Accept", "Content-Type", "User-Agent":
			h[name] = values
		default:
			if to.api.requestHeader(name) {
				h[name] = values
			}
		}
	}
	to.api.authorize(h, to.key)
	req := &http.Request{
		Method: r.Method, URL: &u, Host: u.Host, Header: h, ContentLength: int64(len(body)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(bytes.NewReader(body)),
		// Lets the transport try again on a kept connection that had died before anything was written.
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}
	return req.WithContext(ctx)
}

// relayError passes an answer that is not metered. A redirect is not an answer: it is neither
// followed with the key nor shown to the client.
func (to target) relayError(w http.ResponseWriter, resp *http.Response) {
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		to.api.fail(w, failure{http.StatusBadGateway, fmt.Sprintf(
			"the model provider %s answered with a redirect (%d), which is not followed: correct the model base URL", to.upstream.Host, resp.StatusCode)})
		return
	}
	plain, err := decoded(resp)
	if err != nil {
		to.api.fail(w, failure{http.StatusBadGateway, "the model provider's answer cannot be read: " + err.Error()})
		return
	}
	to.copyHeader(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, io.LimitReader(plain, bodyLimit)) // the client may have gone: nothing is lost by it
}

func (to target) copyHeader(dst, src http.Header) {
	for name, values := range src {
		if name == "Content-Type" || name == "Retry-After" || name == "Retry-After-Ms" || to.api.responseHeader(name) {
			dst[name] = values
		}
	}
}

// decoded undoes a compression that was not asked for.
func decoded(resp *http.Response) (io.Reader, error) {
	switch enc := strings.ToLower(resp.Header.Get("Content-Encoding")); enc {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(resp.Body)
	default:
		return nil, fmt.Errorf("content-encoding %s", printable(enc))
	}
}

// block is how much of a stream is moved at once, where so much has come. Each block costs the same few system calls.
type block [128 << 10]byte

// pump copies and counts, flushing what has come: a stream's first byte must not wait for its next.
// It reports whether the answer came whole and reached the client whole.
func (m *Meter) pump(w http.ResponseWriter, src io.Reader, count counter) bool {
	rc := http.NewResponseController(w)
	b := m.blocks.Get().(*block)
	defer m.blocks.Put(b)
	buf := b[:]
	for {
		n, err := src.Read(buf)
		if n > 0 {
			count.write(buf[:n])
			if _, werr := w.Write(buf[:n]); werr != nil {
				return false
			}
			if rc.Flush() != nil {
				return false
			}
		}
		if err != nil {
			return err == io.EOF
		}
	}
}

// reason names a transport error without the URL in it.
func reason(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e7 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
