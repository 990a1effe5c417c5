package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
)

// envelope is what a function URL and an HTTP API (format 2.0) and a REST API (1.0) put around a
// request: the few members that are read.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
type envelope struct {
	RawPath        string              `json:"rawPath"`
	Headers        map[string]string   `json:"headers"`
	MultiHeaders   map[string][]string `json:"multiValueHeaders"`
	Body           string              `json:"body"`
	Base64         bool                `json:"isBase64Encoded"`
	HTTPMethod     string              `json:"httpMethod"` // 1.0
	Path           string              `json:"path"`       // 1.0
	Source         string              `json:"source"`     // schedules and warm-ups
	RequestContext struct {
		Stage string `json:"stage"`
		HTTP  struct {
			Method string `json:"method"`
		} `json:"http"`
	} `json:"requestContext"`
}

// LambdaResponse is the answer in the form that all three front doors take.
type LambdaResponse struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers,omitempty"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

// Lambda handles one invocation. Events are told apart by shape; one that is no HTTP request but names a
// source succeeds, after a round of reaping if it is a schedule's; anything else is answered with 400. It never fails the
// invocation: a front door would turn that into a 502 that says nothing.
func (h *Handler) Lambda(ctx context.Context, event json.RawMessage) (LambdaResponse, error) {
	var e envelope
	if err := json.Unmarshal(event, &e); err != nil {
		return h.plain(ctx, invalid(http.StatusBadRequest, "envelope", "the event is not an HTTP request")), nil
	}
	method := e.RequestContext.HTTP.Method
	if method == "" {
		method = e.HTTPMethod
	}
	if method == "" {
		if e.Source == "aws.events" || e.Source == "aws.scheduler" {
			// On Lambda nothing else ticks.
			return h.plain(ctx, h.tick(ctx)), nil
		}
		if e.Source != "" {
			return h.plain(ctx, accepted(StatusIgnored, "not_http")), nil
		}
		return h.plain(ctx, invalid(http.StatusBadRequest, "envelope", "the event is not an HTTP request")), nil
	}
	body := []byte(e.Body)
	if e.Base64 {
		var err error
		if body, err = base64.StdEncoding.Strict().DecodeString(e.Body); err != nil {
			return h.plain(ctx, invalid(http.StatusBadRequest, "body", "the body is not base64")), nil
		}
	}
	r := (&http.Request{
		Method: method, URL: &url.URL{Path: e.path()}, Header: e.header(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: http.NoBody, ContentLength: int64(len(body)),
	}).WithContext(ctx)
	if len(body) > 0 {
		r.Body = readCloser{bytes.NewReader(body)}
	}
	var w recorder
	h.ServeHTTP(&w, r)
	return w.response(), nil
}

// tick is a schedule's round.
func (h *Handler) tick(ctx context.Context) answer {
	a := accepted(StatusRecorded, "reaped")
	if _, err := h.Sweep(ctx); err != nil {
		h.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "sweep", slog.String(keyError, clip(err.Error())))
		a = later("forge")
	}
	// The one must not wait for the other: a store that fails loses no delivery, and a forge that is away keeps no claim: the sweep leaves time.
	if _, err := h.Reap(ctx); err != nil {
		h.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "reap", slog.String(keyError, clip(err.Error())))
		a = later("store")
	}
	return a
}

// path is the request's own path: a stage other than the default one stands in front of it.
func (e envelope) path() string {
	p := e.RawPath
	if p == "" {
		p = e.Path
	}
	if s := e.RequestContext.Stage; s != "" && s != "$default" {
		if rest, ok := strings.CutPrefix(p, "/"+s); ok && (rest == "" || rest[0] == '/') {
			p = rest
		}
	}
	if p == "" {
		p = "/"
	}
	return p
}

// header keeps repeated headers repeated, so that a signature that was sent twice is refused here too. Names that
// differ by case are one header.
func (e envelope) header() http.Header {
	out := make(http.Header, len(e.Headers))
	if len(e.MultiHeaders) > 0 {
		for k, vs := range e.MultiHeaders {
			for _, v := range vs {
				out.Add(k, v)
			}
		}
		return out
	}
	for k, v := range e.Headers {
		out.Add(k, v)
	}
	return out
}

func (h *Handler) plain(ctx context.Context, a answer) LambdaResponse {
	var w recorder
	a.write(&w)
	h.cfg.Log.LogAttrs(ctx, level(a), "invocation", (&delivery{}).attrs(a, 0)...)
	return w.response()
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// recorder is the http.ResponseWriter of an invocation.
type recorder struct {
	code   int
	header http.Header
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

func (w *recorder) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
}

func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

func (w *recorder) response() LambdaResponse {
	out := LambdaResponse{StatusCode: w.code, Headers: map[string]string{}, Body: w.body.String()}
	for k := range w.header {
		out.Headers[strings.ToLower(k)] = w.header.Get(k)
	}
	return out
}
