package toolloop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Bounds of asking one call again.
const (
	maxTries = 5
	// maxWait is the longest wait within the process; a longer one is the harness's affair, which shows it.
	maxWait = 30 * time.Second
	// silence is how long a stream may say nothing before it counts as broken: pings come every few seconds.
	silence = 5 * time.Minute
)

// client makes calls.
type client struct {
	order   Order
	wire    wire
	http    http.RoundTripper
	sleep   func(context.Context, time.Duration) error
	silence time.Duration
	tell    func(Line)
}

func newClient(o Order, tell func(Line)) (*client, error) {
	w, err := wireOf(o.API)
	if err != nil {
		return nil, err
	}
	// No HTTP proxy: the one address there is lies on loopback.
	t := &http.Transport{DisableCompression: true, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext}
	return &client{order: o, wire: w, http: t, sleep: sleep, silence: silence, tell: tell}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask makes one call, and again where that may help: throttles and overloads as told, else with growing delays; a
// stream that broke off, from the start.
func (c *client) ask(ctx context.Context, conv *conversation) (reply, error) {
	body, err := c.wire.request(c.order, conv)
	if err != nil {
		return reply{}, err
	}
	wait := time.Second
	for try := 1; ; try++ {
		out, err := c.once(ctx, body)
		if err == nil || ctx.Err() != nil || try == maxTries {
			return out, err
		}
		var f *failed
		pause := wait
		if errors.As(err, &f) {
			pause = max(f.retryIn, wait)
			if !f.again() || pause > maxWait {
				return out, err
			}
		} else if try == 3 {
			return out, err // each torn answer may have been paid for
		}
		c.tell(Line{Type: "message", Text: fmt.Sprintf("the model is asked again in %s: %v", pause, err)})
		if err := c.sleep(ctx, pause); err != nil {
			return out, err
		}
		wait *= 2
	}
}

// again says whether the same call may succeed a little later.
func (f *failed) again() bool {
	if f.final || f.quota() {
		return false
	}
	return f.status == http.StatusTooManyRequests || f.status == http.StatusRequestTimeout || f.status >= 500
}

func (f *failed) quota() bool { return f.code == "insufficient_quota" }

// tooLong says that the request does not fit into the model's window. Only some servers have a code for it.
func (f *failed) tooLong() bool {
	if f.code == "context_length_exceeded" || f.status == http.StatusRequestEntityTooLarge {
		return true
	}
	low := strings.ToLower(f.message)
	return f.status == http.StatusBadRequest && (strings.Contains(low, "prompt is too long") || strings.Contains(low, "maximum context length") ||
		strings.Contains(low, "context window") || strings.Contains(low, "exceeds the available context"))
}

func (c *client) once(ctx context.Context, body []byte) (reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.order.BaseURL+c.wire.path(), bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "proctor-tool-loop")
	c.wire.authorize(req.Header, c.order.Nonce)
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		return reply{}, fmt.Errorf("no answer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return reply{}, failure(resp)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		return reply{}, &failed{status: http.StatusUnsupportedMediaType, final: true, message: fmt.Sprintf("the server answered with %q and no stream of events", resp.Header.Get("Content-Type"))}
	}
	watch := time.AfterFunc(c.silence, func() { cancel(errSilent) })
	defer watch.Stop()
	out, err := c.wire.read(&heard{r: resp.Body, watch: watch, silence: c.silence})
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errSilent) {
		err = cause
	}
	if err != nil {
		var f *failed
		if !errors.As(err, &f) {
			err = fmt.Errorf("the model's answer broke off: %w", err)
		}
	}
	return out, err
}

var errSilent = errors.New("the stream fell silent")

// heard puts the end off whenever something comes.
type heard struct {
	r       io.Reader
	watch   *time.Timer
	silence time.Duration
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	if n > 0 {
		h.watch.Reset(h.silence)
	}
	return n, err
}

// failure reads an answer that is none.
func failure(resp *http.Response) *failed {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // the status decides; words are for people
	f := &failed{status: resp.StatusCode, retryIn: retryAfter(resp.Header), final: resp.Header.Get("X-Should-Retry") == "false"}
	f.code, f.message = errorOf(body)
	if f.message == "" {
		f.message = http.StatusText(resp.StatusCode)
	}
	return f
}

// errorOf finds code and message in the shapes that servers give errors: an object under error, or a text there.
func errorOf(body []byte) (code, message string) {
	var top struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Code    any             `json:"code"`
	}
	if json.Unmarshal(body, &top) != nil {
		return "", cut(strings.TrimSpace(string(body)), 500)
	}
	var text string
	if json.Unmarshal(top.Error, &text) == nil {
		return "", text
	}
	var e struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Code    any    `json:"code"`
	}
	if json.Unmarshal(top.Error, &e) != nil {
		code, _ = top.Code.(string)
		return code, top.Message
	}
	if code, _ = e.Code.(string); code == "" {
		code = e.Type
	}
	return code, e.Message
}

func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e7 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
