package telemetry

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Config says where traces go.
type Config struct {
	Endpoint string            // URL that takes OTLP traces; empty: nowhere
	Headers  map[string]string // sent with each request; their values may be secrets
	Service  string            // service.name; empty: "proctor"
	Version  string            // of this program
}

// FromEnvironment reads the variables that OpenTelemetry's own exporters know. Traces are off unless an endpoint is
// named.
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/
func FromEnvironment(getenv func(string) string) (Config, error) {
	c := Config{Service: getenv("OTEL_SERVICE_NAME"), Endpoint: getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")}
	if base := getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); c.Endpoint == "" && base != "" {
		c.Endpoint = strings.TrimRight(base, "/") + "/v1/traces"
	}
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(getenv("OTEL_TRACES_EXPORTER"), "none") || c.Endpoint == "" {
		return Config{}, nil
	}
	protocol := getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if protocol == "" {
		protocol = getenv("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	if protocol == "grpc" {
		return Config{}, errors.New("OTEL_EXPORTER_OTLP_PROTOCOL is grpc, which is not spoken here: name the collector's HTTP port (4318 as a rule) and set http/json")
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return Config{}, errors.New("the OTLP endpoint is no http or https URL: write it like http://127.0.0.1:4318")
	}
	if u.User != nil {
		return Config{}, fmt.Errorf("the OTLP endpoint at %s holds a password: give it by OTEL_EXPORTER_OTLP_HEADERS", u.Host)
	}
	raw := getenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS")
	if raw == "" {
		raw = getenv("OTEL_EXPORTER_OTLP_HEADERS")
	}
	c.Headers, err = headers(raw)
	return c, err
}

// headers reads "name=value,name=value" with values escaped as in a URL.
func headers(raw string) (map[string]string, error) {
	out := map[string]string{}
	for part := range strings.SplitSeq(raw, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || name == "" || strings.ContainsAny(plain, "\r\n") {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: want name=value, further ones behind commas, values escaped as in a URL")
		}
		out[name] = plain
	}
	return out, nil
}
