package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
)

// batchMax is the largest number of spans in one request.
const batchMax = 500

// exporter sends spans as OTLP/HTTP with JSON, which every collector takes beside protobuf.
// https://opentelemetry.io/docs/specs/otlp/#otlphttp
type exporter struct {
	c   Config
	url *url.URL
	do  *http.Client
}

func newExporter(c Config) (*exporter, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, errors.New("the OTLP endpoint is no URL")
	}
	if c.Service == "" {
		c.Service = "proctor"
	}
	return &exporter{c: c, url: u, do: &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: sendTime}).DialContext, ForceAttemptHTTP2: true},
		// A redirect would take the headers elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (x *exporter) host() string { return x.url.Host }

// export sends spans of one trace.
func (x *exporter) export(ctx context.Context, batch []*span, trace string) error {
	for len(batch) > 0 {
		n := min(len(batch), batchMax)
		if err := x.post(ctx, x.body(batch[:n], trace)); err != nil {
			return fmt.Errorf("send the trace to %s: %w", x.host(), err)
		}
		batch = batch[n:]
	}
	return nil
}

func (x *exporter) post(ctx context.Context, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.c.Endpoint, bytes.NewReader(b))
	if err != nil {
		return errors.New("the endpoint is no URL")
	}
	for k, v := range x.c.Headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := x.do.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the URL, whose query may hold a token
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the collector answered HTTP %d", resp.StatusCode)
	}
	return nil
}

type object = map[string]any

func (x *exporter) body(batch []*span, trace string) object {
	list := make([]object, 0, len(batch))
	for _, s := range batch {
		list = append(list, s.otlp(trace))
	}
	resource := []attribute{{"service.name", x.c.Service}, {"service.version", x.c.Version}}
	return object{"resourceSpans": []object{{
		"resource":   object{"attributes": values(resource)},
		"scopeSpans": []object{{"scope": object{"name": "github.com/proctor-ci/proctor", "version": x.c.Version}, "spans": list}},
	}}}
}

// otlp is a span in OTLP's JSON: ids in hex, 64-bit numbers as text.
func (s *span) otlp(trace string) object {
	out := object{
		"traceId": trace, "spanId": s.id, "name": s.name, "kind": s.kind, "attributes": values(s.attributes),
		"startTimeUnixNano": strconv.FormatInt(s.start.UnixNano(), 10), "endTimeUnixNano": strconv.FormatInt(s.end.UnixNano(), 10),
	}
	if s.parent != "" {
		out["parentSpanId"] = s.parent
	}
	if s.failed != "" {
		out["status"] = object{"code": codeError, "message": s.failed}
	}
	return out
}

func values(list []attribute) []object {
	out := []object{}
	for _, a := range list {
		var v object
		switch x := a.value.(type) {
		case string:
			if x == "" {
				continue
			}
			v = object{"stringValue": x}
		case int64:
			v = object{"intValue": strconv.FormatInt(x, 10)}
		case float64:
			v = object{"doubleValue": x}
		case bool:
			v = object{"boolValue": x}
		default:
			continue
		}
		out = append(out, object{"key": a.key, "value": v})
	}
	return out
}
