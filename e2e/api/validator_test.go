//go:build e2e

package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// validator is a RoundTripper that holds each request and its answer against the description.
type validator struct {
	spec   *spec
	next   http.RoundTripper
	report func(error)

	mu   sync.Mutex
	seen map[string]int // operations that were checked
}

func (v *validator) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := drain(&req.Body)
	if err != nil {
		return nil, err
	}
	path := strings.TrimPrefix(req.URL.EscapedPath(), "/api/v3")
	resp, err := v.next.RoundTrip(req)
	if strings.HasSuffix(path, "/graphql") {
		return resp, err // not part of this description
	}
	where, op, operr := v.spec.operation(req.Method, path)
	if operr != nil {
		v.report(operr)
		return resp, err
	}
	v.mu.Lock()
	v.seen[where]++
	v.mu.Unlock()
	if bad := errors.Join(v.query(where, op, req.URL.Query()), v.request(where, op, body)); bad != nil {
		v.report(fmt.Errorf("request %s %s: %w", req.Method, req.URL.RequestURI(), bad))
	}
	if err != nil {
		return nil, err
	}
	answer, rerr := drain(&resp.Body)
	if rerr != nil {
		return nil, rerr
	}
	if bad := v.answer(where, op, resp.StatusCode, answer); bad != nil {
		v.report(fmt.Errorf("answer to %s %s (%d): %w", req.Method, req.URL.RequestURI(), resp.StatusCode, bad))
	}
	return resp, nil
}

func drain(body *io.ReadCloser) ([]byte, error) {
	if *body == nil {
		return nil, nil
	}
	data, err := io.ReadAll(*body)
	(*body).Close()
	*body = io.NopCloser(bytes.NewReader(data))
	return data, err
}

// query checks that each parameter is declared and fits its schema.
func (v *validator) query(where string, op map[string]any, q url.Values) error {
	declared := map[string]string{}
	list, _ := op["parameters"].([]any)
	for i := range list {
		p, x := v.spec.at(fmt.Sprintf("%s/parameters/%d", where, i))
		if m, ok := x.(map[string]any); ok && m["in"] == "query" {
			declared[m["name"].(string)] = p + "/schema"
		}
	}
	for name, values := range q {
		at, ok := declared[name]
		if !ok {
			return fmt.Errorf("query parameter %q is not one of this operation", name)
		}
		for _, value := range values {
			if name == "created" {
				// Its schema says date-time, its description says a range in search syntax: ">=2025-01-01T00:00:00Z".
				value = strings.TrimLeft(value, "<>=")
			}
			if err := v.spec.check(at, v.typed(at, value)); err != nil {
				return fmt.Errorf("query parameter %s=%s: %w", name, value, err)
			}
		}
	}
	return nil
}

// typed reads a query value as its schema's type.
func (v *validator) typed(at, value string) any {
	_, x := v.spec.at(at)
	m, _ := x.(map[string]any)
	switch m["type"] {
	case "integer":
		if n, err := strconv.Atoi(value); err == nil {
			return n
		}
	case "boolean":
		if b, err := strconv.ParseBool(value); err == nil {
			return b
		}
	}
	return value
}

func (v *validator) request(where string, op map[string]any, body []byte) error {
	if len(body) == 0 {
		if rb, ok := op["requestBody"].(map[string]any); ok && rb["required"] == true {
			return errors.New("the body is missing")
		}
		return nil
	}
	if op["requestBody"] == nil {
		return errors.New("this operation takes no body")
	}
	value, err := jsonValue(body)
	if err != nil {
		return err
	}
	return v.spec.check(where+"/requestBody/content/application~1json/schema", value)
}

// answer checks a status and its body. A success must be described; of refusals that the description
// does not list, the body must still be the API's own error.
func (v *validator) answer(where string, op map[string]any, status int, body []byte) error {
	responses, _ := op["responses"].(map[string]any)
	if _, ok := responses[strconv.Itoa(status)]; !ok {
		if status < 300 {
			return errors.New("this operation has no such success")
		}
		return v.errorBody("/components/schemas/basic-error", body)
	}
	p, _ := v.spec.at(fmt.Sprintf("%s/responses/%d", where, status))
	if _, content := v.spec.at(p + "/content"); content == nil {
		if len(body) > 0 && status < 300 {
			return errors.New("a body where the API sends none")
		}
		return nil
	}
	value, err := jsonValue(body)
	if err != nil {
		return err
	}
	return v.spec.check(p+"/content/application~1json/schema", value)
}

func (v *validator) errorBody(schema string, body []byte) error {
	value, err := jsonValue(body)
	if err != nil {
		return err
	}
	if m, ok := value.(map[string]any); !ok || m["message"] == nil {
		return errors.New("an error without a message")
	}
	delete(value.(map[string]any), "errors") // a validation error has them, a basic error does not
	return v.spec.check(schema, value)
}
